//! `lssvm explain`

use anyhow::bail;
use lssvm::Error;
use lssvm::data::{Dataset, ImageShape, read};
use lssvm::linalg::Scalar;
use lssvm::model::{AnyModel, Contribution, Explanation, Model, Outputs};
use lssvm_report::{Block, Gallery, Page, Pictures, Section, Tile};

use crate::args::ExplainArgs;
use crate::output::{self, fact, say};
use crate::settings::read_options_for;

pub fn run(args: &ExplainArgs) -> anyhow::Result<()> {
    match AnyModel::load(&args.model)? {
        AnyModel::F32(model) => explain(args, &model),
        AnyModel::F64(model) => explain(args, &model),
    }
}

fn explain<T: Scalar>(args: &ExplainArgs, model: &Model<T>) -> anyhow::Result<()> {
    if let Some(path) = &args.report {
        lssvm::model::check_writable(path)?;
        if model.input().image.is_none() {
            let requirement = "a picture needs rows that are images; leave it out";
            bail!(Error::parameter("report", path.display(), requirement));
        }
    }
    let options = read_options_for(&args.read, model.input())?;
    let parts = read::<T>(&args.data, &options)?;
    let data = parts.test.unwrap_or(parts.train);
    if !(1..=data.n_samples()).contains(&args.row) {
        let requirement = format!("rows count from 1, and there are {}", data.n_samples());
        bail!(Error::parameter("row", args.row, requirement));
    }
    let row = data.select(&[args.row - 1]);
    let output = args.class.as_ref().map(|class| find(model, class));
    let told = model.explain(row.features.clone(), output.transpose()?, args.count)?;
    let words = Words { model, told: &told };
    words.say(args.row);
    if let Some(path) = &args.report
        && let Some(page) = words.page(args.row, &row)
    {
        output::text(path, &page.to_html())?;
        fact("report", path.display());
    }
    Ok(())
}

/// The output of this name.
fn find<T: Scalar>(model: &Model<T>, class: &str) -> anyhow::Result<usize> {
    let names = model.outputs().names();
    let found = names.iter().position(|name| name == class);
    Ok(found.ok_or_else(|| {
        let requirement = format!("the model knows {}", names.join(", "));
        Error::parameter("class", class, requirement)
    })?)
}

struct Words<'a, T: Scalar> {
    model: &'a Model<T>,
    told: &'a Explanation,
}

impl<T: Scalar> Words<'_, T> {
    fn name(&self, output: usize) -> String {
        match self.model.outputs().names()[output].as_str() {
            "" => format!("output {}", output + 1),
            name => name.to_string(),
        }
    }

    fn say(&self, row: usize) {
        let told = self.told;
        let score = told.scores[told.output];
        fact("row", row);
        fact(
            "explained",
            format!("{} (score {score:.4})", self.name(told.output)),
        );
        if matches!(self.model.outputs(), Outputs::Classes { .. }) {
            let mut order: Vec<usize> = (0..told.scores.len()).collect();
            order.sort_by(|&a, &b| told.scores[b].total_cmp(&told.scores[a]));
            let first = order.iter().take(3);
            let first = first.map(|&k| format!("{} {:.4}", self.name(k), told.scores[k]));
            fact("scores", first.collect::<Vec<_>>().join(", "));
        }
        for (title, rows) in [("for it", &told.pro), ("against it", &told.contra)] {
            for (i, contribution) in rows.iter().enumerate() {
                let title = if i == 0 { title } else { "" };
                fact(title, self.line(contribution));
            }
        }
        fact("all others", format!("{:+.4}, bias included", told.rest));
        let of_classes = matches!(self.model.outputs(), Outputs::Classes { .. });
        if of_classes && self.class_of(0).is_none() {
            say("The model is of an earlier version, which did not keep the classes of its rows.");
        }
    }

    /// The class that a training row was labelled with.
    fn class_of(&self, row: usize) -> Option<String> {
        self.model.class_of(row).map(|class| self.name(class))
    }

    fn line(&self, contribution: &Contribution) -> String {
        let Contribution { row, value, kernel } = *contribution;
        let class = self.class_of(row);
        let class = class.map_or(String::new(), |class| format!(", class {class}"));
        format!(
            "{value:+.4}  row {} of the model{class}, kernel {kernel:.4}",
            row + 1
        )
    }

    /// The rows as pictures, if they are images.
    fn page(&self, row: usize, query: &Dataset<T>) -> Option<Page> {
        let [channels, height, width] = self.model.input().image?;
        let shape = ImageShape {
            channels,
            height,
            width,
        };
        let told = self.told;
        let output = self.name(told.output);
        let mut query = query.clone();
        query.image = Some(shape);
        let mut page = Page::new(
            format!("Why row {row} looks like {output}"),
            format!(
                "The score of {output} is {:.4}; shown are the training rows that add most to it, and \
                 those that take most away.",
                told.scores[told.output]
            ),
        );
        let mut section = Section::new("row", format!("Row {row}"));
        section.blocks.push(Block::Gallery(Gallery {
            title: "As it was read".into(),
            tiles: vec![Tile {
                picture: Pictures::new(&query)?.picture(0)?,
                caption: format!("{output} ({:.2})", told.scores[told.output]),
                title: format!("row {row}"),
            }],
            note: None,
        }));
        page.sections.push(section);
        let groups = [
            ("pro", "For it", &told.pro),
            ("contra", "Against it", &told.contra),
        ];
        for (id, title, rows) in groups {
            if rows.is_empty() {
                continue;
            }
            let mut section = Section::new(id, title);
            section.blocks.push(Block::Gallery(Gallery {
                title: "Training rows after preprocessing, and what they add to the score".into(),
                tiles: self.tiles(rows)?,
                note: None,
            }));
            page.sections.push(section);
        }
        Some(page)
    }

    fn tiles(&self, rows: &[Contribution]) -> Option<Vec<Tile>> {
        let pictures = Pictures::new(&self.model.images_of(rows)?)?;
        let tile = |(i, contribution): (usize, &Contribution)| {
            let class = self.class_of(contribution.row);
            let class = class.map_or(String::new(), |class| format!("{class} "));
            Some(Tile {
                picture: pictures.picture(i)?,
                caption: format!("{class}({:+.3})", contribution.value),
                title: self.line(contribution),
            })
        };
        rows.iter().enumerate().map(tile).collect()
    }
}
