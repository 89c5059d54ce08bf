//! The page in a real browser: drawn on, files dropped on it, filled in; narrow and wide, light
//! and dark.
//!
//! Skipped without one; see `crates/lssvm-report/tests/browser.rs`.

#[path = "../../lssvm-report/tests/browser/chromium.rs"]
mod chromium;
mod common;

use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use chromium::{LISTEN, browser_or_skip, framed, open};
use common::*;
use lssvm::linalg::Matrix;
use lssvm::model::AnyModel;
use lssvm_serve::Service;
use lssvm_serve::http::{Event, Handler, Limits, Request, Response};
use serde_json::{Value, json};

const DRIVE: &str = include_str!("drive.js");

/// The service with a page that tests itself, and a page around that.
struct Tested {
    service: Service,
    /// What the test needs to know.
    prepare: String,
    /// Told what the page found.
    found: Mutex<Sender<Value>>,
}

/// The longest that a page may take to find out.
const PATIENCE: Duration = Duration::from_secs(90);

impl Handler for Tested {
    fn answer(&self, request: &Request) -> Response {
        if let Some(width) = request.head.path.strip_prefix("/around/") {
            let body = framed("/", width.parse().unwrap()).into_bytes();
            return Response {
                status: 200,
                content_type: "text/html",
                body,
                headers: Vec::new(),
            };
        }
        if request.head.path == "/found" {
            let found = serde_json::from_slice(&request.body).expect("JSON from the page");
            // Nobody listens any more if the test has failed.
            let _ = self.found.lock().unwrap().send(found);
            return Response {
                status: 200,
                content_type: "text/plain",
                body: Vec::new(),
                headers: Vec::new(),
            };
        }
        let mut response = self.service.answer(request);
        if request.head.path == "/" {
            let page = String::from_utf8(response.body).unwrap();
            let page = page.replacen("<head>", &format!("<head><script>{LISTEN}</script>"), 1);
            let last = format!("<script>{}\n{DRIVE}</script></body>", self.prepare);
            response.body = page.replacen("</body>", &last, 1).into_bytes();
        }
        response
    }

    fn notice(&self, event: Event) {
        self.service.notice(event);
    }
}

/// Uses the page of a model; `check` looks at what was seen.
fn try_page(model: AnyModel, prepare: String, check: impl Fn(&Value)) {
    let Some(program) = browser_or_skip() else {
        return;
    };
    let service = service(model);
    let (sender, told) = channel();
    let tested = Tested {
        service,
        prepare,
        found: Mutex::new(sender),
    };
    let server = Running::start(tested, Limits::default());
    for (width, dark) in [(390, false), (1200, true)] {
        let address = format!("http://{}/around/{width}", server.address);
        let browser = open(&program, &address, width, dark);
        let found = told.recv_timeout(PATIENCE);
        drop(browser);
        let found: Value = found.expect("the browser inspects the page");
        let context = format!("at {width} pixels, dark: {dark}: {found:#}");
        assert_eq!(found["width"], width, "{context}");
        assert_eq!(found["dark"], dark, "{context}");
        assert_eq!(found["title"], "m: lssvm", "{context}");
        for fault in ["errors", "requests"] {
            assert_eq!(found[fault], json!([]), "{fault} {context}");
        }
        for step in found["steps"].as_array().expect("steps") {
            assert_eq!(step["tooWide"], json!([]), "{context}");
            assert_eq!(step["images"], step["imagesLoaded"], "{context}");
        }
        check(&found);
    }
}

/// What was seen after a step.
#[track_caller]
fn after<'a>(found: &'a Value, name: &str) -> &'a Value {
    let mut steps = found["steps"].as_array().expect("steps").iter();
    let step = steps.find(|step| step["name"] == name);
    step.unwrap_or_else(|| panic!("no step {name} in {found:#}"))
}

#[test]
fn images_can_be_drawn_and_dropped() {
    let line = |i: usize| {
        let pixels = stroke(i).into_iter().map(|v| v.to_string());
        pixels.collect::<Vec<_>>().join(",")
    };
    let prepare = format!("window.lines = `{}\n{}\n`;", line(301), line(302));
    try_page(AnyModel::F32(strokes()), prepare, |found| {
        let start = after(found, "start");
        assert_eq!(
            (&start["answer"], &start["error"]),
            (&Value::Null, &Value::Null)
        );
        assert_eq!(after(found, "clear")["answer"], Value::Null, "{found:#}");
        for (step, class) in [
            ("upright", STROKES[0]),
            ("level", STROKES[1]),
            ("aslant", STROKES[2]),
            ("image", STROKES[1]),
            ("lines", STROKES[1]),
        ] {
            let seen = after(found, step);
            assert_eq!(seen["answer"], class, "{step} {found:#}");
            assert_eq!(seen["error"], Value::Null, "{step} {found:#}");
            assert_eq!(seen["bars"], 3, "{step} {found:#}");
            assert!(seen["filled"][0].as_f64() > Some(0.4), "{step} {found:#}");
            assert_eq!(seen["why"], format!("Why {class}"), "{step}");
            assert!(seen["for"].as_u64() >= Some(3), "{step} {found:#}");
            assert!(seen["images"].as_u64() >= seen["for"].as_u64(), "{step}");
        }
        let rows = &after(found, "lines")["rows"];
        assert_eq!(rows, &json!([STROKES[1], STROKES[2]]), "{found:#}");
        assert!(after(found, "broken")["error"].is_string(), "{found:#}");
        let short = &after(found, "short")["error"];
        assert_eq!(short, "line 1 has 3 values, and the model wants 144");
    });
}

#[test]
fn rows_can_be_entered_and_dropped() {
    let model = curves();
    let row = [0.25, 0.5, 0.75];
    let values = model.predict_values(Matrix::from_rows(&[row])).unwrap();
    let lines = "</script>,width,extra,height\n0.75,0.25,9,0.5\n0.1,0.2,9,0.3\n";
    let prepare = format!("window.values = {row:?}; window.lines = {};", json!(lines))
        .replace("</script>", "<\\/script>");
    try_page(AnyModel::F64(model), prepare, |found| {
        assert_eq!(found["labels"], json!(["width", "height", "</script>"]));
        for step in ["row", "lines"] {
            let seen = after(found, step);
            let answer = seen["answer"].as_str().expect("values").split(", ");
            let told: Vec<f64> = answer.map(|value| value.parse().unwrap()).collect();
            for (told, value) in told.iter().zip(values.values()) {
                assert!((told / value - 1.0).abs() < 1e-3, "{step} {found:#}");
            }
            assert_eq!(told.len(), 2);
            assert!(seen["for"].as_u64() >= Some(3), "{step} {found:#}");
            assert_eq!(seen["images"], 0);
        }
        assert_eq!(after(found, "lines")["rows"].as_array().unwrap().len(), 2);
        let missing = after(found, "missing")["error"].as_str().unwrap_or("");
        assert!(missing.contains("is no number"), "{found:#}");
        let image = after(found, "image")["error"].as_str().unwrap_or("");
        assert!(image.contains("not images"), "{found:#}");
    });
}
