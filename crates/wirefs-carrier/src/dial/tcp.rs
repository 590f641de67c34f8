//! Dialing over TCP.

use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use super::{Dial, DialError};
use crate::address::HostPort;
use crate::carrier::{Carrier, PeerInfo};
use crate::{socket, stream};

/// The minimum share of the connect timeout for each of a host's addresses.
const TRY_MIN: Duration = Duration::from_secs(1);

/// Dials plain TCP: neither encrypted nor authenticated.
#[derive(Clone, Debug)]
pub struct TcpDial {
    host: HostPort,
    timeout: Duration,
}

impl TcpDial {
    /// Returns a dialer of `host` with a connect timeout ([`crate::limits::CONNECT_TIMEOUT`] is a good one).
    pub fn new(host: HostPort, timeout: Duration) -> Self {
        Self { host, timeout }
    }
}

impl Dial for TcpDial {
    fn dial(&self) -> Result<Carrier, DialError> {
        let connected = connect(&self.host, Instant::now() + self.timeout)?;
        let address = format!("tcp+plain://{}", self.host);
        Ok(stream::over_socket(connected.into(), PeerInfo::plain("tcp+plain", address)))
    }
}

/// Connects to the first of the host's addresses that answers before `deadline`.
///
/// # Errors
/// Fails if the name has no address, or none answers. Name resolution has the resolver's own timeout.
pub(crate) fn connect(host: &HostPort, deadline: Instant) -> Result<TcpStream, DialError> {
    let addresses: Vec<SocketAddr> = (host.host.as_str(), host.port)
        .to_socket_addrs()
        .map_err(|error| DialError::Resolve { host: host.host.clone(), error })?
        .collect();
    let mut failure = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for (index, address) in addresses.iter().enumerate() {
        let left = deadline.saturating_duration_since(Instant::now());
        let others = u32::try_from(addresses.len() - index).unwrap_or(u32::MAX);
        let share = (left / others).max(TRY_MIN.min(left));
        if share.is_zero() {
            failure = io::ErrorKind::TimedOut.into();
            break;
        }
        match socket::connect_tcp(address, share).and_then(|tcp| socket::tune(&tcp).map(|()| tcp)) {
            Ok(connected) => return Ok(connected),
            Err(error) => failure = error,
        }
    }
    Err(DialError::Connect { address: host.to_string(), error: failure })
}
