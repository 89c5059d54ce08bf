//! The listener: a thread for each connection, as many as are allowed, until it is told to end.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use super::{Event, Handler, Limits, connection};

/// Clients that are told at the same time that there is no room; more are dropped.
const MAX_REFUSALS: usize = 16;

/// How long to wait where the system has no sockets left, and how often to look whether the
/// last connection is closed.
const PAUSE: Duration = Duration::from_millis(20);

/// How long [`Stopper::stop`] tries to wake the listener.
const WAKE: Duration = Duration::from_secs(1);

/// What all connections share.
#[derive(Debug)]
pub struct Shared<H> {
    pub handler: H,
    pub limits: Limits,
    pub stopping: Arc<AtomicBool>,
    /// Bytes of bodies that are held.
    pub bodies: AtomicU64,
    connections: Arc<AtomicUsize>,
    refusals: Arc<AtomicUsize>,
}

/// A server that listens, but does not answer yet.
#[derive(Debug)]
pub struct Server<H> {
    listener: TcpListener,
    address: SocketAddr,
    shared: Arc<Shared<H>>,
}

impl<H: Handler> Server<H> {
    /// Listens at an address; port 0 is any that is free.
    ///
    /// # Errors
    /// What the system says if the address cannot be had.
    pub fn bind(address: SocketAddr, limits: Limits, handler: H) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        Ok(Self {
            address: listener.local_addr()?,
            listener,
            shared: Arc::new(Shared {
                handler,
                limits,
                stopping: Arc::default(),
                bodies: AtomicU64::new(0),
                connections: Arc::default(),
                refusals: Arc::default(),
            }),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What ends [`Server::run`].
    pub fn stopper(&self) -> Stopper {
        Stopper {
            stopping: self.shared.stopping.clone(),
            address: self.address,
        }
    }

    /// Answers until it is told to stop; then finishes what has begun, which takes no longer
    /// than the limits allow.
    pub fn run(self) {
        let shared = &self.shared;
        while !shared.stopping.load(Ordering::SeqCst) {
            match self.listener.accept() {
                Ok(_) if shared.stopping.load(Ordering::SeqCst) => break,
                Ok((stream, _)) => dispatch(stream, shared),
                // A client that is gone already, or no sockets left: neither is an end.
                Err(_) => thread::sleep(PAUSE),
            }
        }
        drop(self.listener);
        let open = |counter: &AtomicUsize| counter.load(Ordering::SeqCst) > 0;
        while open(&shared.connections) || open(&shared.refusals) {
            thread::sleep(PAUSE);
        }
    }
}

/// Gives a connection its thread.
fn dispatch<H: Handler>(stream: TcpStream, shared: &Arc<Shared<H>>) {
    let shared = shared.clone();
    if let Some(place) = Place::take(&shared.connections, shared.limits.max_connections) {
        shared.handler.notice(Event::Opened);
        spawn(move || {
            let _place = place;
            let _closed = Closed(&shared.handler);
            connection::serve(stream, &shared);
        });
    } else if let Some(place) = Place::take(&shared.refusals, MAX_REFUSALS) {
        spawn(move || {
            let _place = place;
            connection::refuse(stream, &shared);
        });
    }
}

/// Without a thread the connection is dropped, and its place with it.
fn spawn(work: impl FnOnce() + Send + 'static) {
    let _ = thread::Builder::new().name("connection".into()).spawn(work);
}

/// Tells of the end of a connection, also if its thread panics.
struct Closed<'a, H: Handler>(&'a H);

impl<H: Handler> Drop for Closed<'_, H> {
    fn drop(&mut self) {
        self.0.notice(Event::Closed);
    }
}

/// One of a limited number of places; free again when it goes.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(counter: &Arc<AtomicUsize>, most: usize) -> Option<Self> {
        // Only the listener takes places, so that none is taken between the two lines.
        if counter.load(Ordering::SeqCst) >= most {
            return None;
        }
        counter.fetch_add(1, Ordering::SeqCst);
        Some(Self(counter.clone()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Ends a server, from any thread.
#[derive(Debug, Clone)]
pub struct Stopper {
    stopping: Arc<AtomicBool>,
    address: SocketAddr,
}

impl Stopper {
    /// Refuses new connections and requests; what has begun is finished.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        // The listener waits for a connection: here is one.
        let mut address = self.address;
        if address.ip().is_unspecified() {
            address.set_ip(match address.ip() {
                IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            });
        }
        let _ = TcpStream::connect_timeout(&address, WAKE);
    }
}
