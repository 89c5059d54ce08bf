//! Requests to the server: answered or refused, never with status 500.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use lssvm::data::{Dataset, Labels};
use lssvm::linalg::Matrix;
use lssvm::model::{AnyModel, Model};
use lssvm::solve::{Method, Silent};
use lssvm::train::{Config, Data, fit};
use lssvm_serve::http::{Chunks, Framing, Handler, Head, Request, parse_head};
use lssvm_serve::protocol::{Datatype, parse_numbers};
use lssvm_serve::{Service, ServiceOptions};

use super::model::doubled;

/// Bytes of a body at most.
const MAX_BODY: u64 = 1 << 16;

/// Images of 2 × 3 pixels in three classes, and two values of them.
fn services() -> &'static [Service; 2] {
    static SERVICES: OnceLock<[Service; 2]> = OnceLock::new();
    SERVICES.get_or_init(|| {
        let service = |model: AnyModel| {
            let options = ServiceOptions {
                name: "m".into(),
                threads: 1,
                page: true,
                only_local_names: true,
            };
            Service::new(model, options).expect("a service")
        };
        let classes = Labels::from_text((0..12).map(|i| ["a", "b", "c"][i % 3]));
        let values = Matrix::from_fn(12, 2, |i, j| (i * (j + 1)) as f64 / 8.0);
        let values = Labels::from_values(values).expect("finite values");
        [
            service(AnyModel::F32(trained(classes))),
            service(AnyModel::F64(doubled(&trained(values)))),
        ]
    })
}

fn trained(labels: Labels) -> Model<f32> {
    let x = Matrix::from_fn(12, 6, |i, j| ((i * 5 + j * 3) % 7) as f32);
    let mut train = Dataset::new("images".as_ref(), x);
    train.labels = Some(labels);
    let config = Config {
        image_shape: "2x3".parse().ok(),
        method: Some(Method::Exact),
        threads: Some(1),
        ..Config::default()
    };
    let data = Data {
        train,
        validation: None,
        test: None,
    };
    fit(data, &config, &mut Silent).expect("a small run").0
}

/// Any bytes as what comes on a connection; what begins with `{` as the body of a request.
pub fn request(input: &[u8]) {
    if input.starts_with(b"{") {
        for path in ["infer", "explain"] {
            let start = format!("POST /v2/models/m/{path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
            let (head, _) = parse_head(start.as_bytes()).expect("good").expect("whole");
            answered(head, input.to_vec());
        }
    }
    if input.starts_with(b"[") {
        numbers(input);
    }
    let mut left = input;
    while let Some((head, body, length)) = next(left) {
        answered(head, body);
        left = &left[length..];
    }
}

/// The first request of what has come, and how many bytes it has.
fn next(bytes: &[u8]) -> Option<(Head, Vec<u8>, usize)> {
    let (head, start) = parse_head(bytes).ok()??;
    // It is not taken for whole before it is.
    assert_eq!(parse_head(&bytes[..start - 1]), Ok(None));
    let rest = &bytes[start..];
    let (body, length) = match head.framing {
        Framing::None => (Vec::new(), 0),
        Framing::Length(length) => {
            let length = usize::try_from(length)
                .ok()
                .filter(|&n| n as u64 <= MAX_BODY)?;
            (rest.get(..length)?.to_vec(), length)
        }
        Framing::Chunked => chunks(rest)?,
    };
    Some((head, body, start + length))
}

/// A body in chunks, and how many bytes they have: the same in one piece and byte by byte.
fn chunks(bytes: &[u8]) -> Option<(Vec<u8>, usize)> {
    let take = |pieces: &mut dyn Iterator<Item = &[u8]>| {
        let (mut chunks, mut body, mut length) = (Chunks::new(MAX_BODY), Vec::new(), 0);
        for piece in pieces {
            length += chunks.feed(piece, &mut body).ok()?;
        }
        assert!(body.len() as u64 <= MAX_BODY);
        chunks.is_done().then_some((body, length))
    };
    let whole = take(&mut std::iter::once(bytes));
    let end = whole.as_ref().map_or(bytes.len(), |(_, length)| *length);
    assert_eq!(take(&mut bytes[..end].chunks(1)), whole);
    whole
}

fn answered(head: Head, body: Vec<u8>) {
    let request = Request {
        head,
        body,
        deadline: Instant::now() + Duration::from_secs(60),
    };
    for service in services() {
        if service.admit(&request.head).is_err() {
            continue;
        }
        let response = service.answer(&request);
        let known = [200, 400, 404, 405, 413];
        assert!(known.contains(&response.status), "{}", response.status);
        if response.content_type == "application/json" {
            serde_json::from_slice::<serde_json::Value>(&response.body).expect("JSON");
        }
    }
}

/// Numbers that are read are those of the standard library.
fn numbers(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    let whole = Datatype::named("INT16").expect("it is one");
    let _ = parse_numbers::<f32>(text, &[2, 3], whole);
    let _ = parse_numbers::<f64>(text, &[2, 1, 3], Datatype::Float);
    let Ok(expected) = serde_json::from_str::<Vec<f64>>(text) else {
        return;
    };
    let found = parse_numbers::<f64>(text, &[expected.len()], Datatype::Float);
    assert_eq!(found.ok(), Some(expected));
}
