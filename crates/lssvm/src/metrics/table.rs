//! A confusion matrix as plain text for a terminal.
//!
//! Zeros are dots, so that the mistakes stand out. If the class names would
//! make the table wider than a terminal, columns are numbered and the numbers
//! stand beside the names of the rows.

use std::fmt;

use super::Confusion;

/// Widest table whose columns carry names.
const NAMED_WIDTH: usize = 100;
/// Longest name that is shown in full.
const LONGEST_NAME: usize = 24;

impl fmt::Display for Confusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (lower, upper) = self.error_interval();
        writeln!(
            f,
            "error {:.2} % ({} of {} rows, 95 % interval {:.2} to {:.2} %)",
            self.error_percent(),
            self.n_errors(),
            self.n_samples(),
            100.0 * lower,
            100.0 * upper
        )?;
        let (row_names, column_names) = names(self);
        let label = longest(&row_names).max("average".len());
        writeln!(f, "\nrows: true class, columns: predicted class")?;
        write_counts(f, self, &row_names, &column_names, label)?;
        writeln!(f)?;
        write_scores(f, self, &row_names, label)
    }
}

/// Names for the rows and for the columns.
fn names(confusion: &Confusion) -> (Vec<String>, Vec<String>) {
    let names: Vec<String> = confusion.classes.iter().map(|c| shown(c)).collect();
    let cell = cell_width(confusion, &names);
    if longest(&names) + names.len() * (cell + 1) <= NAMED_WIDTH {
        return (names.clone(), names);
    }
    let numbers: Vec<String> = (1..=names.len()).map(|k| k.to_string()).collect();
    // A name that is no longer than its number says more in the same space.
    if longest(&names) <= longest(&numbers) {
        return (names.clone(), names);
    }
    let width = longest(&numbers);
    let numbered = numbers.iter().zip(&names);
    let rows = numbered.map(|(number, name)| format!("{number:>width$} {name}"));
    (rows.collect(), numbers)
}

/// The name without what would break a line or command the terminal, and not
/// too long.
fn shown(class: &str) -> String {
    let clean = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    let mut name: String = class.chars().take(LONGEST_NAME + 1).map(clean).collect();
    if name.chars().count() > LONGEST_NAME {
        name.pop();
        name.pop();
        name.push('…');
    }
    name
}

fn longest(names: &[String]) -> usize {
    names.iter().map(|n| n.chars().count()).max().unwrap_or(0)
}

fn cell_width(confusion: &Confusion, column_names: &[String]) -> usize {
    let largest = confusion.counts.iter().flatten().max().unwrap_or(&0);
    longest(column_names).max(largest.to_string().len())
}

fn write_counts(
    f: &mut fmt::Formatter<'_>,
    confusion: &Confusion,
    row_names: &[String],
    column_names: &[String],
    label: usize,
) -> fmt::Result {
    let cell = cell_width(confusion, column_names);
    write!(f, "{:label$}", "")?;
    for name in column_names {
        write!(f, " {name:>cell$}")?;
    }
    writeln!(f)?;
    for (name, counts) in row_names.iter().zip(&confusion.counts) {
        write!(f, "{name:label$}")?;
        for count in counts {
            match count {
                0 => write!(f, " {:>cell$}", ".")?,
                count => write!(f, " {count:>cell$}")?,
            }
        }
        writeln!(f)?;
    }
    Ok(())
}

fn write_scores(
    f: &mut fmt::Formatter<'_>,
    confusion: &Confusion,
    row_names: &[String],
    label: usize,
) -> fmt::Result {
    let (precision, recall, f1, rows) = ("precision", "recall", "F1", "rows");
    writeln!(
        f,
        "{:label$} {precision:>9} {recall:>9} {f1:>9} {rows:>9}",
        ""
    )?;
    for (name, s) in row_names.iter().zip(confusion.per_class()) {
        let (p, r, f1, n) = (s.precision, s.recall, s.f1, s.support);
        writeln!(f, "{name:label$} {p:>9.4} {r:>9.4} {f1:>9.4} {n:>9}")?;
    }
    let (average, n) = (confusion.macro_average(), confusion.n_samples());
    let (p, r, f1) = (average.precision, average.recall, average.f1);
    writeln!(f, "{:label$} {p:>9.4} {r:>9.4} {f1:>9.4} {n:>9}", "average")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_table() {
        let classes = vec!["cat".into(), "automobile".into()];
        let truth = [0, 0, 0, 1, 1, 1, 1, 1];
        let confusion = Confusion::new(classes, &truth, &[0, 0, 0, 1, 1, 1, 1, 0]).unwrap();
        let expected = "\
error 12.50 % (1 of 8 rows, 95 % interval 2.24 to 47.09 %)

rows: true class, columns: predicted class
                  cat automobile
cat                 3          .
automobile          1          4

           precision    recall        F1      rows
cat           0.7500    1.0000    0.8571         3
automobile    1.0000    0.8000    0.8889         5
average       0.8750    0.9000    0.8730         8
";
        assert_eq!(confusion.to_string(), expected);
    }

    fn counted(classes: Vec<String>) -> String {
        let k = classes.len() as u32;
        let truth: Vec<u32> = (0..k * 700).map(|i| i % k).collect();
        let predicted: Vec<u32> = truth.iter().map(|t| (t + t / 25) % k).collect();
        Confusion::new(classes, &truth, &predicted)
            .unwrap()
            .to_string()
    }

    #[test]
    fn many_classes_stay_narrow() {
        let letters = ('A'..='Z').map(String::from).collect();
        let table = counted(letters);
        assert!(table.lines().all(|line| line.chars().count() <= 120));
        assert!(table.contains("  A   B   C "), "{table}");

        let words = (0..26).map(|k| format!("a rather long name {k}")).collect();
        let table = counted(words);
        assert!(table.lines().all(|line| line.chars().count() <= 140));
        assert!(table.contains("26 a rather long name 25 "), "{table}");
    }

    #[test]
    fn names_cannot_break_the_table() {
        let table = counted(vec!["a\nb\u{1b}[2J".into(), "x".repeat(1000)]);
        assert!(table.lines().all(|line| line.chars().count() <= 100));
        assert!(!table.contains('\u{1b}'));
        assert_eq!(table.lines().count(), 11);
    }
}
