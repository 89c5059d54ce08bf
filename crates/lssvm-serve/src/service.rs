//! What is answered at which path.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Instant;

use lssvm::kernel::Kernel;
use lssvm::linalg::{Matrix, Scalar};
use lssvm::model::{AnyModel, Model, Outputs, argmax};
use lssvm::{Error, Result};
use rayon::ThreadPool;
use serde::Serialize;
use serde_json::{Value, json};

use crate::explain::explain;
use crate::http::{Event, Handler, Head, Refusal, Request, Response};
use crate::metrics::{self, Metrics};
use crate::page;
use crate::protocol::{Answer, Output, Spec, VERSION, metadata, parse_request, server_metadata};

/// How a model is served.
#[derive(Debug)]
pub struct ServiceOptions {
    /// The name of the model in paths.
    pub name: String,
    /// Threads that predict; 0 for one a core.
    pub threads: usize,
    /// Whether there is a page, and explanations, which show training rows.
    pub page: bool,
    /// Whether only names of this machine are answered to. A page from elsewhere could
    /// otherwise have its own name point here, and read what it likes.
    pub only_local_names: bool,
}

/// A model and all that is told of it.
#[derive(Debug)]
pub struct Service {
    model: AnyModel,
    options: ServiceOptions,
    spec: Spec,
    metadata: Value,
    page: Option<String>,
    pool: ThreadPool,
    /// One prediction at a time has all threads, while the next request is read: two at a time
    /// take each other's cache, and were slower by a quarter.
    predicting: Mutex<()>,
    turns: Turns,
    metrics: Metrics,
}

impl Service {
    /// Makes a service of a model.
    ///
    /// # Errors
    /// [`Error::Parameter`] if the name cannot be part of a path, or there are no threads.
    pub fn new(model: AnyModel, options: ServiceOptions) -> Result<Self> {
        let name = &options.name;
        if name.is_empty() || name.contains('/') || name.chars().any(char::is_control) {
            let requirement = "a name of a model is part of a path: letters, no slash; set --name";
            return Err(Error::parameter("name", name, requirement));
        }
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(options.threads)
            .build()
            .map_err(|e| Error::parameter("threads", options.threads, e.to_string()))?;
        let spec = Spec::of(&model);
        let metadata = metadata(name, &spec, model.description());
        Ok(Self {
            page: options.page.then(|| page::html(&metadata, &model)),
            turns: Turns::new(pool.current_num_threads()),
            metrics: Metrics::default(),
            predicting: Mutex::default(),
            model,
            options,
            spec,
            metadata,
            pool,
        })
    }

    fn route(&self, request: &Request) -> Result<Response, Refusal> {
        let path = request.head.path.trim_end_matches('/');
        let parts: Vec<&str> = path.split('/').skip(1).collect();
        if let ["v2", "models", name, rest @ ..] = parts.as_slice() {
            return self.model_route(name, rest, request);
        }
        let found = match parts.as_slice() {
            [] => self.page_response(),
            ["metrics"] => Some(self.metrics_response()),
            ["v2"] => Some(self.server_response()),
            ["v2", "health", "live"] => Some(ok(&json!({"live": true}))),
            ["v2", "health", "ready"] => Some(ok(&json!({"ready": true}))),
            _ => None,
        };
        let Some(response) = found else {
            return Err(not_found(&request.head.path));
        };
        only(request, "GET")?;
        Ok(response)
    }

    fn model_route(
        &self,
        name: &str,
        rest: &[&str],
        request: &Request,
    ) -> Result<Response, Refusal> {
        if name != self.options.name {
            let message = format!(
                "there is no model {name:?}; here is {:?}",
                self.options.name
            );
            return Err(Refusal::new(404, message));
        }
        let rest = match rest {
            ["versions", VERSION, rest @ ..] => rest,
            ["versions", version, ..] => {
                let message = format!("there is no version {version:?}; here is {VERSION:?}");
                return Err(Refusal::new(404, message));
            }
            rest => rest,
        };
        match rest {
            [] => {
                only(request, "GET")?;
                Ok(ok(&self.metadata))
            }
            ["ready"] => {
                only(request, "GET")?;
                Ok(ok(&json!({"name": name, "ready": true})))
            }
            ["infer"] => {
                only(request, "POST")?;
                let body = match &self.model {
                    AnyModel::F32(model) => self.infer(model, request),
                    AnyModel::F64(model) => self.infer(model, request),
                };
                Ok(Response::json(200, body?))
            }
            ["explain"] if self.options.page => {
                only(request, "POST")?;
                let told = match &self.model {
                    AnyModel::F32(model) => self.explain(model, request),
                    AnyModel::F64(model) => self.explain(model, request),
                };
                Ok(ok(&told?))
            }
            _ => Err(not_found(&request.head.path)),
        }
    }

    fn infer<T: Scalar + Serialize>(
        &self,
        model: &Model<T>,
        request: &Request,
    ) -> Result<Vec<u8>, Refusal> {
        let _turn = self.turns.take(request.deadline)?;
        let begun = Instant::now();
        let asked = parse_request::<T>(&request.body, &self.spec)?;
        let rows = asked.rows.rows();
        let scores = self.scores(model, asked.rows, request.deadline)?;
        let mut answer = Answer::new(&self.options.name, &self.spec, asked.id.as_deref());
        for output in asked.outputs {
            match output {
                Output::Class => {
                    let names = model.outputs().names();
                    let classes = argmax(&scores).into_iter();
                    let classes: Vec<&str> = classes.map(|k| names[k as usize].as_str()).collect();
                    answer.classes(&classes);
                }
                Output::Scores | Output::Values => answer.numbers(output, &scores),
                Output::Probabilities => answer.numbers(output, &model.probabilities_of(&scores)),
            }
        }
        let text = answer.finish();
        self.metrics.predicted(rows, begun.elapsed());
        Ok(text)
    }

    /// As `Model::decision_function`, to the last bit, but not beyond the deadline.
    fn scores<T: Scalar>(
        &self,
        model: &Model<T>,
        rows: Matrix<T>,
        deadline: Instant,
    ) -> Result<Matrix<T>, Refusal> {
        let (n, features) = (rows.rows(), rows.cols());
        let batch = model.batch_rows();
        let predict = |rows: Matrix<T>| {
            let lock = self.predicting.lock();
            let _lock = lock.unwrap_or_else(PoisonError::into_inner);
            let scores = self.pool.install(|| model.decision_function(rows));
            scores.map_err(refusal_of)
        };
        if n <= batch && Instant::now() < deadline {
            return predict(rows);
        }
        let mut scores = Vec::with_capacity(n * model.n_outputs());
        for part in rows.values().chunks(batch * features) {
            if Instant::now() >= deadline {
                return Err(out_of_time());
            }
            let part = Matrix::from_vec(part.len() / features, features, part.to_vec());
            scores.extend_from_slice(predict(part)?.values());
        }
        Ok(Matrix::from_vec(n, model.n_outputs(), scores))
    }

    fn explain<T: Scalar>(&self, model: &Model<T>, request: &Request) -> Result<Value, Refusal> {
        let _turn = self.turns.take(request.deadline)?;
        let asked = parse_request::<T>(&request.body, &self.spec)?;
        self.pool.install(|| explain(model, asked))
    }

    fn page_response(&self) -> Option<Response> {
        Some(Response {
            status: 200,
            content_type: "text/html; charset=utf-8",
            body: self.page.clone()?.into_bytes(),
            headers: vec![
                ("Content-Security-Policy", page::POLICY),
                ("Referrer-Policy", "no-referrer"),
            ],
        })
    }

    fn server_response(&self) -> Response {
        let extensions: &[&str] = if self.options.page { &["explain"] } else { &[] };
        ok(&server_metadata(extensions))
    }

    fn metrics_response(&self) -> Response {
        let description = self.model.description();
        let kind = match description.outputs {
            Outputs::Classes { .. } => "classification",
            Outputs::Values { .. } => "regression",
        };
        let labels = [
            ("name", self.options.name.clone()),
            ("version", VERSION.into()),
            ("task", kind.into()),
            ("kernel", kernel_name(&description.kernel).into()),
            ("precision", self.model.precision().to_string()),
        ];
        let gauges = [
            (
                "model_features",
                "Features of a row.",
                self.spec.n_features as f64,
            ),
            (
                "model_outputs",
                "Classes or values of a row.",
                self.spec.n_outputs as f64,
            ),
            (
                "model_support_rows",
                "Training rows in the model.",
                self.model.n_support() as f64,
            ),
            (
                "model_bytes",
                "Bytes of the tensors of the model.",
                self.model.size_bytes() as f64,
            ),
        ];
        Response {
            status: 200,
            content_type: metrics::CONTENT_TYPE,
            body: self.metrics.text(&labels, &gauges).into_bytes(),
            headers: Vec::new(),
        }
    }
}

impl Handler for Service {
    fn answer(&self, request: &Request) -> Response {
        self.route(request)
            .unwrap_or_else(|refusal| Response::error(&refusal))
    }

    fn admit(&self, head: &Head) -> Result<(), Refusal> {
        let host = head.host.as_deref();
        if self.options.only_local_names && !host.is_none_or(is_local) {
            let message = "this server listens on this machine only and answers to localhost; \
                           start it with --host to answer to other names";
            return Err(Refusal::new(403, message));
        }
        Ok(())
    }

    fn notice(&self, event: Event) {
        self.metrics.notice(event);
    }
}

/// Whether a Host header names this machine: localhost or an address, with or without a port.
fn is_local(host: &str) -> bool {
    let name = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => host.split(':').next().unwrap_or(""),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<std::net::IpAddr>().is_ok()
}

/// As it is called at training.
pub fn kernel_name(kernel: &Kernel) -> &'static str {
    match kernel {
        Kernel::Linear => "linear",
        Kernel::Poly { .. } => "poly",
        Kernel::Rbf { .. } => "rbf",
        Kernel::Laplacian { .. } => "laplacian",
        Kernel::Sigmoid { .. } => "sigmoid",
    }
}

fn ok(value: &Value) -> Response {
    Response::json(200, value.to_string().into_bytes())
}

fn not_found(path: &str) -> Refusal {
    let path: String = path.chars().take(80).collect();
    Refusal::new(404, format!("there is nothing at {path:?}"))
}

/// Refuses other methods. HEAD is as good as GET.
fn only(request: &Request, method: &'static str) -> Result<(), Refusal> {
    let asked = match request.head.method.as_str() {
        "HEAD" => "GET",
        other => other,
    };
    if asked == method {
        return Ok(());
    }
    let mut refusal = Refusal::new(405, format!("this path takes {method}"));
    refusal.allow = method;
    Err(refusal)
}

/// The answer to what the library refuses: the rows are wrong, or else we are.
pub fn refusal_of(error: Error) -> Refusal {
    let status = match error {
        Error::Data(_) | Error::Numeric(_) | Error::Parameter { .. } => 400,
        _ => 500,
    };
    Refusal::new(status, error.to_string())
}

fn out_of_time() -> Refusal {
    let message = "the time for this request is over: send fewer rows, come back when less is to \
                   do, or start the server with a larger --timeout";
    Refusal::new(503, message)
}

/// Lets as many requests at a time be worked on as there are threads: each takes memory and
/// cache, and more at a time would not be faster.
#[derive(Debug)]
struct Turns {
    free: Mutex<usize>,
    freed: Condvar,
}

/// A turn, over when it goes.
#[derive(Debug)]
struct Turn<'a>(&'a Turns);

impl Turns {
    fn new(count: usize) -> Self {
        Self {
            free: Mutex::new(count),
            freed: Condvar::new(),
        }
    }

    /// Waits for a turn, but not beyond the deadline.
    fn take(&self, deadline: Instant) -> Result<Turn<'_>, Refusal> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let left = deadline.saturating_duration_since(Instant::now());
        let waited = self.freed.wait_timeout_while(free, left, |free| *free == 0);
        let (mut free, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if *free == 0 {
            return Err(out_of_time());
        }
        *free -= 1;
        Ok(Turn(self))
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn only_this_machine_is_local() {
        for host in [
            "localhost",
            "LocalHost:80",
            "127.0.0.1:8080",
            "[::1]:8080",
            "[::1]",
            "10.0.0.1",
        ] {
            assert!(is_local(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example:80",
            "127.0.0.1.evil.example",
            "[x]",
        ] {
            assert!(!is_local(host), "{host}");
        }
    }

    #[test]
    fn turns_are_given_back() {
        let turns = Turns::new(1);
        let past = Instant::now();
        let first = turns.take(past).expect("it is free");
        assert_eq!(
            turns.take(past).err().map(|refusal| refusal.status),
            Some(503)
        );
        drop(first);
        assert!(turns.take(past + Duration::from_secs(1)).is_ok());
    }
}
