//! `wirefs echo add` and `wirefs echo drain`: adding and removing hosts of a mount.

use std::net::IpAddr;
use std::time::Duration;

use anyhow::Result;
use wirefs_pingfs::OpenError;

use super::{SERVED, resolve};
use crate::arguments::EchoHost;
use crate::control::{ControlReply, ControlRequest};
use crate::failure::failure;
use crate::status::connect;

/// Measuring a host takes a few seconds at most.
const PATIENCE: Duration = Duration::from_secs(60);

/// Adds a host to the mount of this process; `None` if it is no PingFS.
pub(crate) fn add_host(host: IpAddr) -> Option<Result<(), OpenError>> {
    Some(SERVED.get()?.store.add_host((host, 0).into()).map(drop))
}

/// Drains a host of the mount of this process; `None` if it is no PingFS.
pub(crate) fn drain_host(host: IpAddr) -> Option<Result<(), OpenError>> {
    Some(SERVED.get()?.store.drain_host(host))
}

pub(super) fn run_add(arguments: &EchoHost) -> Result<()> {
    request(arguments, ControlRequest::AddHost { host: resolve(&arguments.host)?.ip() })
}

pub(super) fn run_drain(arguments: &EchoHost) -> Result<()> {
    request(arguments, ControlRequest::DrainHost { host: resolve(&arguments.host)?.ip() })
}

fn request(arguments: &EchoHost, ask: ControlRequest) -> Result<()> {
    let mut line = connect(&arguments.mountpoint)?;
    line.set_timeout(PATIENCE)?;
    line.send(ask)?;
    match line.answer()? {
        ControlReply::Done => Ok(()),
        ControlReply::Failed { message } => {
            Err(failure(message, "`wirefs echo status` shows the hosts and their room"))
        }
        ControlReply::Status(_)
        | ControlReply::Sample(_)
        | ControlReply::Echo(_)
        | ControlReply::Progress(_)
        | ControlReply::Ended(_) => Err(failure(
            "the process sent an unexpected answer",
            "it is another version of wirefs; unmount and mount again",
        )),
    }
}
