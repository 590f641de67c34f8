//! Measurements of a link from its ends: rate, delay error, round-trip time.

mod delay;
mod rate;
mod round_trip;

pub use delay::{DelayErrors, delay_errors};
pub use rate::{TcpRun, tcp_rate, tcp_transfer};
pub use round_trip::round_trips;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use crate::error::LabError;
use crate::lab::Host;

/// The timeout of each socket operation.
const IO_TIMEOUT: Duration = Duration::from_secs(30);

/// A TCP connection between two hosts; both ends are in this process.
struct TcpPair {
    near: TcpStream,
    far: TcpStream,
}

/// Connects `from` to `to`, which has `address`, with timeouts of [`IO_TIMEOUT`] on both ends.
fn connect(
    measurement: &'static str,
    from: &Host,
    to: &Host,
    address: Ipv4Addr,
) -> Result<TcpPair, LabError> {
    let failed = |error: io::Error| LabError::Probe { measurement, problem: error.to_string() };
    let listener = to.run(|| TcpListener::bind((address, 0)))?.map_err(failed)?;
    let at: SocketAddr = listener.local_addr().map_err(failed)?;
    let near = from.run(|| TcpStream::connect_timeout(&at, IO_TIMEOUT))?.map_err(failed)?;
    let (far, _) = listener.accept().map_err(failed)?;
    for end in [&near, &far] {
        end.set_read_timeout(Some(IO_TIMEOUT)).map_err(failed)?;
        end.set_write_timeout(Some(IO_TIMEOUT)).map_err(failed)?;
        end.set_nodelay(true).map_err(failed)?;
    }
    Ok(TcpPair { near, far })
}
