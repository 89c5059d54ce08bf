//! Which class was taken for which.

use lssvm::train::Evaluation;

use super::Judged;
use crate::heatmap::Heatmap;
use crate::page::{Block, Section, Table};
use crate::plot::grouped;

/// The confusion matrix, and precision and recall of each class.
pub(super) fn confusion(judged: Judged) -> Option<Section> {
    let (test, name) = (judged.evaluation, judged.rows.name());
    let confusion = test.confusion.as_ref()?;
    let mut section = Section::new("confusion", "Classes");
    let (wrong, all) = (confusion.n_errors(), confusion.n_samples());
    section.text.extend(judged.rows.remark().map(String::from));
    section.text.push(format!(
        "{} of {} {name} are wrong. Correct rows, on the diagonal, are pale; errors are \
         coloured by their share of the true class's rows, up to the largest.",
        grouped(wrong as f64, 0),
        grouped(all as f64, 0)
    ));
    let counts = |row: &Vec<u64>| row.iter().map(|&n| n as f64).collect();
    section.blocks.push(Block::Heatmap(Heatmap {
        name: "confusion".into(),
        title: "Confusion matrix".into(),
        rows: confusion.classes.clone(),
        columns: confusion.classes.clone(),
        values: confusion.counts.iter().map(counts).collect(),
        row_label: "true class".into(),
        column_label: "predicted class".into(),
        unit: name.into(),
        decimals: None,
    }));
    section.blocks.extend(class_table(test).map(Block::Table));
    Some(section)
}

/// Precision and recall of each class; none for values.
pub fn class_table(test: &Evaluation) -> Option<Table> {
    let confusion = test.confusion.as_ref()?;
    let rows = confusion.per_class().into_iter().map(|class| {
        [
            class.class,
            format!("{:.4}", class.precision),
            format!("{:.4}", class.recall),
            format!("{:.4}", class.f1),
            grouped(class.support as f64, 0),
        ]
    });
    let header = ["class", "precision", "recall", "F1", "rows"];
    let mut table = Table::new("Scores of each class", header, rows);
    // Names that are digits are names all the same.
    table.numeric[0] = false;
    Some(table)
}
