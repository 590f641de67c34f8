//! The part of a gate that all protocols share: a source, mounted without the kernel.
//!
//! *Holds*: a source is named, reached and cached as by `wirefs mount`; a read-only source refuses changes before they
//! reach the server; the end sends pending changes.
//!
//! *Never*: a protocol, which is its program's: `wirefs-gate` speaks 9P, `wirefs-grpc` gRPC.
//!
//! *Proved by*: the suites of these programs.

mod dial;
mod source;
mod sys;

pub use dial::config_dir;
pub use source::{OpenSource, SourceOptions};
pub use sys::Signals;
pub use wirefs_ninep::{Files, NineUsers};
