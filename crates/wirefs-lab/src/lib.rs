//! Hosts as network namespaces, emulated links between them, workloads and measurements.
//!
//! *Holds*: a frame never leaves the link before its delay has passed; frames keep their order unless the profile
//! reorders them; equal seeds, frames and times give equal decisions of the link; traffic stays inside namespaces of
//! the lab; dropping the lab removes everything that it created.
//!
//! *Never*: shipped, or used by a crate that is.
//!
//! *Drive it*:
//!
//! ```no_run
//! use std::time::Duration;
//! use wirefs_lab::{Lab, LinkProfile};
//!
//! let lab = Lab::new("example")?;
//! let (server, client) = (lab.host("server")?, lab.host("client")?);
//! let link = lab.link(&server, &client, LinkProfile::rtt(Duration::from_millis(85)))?;
//! client.command("ping").args(["-c1", &link.address_a().to_string()]).status()?;
//! link.cut();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! *Proved by*: seeded unit tests beside `lane`; `tests/suite`, which runs on real namespaces; `wirefs-lab check`,
//! which measures the lab itself.

pub mod error;
pub mod units;

pub mod counters;
pub mod lane;
pub mod link;
pub mod profile;
pub mod random;

pub mod bench;
pub mod cards;
pub mod contend;
pub mod control;
pub mod emulator;
pub mod lab;
pub mod namespace;
mod offloads;
pub mod options;
pub mod probe;
pub mod range_lock;
pub mod workload;

pub mod homes;
pub mod port;
pub mod program;
pub mod sshd;
pub mod synthetic;
mod sys;
mod tap;
pub mod terminal;

pub use counters::{LaneCounters, LinkCounters};
pub use emulator::LinkHandle;
pub use error::LabError;
pub use lab::{Host, Lab, Patch};
pub use link::Direction;
pub use options::LinkOptions;
pub use profile::{LaneProfile, LinkProfile, Probability};
pub use sys::{EndSignals, run_without_blocked_signals};
pub use terminal::Terminal;
