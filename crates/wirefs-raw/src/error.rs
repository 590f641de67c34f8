//! Errors of raw sockets, with messages for the user.

use std::io;
use std::net::IpAddr;

/// The reason why a raw socket cannot be opened or used.
#[derive(Debug, thiserror::Error)]
pub enum RawError {
    /// The process lacks CAP_NET_RAW.
    #[error(
        "raw sockets need the capability CAP_NET_RAW: run as root, or grant it to the program with \
         `setcap cap_net_raw+ep PROGRAM`"
    )]
    NotPermitted,
    /// The kernel or this network namespace does not support the protocol.
    #[error("{family} is not available here, so {host} cannot be reached")]
    NoFamily {
        /// "IPv4" or "IPv6".
        family: &'static str,
        /// The requested host.
        host: IpAddr,
    },
    /// No route leads to the host.
    #[error("no route to {host}: {source}")]
    Unreachable {
        /// The requested host.
        host: IpAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The host does not answer.
    #[error("{host} does not answer pings: it is down, or it or a firewall on the path drops them")]
    NoAnswer {
        /// The host.
        host: IpAddr,
    },
    /// The interface does not exist.
    #[error("there is no network interface {interface} here; `ip link` lists them")]
    NoInterface {
        /// The requested interface.
        interface: String,
    },
    /// The interface is not an Ethernet interface.
    #[error("{interface} is not an Ethernet interface")]
    NotEthernet {
        /// The requested interface.
        interface: String,
    },
    /// A system call failed.
    #[error("cannot {action}: {source}")]
    Io {
        /// The attempted action, as the end of "cannot …".
        action: &'static str,
        /// The system's error.
        source: io::Error,
    },
}

impl RawError {
    /// Returns a constructor for a failed action.
    pub(crate) fn io(action: &'static str) -> impl Fn(io::Error) -> RawError {
        move |source| RawError::Io { action, source }
    }
}
