//! What the server counts, in the text format of Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::http::Event;

/// The media type of the text.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Upper ends of the classes of times, in seconds: a health check takes less than the first, a
/// large batch on a large model seconds.
const BOUNDS: [f64; 14] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];

/// How many times fell into which class.
#[derive(Debug, Default)]
struct Histogram {
    /// The last has no upper end.
    counts: [AtomicU64; BOUNDS.len() + 1],
    nanoseconds: AtomicU64,
}

impl Histogram {
    fn add(&self, time: Duration) {
        let seconds = time.as_secs_f64();
        let class = BOUNDS.iter().position(|&bound| seconds <= bound);
        self.counts[class.unwrap_or(BOUNDS.len())].fetch_add(1, Ordering::Relaxed);
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    fn write(&self, out: &mut String, name: &str, help: &str) {
        head(out, name, "histogram", help);
        let mut sum = 0;
        for (i, count) in self.counts.iter().enumerate() {
            sum += count.load(Ordering::Relaxed);
            let bound = BOUNDS.get(i).map_or("+Inf".to_string(), f64::to_string);
            let _ = writeln!(out, "{name}_bucket{{le=\"{bound}\"}} {sum}");
        }
        let seconds = self.nanoseconds.load(Ordering::Relaxed) as f64 / 1e9;
        let _ = writeln!(out, "{name}_sum {seconds}\n{name}_count {sum}");
    }
}

/// Counters since the start of the server.
#[derive(Debug, Default)]
pub struct Metrics {
    answers: Mutex<BTreeMap<u16, u64>>,
    abandoned: AtomicU64,
    requests: Histogram,
    inferences: Histogram,
    rows: AtomicU64,
    in_flight: AtomicI64,
    connections: AtomicI64,
    received: AtomicU64,
    sent: AtomicU64,
}

impl Metrics {
    /// Counts what happens on the server.
    pub fn notice(&self, event: Event) {
        match event {
            Event::Opened => drop(self.connections.fetch_add(1, Ordering::Relaxed)),
            Event::Closed => drop(self.connections.fetch_sub(1, Ordering::Relaxed)),
            Event::Began => drop(self.in_flight.fetch_add(1, Ordering::Relaxed)),
            Event::Answered(status, time) => {
                self.in_flight.fetch_sub(1, Ordering::Relaxed);
                self.requests.add(time);
                let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
                *answers.entry(status).or_default() += 1;
            }
            Event::Abandoned => {
                self.in_flight.fetch_sub(1, Ordering::Relaxed);
                self.abandoned.fetch_add(1, Ordering::Relaxed);
            }
            Event::Received(bytes) => add(&self.received, bytes),
            Event::Sent(bytes) => add(&self.sent, bytes),
        }
    }

    /// Counts rows that were predicted in one go.
    pub fn predicted(&self, rows: usize, time: Duration) {
        add(&self.rows, rows);
        self.inferences.add(time);
    }

    /// The text, with facts about the model as labels, and numbers of it.
    pub fn text(&self, labels: &[(&str, String)], gauges: &[(&str, &str, f64)]) -> String {
        let mut out = String::new();
        head(
            &mut out,
            "lssvm_requests_total",
            "counter",
            "Answers by status.",
        );
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        for (status, count) in answers.iter() {
            let _ = writeln!(out, "lssvm_requests_total{{code=\"{status}\"}} {count}");
        }
        drop(answers);
        let help = "From the first byte of a request to the last of its answer.";
        self.requests
            .write(&mut out, "lssvm_request_duration_seconds", help);
        let help = "Reading, predicting and writing of inference requests.";
        self.inferences
            .write(&mut out, "lssvm_inference_duration_seconds", help);
        let whole = |value: &AtomicU64| value.load(Ordering::Relaxed) as f64;
        let signed = |value: &AtomicI64| value.load(Ordering::Relaxed) as f64;
        for (name, kind, help, value) in [
            (
                "rows_total",
                "counter",
                "Rows predicted.",
                whole(&self.rows),
            ),
            (
                "abandoned_total",
                "counter",
                "Requests whose client went away.",
                whole(&self.abandoned),
            ),
            (
                "received_bytes_total",
                "counter",
                "Bytes received.",
                whole(&self.received),
            ),
            (
                "sent_bytes_total",
                "counter",
                "Bytes sent.",
                whole(&self.sent),
            ),
            (
                "requests_in_flight",
                "gauge",
                "Requests begun and not answered.",
                signed(&self.in_flight),
            ),
            (
                "connections",
                "gauge",
                "Open connections.",
                signed(&self.connections),
            ),
        ] {
            single(&mut out, name, kind, help, value);
        }
        for (name, help, value) in gauges {
            single(&mut out, name, "gauge", help, *value);
        }
        head(
            &mut out,
            "lssvm_model_info",
            "gauge",
            "The model that is served.",
        );
        let labels = labels
            .iter()
            .map(|(name, value)| format!("{name}=\"{}\"", escape(value)));
        let _ = writeln!(
            out,
            "lssvm_model_info{{{}}} 1",
            labels.collect::<Vec<_>>().join(",")
        );
        out
    }
}

fn add(counter: &AtomicU64, more: usize) {
    counter.fetch_add(more as u64, Ordering::Relaxed);
}

fn head(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn single(out: &mut String, name: &str, kind: &str, help: &str, value: f64) {
    let name = format!("lssvm_{name}");
    head(out, &name, kind, help);
    let _ = writeln!(out, "{name} {value}");
}

/// As the value of a label.
fn escape(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happened_is_counted() {
        let metrics = Metrics::default();
        for event in [
            Event::Opened,
            Event::Began,
            Event::Received(10),
            Event::Answered(200, Duration::from_millis(3)),
            Event::Began,
            Event::Answered(200, Duration::from_secs(60)),
            Event::Began,
            Event::Abandoned,
            Event::Began,
        ] {
            metrics.notice(event);
        }
        metrics.predicted(64, Duration::from_millis(1));
        let text = metrics.text(
            &[("name", "a\"b\\\n".into())],
            &[("model_outputs", "K.", 10.0)],
        );
        for line in [
            "lssvm_requests_total{code=\"200\"} 2",
            "lssvm_request_duration_seconds_bucket{le=\"0.0025\"} 0",
            "lssvm_request_duration_seconds_bucket{le=\"0.005\"} 1",
            "lssvm_request_duration_seconds_bucket{le=\"10\"} 1",
            "lssvm_request_duration_seconds_bucket{le=\"+Inf\"} 2",
            "lssvm_request_duration_seconds_sum 60.003",
            "lssvm_request_duration_seconds_count 2",
            "lssvm_inference_duration_seconds_bucket{le=\"0.001\"} 1",
            "lssvm_rows_total 64",
            "lssvm_abandoned_total 1",
            "lssvm_received_bytes_total 10",
            "lssvm_requests_in_flight 1",
            "lssvm_connections 1",
            "lssvm_model_outputs 10",
            "lssvm_model_info{name=\"a\\\"b\\\\\\n\"} 1",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} in {text}");
        }
    }
}
