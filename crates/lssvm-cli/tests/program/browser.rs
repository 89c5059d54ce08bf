//! Pages that the program writes, in a real browser.
//!
//! Skipped without one; see `crates/lssvm-report/tests/browser.rs`.

#[path = "../../../lssvm-report/tests/browser/chromium.rs"]
mod chromium;
use crate::common::*;
use chromium::{browser_or_skip, check_page};

/// Every kind of figure, with names that want to be something else.
const EXPERIMENT: &str = r#"
title = "Bars <b>"
about = "Images of 4 × 4 pixels."
data = "."

[settings]
method = "mp"
block-size = 8
iterations = 6
tolerance = 0
preprocess = "fourier"

[[figure]]
id = "images"
title = "Images"
kind = "pictures"
per-class = 4

[[figure]]
id = "curves"
title = "Curves"
kind = "curves"
paper = { value = 20, spread = 5, text = "20 ± 5 %" }
runs = [
    { name = "mp", label = "mp, J = {J}", paper-seconds = 3 },
    { name = "kaczmarz", label = "<i>kaczmarz</i>, J = {J}", method = "kaczmarz" },
    { name = "nystrom", method = "nystrom", block-size = 4 },
]

[[figure]]
id = "wrong"
title = "Wrong"
kind = "misclassified"
of = "nystrom"

[[figure]]
id = "classes"
title = "Classes"
kind = "confusion"
of = "mp"
"#;

#[test]
fn pages_of_the_program_work_in_a_browser() {
    let Some(program) = browser_or_skip() else {
        return;
    };
    let folder = Folder::new();
    write_bars(&folder, "train", 90);
    write_bars(&folder, "t10k", 60);
    folder.write("own.toml", EXPERIMENT);
    folder.run("reproduce own.toml");
    folder.run("train . --method mp --block-size 8 --iterations 4 --report trained.html");
    folder.write("curves.csv", curves(0..120));
    folder.run("train curves.csv --label a,b --loo --report values.html");
    let here = folder.path("own.html");
    let here = here.parent().unwrap();
    for (name, least) in [("own", 12), ("trained", 0), ("values", 0)] {
        let html = folder.read(&format!("{name}.html"));
        let images = check_page(&program, &html, here);
        assert!(images >= least, "{name}: {images} images");
    }
}
