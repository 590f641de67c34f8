//! Dialing the source of a mount.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use wirefs_carrier::ether::{EtherDial, drop_net_raw};
use wirefs_carrier::limits::CONNECT_TIMEOUT;
use wirefs_carrier::ssh::{ProgramDial, Programs, SshDial, SshOptions, SubsystemDial, UploadProgress};
use wirefs_carrier::tls::{Identity, KnownHosts, TlsDial};
use wirefs_carrier::{Address, Dial, Login, Source, TcpDial, UnixDial};

use super::settings::MountSettings;
use crate::failure::failure;
use crate::progress::Progress;
use crate::status::bytes;
use crate::user_dirs;

/// The program that dials a gate for gRPC.
const GATE_PROGRAM: &str = "wirefs-grpc";

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

/// Returns the dialer of a host's SFTP server.
///
/// # Errors
/// Fails if the source is not reached by ssh.
pub(super) fn subsystem(source: &Source, settings: &MountSettings) -> Result<SubsystemDial> {
    let Address::Ssh(login) = &source.address else {
        return Err(failure("SFTP needs ssh", "write sftp://[user@]host[:port]/path"));
    };
    Ok(SubsystemDial::new(login_of(login, settings), "sftp", ssh_options(settings)))
}

/// Returns the dialer of a gate for gRPC: the program `wirefs-grpc`, beside this one or in `$PATH`, which dials it.
pub(super) fn gate(source: &OsStr, settings: &MountSettings) -> ProgramDial {
    let beside = std::env::current_exe().ok().and_then(|program| Some(program.parent()?.join(GATE_PROGRAM)));
    let program = beside.filter(|program| program.exists()).unwrap_or_else(|| GATE_PROGRAM.into());
    let mut arguments = vec![OsString::from("--stdio")];
    if let Some(identity) = &settings.identity {
        arguments.extend(["--identity".into(), identity.clone().into_os_string()]);
    }
    arguments.extend(["--".into(), source.to_owned()]);
    ProgramDial::new(program, arguments)
}

/// Returns our key, and the known hosts.
fn keys(settings: &MountSettings) -> Result<(Arc<Identity>, KnownHosts)> {
    let directory = settings.identity.clone().map_or_else(user_dirs::config_dir, Ok)?;
    Ok((Arc::new(Identity::open(&directory)?), known_hosts(settings)?))
}

fn known_hosts(settings: &MountSettings) -> Result<KnownHosts> {
    let file = match &settings.known_hosts {
        Some(file) => file.clone(),
        None => user_dirs::config_dir()?.join("known_hosts"),
    };
    Ok(KnownHosts::new(file))
}

/// Returns whether the known hosts mark a host as trusted.
///
/// # Errors
/// Fails if the file cannot be read.
pub(super) fn trusts(host: &str, settings: &MountSettings) -> Result<bool> {
    Ok(known_hosts(settings)?.find(host)?.is_some_and(|known| known.is_trusted))
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
    let progress = Mutex::new(Progress::default());
    let programs = Programs::with_static(&program_dirs());
    SshOptions::default()
        .with_command(settings.ssh_command.as_deref().unwrap_or("ssh"))
        .with_programs(programs, move |upload| show_upload(&progress, &upload))
}

/// Returns the directories of static programs for other machines: beside this program, and for data.
fn program_dirs() -> Vec<PathBuf> {
    let beside = std::env::current_exe().ok().and_then(|program| Some(program.parent()?.to_owned()));
    let shared = beside.as_ref().and_then(|bin| Some(bin.parent()?.join("share/wirefs")));
    beside.into_iter().chain(shared).chain(user_dirs::data_dir()).collect()
}

fn show_upload(progress: &Mutex<Progress>, upload: &UploadProgress) {
    let UploadProgress { login, sent, of } = upload;
    let mut progress = progress.lock().unwrap_or_else(PoisonError::into_inner);
    if sent < of {
        let (sent, of) = (bytes(*sent as u64), bytes(*of as u64));
        progress.show(&format!("wirefs is not installed on {login}; copying it there: {sent} of {of}"));
    } else {
        progress.clear();
    }
}

/// Returns the login with the port of `-o port=`, which counts more than the one of the source.
fn login_of(login: &Login, settings: &MountSettings) -> Login {
    Login { port: settings.port.or(login.port), ..login.clone() }
}
