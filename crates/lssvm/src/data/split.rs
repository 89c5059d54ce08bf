//! Two parts of a data set at random: all rows alike, or class by class.

use crate::{Error, Result, random};

/// Which rows are in which part, each in the order of the file.
type Halves = (Vec<usize>, Vec<usize>);

/// All rows alike.
pub(super) fn at_random(n: usize, fraction: f64, seed: u64) -> Result<Halves> {
    let second = wanted(n, fraction)?;
    let mut rows = shuffled(n, seed);
    let second = rows.split_off(n - second);
    Ok(sorted(rows, second))
}

/// Class by class. Without this a rare class may be in the second part alone, and a
/// model that never saw it cannot be judged by it.
pub(super) fn by_class(n: usize, fraction: f64, seed: u64, codes: &[u32]) -> Result<Halves> {
    if codes.len() != n {
        return Err(Error::Data(format!(
            "{} classes for {n} samples; give one for each",
            codes.len()
        )));
    }
    let second = wanted(n, fraction)?;
    let classes = codes.iter().max().map_or(0, |&most| most as usize + 1);
    let mut counts = vec![0; classes];
    codes.iter().for_each(|&code| counts[code as usize] += 1);
    let mut left = quotas(&counts, fraction, second);
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for row in shuffled(n, seed) {
        match &mut left[codes[row] as usize] {
            0 => first.push(row),
            left => {
                *left -= 1;
                second.push(row);
            }
        }
    }
    if second.is_empty() {
        let requirement =
            format!("no class of these {n} samples has a sample to spare for the other part");
        return Err(Error::parameter("fraction", fraction, requirement));
    }
    Ok(sorted(first, second))
}

/// How many rows of each class are in the second part: the fraction of its rows, rounded
/// down or up so that they are `second` in all, and at most all but one.
fn quotas(counts: &[usize], fraction: f64, second: usize) -> Vec<usize> {
    let exact = |class: usize| counts[class] as f64 * fraction;
    let most = |class: usize| counts[class].saturating_sub(1);
    let floor = |class| (exact(class).floor() as usize).min(most(class));
    let mut quotas: Vec<usize> = (0..counts.len()).map(floor).collect();
    let mut missing = second.saturating_sub(quotas.iter().sum());
    // Those that lost most by rounding come first; a sort is stable, so that equal
    // classes keep their order.
    let mut order: Vec<usize> = (0..counts.len()).collect();
    let lost = |class: &usize| exact(*class) - exact(*class).floor();
    order.sort_by(|a, b| lost(b).total_cmp(&lost(a)));
    for class in order {
        if missing > 0 && quotas[class] < most(class) {
            quotas[class] += 1;
            missing -= 1;
        }
    }
    quotas
}

/// How many of `n` rows the second part is to have.
fn wanted(n: usize, fraction: f64) -> Result<usize> {
    if !(fraction > 0.0 && fraction < 1.0) {
        return Err(Error::parameter(
            "fraction",
            fraction,
            "must be between 0 and 1",
        ));
    }
    let second = (n as f64 * fraction).round() as usize;
    if second == 0 || second >= n {
        let requirement = format!("one of the two parts of {n} samples would be empty");
        return Err(Error::parameter("fraction", fraction, requirement));
    }
    Ok(second)
}

fn shuffled(n: usize, seed: u64) -> Vec<usize> {
    let mut rows: Vec<usize> = (0..n).collect();
    random::shuffle(&mut random::rng(seed), &mut rows);
    rows
}

fn sorted(mut first: Vec<usize>, mut second: Vec<usize>) -> Halves {
    first.sort_unstable();
    second.sort_unstable();
    (first, second)
}

#[cfg(test)]
mod tests {
    use crate::data::Dataset;
    use crate::linalg::Matrix;

    fn numbered(n: usize) -> Dataset<f64> {
        Dataset::new("d".as_ref(), Matrix::from_fn(n, 1, |i, _| i as f64))
    }

    fn count(part: &Dataset<f64>, codes: &[u32], class: u32) -> usize {
        let rows = part.features.values().iter();
        rows.filter(|&&row| codes[row as usize] == class).count()
    }

    #[test]
    fn every_class_is_in_the_first_part() {
        // 80 of one class, 17 of another, 2 and 1 of the rare ones.
        let mut codes = vec![0; 80];
        codes.extend([1; 17]);
        codes.extend([2, 2, 3]);
        let data = numbered(100);
        for seed in 0..20 {
            for fraction in [0.05, 0.2, 0.5, 0.9] {
                let (first, second) = data.split_classes(fraction, seed, &codes).unwrap();
                assert_eq!(first.n_samples() + second.n_samples(), 100);
                for class in 0..4 {
                    assert!(count(&first, &codes, class) > 0, "class {class}");
                    let (n, held) = (
                        codes.iter().filter(|&&c| c == class).count() as f64,
                        count(&second, &codes, class) as f64,
                    );
                    assert!((held - n * fraction).abs() <= 1.0, "{held} of {n}");
                }
                assert_eq!(count(&second, &codes, 3), 0);
            }
        }
        let (_, second) = data.split_classes(0.2, 1, &codes).unwrap();
        assert_eq!(second.n_samples(), 20);
    }

    #[test]
    fn the_seed_decides() {
        let codes: Vec<u32> = (0..60).map(|i| i % 3).collect();
        let data = numbered(60);
        let second = |seed| data.split_classes(0.3, seed, &codes).unwrap().1.features;
        assert_eq!(second(7), second(7));
        assert_ne!(second(7), second(8));
        assert!(second(7).values().is_sorted());
    }

    #[test]
    fn no_sample_to_spare() {
        let data = numbered(4);
        let error = data.split_classes(0.5, 1, &[0, 1, 2, 3]).unwrap_err();
        assert!(error.to_string().contains("to spare"), "{error}");
        let error = data.split_classes(0.5, 1, &[0]).unwrap_err();
        assert!(error.to_string().contains("1 classes for 4"), "{error}");
    }
}
