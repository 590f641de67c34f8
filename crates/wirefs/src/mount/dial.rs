//! Dialing the source of a mount.

use std::sync::Arc;

use anyhow::{Context, Result};
use wirefs_carrier::ether::{EtherDial, drop_net_raw};
use wirefs_carrier::limits::CONNECT_TIMEOUT;
use wirefs_carrier::ssh::{SshDial, SshOptions, install_remote};
use wirefs_carrier::tls::{Identity, KnownHosts, TlsDial};
use wirefs_carrier::{Address, Dial, DialError, Login, Source, TcpDial, UnixDial};
use wirefs_mount::{ConnectError, Connected, MountPlan};

use super::settings::MountSettings;
use crate::failure::failure;
use crate::terminal::note;
use crate::user_dirs;

/// Returns the dialer of a source.
///
/// # Errors
/// Fails if our key cannot be read or made, or an option does not apply to the source.
pub(super) fn of(source: &Source, settings: &MountSettings) -> Result<Arc<dyn Dial>> {
    if settings.port.is_some() && !matches!(source.address, Address::Ssh(_)) {
        return Err(failure(
            "-o port= is the port of ssh",
            "write the port into the source, as in tls://host:port/path",
        ));
    }
    Ok(match &source.address {
        Address::Unix(path) => Arc::new(UnixDial::new(path)),
        Address::TcpPlain(host) => Arc::new(TcpDial::new(host.clone(), CONNECT_TIMEOUT)),
        Address::Tls(host) => {
            let (identity, known) = keys(settings)?;
            Arc::new(TlsDial::new(host.clone(), identity, known, CONNECT_TIMEOUT))
        }
        Address::Ether(place) => {
            let (identity, known) = keys(settings)?;
            let dial = EtherDial::open(place.clone(), identity, known, CONNECT_TIMEOUT)?;
            // The cards are open; programs started from now on cannot open others.
            drop_net_raw()?;
            Arc::new(dial)
        }
        Address::Ssh(login) => {
            Arc::new(SshDial::new(login_of(login, settings), source.path.clone(), ssh_options(settings)))
        }
    })
}

/// Returns our key, and the known hosts.
fn keys(settings: &MountSettings) -> Result<(Arc<Identity>, KnownHosts)> {
    let directory = settings.identity.clone().map_or_else(user_dirs::config_dir, Ok)?;
    let known = match &settings.known_hosts {
        Some(file) => file.clone(),
        None => user_dirs::config_dir()?.join("known_hosts"),
    };
    Ok((Arc::new(Identity::open(&directory)?), KnownHosts::new(known)))
}

/// Returns the directory below the export. Over ssh the server is started in the directory itself.
pub(super) fn path_below(source: &Source) -> Vec<u8> {
    match source.address {
        Address::Ssh(_) => Vec::new(),
        Address::Unix(_) | Address::Tls(_) | Address::TcpPlain(_) | Address::Ether(_) => {
            let names =
                source.path.split(|&byte| byte == b'/').filter(|name| !name.is_empty() && *name != b".");
            names.collect::<Vec<_>>().join(&b'/')
        }
    }
}

fn ssh_options(settings: &MountSettings) -> SshOptions {
    SshOptions::default().with_command(settings.ssh_command.as_deref().unwrap_or("ssh"))
}

/// Returns the login with the port of `-o port=`, which counts more than the one of the source.
fn login_of(login: &Login, settings: &MountSettings) -> Login {
    Login { port: settings.port.or(login.port), ..login.clone() }
}

/// Connects. If the login works and only wirefs is missing there, copies it first.
///
/// # Errors
/// Errors of the carrier and the server.
pub(super) fn connect(plan: MountPlan, source: &Source, settings: &MountSettings) -> Result<Connected> {
    let again = plan.clone();
    match (wirefs_mount::connect(plan), &source.address) {
        (Err(ConnectError::Dial(missing @ DialError::RemoteMissing { .. })), Address::Ssh(login)) => {
            let program = std::env::current_exe().context("cannot find this program's executable")?;
            let login = login_of(login, settings);
            let copy = install_remote(&login, &ssh_options(settings), &program).map_err(|error| {
                anyhow::anyhow!("{missing}\n  copying this one there did not work: {error}")
            })?;
            note!("wirefs was not installed on {login}; copied this one there, to ~/{copy}");
            Ok(wirefs_mount::connect(again)?)
        }
        (connected, _) => Ok(connected?),
    }
}
