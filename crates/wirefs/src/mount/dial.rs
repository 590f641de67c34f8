//! How a source is reached.

use std::sync::Arc;

use anyhow::{Context, Result};
use wirefs_carrier::ether::{EtherDial, give_up_right};
use wirefs_carrier::limits::CONNECT_TIMEOUT;
use wirefs_carrier::ssh::{SshDial, SshOptions, install_remote};
use wirefs_carrier::tls::{Identity, KnownHosts, TlsDial};
use wirefs_carrier::{Address, Dial, DialError, Source, TcpDial, UnixDial};
use wirefs_driver::mount::{ConnectError, Connected, MountPlan};

use super::chosen::Chosen;
use crate::failure::failure;
use crate::places;
use crate::terminal::note;

/// The dial of a source, with what the user chose for it.
///
/// # Errors
/// Our key cannot be made or read, or an option does not fit the source.
pub(super) fn of(source: &Source, chosen: &Chosen) -> Result<Arc<dyn Dial>> {
    if chosen.port.is_some() && !matches!(source.address, Address::Ssh(_)) {
        return Err(failure(
            "-o port= is the port of ssh",
            "write the port into the source, as in tls://host:port/path",
        ));
    }
    Ok(match &source.address {
        Address::Unix(path) => Arc::new(UnixDial::new(path)),
        Address::TcpPlain(host) => Arc::new(TcpDial::new(host.clone(), CONNECT_TIMEOUT)),
        Address::Tls(host) => {
            let (identity, known) = keys(chosen)?;
            Arc::new(TlsDial::new(host.clone(), identity, known, CONNECT_TIMEOUT))
        }
        Address::Ether(place) => {
            let (identity, known) = keys(chosen)?;
            let dial = EtherDial::open(place.clone(), identity, known, CONNECT_TIMEOUT)?;
            // The cards are open; what runs from now on cannot open others.
            give_up_right()?;
            Arc::new(dial)
        }
        Address::Ssh(login) => {
            Arc::new(SshDial::new(login.clone(), source.path.clone(), ssh_options(chosen)))
        }
    })
}

/// Our key, and the keys of servers that we know.
fn keys(chosen: &Chosen) -> Result<(Arc<Identity>, KnownHosts)> {
    let directory = chosen.identity.clone().map_or_else(places::config_dir, Ok)?;
    let known = match &chosen.known_hosts {
        Some(file) => file.clone(),
        None => places::config_dir()?.join("known_hosts"),
    };
    Ok((Arc::new(Identity::open(&directory)?), KnownHosts::new(known)))
}

/// The directory below the export. Over ssh the server is started in the directory itself.
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

fn ssh_options(chosen: &Chosen) -> SshOptions {
    let command = chosen.ssh_command.as_deref().unwrap_or("ssh");
    match chosen.port {
        Some(port) => SshOptions::default().with_command(format!("{command} -p {port}")),
        None => SshOptions::default().with_command(command),
    }
}

/// Connects. Where the login works and only wirefs is missing, it is copied there first.
///
/// # Errors
/// As the carrier and the server say.
pub(super) fn connect(plan: MountPlan, source: &Source, chosen: &Chosen) -> Result<Connected> {
    let again = plan.clone();
    match (wirefs_driver::mount::connect(plan), &source.address) {
        (Err(ConnectError::Dial(missing @ DialError::RemoteMissing { .. })), Address::Ssh(login)) => {
            let program = std::env::current_exe().context("cannot find this program's own file")?;
            let copy = install_remote(login, &ssh_options(chosen), &program).map_err(|error| {
                anyhow::anyhow!("{missing}\n  copying this one there did not work: {error}")
            })?;
            note!("wirefs was not installed on {login}; copied this one there, to ~/{copy}");
            Ok(wirefs_driver::mount::connect(again)?)
        }
        (connected, _) => Ok(connected?),
    }
}
