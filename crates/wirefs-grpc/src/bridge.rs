//! A gate of another machine as a source: Op on standard input and output, for `wirefs mount grpc://…`.
//!
//! The mount starts this program, as it starts ssh. When the gate is lost or has restarted, the program ends without a
//! reply to what it was asked. The mount starts it again, and sees by the boot id that unsynced data must be sent again.

mod address;
mod get;
mod listings;
mod lock;
mod names;
mod put;
mod remote;
mod settle;
mod tree;

use crate::secured;
use address::GateAddress;
use anyhow::{Context, Result, anyhow};
use remote::Remote;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tonic::transport::Endpoint;
use tree::GateTree;
use wirefs_carrier::Stdio;
use wirefs_op::message::version::BootId;
use wirefs_serve::{ServeOptions, Server};

/// The wait for a connection, at most.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The time between two looks whether a silent gate is there, and the wait for its answer.
const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// Serves the tree of a gate on standard input and output, until the mount or the gate ends.
///
/// # Errors
/// The address is malformed, the gate is not reached, or has no such directory.
pub(crate) fn run(source: &OsStr, certificates: &Path) -> Result<()> {
    let address = GateAddress::parse(source)?;
    let mut endpoint = Endpoint::from_shared(address.uri.clone())?
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE)
        .keep_alive_while_idle(true);
    if address.is_secured {
        endpoint = endpoint.tls_config(secured::client(certificates)?)?;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let channel = runtime.block_on(endpoint.connect()).map_err(|error| {
        let reasons = anyhow::Error::new(error);
        anyhow!(
            "cannot connect to {}: {reasons:#}\n  next step: start the gate there, or correct the address",
            address.uri
        )
    })?;
    let (remote, verifier) = Remote::open(runtime.handle().clone(), channel, &address.path)
        .map_err(|status| anyhow!("the gate at {} refuses: {}", address.uri, status.message()))?;
    let carrier = Stdio::from_std().context("standard input and output cannot be used for frames")?;
    let boot = BootId(verifier);
    let tree = Arc::new(GateTree::new(remote, carrier.closer.clone(), address.path, boot));
    let server = Server::start(Arc::clone(&tree) as _, ServeOptions::new(boot))?;
    server.serve(carrier);
    server.stop();
    runtime.shutdown_background();
    match tree.is_lost() {
        true => Err(anyhow!("the gate at {} is lost, or has restarted", address.uri)),
        false => Ok(()),
    }
}
