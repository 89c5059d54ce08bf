//! Pages in a real browser: no errors, nothing asked of the network, pictures
//! there, labels on the axes, nothing too wide, drawings saved.
//!
//! Needs Chromium or Chrome on the path, or its program in `LSSVM_BROWSER`.
//! Without one the test is skipped, unless `LSSVM_REQUIRE_BROWSER` is set.

mod sample;

use std::path::{Path, PathBuf};
use std::process::Command;

use lssvm::data::Dataset;
use lssvm::linalg::Matrix;
use lssvm::solve::Truth;
use lssvm_report::{Page, Pictures};
use serde_json::Value;

/// Counts what goes wrong, from the very start.
const LISTEN: &str = include_str!("browser/listen.js");

/// Looks at the page when it is complete, and saves the drawings.
const INSPECT: &str = include_str!("browser/inspect.js");

fn browser() -> Option<PathBuf> {
    if let Some(program) = std::env::var_os("LSSVM_BROWSER") {
        return Some(program.into());
    }
    let path = std::env::var_os("PATH")?;
    let folders: Vec<_> = std::env::split_paths(&path).collect();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let places = names
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    places.into_iter().find(|place| place.is_file())
}

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

/// What the browser found, at this width.
fn inspect(program: &Path, page: &Path, width: u32, dark: bool) -> Value {
    let folder = tempfile::tempdir().unwrap();
    // No window is narrower than 500 pixels; a frame may be.
    let around = folder.path().join("around.html");
    let frame = format!(
        "<!doctype html><meta name=color-scheme content='light dark'><script>\
         onmessage = (e) => document.documentElement.dataset.found = e.data;</script>\
         <iframe style='width: {width}px; height: 900px; border: 0' src='file://{}'></iframe>",
        page.display()
    );
    std::fs::write(&around, frame).unwrap();
    // 0 is dark and 1 is light, in the browser's own settings.
    let scheme = u8::from(!dark);
    let output = Command::new(program)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
        .arg("--virtual-time-budget=8000")
        .arg(format!(
            "--user-data-dir={}",
            folder.path().join("profile").display()
        ))
        .arg(format!("--blink-settings=preferredColorScheme={scheme}"))
        .arg(format!("--window-size={},1000", width + 50))
        .arg(format!("file://{}", around.display()))
        .output()
        .expect("the browser starts");
    let dom = String::from_utf8_lossy(&output.stdout);
    let start = dom
        .find("data-found=\"")
        .map(|at| at + "data-found=\"".len());
    let Some(found) = start.and_then(|at| dom[at..].split('"').next()) else {
        let complaints = String::from_utf8_lossy(&output.stderr);
        panic!("the browser did not inspect the page: {complaints}");
    };
    let found = found
        .replace("&quot;", "\"")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&");
    serde_json::from_str(&found).expect("JSON from the page")
}

fn check(found: &Value, width: u32, dark: bool) {
    let context = format!("at {width} pixels, dark: {dark}: {found:#}");
    assert_eq!(found["errors"], serde_json::json!([]), "{context}");
    assert_eq!(found["requests"], serde_json::json!([]), "{context}");
    assert_eq!(found["width"], width, "{context}");
    assert_eq!(found["dark"], dark, "{context}");
    assert_eq!(found["tooWide"], serde_json::json!([]), "{context}");
    assert_eq!(found["images"], found["imagesLoaded"], "{context}");
    let charts = found["charts"].as_array().expect("charts");
    assert!(charts.len() >= 2, "{context}");
    for chart in charts {
        assert_eq!(chart["drawingsShown"], 1, "{context}");
        assert_eq!(chart["cutTexts"], serde_json::json!([]), "{context}");
        assert_eq!(
            chart["overlappingLabels"],
            serde_json::json!([]),
            "{context}"
        );
        if chart["kind"] == "plot" {
            assert!(
                chart["xLabel"].as_str().is_some_and(|t| !t.is_empty()),
                "{context}"
            );
            assert!(
                chart["yLabel"].as_str().is_some_and(|t| !t.is_empty()),
                "{context}"
            );
            for ticks in ["xTicks", "yTicks"] {
                let ticks = chart[ticks].as_u64().unwrap_or(0);
                assert!((3..=12).contains(&ticks), "{context}");
            }
        }
    }
    // Every drawing as SVG, and as PNG.
    let saved = found["saved"].as_array().expect("files");
    for kind in ["image/svg+xml", "image/png"] {
        let of_kind = saved.iter().filter(|s| s["type"] == kind);
        let large = of_kind.filter(|s| s["size"].as_u64() > Some(1_000));
        assert_eq!(large.count(), charts.len(), "{kind} {context}");
    }
    assert_eq!(found["variablesInSaved"], false, "{context}");
}

/// The browser, or none and a line that says so.
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
fn browser_or_skip() -> Option<PathBuf> {
    let program = browser();
    if program.is_none() {
        let required = std::env::var_os("LSSVM_REQUIRE_BROWSER").is_some();
        assert!(
            !required,
            "there is no browser, and LSSVM_REQUIRE_BROWSER is set"
        );
        eprintln!("skipped: there is no Chromium on the path, nor in LSSVM_BROWSER");
    }
    program
}

/// Writes the page with what the test needs, and `more` at the end.
fn write(page: &Page, path: &Path, more: &str) {
    let html = page.to_html();
    let html = html.replacen("<head>", &format!("<head><script>{LISTEN}</script>"), 1);
    let last = format!("{more}<script>{INSPECT}</script></body>");
    std::fs::write(path, html.replacen("</body>", &last, 1)).unwrap();
}

#[test]
fn pages_work_in_a_browser() {
    let Some(program) = browser_or_skip() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let pages = [
        ("classes", classification(), 30),
        ("values", regression(), 0),
        ("paper", sample::paper(), 0),
        ("stress", sample::stress(), 0),
    ];
    for (name, page, images) in pages {
        let path = folder.path().join(format!("{name}.html"));
        write(&page, &path, "");
        for (width, dark) in [(390, false), (1400, false), (1400, true)] {
            let found = inspect(&program, &path, width, dark);
            check(&found, width, dark);
            assert!(found["images"].as_u64() >= Some(images), "{found:#}");
        }
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
    write(&sample::paper(), &path, faults);
    let found = inspect(&program, &path, 390, false);
    let errors = found["errors"].to_string();
    assert!(errors.contains("img-src"), "{errors}");
    assert!(errors.contains("undefinedName"), "{errors}");
    assert_ne!(found["images"], found["imagesLoaded"]);
    assert_ne!(found["tooWide"], serde_json::json!([]));
}
