//! What can go wrong with a raw socket, in words for the person who reads them.

use std::io;
use std::net::IpAddr;

/// Why a raw socket cannot be opened or used.
#[derive(Debug, thiserror::Error)]
pub enum RawError {
    /// The process may not open raw sockets.
    #[error(
        "raw sockets need the right CAP_NET_RAW: run as root, or give the program the right with \
         `setcap cap_net_raw+ep PROGRAM`"
    )]
    NotPermitted,
    /// The kernel or this network namespace has no such protocol.
    #[error("this machine has no {family} here, so {host} cannot be reached")]
    NoFamily {
        /// "IPv4" or "IPv6".
        family: &'static str,
        /// The host that was wanted.
        host: IpAddr,
    },
    /// No way leads to the host.
    #[error("no route to {host}: {source}")]
    Unreachable {
        /// The host that was wanted.
        host: IpAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The host does not echo what it is sent.
    #[error("{host} does not answer pings: it is down, or it, or a firewall on the way, does not want them")]
    NoAnswer {
        /// The host.
        host: IpAddr,
    },
    /// There is no such interface here.
    #[error("there is no network interface {interface} here; `ip link` lists them")]
    NoInterface {
        /// The interface that was wanted.
        interface: String,
    },
    /// The interface is none of Ethernet.
    #[error("{interface} is not an Ethernet interface")]
    NotEthernet {
        /// The interface that was wanted.
        interface: String,
    },
    /// A system call failed.
    #[error("cannot {action}: {source}")]
    Io {
        /// What was tried, as the end of "cannot …".
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl RawError {
    /// Names what was tried.
    pub(crate) fn io(action: &'static str) -> impl Fn(io::Error) -> RawError {
        move |source| RawError::Io { action, source }
    }
}
