//! Waits for listening servers.

use std::net::{Ipv4Addr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::LabError;
use crate::lab::Host;

/// The maximum time until a server listens.
const START_MAX: Duration = Duration::from_secs(20);
/// The polling interval.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

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
