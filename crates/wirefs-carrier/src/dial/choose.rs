//! From an address to the way of dialling it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::{Dial, DialError, TcpDial, UnixDial};
use crate::address::{Address, Source};
use crate::ether::EtherDial;
use crate::limits::CONNECT_TIMEOUT;
use crate::ssh::{SshDial, SshOptions};
use crate::tls::{Identity, KnownHosts, TlsDial};

/// What dialling needs beside the address.
#[derive(Clone, Debug)]
pub struct DialOptions {
    /// Where our identity and the known hosts are kept; made at the first `tls` dial.
    pub config_directory: PathBuf,
    /// Time for connection and handshake.
    pub timeout: Duration,
    /// How ssh is called.
    pub ssh: SshOptions,
}

impl DialOptions {
    /// The usual, with keys in `config_directory`.
    pub fn new(config_directory: impl Into<PathBuf>) -> Self {
        Self {
            config_directory: config_directory.into(),
            timeout: CONNECT_TIMEOUT,
            ssh: SshOptions::default(),
        }
    }

    /// The known-hosts file.
    pub fn known_hosts(&self) -> PathBuf {
        self.config_directory.join("known_hosts")
    }
}

impl Source {
    /// The way to dial this source's peer. Over ssh the far wirefs serves [`Source::path`] itself; elsewhere the path is
    /// below what the peer exports.
    ///
    /// # Errors
    /// `tls` and `ether` only: our identity cannot be made or read, or a card not opened.
    pub fn dialler(&self, options: &DialOptions) -> Result<Box<dyn Dial>, DialError> {
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
