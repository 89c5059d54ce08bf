//! One connection: requests one after the other, each with its deadlines.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::body::{Chunks, too_long};
use super::head::{Framing, Head, parse_head};
use super::server::Shared;
use super::{Event, Handler, Refusal, Request, Response, reason};

/// How often a thread that waits looks at the clock, and whether the server ends.
const TICK: Duration = Duration::from_millis(50);

/// Bytes read at once.
const PIECE: usize = 64 * 1024;

/// How long a connection that is closed is still listened to. A client that is sending when its
/// connection is closed would lose the answer that says why.
const LINGER: Duration = Duration::from_secs(2);

/// Answers up to this size go out together with their headers.
const TOGETHER: usize = 16 * 1024;

/// Why there is no request.
enum Ended {
    /// The client went away in the middle.
    Abandoned,
    Refused(Refusal),
}

impl From<Refusal> for Ended {
    fn from(refusal: Refusal) -> Self {
        Ended::Refused(refusal)
    }
}

/// Serves a connection to its end.
pub fn serve<H: Handler>(stream: TcpStream, shared: &Shared<H>) {
    if prepare(&stream).is_err() {
        return;
    }
    let mut connection = Connection {
        stream,
        shared,
        buffer: Vec::new(),
        piece: vec![0; PIECE],
    };
    while connection.exchange() {}
}

/// Tells a client that there is no room, and no more.
pub fn refuse<H: Handler>(stream: TcpStream, shared: &Shared<H>) {
    if prepare(&stream).is_err() {
        return;
    }
    let refusal = Refusal::new(
        503,
        format!(
            "all {} connections are in use; come back later, or start the server with a larger \
             --max-connections",
            shared.limits.max_connections
        ),
    );
    let mut connection = Connection {
        stream,
        shared,
        buffer: Vec::new(),
        piece: vec![0; PIECE],
    };
    let response = Response::error(&refusal);
    shared.handler.notice(Event::Began);
    connection.send(&response, false, false, Instant::now() + LINGER);
    let told = Event::Answered(refusal.status, Duration::ZERO);
    shared.handler.notice(told);
    connection.linger();
}

fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(TICK))?;
    stream.set_write_timeout(Some(TICK))
}

/// Bytes of bodies that are held; given back when it goes.
struct Held<'a, H> {
    shared: &'a Shared<H>,
    bytes: u64,
}

impl<H: Handler> Held<'_, H> {
    fn grow(&mut self, bytes: u64) -> Result<(), Refusal> {
        let all = self.shared.bodies.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.bytes += bytes;
        if all > self.shared.limits.max_bodies {
            let message = "other requests take all the memory for bodies; come back later";
            return Err(Refusal::new(503, message));
        }
        Ok(())
    }
}

impl<H> Drop for Held<'_, H> {
    fn drop(&mut self) {
        self.shared.bodies.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

struct Connection<'a, H> {
    stream: TcpStream,
    shared: &'a Shared<H>,
    /// What has come and belongs to no request yet.
    buffer: Vec<u8>,
    /// Space to read into.
    piece: Vec<u8>,
}

impl<H: Handler> Connection<'_, H> {
    /// One request and its answer. Whether another may follow.
    fn exchange(&mut self) -> bool {
        let shared = self.shared;
        let mut held = Held { shared, bytes: 0 };
        if !self.wait_for_a_request() {
            return false;
        }
        shared.handler.notice(Event::Began);
        let begun = Instant::now();
        let deadline = begun + shared.limits.request;
        let (response, head) = match self.request(begun, &mut held) {
            Ok(request) => {
                let answer = AssertUnwindSafe(|| shared.handler.answer(&request));
                let response = catch_unwind(answer).unwrap_or_else(|_| {
                    let message = "the server failed at this request; please report it";
                    Response::error(&Refusal::new(500, message))
                });
                (response, Some(request.head))
            }
            Err(Ended::Refused(refusal)) => (Response::error(&refusal), None),
            Err(Ended::Abandoned) => {
                shared.handler.notice(Event::Abandoned);
                return false;
            }
        };
        // The body is gone; its place is free before the client hears so.
        drop(held);
        let stopping = shared.stopping.load(Ordering::Relaxed);
        let keep = head.as_ref().is_some_and(|h| h.keep_alive) && !stopping;
        let bare = head.is_some_and(|head| head.method == "HEAD");
        // Time enough to say that the time is up.
        let deadline = deadline.max(Instant::now() + LINGER);
        let sent = self.send(&response, bare, keep, deadline);
        let told = Event::Answered(response.status, begun.elapsed());
        shared.handler.notice(told);
        if sent && !keep {
            self.linger();
        }
        sent && keep
    }

    /// Waits for the first byte. False: there will be none.
    fn wait_for_a_request(&mut self) -> bool {
        let deadline = Instant::now() + self.shared.limits.idle;
        while self.buffer.is_empty() {
            let stopping = self.shared.stopping.load(Ordering::Relaxed);
            if stopping || Instant::now() >= deadline {
                return false;
            }
            match self.read() {
                Ok(Some(0)) | Err(_) => return false,
                Ok(_) => {}
            }
        }
        true
    }

    fn request(&mut self, begun: Instant, held: &mut Held<'_, H>) -> Result<Request, Ended> {
        let limits = &self.shared.limits;
        let deadline = begun + limits.request;
        let head = self.head(deadline.min(begun + limits.headers))?;
        self.shared.handler.admit(&head)?;
        if let Framing::Length(length) = head.framing
            && length > limits.max_body
        {
            return Err(too_long(limits.max_body).into());
        }
        if head.expects_continue && self.buffer.is_empty() {
            let line = format!("HTTP/1.1 100 {}\r\n\r\n", reason(100));
            if !self.write(line.as_bytes(), deadline) {
                return Err(Ended::Abandoned);
            }
        }
        let body = match head.framing {
            Framing::None => Vec::new(),
            Framing::Length(length) => self.body_of(length, deadline, held)?,
            Framing::Chunked => self.chunked_body(deadline, held)?,
        };
        Ok(Request {
            head,
            body,
            deadline,
        })
    }

    fn head(&mut self, deadline: Instant) -> Result<Head, Ended> {
        loop {
            if let Some((head, length)) = parse_head(&self.buffer)? {
                self.buffer.drain(..length);
                return Ok(head);
            }
            self.more(deadline, "headers")?;
        }
    }

    fn body_of(
        &mut self,
        length: u64,
        deadline: Instant,
        held: &mut Held<'_, H>,
    ) -> Result<Vec<u8>, Ended> {
        let mut body = Vec::new();
        loop {
            // As it comes: a promised length takes no memory.
            let missing = length - body.len() as u64;
            let take = missing.min(self.buffer.len() as u64) as usize;
            held.grow(take as u64)?;
            body.extend(self.buffer.drain(..take));
            if body.len() as u64 == length {
                return Ok(body);
            }
            self.more(deadline, "body")?;
        }
    }

    fn chunked_body(
        &mut self,
        deadline: Instant,
        held: &mut Held<'_, H>,
    ) -> Result<Vec<u8>, Ended> {
        let mut chunks = Chunks::new(self.shared.limits.max_body);
        let mut body = Vec::new();
        loop {
            let before = body.len();
            let taken = chunks.feed(&self.buffer, &mut body)?;
            self.buffer.drain(..taken);
            held.grow((body.len() - before) as u64)?;
            if chunks.is_done() {
                return Ok(body);
            }
            self.more(deadline, "body")?;
        }
    }

    /// Waits for more of a request.
    fn more(&mut self, deadline: Instant, what: &str) -> Result<(), Ended> {
        loop {
            if Instant::now() >= deadline {
                let message = format!("the {what} of the request came too slowly");
                return Err(Refusal::new(408, message).into());
            }
            match self.read() {
                Ok(Some(0)) | Err(_) => return Err(Ended::Abandoned),
                Ok(Some(_)) => return Ok(()),
                Ok(None) => {}
            }
        }
    }

    /// Reads what is there, and says how much; none after a tick without any.
    fn read(&mut self) -> io::Result<Option<usize>> {
        match self.stream.read(&mut self.piece) {
            Ok(length) => {
                self.buffer.extend_from_slice(&self.piece[..length]);
                self.shared.handler.notice(Event::Received(length));
                Ok(Some(length))
            }
            Err(error) if is_no_end(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether all of it was sent.
    fn send(&mut self, response: &Response, bare: bool, keep: bool, deadline: Instant) -> bool {
        let (status, body) = (response.status, &response.body);
        let mut bytes = format!(
            "HTTP/1.1 {status} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n\
             X-Content-Type-Options: nosniff\r\nConnection: {}\r\n",
            reason(status),
            response.content_type,
            body.len(),
            if keep { "keep-alive" } else { "close" },
        );
        for (name, value) in &response.headers {
            bytes += &format!("{name}: {value}\r\n");
        }
        bytes += "\r\n";
        let mut bytes = bytes.into_bytes();
        if bare {
            return self.write(&bytes, deadline);
        }
        if body.len() <= TOGETHER {
            bytes.extend_from_slice(body);
            return self.write(&bytes, deadline);
        }
        self.write(&bytes, deadline) && self.write(body, deadline)
    }

    fn write(&mut self, mut bytes: &[u8], deadline: Instant) -> bool {
        while !bytes.is_empty() {
            match self.stream.write(bytes) {
                Ok(0) => return false,
                Ok(length) => {
                    self.shared.handler.notice(Event::Sent(length));
                    bytes = &bytes[length..];
                }
                Err(error) if is_no_end(&error) => {}
                Err(_) => return false,
            }
            if !bytes.is_empty() && Instant::now() >= deadline {
                return false;
            }
        }
        true
    }

    /// Says that nothing more will come, and waits until the client has heard it.
    fn linger(&mut self) {
        let deadline = Instant::now() + LINGER;
        if self.stream.shutdown(Shutdown::Write).is_err() {
            return;
        }
        while Instant::now() < deadline {
            self.buffer.clear();
            match self.read() {
                Ok(Some(0)) | Err(_) => return,
                Ok(_) => {}
            }
        }
    }
}

/// Whether it only means: nothing yet.
fn is_no_end(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
    )
}
