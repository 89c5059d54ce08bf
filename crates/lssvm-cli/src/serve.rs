//! `lssvm serve`

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};
use lssvm::Error;
use lssvm::model::AnyModel;
use lssvm_serve::http::{Limits, Server, Stopper};
use lssvm_serve::{Service, ServiceOptions};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::args::ServeArgs;
use crate::output::{remark, say};

/// How often the signals are looked for.
const LOOK: Duration = Duration::from_millis(50);

/// Bodies that are held at the same time, as multiples of the largest.
const BODIES: u64 = 4;

/// Times of more than a day are as good as none, and sums of them stay in range.
const LONGEST: f64 = 86_400.0;

pub fn run(args: &ServeArgs) -> anyhow::Result<()> {
    for (name, count) in [
        ("threads", args.threads.unwrap_or(1)),
        ("max-connections", args.max_connections),
    ] {
        if count == 0 {
            bail!(Error::parameter(name, 0, "must be at least 1"));
        }
    }
    let model = AnyModel::load(&args.model)?;
    let name = args.name.clone().or_else(|| {
        let stem = args.model.file_stem()?;
        Some(stem.to_string_lossy().into_owned())
    });
    let local = args.host.is_loopback();
    let options = ServiceOptions {
        name: name.unwrap_or_default(),
        threads: args.threads.unwrap_or(0),
        page: !args.no_page,
        only_local_names: local,
    };
    let service = Service::new(model, options)?;
    let address = SocketAddr::new(args.host, args.port);
    let server = Server::bind(address, limits(args), service).map_err(|e| refused(address, e))?;
    if !local {
        remark(format!(
            "listening beyond this machine: whoever reaches {} can use the model",
            server.address()
        ));
    }
    end_by_signal(server.stopper())?;
    say(format!("http://{}", server.address()));
    server.run();
    Ok(())
}

fn limits(args: &ServeArgs) -> Limits {
    let time = |seconds: f64| Duration::from_secs_f64(seconds.min(LONGEST));
    Limits {
        max_body: args.max_body.0,
        max_bodies: args.max_body.0.saturating_mul(BODIES),
        max_connections: args.max_connections,
        request: time(args.timeout),
        headers: time(args.header_timeout),
        idle: time(args.idle_timeout),
    }
}

fn refused(address: SocketAddr, error: io::Error) -> anyhow::Error {
    let requirement = format!(
        "cannot listen at {address} ({error}); choose another --port, 0 for any that is free, or \
         another --host"
    );
    Error::parameter("port", address.port(), requirement).into()
}

/// Ctrl-C or SIGTERM ends the server when it has answered what has begun, the second at once.
fn end_by_signal(stopper: Stopper) -> anyhow::Result<()> {
    let asked = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // First what the second does, which must not see the first.
        let ended = signal_hook::flag::register_conditional_shutdown(signal, 1, asked.clone());
        ended.context("cannot wait for signals")?;
        signal_hook::flag::register(signal, asked.clone()).context("cannot wait for signals")?;
    }
    let wait = move || {
        while !asked.load(Ordering::Relaxed) {
            thread::sleep(LOOK);
        }
        stopper.stop();
    };
    thread::Builder::new()
        .name("signals".into())
        .spawn(wait)
        .context("cannot start a thread")?;
    Ok(())
}
