//! Writes four pages with made-up results, to look at:
//! `cargo run -p lssvm-report --example demo -- data/mnist FOLDER`

#[path = "../tests/sample/mod.rs"]
mod sample;

use std::path::Path;

use lssvm::data::{ReadOptions, Targets, Task, read};
use lssvm::solve::Truth;
use lssvm_report::{Block, Pictures};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [mnist, folder] = arguments.as_slice() else {
        return Err("give the folder of MNIST and a folder for the pages".into());
    };
    let folder = Path::new(folder);
    std::fs::create_dir_all(folder)?;

    let parts = read::<f32>(Path::new(mnist), &ReadOptions::default())?;
    let test = parts.test.ok_or("there is no test part")?;
    let labels = test.labels.as_ref().ok_or("there are no labels")?;
    let Targets::Classes { names, codes } = labels.resolve(Task::Classification)? else {
        return Err("the labels are not classes".into());
    };
    let scores = sample::class_scores(&codes, names.len(), 1.3);
    let truth = Truth::Classes(codes);
    let pictures = Pictures::new(&test);
    let page = sample::page("data/mnist", 60, &scores, &truth, &names, pictures.as_ref());
    std::fs::write(folder.join("classes.html"), page.to_html())?;

    let (truth, scores) = sample::regression(20_000);
    let names = ["load".to_string(), "temperature".to_string()];
    let page = sample::page("energy.csv", 40, &scores, &truth, &names, None);
    std::fs::write(folder.join("values.html"), page.to_html())?;

    std::fs::write(folder.join("stress.html"), sample::stress().to_html())?;
    let page = sample::paper();
    std::fs::write(folder.join("paper.html"), page.to_html())?;
    for block in page.sections.iter().flat_map(|section| &section.blocks) {
        if let Block::Plot(plot) = block {
            let file = folder.join(format!("{}.svg", plot.name));
            std::fs::write(file, plot.to_svg())?;
        }
    }
    Ok(())
}
