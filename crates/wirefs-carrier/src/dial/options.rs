//! Options of dialing, and the choice of the dialer by address.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::{Dial, DialError, TcpDial, UnixDial};
use crate::address::{Address, Source};
use crate::ether::EtherDial;
use crate::limits::CONNECT_TIMEOUT;
use crate::ssh::{SshDial, SshOptions};
use crate::tls::{Identity, KnownHosts, TlsDial};

/// Options of dialing.
#[derive(Clone, Debug)]
pub struct DialOptions {
    /// The directory of our identity and the known hosts; created at the first `tls` dial.
    pub config_directory: PathBuf,
    /// The timeout of connection and handshake.
    pub timeout: Duration,
    /// Options of ssh.
    pub ssh: SshOptions,
}

impl DialOptions {
    /// Returns the default options, with keys in `config_directory`.
    pub fn new(config_directory: impl Into<PathBuf>) -> Self {
        Self {
            config_directory: config_directory.into(),
            timeout: CONNECT_TIMEOUT,
            ssh: SshOptions::default(),
        }
    }

    /// Returns the known-hosts file.
    pub fn known_hosts(&self) -> PathBuf {
        self.config_directory.join("known_hosts")
    }
}

impl Source {
    /// Returns the dialer of this source's peer. Over ssh the remote wirefs serves [`Source::path`] itself; otherwise
    /// the path is below the peer's export.
    ///
    /// # Errors
    /// `tls` and `ether` only: our identity cannot be made or read, or a card cannot be opened.
    pub fn dialer(&self, options: &DialOptions) -> Result<Box<dyn Dial>, DialError> {
        Ok(match &self.address {
            Address::Unix(path) => Box::new(UnixDial::new(path)),
            Address::TcpPlain(host) => Box::new(TcpDial::new(host.clone(), options.timeout)),
            Address::Tls(host) => {
                let identity = Arc::new(Identity::open(&options.config_directory)?);
                let known = KnownHosts::new(options.known_hosts());
                Box::new(TlsDial::new(host.clone(), identity, known, options.timeout))
            }
            Address::Ether(place) => {
                let identity = Arc::new(Identity::open(&options.config_directory)?);
                let known = KnownHosts::new(options.known_hosts());
                Box::new(EtherDial::open(place.clone(), identity, known, options.timeout)?)
            }
            Address::Ssh(login) => {
                Box::new(SshDial::new(login.clone(), self.path.clone(), options.ssh.clone()))
            }
        })
    }
}
