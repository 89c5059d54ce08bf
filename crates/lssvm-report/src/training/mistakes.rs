//! The images that were classified wrong.

use lssvm::linalg::Matrix;
use lssvm::model::argmax;
use lssvm::train::Evaluation;

use super::Run;
use crate::page::{Block, Gallery, Section, Tile};
use crate::plot::grouped;

/// More are not looked at, and make the file large.
const MOST_SHOWN: usize = 200;

/// A wrong row.
struct Mistake {
    row: usize,
    truth: usize,
    predicted: usize,
    /// How far the wrong class was ahead of the right one.
    lead: f64,
}

/// Images with the true and the predicted class, the most certain errors first.
pub fn section(run: &Run, test: &Evaluation, codes: &[u32]) -> Option<Section> {
    let pictures = run.pictures?;
    let mut mistakes = find(&test.scores, codes);
    if mistakes.is_empty() {
        return None;
    }
    mistakes.sort_by(|a, b| b.lead.total_cmp(&a.lead).then(a.row.cmp(&b.row)));
    let all = mistakes.len();
    let tile = |mistake: &Mistake| {
        let row = test.scores.row(mistake.row);
        let (truth, predicted) = (run.name(mistake.truth), run.name(mistake.predicted));
        let score = row[mistake.predicted];
        Some(Tile {
            picture: pictures.picture(mistake.row)?,
            caption: format!("{truth} → {predicted} ({score:.2})"),
            title: format!(
                "test row {}: true {truth} (score {:.3}), predicted {predicted} (score {score:.3})",
                mistake.row + 1,
                row[mistake.truth]
            ),
        })
    };
    let tiles: Vec<_> = mistakes.iter().take(MOST_SHOWN).filter_map(tile).collect();
    if tiles.is_empty() {
        return None;
    }
    let shown = match tiles.len() == all {
        true => format!("All {}", grouped(all as f64, 0)),
        false => format!("{} of {}", tiles.len(), grouped(all as f64, 0)),
    };
    let mut section = Section::new("mistakes", "Misclassified images");
    section.blocks.push(Block::Gallery(Gallery {
        title: "True → predicted class, and the score of the prediction".into(),
        tiles,
        note: Some(format!(
            "{shown} are shown, first those where the wrong class is farthest ahead of the right \
             one."
        )),
    }));
    Some(section)
}

fn find(scores: &Matrix<f64>, codes: &[u32]) -> Vec<Mistake> {
    let classes = scores.cols();
    let predicted = argmax(scores);
    let pairs = codes.iter().zip(predicted).enumerate();
    let wrong = pairs.filter(|(_, (truth, predicted))| *truth != predicted);
    let mistakes = wrong.map(|(row, (&truth, predicted))| {
        let (truth, predicted) = (truth as usize, predicted as usize);
        let values = scores.row(row);
        let lead = match truth < classes {
            true => values[predicted] - values[truth],
            false => f64::NEG_INFINITY,
        };
        Mistake {
            row,
            truth,
            predicted,
            lead,
        }
    });
    // A code without a score has no place here.
    mistakes.filter(|mistake| mistake.truth < classes).collect()
}
