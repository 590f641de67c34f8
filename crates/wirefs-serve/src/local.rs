//! Dialing a server in the same process.

use super::Server;
use std::sync::Arc;
use wirefs_carrier::{Carrier, Dial, DialError};

/// Dials a [`Server`] in the same process, with the same client core and the same sessions as over any other carrier.
/// The thread that reads a request from the kernel executes most requests itself.
///
/// The server must outlive the mount, and is stopped after it.
#[derive(Debug)]
pub struct LocalDial {
    server: Arc<Server>,
}

impl LocalDial {
    /// Creates a dialer of this server.
    pub fn new(server: Arc<Server>) -> LocalDial {
        LocalDial { server }
    }
}

impl Dial for LocalDial {
    fn dial(&self) -> Result<Carrier, DialError> {
        let refused = |error| DialError::Connect { address: "this process".to_owned(), error };
        self.server.join().map_err(refused)
    }
}
