//! As much of HTTP/1.1 as a prediction server needs (RFC 9112), with a limit on everything.
//!
//! ```text
//! bytes ─ head.rs ─ Head ─┐
//!                         ├─ Request ─ Handler ─ Response ─ bytes
//! bytes ─ body.rs ────────┘
//! ```
//!
//! | file | what it holds |
//! |---|---|
//! | `head.rs` | request line and headers: bytes in, a [`Head`] or a refusal out |
//! | `body.rs` | how long a body is; chunks taken apart |
//! | `connection.rs` | one connection: deadlines, keep-alive, pipelined requests |
//! | `server.rs` | the listener: threads, limits, the end |
//!
//! A request that is not understood to the last byte ends its connection, because nobody can
//! say where the next one begins.

mod body;
mod connection;
mod head;
mod server;

pub use body::Chunks;
pub use head::{Framing, Head, parse_head};
pub use server::{Server, Stopper};

use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a server lets its clients do.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes of a body.
    pub max_body: u64,
    /// Bytes of all bodies that are held at the same time.
    pub max_bodies: u64,
    /// Connections at the same time; one more is told to come back.
    pub max_connections: usize,
    /// From the first byte of a request to the last byte of its answer.
    pub request: Duration,
    /// From the first byte of a request to the end of its headers.
    pub headers: Duration,
    /// How long a connection may stay without a request.
    pub idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let max_body = 64_000_000;
        Self {
            max_body,
            max_bodies: 4 * max_body,
            max_connections: 64,
            request: Duration::from_secs(60),
            headers: Duration::from_secs(10),
            idle: Duration::from_secs(60),
        }
    }
}

/// What a client asks.
#[derive(Debug)]
pub struct Request {
    /// Method, path and headers.
    pub head: Head,
    /// All of the body.
    pub body: Vec<u8>,
    /// When the answer must be written.
    pub deadline: Instant,
}

/// What a client is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// 200 and the like.
    pub status: u16,
    /// Media type of the body.
    pub content_type: &'static str,
    /// The body.
    pub body: Vec<u8>,
    /// Further headers.
    pub headers: Vec<(&'static str, &'static str)>,
}

impl Response {
    /// Text in JSON.
    pub fn json(status: u16, body: Vec<u8>) -> Self {
        Self {
            status,
            content_type: "application/json",
            body,
            headers: Vec::new(),
        }
    }

    /// A refusal, as the Open Inference Protocol writes it.
    pub fn error(refusal: &Refusal) -> Self {
        let body = serde_json::json!({ "error": refusal.message });
        let mut response = Self::json(refusal.status, body.to_string().into_bytes());
        match refusal.status {
            405 => response.headers.push(("Allow", refusal.allow)),
            503 => response.headers.push(("Retry-After", "1")),
            _ => {}
        }
        response
    }
}

/// Why a request is not answered as was hoped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{status}: {message}")]
pub struct Refusal {
    /// 400 and the like.
    pub status: u16,
    /// What is wrong, and what to do.
    pub message: String,
    /// With 405: the methods that there are.
    pub allow: &'static str,
}

impl Refusal {
    /// With this status and these words.
    pub fn new(status: u16, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
            allow: "",
        }
    }
}

/// Answers requests, on any thread.
pub trait Handler: Send + Sync + 'static {
    /// The answer to a whole request.
    fn answer(&self, request: &Request) -> Response;

    /// Whether a request shall be read to its end: called when its headers are known.
    ///
    /// # Errors
    /// The answer, if not; the connection is closed after it.
    fn admit(&self, head: &Head) -> Result<(), Refusal> {
        let _ = head;
        Ok(())
    }

    /// Is told what happens.
    fn notice(&self, event: Event) {
        let _ = event;
    }
}

impl<H: Handler> Handler for Arc<H> {
    fn answer(&self, request: &Request) -> Response {
        (**self).answer(request)
    }

    fn admit(&self, head: &Head) -> Result<(), Refusal> {
        (**self).admit(head)
    }

    fn notice(&self, event: Event) {
        (**self).notice(event);
    }
}

/// What happens on a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A connection was accepted.
    Opened,
    /// A connection is no more.
    Closed,
    /// The first byte of a request has come.
    Began,
    /// An answer with this status was sent, or could not be, so long after the first byte.
    Answered(u16, Duration),
    /// A request ended without an answer: its client went away.
    Abandoned,
    /// Bytes came.
    Received(usize),
    /// Bytes went.
    Sent(usize),
}

/// The words beside a status.
pub fn reason(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        200 => "OK",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        411 => "Length Required",
        413 => "Content Too Large",
        414 => "URI Too Long",
        417 => "Expectation Failed",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        _ => "Unknown",
    }
}
