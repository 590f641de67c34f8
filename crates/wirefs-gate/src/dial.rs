//! Dialing the server of a source.

use anyhow::{Context, Result, bail};
use std::path::PathBuf;
use std::sync::Arc;
use wirefs_carrier::limits::CONNECT_TIMEOUT;
use wirefs_carrier::ssh::{SshDial, SshOptions};
use wirefs_carrier::tls::{Identity, KnownHosts, TlsDial};
use wirefs_carrier::{Address, Dial, Source, TcpDial, UnixDial};

/// Returns the dialer of a source, and the directory below the export.
///
/// # Errors
/// Fails if our key cannot be read or made, or for a source that only `wirefs mount` dials.
pub(crate) fn of(source: &Source, identity: Option<&PathBuf>) -> Result<(Arc<dyn Dial>, Vec<u8>)> {
    let names = source.path.split(|&byte| byte == b'/').filter(|name| !name.is_empty() && *name != b".");
    let below = names.collect::<Vec<_>>().join(&b'/');
    Ok(match &source.address {
        Address::Unix(path) => (Arc::new(UnixDial::new(path)), below),
        Address::TcpPlain(host) => (Arc::new(TcpDial::new(host.clone(), CONNECT_TIMEOUT)), below),
        Address::Tls(host) => {
            let dir = identity.cloned().map_or_else(config_dir, Ok)?;
            let (known, key) = (KnownHosts::new(dir.join("known_hosts")), Arc::new(Identity::open(&dir)?));
            (Arc::new(TlsDial::new(host.clone(), key, known, CONNECT_TIMEOUT)), below)
        }
        // The server is started in the directory itself.
        Address::Ssh(login) => {
            let dial = SshDial::new(login.clone(), source.path.clone(), SshOptions::default());
            (Arc::new(dial), Vec::new())
        }
        Address::Ether(_) => {
            bail!("ether:// is not a source of the gate\n  next step: wirefs mount it, and serve the mount")
        }
    })
}

/// Returns the directory of this user's keys, the same as of the command.
///
/// # Errors
/// `HOME` is not set.
pub fn config_dir() -> Result<PathBuf> {
    let var = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let dir = var("XDG_CONFIG_HOME").or_else(|| var("HOME").map(|home| home.join(".config")));
    dir.map(|dir| dir.join("wirefs"))
        .context("HOME is not set\n  next step: name the directory with --identity")
}
