//! The program as a generated client meets it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that fails panics")]

mod crashes;
mod gate;
mod lock;
mod mount;
mod names;
mod python;
mod secured;
mod standard;
mod whole;

/// The generated client.
#[allow(missing_docs, unreachable_pub, clippy::all, reason = "generated")]
mod proto {
    tonic::include_proto!("wirefs.v1");
}
