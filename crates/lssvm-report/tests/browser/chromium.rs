//! Opens pages in Chromium and says what it finds.

// The tests of two crates use it, each a part.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Counts what goes wrong, from the very start.
pub const LISTEN: &str = include_str!("listen.js");

/// Looks at the page when it is complete, and saves the drawings.
const INSPECT: &str = include_str!("inspect.js");

/// Pixels between the margins of a page of paper: A4, 96 an inch, margins of 1 cm.
const PAPER: u32 = 718;

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

/// What the browser found, at this width.
pub fn inspect(program: &Path, page: &Path, width: u32, dark: bool) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let around = folder.path().join("around.html");
    let address = format!("file://{}", page.display());
    std::fs::write(&around, framed(&address, width)).unwrap();
    found_at(
        program,
        &format!("file://{}", around.display()),
        width,
        dark,
    )
}

/// A page around the one under test that keeps what this finds: no window is narrower than
/// 500 pixels, but a frame may be.
pub fn framed(address: &str, width: u32) -> String {
    format!(
        "<!doctype html><meta name=color-scheme content='light dark'><script>\
         onmessage = (e) => document.documentElement.dataset.found = e.data;</script>\
         <iframe style='width: {width}px; height: 900px; border: 0' src='{address}'></iframe>"
    )
}

/// What a page in a frame found, at the address of the page around it.
pub fn found_at(program: &Path, address: &str, width: u32, dark: bool) -> Value {
    let folder = tempfile::tempdir().unwrap();
    // 0 is dark and 1 is light, in the browser's own settings.
    let scheme = u8::from(!dark);
    let output = command(program, folder.path())
        .args(["--dump-dom", "--virtual-time-budget=8000"])
        .arg(format!("--blink-settings=preferredColorScheme={scheme}"))
        .arg(format!("--window-size={},1000", width + 50))
        .arg(address)
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

/// Opens a page on a server, which the page itself tells what it found: unlike
/// [`found_at`], whose clock runs ahead of all that is not a timer, in real time. The
/// browser is closed when this is dropped.
pub fn open(program: &Path, address: &str, width: u32, dark: bool) -> Opened {
    let folder = tempfile::tempdir().unwrap();
    let scheme = u8::from(!dark);
    let child = command(program, folder.path())
        .arg("--remote-debugging-port=0")
        .arg(format!("--blink-settings=preferredColorScheme={scheme}"))
        .arg(format!("--window-size={},1000", width + 50))
        .arg(address)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("the browser starts");
    Opened { child, folder }
}

/// An open browser, and the folder of its settings.
pub struct Opened {
    child: std::process::Child,
    folder: tempfile::TempDir,
}

impl Drop for Opened {
    fn drop(&mut self) {
        // It has ended if that fails.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn check(found: &Value, width: u32, dark: bool) {
    let context = format!("at {width} pixels, dark: {dark}: {found:#}");
    assert_eq!(found["width"], width, "{context}");
    assert_eq!(found["dark"], dark, "{context}");
    let charts = found["charts"].as_array().expect("charts").len();
    assert!(charts >= 2, "{context}");
    assert_eq!(found["buttonsShown"], 2 * charts, "{context}");
    check_layout(found, &context);
    // Every drawing as SVG, and as PNG.
    let saved = found["saved"].as_array().expect("files");
    for kind in ["image/svg+xml", "image/png"] {
        let of_kind = saved.iter().filter(|s| s["type"] == kind);
        let large = of_kind.filter(|s| s["size"].as_u64() > Some(1_000));
        assert_eq!(large.count(), charts, "{kind} {context}");
    }
    assert_eq!(found["variablesInSaved"], false, "{context}");
}

/// What holds on the screen and on paper.
fn check_layout(found: &Value, context: &str) {
    let none = serde_json::json!([]);
    for fault in ["errors", "requests", "tooWide"] {
        assert_eq!(found[fault], none, "{fault} {context}");
    }
    assert_eq!(found["images"], found["imagesLoaded"], "{context}");
    for chart in found["charts"].as_array().expect("charts") {
        assert_eq!(chart["drawingsShown"], 1, "{context}");
        for fault in ["cutTexts", "overlappingLabels"] {
            assert_eq!(chart[fault], none, "{fault} {context}");
        }
        if chart["kind"] != "plot" {
            continue;
        }
        for label in ["xLabel", "yLabel"] {
            let label = chart[label].as_str();
            assert!(label.is_some_and(|t| !t.is_empty()), "{context}");
        }
        for ticks in ["xTicks", "yTicks"] {
            let ticks = chart[ticks].as_u64().unwrap_or(0);
            // What the steps of 1, 2 and 5 allow, for any range: real times vary.
            assert!((2..=14).contains(&ticks), "{context}");
        }
    }
}

/// The browser, or none and a line that says so.
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
pub fn browser_or_skip() -> Option<PathBuf> {
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

/// Writes a page with what the test needs, and `more` at the end.
pub fn write(html: &str, path: &Path, more: &str) {
    let html = html.replacen("<head>", &format!("<head><script>{LISTEN}</script>"), 1);
    let last = format!("{more}<script>{INSPECT}</script></body>");
    std::fs::write(path, html.replacen("</body>", &last, 1)).unwrap();
}

/// Looks at a page, narrow and wide, light and dark, and on paper. Returns how many
/// images it has.
pub fn check_page(program: &Path, html: &str, folder: &Path) -> u64 {
    let path = folder.join("under-test.html");
    write(html, &path, "");
    let mut images = 0;
    for (width, dark) in [(390, false), (390, true), (1400, false), (1400, true)] {
        let found = inspect(program, &path, width, dark);
        check(&found, width, dark);
        images = found["images"].as_u64().unwrap();
    }
    check_print(program, html, folder);
    images
}

/// Pages are printed in their light colours, without buttons, and nothing is cut.
fn check_print(program: &Path, html: &str, folder: &Path) {
    // A browser without a window cannot be told to show a page as if it were printed:
    // the rules for paper are made to hold everywhere.
    assert!(html.contains("@media print"));
    let on_paper = html
        .replace("@media print", "@media all")
        .replace("@media screen and", "@media print and");
    let path = folder.join("on-paper.html");
    write(&on_paper, &path, "");
    let found = inspect(program, &path, PAPER, true);
    assert_eq!(found["buttonsShown"], 0, "{found:#}");
    assert_eq!(found["listShown"], false, "{found:#}");
    check_layout(&found, &format!("on paper: {found:#}"));
    assert_eq!(found["dark"], false, "{found:#}");

    let (plain, pdf) = (folder.join("plain.html"), folder.join("page.pdf"));
    std::fs::write(&plain, html).unwrap();
    let output = command(program, folder)
        .arg(format!("--print-to-pdf={}", pdf.display()))
        .arg(format!("file://{}", plain.display()))
        .output()
        .expect("the browser starts");
    let complaints = String::from_utf8_lossy(&output.stderr);
    let file = std::fs::read(&pdf).unwrap_or_else(|e| panic!("{e}: {complaints}"));
    assert!(
        file.starts_with(b"%PDF-") && file.len() > 10_000,
        "{complaints}"
    );
    let text = String::from_utf8_lossy(&file);
    assert!(text.contains("/Type /Page"), "a page of paper");
}

fn command(program: &Path, profile: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .args(["--headless", "--no-sandbox", "--disable-gpu"])
        // A test asks nothing of the network, and neither does the browser for itself.
        .args(["--disable-quic", "--no-first-run", "--disable-sync"])
        .args([
            "--disable-background-networking",
            "--disable-component-update",
        ])
        .arg(format!(
            "--user-data-dir={}",
            profile.join("profile").display()
        ));
    command
}
