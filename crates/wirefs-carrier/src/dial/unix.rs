//! Dialing a unix socket.

use std::path::{Path, PathBuf};

use super::{Dial, DialError};
use crate::carrier::{Carrier, PeerInfo};
use crate::limits::CONNECT_TIMEOUT;
use crate::{socket, stream};

/// Dials a unix socket.
#[derive(Clone, Debug)]
pub struct UnixDial {
    path: PathBuf,
}

impl UnixDial {
    /// Returns a dialer of the socket at `path`.
    pub fn new(path: impl AsRef<Path>) -> Self {
        Self { path: path.as_ref().to_owned() }
    }
}

impl Dial for UnixDial {
    fn dial(&self) -> Result<Carrier, DialError> {
        let address = format!("unix://{}", self.path.display());
        match socket::connect_unix(&self.path, CONNECT_TIMEOUT) {
            Ok(socket) => Ok(stream::over_socket(socket, PeerInfo::plain("unix", address))),
            Err(error) => Err(DialError::Connect { address, error }),
        }
    }
}
