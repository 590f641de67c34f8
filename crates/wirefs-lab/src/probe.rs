//! Measuring a link from its ends: rate, delay error, round trips.

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

/// The longest that a probe waits for anything before it gives up.
const PATIENCE: Duration = Duration::from_secs(30);

/// A TCP connection between two hosts, both ends in this process.
struct Connected {
    near: TcpStream,
    far: TcpStream,
}

/// Connects `from` to `to`, which has `address`; neither end waits longer than [`PATIENCE`] for anything.
fn connect(what: &'static str, from: &Host, to: &Host, address: Ipv4Addr) -> Result<Connected, LabError> {
    let failed = |error: io::Error| LabError::Probe { what, problem: error.to_string() };
    let listener = to.run(|| TcpListener::bind((address, 0)))?.map_err(failed)?;
    let at: SocketAddr = listener.local_addr().map_err(failed)?;
    let near = from.run(|| TcpStream::connect_timeout(&at, PATIENCE))?.map_err(failed)?;
    let (far, _) = listener.accept().map_err(failed)?;
    for end in [&near, &far] {
        end.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
        end.set_write_timeout(Some(PATIENCE)).map_err(failed)?;
        end.set_nodelay(true).map_err(failed)?;
    }
    Ok(Connected { near, far })
}
