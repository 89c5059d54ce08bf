//! `lssvm serve`: one line when it listens, the scores of `predict`, and a good end.

#![cfg(unix)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use crate::common::*;
use serde_json::{Value, json};

struct Server {
    child: Child,
    address: String,
    stdout: BufReader<std::process::ChildStdout>,
}

/// Starts the server and waits until it listens.
fn start(folder: &Folder, line: &str) -> Server {
    let mut command = folder.command(line);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    stdout.read_line(&mut first).unwrap();
    let address = first.trim().strip_prefix("http://").expect("an address");
    Server {
        address: address.to_string(),
        child,
        stdout,
    }
}

impl Server {
    fn ask(&self, head: &str, body: &str) -> (String, Value) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let length = body.len();
        write!(
            stream,
            "{head} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (
            head.to_string(),
            serde_json::from_str(body).unwrap_or(Value::Null),
        )
    }

    /// Sends a signal; the server must end well. Returns what it wrote.
    fn end(mut self, signal: &str) -> Written {
        let id = self.child.id().to_string();
        let kill = Command::new("kill").args([signal, &id]).status();
        assert!(kill.unwrap().success());
        let (mut stdout, mut stderr) = (String::new(), String::new());
        self.stdout.read_to_string(&mut stdout).unwrap();
        let errors = self.child.stderr.take();
        errors.unwrap().read_to_string(&mut stderr).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0), "{stderr}");
        Written { stdout, stderr }
    }
}

/// The numbers of a table without its header and labels.
fn rows(table: &str) -> Vec<Vec<f64>> {
    let numbers = |line: &str| {
        line.split(',')
            .take(3)
            .map(|v| v.parse().unwrap())
            .collect()
    };
    table.lines().skip(1).map(numbers).collect()
}

#[test]
fn the_scores_are_those_of_predict() {
    let folder = Folder::with_flowers();
    folder.run("train train.csv --model my-flowers.lssvm");
    let table = folder
        .run("predict my-flowers.lssvm test.csv --scores")
        .stdout;
    let server = start(&folder, "serve my-flowers.lssvm --port 0 --threads 2");
    let rows = rows(&folder.read("test.csv"));
    let tensor = json!({"name": "x", "shape": [rows.len(), 3], "datatype": "FP64", "data": rows});
    let body = json!({"inputs": [tensor]}).to_string();
    let (head, answer) = server.ask("POST /v2/models/my-flowers/infer", &body);
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    let data = |k: usize| answer["outputs"][k]["data"].as_array().unwrap();
    let scores: Vec<f32> = data(1).iter().map(|v| v.as_f64().unwrap() as f32).collect();
    for (i, line) in table.lines().skip(1).enumerate() {
        let mut fields = line.split(',');
        assert_eq!(fields.next().unwrap(), data(0)[i], "{line}");
        for (k, field) in fields.enumerate() {
            assert_eq!(field.parse::<f32>().unwrap(), scores[3 * i + k], "{line}");
        }
    }
    let written = server.end("-TERM");
    assert_eq!((written.stdout.as_str(), written.stderr.as_str()), ("", ""));
}

#[test]
fn it_says_when_others_can_reach_it() {
    let folder = Folder::with_flowers();
    folder.run("train train.csv --model m");
    let server = start(
        &folder,
        "serve m --port 0 --host 0.0.0.0 --no-page --name flowers",
    );
    let local = server.address.replace("0.0.0.0", "127.0.0.1");
    let server = Server {
        address: local,
        ..server
    };
    let (_, metadata) = server.ask("GET /v2/models/flowers", "");
    assert_eq!(metadata["inputs"][0]["shape"], json!([-1, 3]));
    for hidden in ["GET /", "POST /v2/models/flowers/explain"] {
        let (head, _) = server.ask(hidden, "");
        assert!(head.starts_with("HTTP/1.1 404"), "{hidden} {head}");
    }
    let written = server.end("-INT");
    assert_eq!(written.stderr.lines().count(), 1, "{}", written.stderr);
    assert!(
        written.stderr.contains("beyond this machine"),
        "{}",
        written.stderr
    );
}

#[test]
fn what_cannot_be_served_is_refused() {
    let folder = Folder::with_flowers();
    folder.run("train train.csv --model m");
    folder.fails("serve nowhere.lssvm", 1, &["nowhere.lssvm"]);
    folder.fails("serve train.csv", 1, &["train.csv"]);
    folder.fails("serve m --name a/b", 2, &["name = a/b", "slash"]);
    folder.fails("serve m --threads 0", 2, &["threads = 0"]);
    folder.fails("serve m --max-connections 0", 2, &["max-connections = 0"]);
    folder.refused("serve m --timeout never", &["timeout", "90s"]);
    folder.refused("serve m --host nobody", &["host", "nobody"]);
    let taken = start(&folder, "serve m --port 0");
    let port = taken.address.rsplit(':').next().unwrap();
    folder.fails(&format!("serve m --port {port}"), 2, &[port, "--port"]);
    taken.end("-INT");
}
