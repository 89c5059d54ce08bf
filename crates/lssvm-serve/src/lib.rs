//! A small and safe prediction server for one model.
//!
//! ```text
//! http      bytes of a connection ─ requests, within limits of size, time and number
//! protocol  requests ─ rows of numbers; scores ─ answers (Open Inference Protocol, version 2)
//! service   which path answers what; the model and its threads
//! metrics   what happened, for Prometheus
//! page      a page to try the model with
//! ```
//!
//! A thread for each connection, of which there are few, and no asynchronous runtime: the time
//! goes into predictions, which use all cores already.
//!
//! ```no_run
//! use lssvm::model::AnyModel;
//! use lssvm_serve::http::{Limits, Server};
//! use lssvm_serve::{Service, ServiceOptions};
//!
//! let model = AnyModel::load("flowers.lssvm".as_ref())?;
//! let options = ServiceOptions {
//!     name: "flowers".into(),
//!     threads: 0,
//!     page: true,
//!     only_local_names: true,
//! };
//! let service = Service::new(model, options)?;
//! let address = ([127, 0, 0, 1], 8080).into();
//! let server = Server::bind(address, Limits::default(), service)?;
//! server.run();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod explain;
pub mod http;
mod metrics;
mod page;
pub mod protocol;
mod service;

pub use service::{Service, ServiceOptions};
