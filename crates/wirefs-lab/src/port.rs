//! Waiting until a server listens.

use std::net::{Ipv4Addr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::LabError;
use crate::lab::Host;

/// The longest that a server takes to listen.
const START_MAX: Duration = Duration::from_secs(20);
/// Between two looks whether it listens.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Waits until somebody on a host listens at this port of it. Looks from the host itself, so nothing is counted on its links.
pub fn wait_for(host: &Host, place: (Ipv4Addr, u16), what: &str) -> Result<(), LabError> {
    let end = Instant::now() + START_MAX;
    host.run(|| {
        while TcpStream::connect(place).is_err() {
            if Instant::now() > end {
                let problem = format!("does not listen at {}:{} after {START_MAX:?}", place.0, place.1);
                return Err(LabError::CommandFailed { command: what.to_owned(), stderr: problem });
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(())
    })?
}
