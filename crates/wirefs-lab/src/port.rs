//! Ports of servers: reserves one that is free, and waits until a server listens.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::os::fd::OwnedFd;
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, socket_with, sockopt};

use crate::error::LabError;
use crate::lab::Host;

/// The maximum time until a server listens.
const START_MAX: Duration = Duration::from_secs(20);
/// The polling interval.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A TCP port of loopback for one server, which the system gives to nobody else as long as this value lives.
///
/// A bound socket that does not listen holds it. A server that sets `SO_REUSEADDR` can bind the same port, even again
/// after a restart. The kernel chooses the port neither for another socket bound to port 0 nor for an outgoing
/// connection.
#[derive(Debug)]
pub struct ReservedPort {
    number: u16,
    _reservation: OwnedFd,
}

impl ReservedPort {
    /// Reserves an unused port.
    ///
    /// # Errors
    /// The system has no socket or no unused port.
    pub fn unused() -> Result<ReservedPort, LabError> {
        let failed = |source: io::Error| LabError::Io { action: "reserve a port".to_owned(), source };
        Self::reserve().map_err(failed)
    }

    fn reserve() -> io::Result<ReservedPort> {
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))?;
        let address = SocketAddr::try_from(getsockname(&socket)?)?;
        Ok(ReservedPort { number: address.port(), _reservation: socket })
    }

    /// Returns the port's number.
    pub fn number(&self) -> u16 {
        self.number
    }
}

/// Waits until a process on a host listens at this address and port. Connects from the host itself, so that no link
/// counts it.
pub fn wait_for(host: &Host, endpoint: (Ipv4Addr, u16), name: &str) -> Result<(), LabError> {
    let end = Instant::now() + START_MAX;
    host.run(|| {
        while TcpStream::connect(endpoint).is_err() {
            if Instant::now() > end {
                let problem = format!("does not listen at {}:{} after {START_MAX:?}", endpoint.0, endpoint.1);
                return Err(LabError::CommandFailed { command: name.to_owned(), stderr: problem });
            }
            thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    })?
}

#[cfg(test)]
mod tests;
