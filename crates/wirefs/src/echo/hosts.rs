//! `wirefs echo add` and `wirefs echo drain`: hosts come and go while the mount stands.

use std::net::IpAddr;
use std::time::Duration;

use anyhow::Result;
use wirefs_pingfs::OpenError;

use super::{SERVED, resolve};
use crate::arguments::EchoHost;
use crate::control::{Ask, Told};
use crate::failure::failure;
use crate::status::connect;

/// Measuring a host takes a few seconds at most.
const PATIENCE: Duration = Duration::from_secs(60);

/// Gives the mount of this process one more host; none where it is no such mount.
pub(crate) fn add_host(host: IpAddr) -> Option<Result<(), OpenError>> {
    Some(SERVED.get()?.store.add_host((host, 0).into()).map(drop))
}

/// Empties a host of the mount of this process; none where it is no such mount.
pub(crate) fn drain_host(host: IpAddr) -> Option<Result<(), OpenError>> {
    Some(SERVED.get()?.store.drain_host(host))
}

pub(super) fn run_add(arguments: &EchoHost) -> Result<()> {
    tell(arguments, Ask::AddHost { host: resolve(&arguments.host)?.ip() })
}

pub(super) fn run_drain(arguments: &EchoHost) -> Result<()> {
    tell(arguments, Ask::DrainHost { host: resolve(&arguments.host)?.ip() })
}

fn tell(arguments: &EchoHost, ask: Ask) -> Result<()> {
    let mut line = connect(&arguments.mountpoint)?;
    line.set_patience(PATIENCE)?;
    line.ask(ask)?;
    match line.answer()? {
        Told::Done => Ok(()),
        Told::Failed { message } => {
            Err(failure(message, "`wirefs echo status` shows the hosts and their room"))
        }
        Told::Status(_) | Told::Echo(_) | Told::Progress { .. } => {
            Err(failure("the process answers something else", "it is another version; mount again"))
        }
    }
}
