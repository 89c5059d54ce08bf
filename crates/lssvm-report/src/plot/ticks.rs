//! Where an axis has ticks, and what stands beside them.
//!
//! Linear axes have steps of 1, 2 or 5 times a power of ten. Logarithmic ones
//! have powers of ten, with others between if there is room, and the ticks of a
//! linear axis if they span little.

use super::Scale;

/// Ticks of an axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Ticks {
    /// Value and text, upwards.
    pub marks: Vec<(f64, String)>,
    /// Texts are values divided by ten to this power.
    pub exponent: i32,
}

/// A logarithmic axis that spans less than this looks like a linear one.
const FINE_DECADES: f64 = 0.4;

/// Values at least this large, or all smaller than its inverse, are written
/// with a power of ten that they share.
const LARGE: f64 = 1e6;
const SMALL: f64 = 1e-3;

/// Fewer ticks than this say too little of an axis.
const LEAST_WHOLE: usize = 3;

impl Ticks {
    /// At most about `most` ticks in this range, which must not be empty.
    pub fn new((low, high): (f64, f64), scale: Scale, most: usize) -> Self {
        let decades = match scale {
            Scale::Linear => 0.0,
            // Not of the quotient, which may be infinite.
            Scale::Log => high.log10() - low.log10(),
        };
        match decades >= FINE_DECADES {
            true => Self::log(low, high, decades, most),
            false => Self::linear(low, high, most),
        }
    }

    fn linear(low: f64, high: f64, most: usize) -> Self {
        let step = step((high - low) / most.max(2) as f64);
        let largest = low.abs().max(high.abs());
        let exponent = match largest {
            large if (SMALL..LARGE).contains(&large) => 0,
            large => large.log10().floor() as i32,
        };
        // Half a step of slack: the ends must not be lost to rounding.
        let slack = 1e-6 * step;
        let first = ((low - slack) / step).ceil();
        let count = (((high + slack) / step).floor() - first).max(0.0) as usize;
        let unit = 10f64.powi(exponent);
        let decimals = (exponent - (step * 1.000_001).log10().floor() as i32).clamp(0, 15);
        let mark = |i: usize| {
            let value = (first + i as f64) * step;
            (value, grouped(value / unit, decimals as usize))
        };
        Self {
            marks: (0..=count.min(100)).map(mark).collect(),
            exponent,
        }
    }

    /// Without those between whole numbers, if enough are left: there is no iteration
    /// one and a half.
    pub fn whole(self) -> Self {
        let marks = self.marks.iter().filter(|(value, _)| value.fract() == 0.0);
        let marks: Vec<_> = marks.map(|&(v, _)| (v, grouped(v, 0))).collect();
        match marks.len() >= LEAST_WHOLE && self.exponent == 0 {
            true => Self { marks, ..self },
            false => self,
        }
    }

    fn log(low: f64, high: f64, decades: f64, most: usize) -> Self {
        let factors: &[f64] = if decades < 1.0 {
            &[1.0, 1.2, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0]
        } else if decades * 3.0 <= most as f64 {
            &[1.0, 2.0, 5.0]
        } else if decades * 2.0 <= most as f64 {
            &[1.0, 3.0]
        } else {
            &[1.0]
        };
        let every = (decades / most.max(2) as f64).ceil().max(1.0) as usize;
        let powers = low.log10().floor() as i32..=high.log10().ceil() as i32;
        let first = powers.clone().find(|p| p % every as i32 == 0);
        let powers = first.unwrap_or(*powers.start())..=*powers.end();
        let slack = 1.0 + 1e-9;
        let marks = powers.step_by(every).flat_map(|power| {
            let value = move |&factor: &f64| (factor, factor * 10f64.powi(power));
            factors.iter().map(value).map(move |(factor, value)| {
                let text = match (-3..=4).contains(&power) {
                    true => plain(value, power),
                    false if factor == 1.0 => format!("10{}", superscript(power)),
                    false => format!("{factor}·10{}", superscript(power)),
                };
                (value, text)
            })
        });
        let marks = marks.filter(|&(v, _)| v * slack >= low && v <= high * slack);
        Self {
            marks: marks.collect(),
            exponent: 0,
        }
    }

    /// The factor that all texts share, for the axis' label.
    pub fn factor(&self) -> Option<String> {
        (self.exponent != 0).then(|| format!("×10{}", superscript(self.exponent)))
    }
}

/// A factor such as 1.2 needs a digit more than its power of ten.
fn plain(value: f64, power: i32) -> String {
    let text = grouped(value, (1 - power).max(0) as usize);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').into(),
        false => text,
    }
}

/// The least of 1, 2 and 5 times a power of ten that is about `rough` or more:
/// a few ticks too many are better than half as many.
fn step(rough: f64) -> f64 {
    let power = 10f64.powi(rough.max(f64::MIN_POSITIVE).log10().floor() as i32);
    let factors = [1.0, 2.0, 5.0];
    let fits = factors.into_iter().find(|f| f * power >= rough * 0.7);
    fits.unwrap_or(10.0) * power
}

/// A number with commas between its thousands.
pub(crate) fn grouped(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", value.abs());
    let (whole, rest) = match text.find('.') {
        Some(dot) => text.split_at(dot),
        None => (text.as_str(), ""),
    };
    let zero = text.bytes().all(|b| matches!(b, b'0' | b'.'));
    let mut out = String::from(if value < 0.0 && !zero { "−" } else { "" });
    for (i, digit) in whole.chars().enumerate() {
        let left = whole.len() - i;
        if i > 0 && left.is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out + rest
}

fn superscript(power: i32) -> String {
    let raised = |c: char| match c {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        digit => char::from_u32('⁰' as u32 + (digit as u32 - '0' as u32)).unwrap_or(digit),
    };
    power.to_string().chars().map(raised).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(low: f64, high: f64, scale: Scale) -> Vec<String> {
        let ticks = Ticks::new((low, high), scale, 6);
        ticks.marks.into_iter().map(|m| m.1).collect()
    }

    #[test]
    fn linear_ticks_have_round_steps() {
        assert_eq!(
            texts(1.03, 1.52, Scale::Linear),
            ["1.1", "1.2", "1.3", "1.4", "1.5"]
        );
        assert_eq!(
            texts(0.0, 600.0, Scale::Linear),
            ["0", "100", "200", "300", "400", "500", "600"]
        );
        assert_eq!(texts(-1.0, 1.0, Scale::Linear)[0], "−1.0");
        assert_eq!(texts(0.0, 60_000.0, Scale::Linear)[1], "10,000");
    }

    #[test]
    fn counts_have_whole_ticks() {
        let whole = |low, high| {
            let ticks = Ticks::new((low, high), Scale::Linear, 10).whole();
            ticks.marks.into_iter().map(|m| m.1).collect::<Vec<_>>()
        };
        assert_eq!(whole(1.0, 6.0), ["1", "2", "3", "4", "5", "6"]);
        assert_eq!(whole(1.0, 2.0).len(), 11);
        assert_eq!(whole(0.0, 600.0)[..3], ["0", "50", "100"]);
    }

    #[test]
    fn huge_and_tiny_values_share_a_power_of_ten() {
        let ticks = Ticks::new((0.0, 3.2e9), Scale::Linear, 6);
        assert_eq!(ticks.factor().unwrap(), "×10⁹");
        assert_eq!(ticks.marks[1], (5e8, "0.5".into()));
        let ticks = Ticks::new((0.0, 4e-7), Scale::Linear, 6);
        assert_eq!(ticks.factor().unwrap(), "×10⁻⁷");
        assert!(ticks.marks.iter().all(|m| m.1.len() <= 4), "{ticks:?}");
    }

    #[test]
    fn log_ticks_are_powers_of_ten() {
        assert_eq!(
            texts(1e-6, 1.0, Scale::Log),
            ["10⁻⁶", "10⁻⁵", "10⁻⁴", "0.001", "0.01", "0.1", "1"]
        );
        assert_eq!(
            texts(0.5, 20.0, Scale::Log),
            ["0.5", "1", "2", "5", "10", "20"]
        );
        assert_eq!(texts(1.0, 1.5, Scale::Log)[1], "1.1");
        let many = texts(1e-300, 1e300, Scale::Log);
        assert!((3..=8).contains(&many.len()), "{many:?}");
    }

    #[test]
    fn any_range_has_a_few_ticks() {
        for low in [-1e300, -5.0, 0.0, 1e-12, 3.3, 1e12] {
            for span in [1e-9, 0.3, 7.0, 1e5, 1e300] {
                let high = low + span;
                if high > low {
                    let n = texts(low, high, Scale::Linear).len();
                    assert!((1..=12).contains(&n), "{n} ticks from {low} to {high}");
                }
            }
        }
    }
}
