//! The control socket of a mount: how `status`, `sync` and `umount` talk to the process that serves it.
//!
//! One JSON object a line each way. A request has one answer, and `sync` has any number of `progress` before it.

pub(crate) mod address;
mod client;
mod server;

pub(crate) use client::{Line, find, find_all};
pub(crate) use server::ControlSocket;

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::echo::{EchoReport, Plan};
use crate::status::Report;

/// A line in either direction is at most this long, in bytes.
const LINE_BYTES_MAX: u64 = 1024 * 1024;

/// What is asked of a mount.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub(crate) enum Ask {
    /// What it does.
    Status,
    /// Wait until everything is on the server's disk.
    Sync,
    /// What is under way, of a tree in echo packets.
    Echo,
    /// What is to become of such a tree when it is unmounted.
    End {
        /// That.
        plan: Plan,
    },
    /// A host more, of a tree in echo packets.
    AddHost {
        /// Its address.
        host: IpAddr,
    },
    /// A host less.
    DrainHost {
        /// Its address.
        host: IpAddr,
    },
}

/// What it answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub(crate) enum Told {
    /// To [`Ask::Status`].
    Status(Box<Report>),
    /// To [`Ask::Sync`], once a second until it is done.
    Progress {
        /// Written by programs and not yet at the server, in bytes.
        unacknowledged_bytes: u64,
    },
    /// To [`Ask::Echo`].
    Echo(Box<EchoReport>),
    /// It is done.
    Done,
    /// It could not be done.
    Failed {
        /// In words for people.
        message: String,
    },
}

/// The socket's name in the runtime directory.
fn socket_name(mountpoint: &std::path::Path) -> String {
    format!("{}.sock", crate::mountpoint::file_name(mountpoint))
}
