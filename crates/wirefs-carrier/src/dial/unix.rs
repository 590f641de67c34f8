//! Dialling a socket of this machine.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use super::{Dial, DialError};
use crate::carrier::{Carrier, PeerInfo};
use crate::stream;

/// Dials a unix socket.
#[derive(Clone, Debug)]
pub struct UnixDial {
    path: PathBuf,
}

impl UnixDial {
    /// Will dial the socket at `path`.
    pub fn new(path: impl AsRef<Path>) -> Self {
        Self { path: path.as_ref().to_owned() }
    }
}

impl Dial for UnixDial {
    fn dial(&self) -> Result<Carrier, DialError> {
        let address = format!("unix://{}", self.path.display());
        match UnixStream::connect(&self.path) {
            Ok(socket) => Ok(stream::over_socket(socket.into(), PeerInfo::plain("unix", address))),
            Err(error) => Err(DialError::Connect { address, error }),
        }
    }
}
