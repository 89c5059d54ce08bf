//! The server as its clients see it: the protocol, the limits, the end.

mod common;

use std::io::Read;
use std::time::Duration;

use common::*;
use lssvm::linalg::Matrix;
use lssvm::model::AnyModel;
use lssvm_serve::http::{Handler, Limits, Request, Response};
use serde_json::json;

fn quick() -> Limits {
    Limits {
        headers: Duration::from_millis(200),
        request: Duration::from_millis(600),
        ..Limits::default()
    }
}

#[test]
fn health_and_metadata_are_told() {
    let server = Running::model(AnyModel::F32(strokes()), Limits::default());
    let mut client = server.client();
    assert_eq!(client.get("/v2/health/live").json(), json!({"live": true}));
    assert_eq!(
        client.get("/v2/health/ready").json(),
        json!({"ready": true})
    );
    assert_eq!(client.get("/v2").json()["name"], "lssvm");
    let metadata = client.get("/v2/models/m").json();
    assert_eq!(metadata, client.get("/v2/models/m/versions/1/").json());
    assert_eq!(metadata["name"], "m");
    assert_eq!(metadata["inputs"][0]["shape"], json!([-1, 144]));
    assert_eq!(metadata["inputs"][0]["datatype"], "FP32");
    assert_eq!(metadata["outputs"][0]["datatype"], "BYTES");
    assert_eq!(
        metadata["outputs"][1]["parameters"]["names"],
        json!(STROKES)
    );
    assert_eq!(client.get("/v2/models/m/ready").json()["ready"], true);
    for (path, status) in [
        ("/v2/models/other", 404),
        ("/v2/models/m/versions/2/ready", 404),
        ("/v2/models/m/versions", 404),
        ("/v3", 404),
        (INFER, 405),
    ] {
        let reply = client.get(path);
        assert_eq!(reply.status, status, "{path}");
        assert!(reply.json()["error"].is_string(), "{path}");
    }
    assert!(client.get(INFER).has("Allow: POST"));
    client.send(b"HEAD /v2 HTTP/1.1\r\nHost: a:80\r\n\r\n");
    assert_eq!(client.reply().unwrap().status, 403, "another name");
}

#[test]
fn classes_scores_and_probabilities_are_those_of_the_model() {
    let model = strokes();
    let server = Running::model(AnyModel::F32(model.clone()), Limits::default());
    let rows: Vec<Vec<f32>> = (200..210).map(stroke).collect();
    let x = Matrix::from_vec(rows.len(), SIDE * SIDE, rows.concat());
    let scores = model.decision_function(x).unwrap();
    let reply = server.post(INFER, &request(&rows));
    let told: Vec<f32> = reply.numbers("scores").iter().map(|&v| v as f32).collect();
    assert_eq!(told, scores.values());
    let probabilities = model.probabilities_of(&scores);
    assert_eq!(reply.numbers("probabilities"), probabilities.values());
    let classes: Vec<&str> = (200..210).map(|i| STROKES[i % 3]).collect();
    assert_eq!(reply.json()["outputs"][0]["data"], json!(classes));

    // The same as images, of bytes, in nested arrays, and only what is asked for.
    let images: Vec<Vec<Vec<u8>>> = rows
        .iter()
        .map(|row| {
            row.chunks(SIDE)
                .map(|r| r.iter().map(|&v| v as u8).collect())
                .collect()
        })
        .collect();
    let body = json!({"id": "7", "outputs": [{"name": "scores"}], "inputs": [{
        "name": "x", "shape": [10, SIDE, SIDE], "datatype": "UINT8", "data": images}]});
    let reply = server.post("/v2/models/m/versions/1/infer", &body);
    let told: Vec<f32> = reply.numbers("scores").iter().map(|&v| v as f32).collect();
    assert_eq!(told, scores.values());
    let json = reply.json();
    assert_eq!(
        (&json["id"], &json["model_name"]),
        (&json!("7"), &json!("m"))
    );
    assert_eq!(json["outputs"].as_array().unwrap().len(), 1);
    assert_eq!(json["outputs"][0]["shape"], json!([10, 3]));
}

#[test]
fn values_are_those_of_the_model() {
    let model = curves();
    let server = Running::model(AnyModel::F64(model.clone()), Limits::default());
    // More rows than the model scores at once, so that batches are put together.
    let n = model.batch_rows() + 3;
    let rows: Vec<Vec<f64>> = (0..n)
        .map(|i| (0..3).map(|j| noise(i + j)).collect())
        .collect();
    let expected = model
        .predict_values(Matrix::from_vec(n, 3, rows.concat()))
        .unwrap();
    let reply = server.post(INFER, &request(&rows));
    assert_eq!(reply.numbers("values"), expected.values());
    let none: Vec<f64> = Vec::new();
    let empty = json!({"inputs": [{"name": "x", "shape": [0, 3], "datatype": "FP32", "data": []}]});
    assert_eq!(server.post(INFER, &empty).numbers("values"), none);
    let unknown = json!({"outputs": [{"name": "class"}], "inputs": [{"name": "x", "shape": [1, 3],
        "datatype": "FP32", "data": [1, 2, 3]}]});
    let reply = server.post(INFER, &unknown);
    assert_eq!(reply.status, 400);
    assert!(
        reply.text().contains("the model has values"),
        "{}",
        reply.text()
    );
}

#[test]
fn explanations_add_up() {
    let server = Running::model(AnyModel::F32(strokes()), Limits::default());
    let mut body = request(&[stroke(300)]);
    body["parameters"] = json!({"count": 4});
    let told = server.post("/v2/models/m/explain", &body).json();
    assert_eq!(told["output"], "upright");
    let pro = told["for"].as_array().unwrap();
    assert_eq!(pro.len(), 4);
    assert_eq!(pro[0]["class"], "upright");
    assert!(
        pro[0]["picture"]
            .as_str()
            .unwrap()
            .starts_with("data:image/png;base64,")
    );
    let sum = |side: &str| -> f64 {
        let rows = told[side].as_array().unwrap().iter();
        rows.map(|row| row["value"].as_f64().unwrap()).sum()
    };
    let rest = told["rest"].as_f64().unwrap();
    let score = told["score"].as_f64().unwrap();
    assert!(
        (sum("for") + sum("against") + rest - score).abs() < 1e-9,
        "{told}"
    );
    body["parameters"] = json!({"class": "curly"});
    assert_eq!(server.post("/v2/models/m/explain", &body).status, 400);
    let two = request(&[stroke(1), stroke(2)]);
    assert_eq!(server.post("/v2/models/m/explain", &two).status, 400);
}

#[test]
fn requests_follow_one_another_on_a_connection() {
    let server = Running::model(AnyModel::F64(curves()), Limits::default());
    let mut client = server.client();
    let body = request(&[vec![0.1, 0.2, 0.3]]).to_string();
    let alone = client.post(INFER, body.as_bytes());
    assert!(alone.has("Connection: keep-alive"));

    // Five at once, answered in order, cut at every place.
    let get = b"GET /v2/models/m/ready HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let all = [post(INFER, body.as_bytes()), get.to_vec(), post("/x", b"y")].concat();
    for cut in (1..all.len()).step_by(7) {
        assert!(client.send(&all[..cut]));
        assert!(client.send(&all[cut..]));
        assert_eq!(client.reply().unwrap().body, alone.body);
        assert_eq!(client.reply().unwrap().json()["ready"], true);
        assert_eq!(client.reply().unwrap().status, 404);
    }

    // In chunks.
    let (a, b) = body.split_at(20);
    let chunked = format!(
        "POST {INFER} HTTP/1.1\r\nHost: [::1]\r\nTransfer-Encoding: chunked\r\n\r\n\
         {:x}\r\n{a}\r\n{:X};x=y\r\n{b}\r\n0\r\nTrailer: x\r\n\r\n",
        a.len(),
        b.len()
    );
    client.send(chunked.as_bytes());
    assert_eq!(client.reply().unwrap().body, alone.body);

    // The body when it is called for.
    let head = format!(
        "POST {INFER} HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    client.send(head.as_bytes());
    assert_eq!(client.reply().unwrap().status, 100);
    client.send(body.as_bytes());
    assert_eq!(client.reply().unwrap().body, alone.body);

    // The last one.
    client.send(b"HEAD /v2 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    client.hang_up();
    let mut head = String::new();
    client.into_reader().read_to_string(&mut head).unwrap();
    assert!(
        head.starts_with("HTTP/1.1 200 OK\r\n") && head.ends_with("\r\n\r\n"),
        "{head}"
    );
}

#[test]
fn what_is_too_large_is_refused() {
    let limits = Limits {
        max_body: 1000,
        max_bodies: 1500,
        ..Limits::default()
    };
    let server = Running::model(AnyModel::F64(curves()), limits);
    let reply = server.client().post(INFER, &[b' '; 1001]);
    assert_eq!(reply.status, 413);
    assert!(reply.has("Connection: close") && reply.text().contains("--max-body"));
    assert_eq!(server.client().post(INFER, &[b' '; 1000]).status, 400);
    let mut client = server.client();
    let chunks = "100\r\n".to_string() + &" ".repeat(256) + "\r\n";
    let head =
        format!("POST {INFER} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
    client.send((head + &chunks.repeat(5)).as_bytes());
    assert_eq!(client.reply().unwrap().status, 413);
    // A body nobody would take is not called for.
    let mut client = server.client();
    client.send(b"POST / HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 9999\r\n\r\n");
    assert_eq!(client.reply().unwrap().status, 413);
    let long = format!(
        "GET / HTTP/1.1\r\nHost: localhost\r\nA: {}\r\n\r\n",
        "b".repeat(20_000)
    );
    let mut client = server.client();
    client.send(long.as_bytes());
    assert_eq!(client.reply().unwrap().status, 431);

    // Two bodies of 1000 bytes do not fit into 1500; the second is told to come back.
    let whole = post(INFER, &[b' '; 1000]);
    let refused = || {
        std::thread::sleep(Duration::from_millis(5));
        server.client().post(INFER, &[b' '; 900]).status == 503
    };
    let held = || {
        let mut first = server.client();
        first.send(&whole[..whole.len() - 1]);
        (0..100).any(|_| refused()).then_some(first)
    };
    // If the others come while it arrives, it may be the one that is told so.
    let first = (0..10).find_map(|_| held());
    let mut first = first.expect("the second is refused while the first is there");
    first.send(&whole[whole.len() - 1..]);
    assert_eq!(first.reply().unwrap().status, 400);
    assert_eq!(server.client().post(INFER, &[b' '; 900]).status, 400);
}

#[test]
fn what_is_too_slow_is_cut_off() {
    let server = Running::model(AnyModel::F64(curves()), quick());
    let mut headers = server.client();
    headers.send(b"GET /v2 HTTP/1.1\r\nHo");
    let mut body = server.client();
    let whole = post(INFER, b"{ }");
    body.send(&whole[..whole.len() - 1]);
    for mut client in [headers, body] {
        let reply = client.reply().unwrap();
        assert_eq!(reply.status, 408, "{}", reply.text());
        assert!(client.reply().is_none(), "the connection is closed");
    }
    // Drops of water do not keep it open.
    let mut drops = server.client();
    drops.send(b"POST /v2 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n");
    while drops.send(b" ") {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(server.get("/v2").status, 200);
}

#[test]
fn a_connection_without_requests_ends() {
    let limits = Limits {
        idle: Duration::from_millis(100),
        ..Limits::default()
    };
    let server = Running::model(AnyModel::F64(curves()), limits);
    let mut client = server.client();
    assert_eq!(client.get("/v2").status, 200);
    assert!(client.reply().is_none());
}

#[test]
fn one_connection_too_many_is_told_to_come_back() {
    let limits = Limits {
        max_connections: 2,
        ..Limits::default()
    };
    let server = Running::model(AnyModel::F64(curves()), limits);
    let mut clients = [server.client(), server.client()];
    for client in &mut clients {
        assert_eq!(client.get("/v2").status, 200);
    }
    let reply = server.client().reply().unwrap();
    assert_eq!(reply.status, 503);
    assert!(reply.has("Retry-After: 1") && reply.has("Connection: close"));
    drop(clients);
    // Their places are free when the server has seen them go.
    while server.get("/v2").status == 503 {
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn the_server_finishes_what_has_begun() {
    let mut server = Running::model(AnyModel::F64(curves()), Limits::default());
    let body = request(&[vec![0.1, 0.2, 0.3]]).to_string();
    let mut idle = server.client();
    assert_eq!(idle.get("/v2").status, 200);
    let mut begun = server.client();
    let whole = post(INFER, body.as_bytes());
    begun.send(&whole[..whole.len() - 1]);
    // Begun is what the server has seen.
    while !idle
        .get("/metrics")
        .text()
        .contains("lssvm_requests_in_flight 2")
    {}
    let (stopper, address) = (server.stopper(), server.address);
    stopper.stop();
    assert!(
        idle.reply().is_none(),
        "a connection without a request is closed"
    );
    begun.send(&whole[whole.len() - 1..]);
    let reply = begun.reply().unwrap();
    assert_eq!(reply.status, 200);
    assert!(reply.has("Connection: close"));
    drop(begun);
    server.stop();
    assert!(
        std::net::TcpStream::connect(address).is_err(),
        "new connections are refused"
    );
}

/// A handler with a bug.
struct Buggy;

impl Handler for Buggy {
    fn answer(&self, request: &Request) -> Response {
        assert_ne!(request.head.path, "/bug", "this is the bug");
        Response::json(200, b"{}".to_vec())
    }
}

#[test]
fn a_panic_is_an_answer() {
    let server = Running::start(Buggy, Limits::default());
    let mut client = server.client();
    for _ in 0..3 {
        assert_eq!(client.get("/bug").status, 500);
        assert_eq!(client.get("/").status, 200);
    }
}

#[test]
fn what_happens_is_counted() {
    let server = Running::model(AnyModel::F32(strokes()), Limits::default());
    let mut client = server.client();
    client.post(
        INFER,
        request(&[stroke(1), stroke(2)]).to_string().as_bytes(),
    );
    client.post(INFER, b"{}");
    let reply = client.get("/metrics");
    assert!(reply.has("Content-Type: text/plain; version=0.0.4; charset=utf-8"));
    let text = reply.text();
    for line in [
        "lssvm_requests_total{code=\"200\"} 1",
        "lssvm_requests_total{code=\"400\"} 1",
        "lssvm_rows_total 2",
        "lssvm_requests_in_flight 1",
        "lssvm_connections 1",
        "lssvm_inference_duration_seconds_count 1",
        "lssvm_model_outputs 3",
        "lssvm_model_info{name=\"m\",version=\"1\",task=\"classification\",kernel=\"poly\",precision=\"f32\"} 1",
    ] {
        assert!(text.lines().any(|l| l == line), "{line} in {text}");
    }
}
