//! A server of this process, mounted without a wire.

use crate::serve::Server;
use std::sync::Arc;
use wirefs_carrier::{Carrier, Dial, DialError};

/// Reaches a [`Server`] of this process: what it serves can be mounted in one process, with the same core and the same
/// sessions as over any other carrier. Most requests are carried out by the thread that read them from the kernel.
///
/// The server must be kept, and stopped after the mount has ended ([`Mounted::wait`](super::Mounted::wait)).
#[derive(Debug)]
pub struct LocalDial {
    server: Arc<Server>,
}

impl LocalDial {
    /// Reaches this server.
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
