//! Ten thousand requests that are wrong in every way do no harm: each is refused, and then a good
//! one gets the right answer.

mod common;

use std::time::Duration;

use common::*;
use lssvm::linalg::Matrix;
use lssvm::model::AnyModel;
use lssvm_serve::http::Limits;
use serde_json::{Value, json};

const CLIENTS: usize = 8;
const REQUESTS: usize = 10_000;

/// Requests of each client that come to a halt, each of which costs a time-out.
const SLOW: usize = 4;

/// Random numbers, the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        ((self.0 >> 33) % sides as u64) as usize
    }

    fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.roll(from.len())]
    }

    fn bytes(&mut self, most: usize) -> Vec<u8> {
        let length = self.roll(most) + 1;
        (0..length).map(|_| self.roll(256) as u8).collect()
    }
}

const GOOD: &str = r#"{"id":"1","inputs":[{"name":"x","shape":[2,3],"datatype":"FP32","data":[1,2,3,4,5,6]}],"outputs":[{"name":"values"}]}"#;

/// A body that is wrong, or was: a changed byte may happen to do no harm.
fn wrong_body(dice: &mut Dice) -> Vec<u8> {
    let with = |from: &str, to: &str| GOOD.replacen(from, to, 1).into_bytes();
    match dice.roll(12) {
        0 => {
            let mut body = GOOD.as_bytes().to_vec();
            for _ in 0..=dice.roll(4) {
                let at = dice.roll(body.len());
                body[at] = dice.roll(256) as u8;
            }
            body
        }
        1 => GOOD.as_bytes()[..dice.roll(GOOD.len())].to_vec(),
        2 => dice.bytes(400),
        3 => with(
            "[2,3]",
            dice.pick(&[
                "[]",
                "[3,2]",
                "[6]",
                "[-2,3]",
                "[2,3,1]",
                "[1e9,3]",
                "[9223372036854775807,3]",
                "[18446744073709551616,3]",
                "\"2,3\"",
                "null",
                "[2.0,3]",
                "[[2,3]]",
                "{}",
                "[1,1,1,1,1,6]",
                "[0,3]",
                "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]",
            ]),
        ),
        4 => with(
            "[1,2,3,4,5,6]",
            dice.pick(&[
                "[NaN,2,3,4,5,6]",
                "[1e999,2,3,4,5,6]",
                "[1e308,1e308,1e308,1e308,1e308,1e308]",
                "[1,2,3,4,5]",
                "[1,2,3,4,5,6,7]",
                "[null,2,3,4,5,6]",
                "[\"1\",2,3,4,5,6]",
                "[[1,2],[3,4],[5,6]]",
                "[[1,2,3],[4,5,6,7]]",
                "[[[1,2,3]],[[4,5,6]]]",
                "{}",
                "\"AAAA\"",
                "1",
                "[true,false,1,2,3,4]",
                "[1,2,3,[4,5,6]]",
                "[01,2,3,4,5,6]",
                "[1.,2,3,4,5,6]",
                "[+1,2,3,4,5,6]",
                "[-,2,3,4,5,6]",
                "[1e,2,3,4,5,6]",
                "[1,,2,3,4,5]",
                "[1,2,3,4,5,6",
                "1,2,3,4,5,6]",
                "[0x10,2,3,4,5,6]",
                "[∞,2,3,4,5,6]",
            ]),
        ),
        5 => with(
            "FP32",
            dice.pick(&[
                "FP16", "BYTES", "BOOL", "fp32", "", "INT8 ", "UINT128", "\\u0000",
            ]),
        ),
        6 => {
            let deep = dice
                .pick(&["[", "{\"a\":", "[[1],", "{\"inputs\":["])
                .repeat(1 + dice.roll(20_000));
            match dice.roll(3) {
                0 => deep.into_bytes(),
                1 => with("[1,2,3,4,5,6]", &deep),
                _ => with("{\"id\"", &format!("{{\"parameters\":{deep},\"id\"")),
            }
        }
        7 => with(
            "\"id\":\"1\"",
            dice.pick(&[
                "\"id\":1",
                "\"id\":{}",
                "\"id\":\"\\ud800\"",
                "\"id\":\"\u{1}\"",
                "\"id\"",
            ]),
        ),
        8 => with(
            "values",
            dice.pick(&["class", "scores", "", "VALUES", "values\\u0000", "\u{202e}"]),
        ),
        9 => with(
            "\"inputs\"",
            dice.pick(&[
                "\"Inputs\"",
                "\"input\"",
                "\"inputs\":[],\"inputs\"",
                "inputs",
                "\"inputs\":[{}],\"x\"",
            ]),
        ),
        10 => format!("{{\"inputs\":[{}]}}", "{},".repeat(dice.roll(5_000))).into_bytes(),
        _ => with(
            "[1,2,3,4,5,6]",
            &format!("[{}]", "1,".repeat(dice.roll(20_000))),
        ),
    }
}

/// Bytes that are no request, or one that nobody should send.
fn wrong_http(dice: &mut Dice) -> Vec<u8> {
    let body = GOOD.len();
    let text = match dice.roll(8) {
        0 => return dice.bytes(2_000),
        1 => {
            let mut bytes = post(INFER, GOOD.as_bytes());
            let head = bytes.len() - body;
            let at = dice.roll(head);
            bytes[at] = dice.roll(256) as u8;
            return bytes;
        }
        2 => {
            let line = dice.pick(&[
                "GET",
                "GET /",
                "GET / HTTP/0.9",
                "GET / HTTP/9.9",
                "GET  / HTTP/1.1",
                "\u{0}GET / HTTP/1.1",
                "get / http/1.1",
                "GET /%ff HTTP/1.1",
                "GET /%0 HTTP/1.1",
                "CONNECT a:1 HTTP/1.1",
                "* * *",
                "PRI * HTTP/2.0",
                "OPTIONS * HTTP/1.1",
            ]);
            format!("{line}\r\nHost: localhost\r\n\r\n")
        }
        3 => {
            let header = dice.pick(&[
                "Content-Length: x",
                "Content-Length: -1",
                "Content-Length: 1\r\nContent-Length: 2",
                "Content-Length: 99999999999",
                "Transfer-Encoding: gzip",
                "Transfer-Encoding: chunked\r\nContent-Length: 3",
                "Host: other",
                "Expect: more",
                "Content-Encoding: gzip",
                "Name without colon",
                ": empty",
                "A\u{0}: b",
                "A: b\r\n c",
                "Host: evil.example",
            ]);
            format!("POST {INFER} HTTP/1.1\r\nHost: localhost\r\n{header}\r\n\r\n{GOOD}")
        }
        4 => {
            let chunks = dice.pick(&[
                "x\r\n",
                "5\r\nab",
                "5\r\nabcdefgh\r\n",
                "-1\r\n",
                "ffffffffffffffff\r\n",
                "fffffffffffffffff\r\n",
                "\r\n",
                "0\n\n",
            ]);
            format!(
                "POST {INFER} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}"
            )
        }
        5 => format!(
            "GET / HTTP/1.1\r\nHost: localhost\r\n{}\r\n",
            "A: b\r\n".repeat(dice.roll(3_000))
        ),
        6 => format!(
            "GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n",
            "a".repeat(dice.roll(30_000))
        ),
        _ => format!(
            "POST {INFER} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{GOOD}",
            body + 1 + dice.roll(50)
        ),
    };
    text.into_bytes()
}

/// An answer that a wrong request may get: a refusal with a reason, or what a request that
/// happens to be right gets; never a failure of the server.
fn check(reply: &Reply, sent: &[u8]) {
    let sent = String::from_utf8_lossy(&sent[..sent.len().min(300)]);
    let known = [
        100, 200, 400, 403, 404, 405, 408, 413, 414, 417, 431, 501, 503, 505,
    ];
    assert!(known.contains(&reply.status), "{} to {sent}", reply.status);
    if reply.status >= 400 {
        let json: Value = serde_json::from_slice(&reply.body).expect("a refusal is JSON");
        assert!(
            json["error"].as_str().is_some_and(|e| !e.is_empty()),
            "{json} to {sent}"
        );
    }
}

/// Sends its share, on one connection as long as that holds. Returns how many were answered.
fn misbehave(server: &Running, seed: usize) -> usize {
    let mut dice = Dice(seed as u64 * 7919 + 1);
    let mut client = server.client();
    let mut answered = 0;
    for i in 0..REQUESTS / CLIENTS {
        let bad_http = dice.roll(4) == 0;
        let sent = match bad_http {
            true => wrong_http(&mut dice),
            false => post(
                dice.pick(&[INFER, INFER, INFER, "/v2/models/m/explain"]),
                &wrong_body(&mut dice),
            ),
        };
        if i < SLOW {
            // Half of it, and then nothing: the server gives up.
            client.send(&sent[..sent.len() / 2]);
        } else {
            client.send(&sent);
            if bad_http {
                client.hang_up();
            }
        }
        // Of what looked like one request the server may have made several.
        let reply = client.reply();
        if let Some(reply) = &reply {
            check(reply, &sent);
            answered += 1;
        }
        let kept = reply.is_some_and(|reply| reply.has("Connection: keep-alive"));
        if bad_http || i < SLOW || !kept {
            client = server.client();
        }
    }
    answered
}

#[test]
fn ten_thousand_wrong_requests_do_no_harm() {
    let model = curves();
    let limits = Limits {
        headers: Duration::from_millis(300),
        request: Duration::from_secs(2),
        max_body: 1_000_000,
        max_bodies: 8_000_000,
        max_connections: 4 * CLIENTS,
        ..Limits::default()
    };
    let mut server = Running::model(AnyModel::F64(model.clone()), limits);
    let answered: usize = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|seed| {
                let server = &server;
                scope.spawn(move || misbehave(server, seed))
            })
            .collect();
        clients
            .into_iter()
            .map(|c| c.join().expect("a client"))
            .sum()
    });
    assert!(answered > REQUESTS * 9 / 10, "{answered}");

    let row = vec![0.3, 0.1, 0.7];
    let expected = model
        .predict_values(Matrix::from_vec(1, 3, row.clone()))
        .unwrap();
    let mut client = server.client();
    let reply = client.post(INFER, request(&[row]).to_string().as_bytes());
    assert_eq!(reply.numbers("values"), expected.values());
    assert_eq!(reply.json()["outputs"][0]["shape"], json!([1, 2]));

    // Nothing failed, nothing is held, and all connections end.
    let metrics = client.get("/metrics").text();
    assert!(!metrics.contains("code=\"500\""), "{metrics}");
    for code in [200, 400, 404, 408, 413, 431, 501, 505] {
        let counted = format!("lssvm_requests_total{{code=\"{code}\"}}");
        assert!(metrics.contains(&counted), "{counted} in {metrics}");
    }
    drop(client);
    server.stop();
}
