//! The control socket of a mount: `status`, `sync` and `umount` use it to talk to the process of the mount.
//!
//! One JSON object per line in each direction. A request has one reply; `sync` and `await_end` have any number of
//! `progress` before it.

pub(crate) mod address;
mod client;
mod end;
mod server;

pub(crate) use client::{ControlClient, find, find_all};
pub(crate) use server::ControlSocket;

use std::net::IpAddr;
use std::path::PathBuf;

use anyhow::{Result, anyhow};
use serde::{Deserialize, Serialize};

use crate::activity::Sample;
use crate::arguments::LimitChange;
use crate::echo::{EchoReport, Plan};
use crate::status::Report;
use crate::unsent::Unsent;

/// The maximum length of a line, in bytes.
const LINE_BYTES_MAX: u64 = 1024 * 1024;

/// A request to a mount.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub(crate) enum ControlRequest {
    /// Return the status.
    Status,
    /// Return the status and the calls of programs.
    Sample,
    /// Wait until everything is on the server's disk.
    Sync,
    /// Report the unsent changes once a second, and the rest of them when the mount has ended.
    AwaitEnd,
    /// Change the limits of the mount's connections.
    Limit(LimitChange),
    /// Dial now, and let ssh ask at this socket.
    Reconnect {
        /// The path of the socket.
        prompts: PathBuf,
    },
    /// Return the status of a PingFS.
    Echo,
    /// Set the action at unmount, of a PingFS.
    End {
        /// The action.
        plan: Plan,
    },
    /// Add a host to a PingFS.
    AddHost {
        /// Its address.
        host: IpAddr,
    },
    /// Drain a host of a PingFS.
    DrainHost {
        /// Its address.
        host: IpAddr,
    },
}

/// A reply of a mount.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub(crate) enum ControlReply {
    /// To [`ControlRequest::Status`].
    Status(Box<Report>),
    /// To [`ControlRequest::Sync`] and [`ControlRequest::AwaitEnd`], once a second until they are done: the changes that
    /// the server does not have yet.
    Progress(Unsent),
    /// To [`ControlRequest::AwaitEnd`], with the changes that the server does not have at the end.
    Ended(Unsent),
    /// To [`ControlRequest::Sample`].
    Sample(Box<Sample>),
    /// To [`ControlRequest::Echo`].
    Echo(Box<EchoReport>),
    /// Success.
    Done,
    /// Failure.
    Failed {
        /// The message for the user.
        message: String,
    },
}

impl ControlReply {
    /// Returns the outcome of a request that only succeeds or fails; a failure has its message for the user.
    ///
    /// # Errors
    /// The reply is of another kind.
    pub(crate) fn outcome(self) -> Result<std::result::Result<(), String>> {
        match self {
            ControlReply::Done => Ok(Ok(())),
            ControlReply::Failed { message } => Ok(Err(message)),
            ControlReply::Status(_)
            | ControlReply::Sample(_)
            | ControlReply::Echo(_)
            | ControlReply::Progress(_)
            | ControlReply::Ended(_) => {
                Err(anyhow!("the process that serves the mount sent an unexpected answer"))
            }
        }
    }
}

/// Returns the socket's name in the runtime directory.
fn socket_name(mountpoint: &std::path::Path) -> String {
    format!("{}.sock", crate::mountpoint::file_name(mountpoint))
}
