//! Small models, a server on a free port, and a client that says exactly what it is told.

#![allow(dead_code, reason = "every test file uses a part of it")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

use lssvm::data::{Dataset, Labels};
use lssvm::linalg::{Matrix, Scalar};
use lssvm::model::{AnyModel, Model};
use lssvm::solve::Silent;
use lssvm::train::{Config, Data, fit};
use lssvm_serve::http::{Handler, Limits, Server, Stopper};
use lssvm_serve::{Service, ServiceOptions};
use serde_json::{Value, json};

/// Longer than anything takes; a test that waits so long fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// Pixels of a side of [`strokes`].
pub const SIDE: usize = 12;

/// Numbers that look random, between 0 and 1.
pub fn noise(i: usize) -> f64 {
    (((i as f64 + 1.0) * 12.9898).sin() * 43758.5453)
        .fract()
        .abs()
}

fn trained<T: Scalar>(data: Dataset<T>, loo: bool) -> Model<T> {
    let data = Data {
        train: data,
        validation: None,
        test: None,
    };
    let config = Config {
        loo: Some(loo),
        ..Config::default()
    };
    fit(data, &config, &mut Silent).unwrap().0
}

/// An image of a stroke through the middle, a little aside: upright, level or aslant.
pub fn stroke(i: usize) -> Vec<f32> {
    let middle = (SIDE as f64 - 1.0) / 2.0 + noise(i) - 0.5;
    let pixel = |at: usize| {
        let (y, x) = ((at / SIDE) as f64, (at % SIDE) as f64);
        let far = match i % 3 {
            0 => (x - middle).abs(),
            1 => (y - middle).abs(),
            _ => ((x - y) / 2f64.sqrt() + middle - 5.5).abs(),
        };
        let inside = (2.0..=9.0).contains(&if i.is_multiple_of(3) { y } else { x });
        let light = if inside {
            (1.6 - far).clamp(0.0, 1.0)
        } else {
            0.0
        };
        (255.0 * light).round() as f32
    };
    (0..SIDE * SIDE).map(pixel).collect()
}

pub const STROKES: [&str; 3] = ["upright", "level", "as<b>lant"];

/// A model that tells strokes apart.
pub fn strokes() -> Model<f32> {
    let rows: Vec<Vec<f32>> = (0..120).map(stroke).collect();
    let x = Matrix::from_vec(rows.len(), SIDE * SIDE, rows.concat());
    let mut data = Dataset::new("strokes".as_ref(), x);
    data.image = Some(format!("{SIDE}x{SIDE}").parse().unwrap());
    let classes = (0..120).map(|i| (i % 3) as u32).collect();
    let names = STROKES.map(str::to_string).to_vec();
    data.labels = Some(Labels::from_classes(names, classes).unwrap());
    trained(data, true)
}

/// A model of two values of three features with names.
pub fn curves() -> Model<f64> {
    let x = Matrix::from_fn(80, 3, |i, j| noise(3 * i + j));
    let y = Matrix::from_fn(80, 2, |i, j| {
        let row = x.row(i);
        if j == 0 {
            row[0] + row[1]
        } else {
            10.0 * row[2]
        }
    });
    let mut data = Dataset::new("curves".as_ref(), x);
    data.feature_names = Some(
        ["width", "height", "</script>"]
            .map(str::to_string)
            .to_vec(),
    );
    data.labels = Some(Labels::from_values(y).unwrap());
    trained(data, false)
}

/// A server that runs until this goes.
pub struct Running {
    pub address: SocketAddr,
    stopper: Stopper,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    pub fn start(handler: impl Handler, limits: Limits) -> Self {
        let server = Server::bind(([127, 0, 0, 1], 0).into(), limits, handler).unwrap();
        let (address, stopper) = (server.address(), server.stopper());
        let thread = Some(std::thread::spawn(move || server.run()));
        Self {
            address,
            stopper,
            thread,
        }
    }

    /// Serves a model under the name `m`.
    pub fn model(model: AnyModel, limits: Limits) -> Self {
        Self::start(service(model), limits)
    }

    pub fn client(&self) -> Client {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Client {
            reader: BufReader::new(stream),
        }
    }

    /// Ends the server and waits until it has.
    pub fn stop(&mut self) {
        self.stopper.stop();
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the server ends well");
        }
    }

    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    pub fn get(&self, path: &str) -> Reply {
        self.client().get(path)
    }

    pub fn post(&self, path: &str, body: &Value) -> Reply {
        self.client().post(path, body.to_string().as_bytes())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stopper.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

pub fn service(model: AnyModel) -> Service {
    let options = ServiceOptions {
        name: "m".into(),
        threads: 2,
        page: true,
        only_local_names: true,
    };
    Service::new(model, options).unwrap()
}

/// An answer.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Reply {
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn has(&self, line: &str) -> bool {
        self.head.lines().any(|l| l.eq_ignore_ascii_case(line))
    }

    /// The numbers of an output.
    #[track_caller]
    pub fn numbers(&self, name: &str) -> Vec<f64> {
        assert_eq!(self.status, 200, "{}", self.text());
        let json = self.json();
        let outputs = json["outputs"].as_array().expect("outputs");
        let output = outputs.iter().find(|o| o["name"] == name).expect(name);
        serde_json::from_value(output["data"].clone()).expect("numbers")
    }
}

pub struct Client {
    reader: BufReader<TcpStream>,
}

impl Client {
    /// Whether it could be sent; a server may hang up in the middle.
    pub fn send(&mut self, bytes: &[u8]) -> bool {
        self.reader.get_mut().write_all(bytes).is_ok()
    }

    /// Says that nothing more will come.
    pub fn hang_up(&mut self) {
        let _ = self.reader.get_mut().shutdown(Shutdown::Write);
    }

    /// The next answer; none if the server hung up.
    pub fn reply(&mut self) -> Option<Reply> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if self.reader.read_line(&mut head).ok()? == 0 {
                assert_eq!(head, "", "half an answer");
                return None;
            }
        }
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let length = head
            .lines()
            .find_map(|l| l.strip_prefix("Content-Length: "));
        let length: usize = length.map_or(0, |l| l.parse().unwrap());
        let mut body = vec![0; length];
        self.reader.read_exact(&mut body).ok()?;
        Some(Reply { status, head, body })
    }

    /// What is left to read.
    pub fn into_reader(self) -> BufReader<TcpStream> {
        self.reader
    }

    #[track_caller]
    pub fn get(&mut self, path: &str) -> Reply {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes());
        self.reply().expect("an answer")
    }

    #[track_caller]
    pub fn post(&mut self, path: &str, body: &[u8]) -> Reply {
        self.send(&post(path, body));
        self.reply().expect("an answer")
    }
}

pub fn post(path: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

pub const INFER: &str = "/v2/models/m/infer";

/// A request for all outputs of these rows.
pub fn request<T: Scalar + serde::Serialize>(rows: &[Vec<T>]) -> Value {
    json!({"inputs": [{
        "name": "input",
        "shape": [rows.len(), rows.first().map_or(0, Vec::len)],
        "datatype": "FP64",
        "data": rows.concat(),
    }]})
}
