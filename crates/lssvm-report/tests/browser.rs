//! Pages in a real browser: no errors, nothing asked of the network, pictures
//! there, labels on the axes, nothing too wide, drawings saved, and the same on paper.
//!
//! Needs Chromium or Chrome on the path, or its program in `LSSVM_BROWSER`.
//! Without one the test is skipped, unless `LSSVM_REQUIRE_BROWSER` is set.

#[path = "browser/chromium.rs"]
mod chromium;
mod sample;

use chromium::{browser_or_skip, check_page, inspect, write};
use lssvm::data::Dataset;
use lssvm::linalg::Matrix;
use lssvm::solve::Truth;
use lssvm_report::{Page, Pictures};

/// Made-up digits: a bar whose place is the class.
fn classification() -> Page {
    let n = 600;
    let codes: Vec<u32> = (0..n).map(|i| i as u32 % 10).collect();
    let names: Vec<String> = (0..10).map(|k| format!("<b>class</b> {k}")).collect();
    let pixels = Matrix::from_fn(
        n,
        100,
        |i, j| if j % 10 == i % 10 { 255f32 } else { j as f32 },
    );
    let mut data = Dataset::new("digits".as_ref(), pixels);
    data.image = Some("10x10".parse().unwrap());
    let pictures = Pictures::new(&data).expect("images");
    let scores = sample::class_scores(&codes, 10, 8.0);
    let truth = Truth::Classes(codes);
    let data = "<script>digits</script>";
    sample::page(data, 60, &scores, &truth, &names, Some(&pictures))
}

fn regression() -> Page {
    let (truth, scores) = sample::regression(2_000);
    let names = ["load".to_string(), "an_output_with_a_long_name".repeat(4)];
    sample::page("energy.csv", 40, &scores, &truth, &names, None)
}

#[test]
fn pages_work_in_a_browser() {
    let Some(program) = browser_or_skip() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let pages = [
        (classification(), 30),
        (regression(), 0),
        (sample::paper(), 0),
        (sample::stress(), 0),
    ];
    for (page, least) in pages {
        let images = check_page(&program, &page.to_html(), folder.path());
        assert!(images >= least, "{images} images: {}", page.title);
    }
}

/// The test above would notice what it looks for.
#[test]
fn faults_are_noticed() {
    let Some(program) = browser_or_skip() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("faults.html");
    let faults = "<img src='http://example.invalid/a.png'><script>undefinedName()</script>\
                  <main><p style='width: 3000px'>wide</p></main>";
    write(&sample::paper().to_html(), &path, faults);
    let found = inspect(&program, &path, 390, false);
    let errors = found["errors"].to_string();
    assert!(errors.contains("img-src"), "{errors}");
    assert!(errors.contains("undefinedName"), "{errors}");
    assert_ne!(found["images"], found["imagesLoaded"]);
    assert_ne!(found["tooWide"], serde_json::json!([]));
}
