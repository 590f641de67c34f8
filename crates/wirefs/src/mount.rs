//! `wirefs mount`: connects and authenticates, then mounts, then goes to the background.

mod chosen;
pub(crate) mod daemon;
mod dial;
mod keeping;
mod live;
mod origin;
mod stage;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use wirefs_carrier::{Dial, PeerInfo};
use wirefs_client::Attachment;
use wirefs_driver::mount::{Connected, MountControl, MountPlan, Mounted, Recovered, Waits};
use wirefs_fuse::{MountError, MountOptions};

use crate::arguments;
use crate::control::ControlSocket;
use crate::failure::tell;
use crate::mountpoint;
use crate::status::Constants;
use crate::terminal::note;
use chosen::Chosen;
pub(crate) use keeping::{JOURNALS, QUARANTINE};
use origin::Reached;
pub(crate) use origin::{Opening, Origin};
use stage::Stage;

/// Mounts. In the background unless the arguments say otherwise: this process then starts another of itself, waits for
/// its report, and ends as it did.
pub(crate) fn run(arguments: &arguments::Mount, words: &[std::ffi::OsString]) -> Result<ExitCode> {
    run_origin(arguments, words, Origin::parse(&arguments.source)?)
}

/// Mounts an origin, of which the arguments' source is no more than the name.
pub(crate) fn run_origin(
    arguments: &arguments::Mount,
    words: &[std::ffi::OsString],
    origin: Origin,
) -> Result<ExitCode> {
    if let Some(flags) = chosen::remounted(arguments)? {
        if !arguments.fake {
            wirefs_fuse::remount(&arguments.mountpoint, &flags)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut chosen = Chosen::of(arguments)?;
    // No server stands in between to check rights.
    chosen.default_permissions |= origin.is_here();
    let mountpoint = examine(&arguments.mountpoint)?;
    if arguments.fake {
        return Ok(ExitCode::SUCCESS);
    }
    if !arguments.foreground && !arguments.reports {
        return daemon::start(words, 1);
    }
    let stage = Stage::begin(arguments.foreground)?;
    let Reached { connected, server } = connect(origin, &chosen)?;
    greet(connected.peer());
    let constants = Constants {
        source: arguments.source.to_string_lossy().into_owned(),
        read_only: connected.attachment().read_only,
        cache_bytes_max: chosen.cache_bytes_max,
    };
    let mounted = mount(connected, &stage, &mountpoint, &chosen, &constants.source)?;
    let control = mounted.control();
    let socket = match ControlSocket::open(&mountpoint, control.clone(), constants) {
        Ok(socket) => Some(socket),
        Err(error) => {
            // The mount works without; only `status` and `sync` do not.
            tell(&error.context("`wirefs status` will not know this mount"));
            None
        }
    };
    if arguments.reports {
        daemon::detach(&mountpoint, &control)?;
    } else {
        live::start(&arguments.source, &arguments.mountpoint, control);
    }
    mounted.wait();
    if let Some(server) = server {
        server.stop();
    }
    if arguments.foreground {
        live::end();
    }
    drop(socket);
    stage.end();
    Ok(ExitCode::SUCCESS)
}

/// What can be known before a person has typed a password for nothing. The mount itself finds out the rest.
fn examine(path: &Path) -> Result<PathBuf> {
    let mountpoint = || path.to_path_buf();
    match std::fs::metadata(path) {
        Ok(found) if !found.is_dir() => Err(MountError::NotDirectory { mountpoint: mountpoint() }.into()),
        Ok(_) => {
            let resolved =
                mountpoint::resolve(path).with_context(|| format!("cannot use {}", path.display()))?;
            match mountpoint::mounted().into_iter().find(|(known, _)| *known == resolved) {
                Some((_, what)) => Err(MountError::Mounted { mountpoint: mountpoint(), what }.into()),
                None => Ok(resolved),
            }
        }
        Err(error) => Err(match rustix::io::Errno::from_io_error(&error) {
            Some(rustix::io::Errno::NOENT) => MountError::Missing { mountpoint: mountpoint() }.into(),
            Some(rustix::io::Errno::NOTDIR) => MountError::NotDirectory { mountpoint: mountpoint() }.into(),
            Some(rustix::io::Errno::NOTCONN | rustix::io::Errno::CONNABORTED) => {
                MountError::Stale { mountpoint: mountpoint() }.into()
            }
            Some(_) | None => MountError::Unreadable { mountpoint: mountpoint(), source: error }.into(),
        }),
    }
}

fn connect(origin: Origin, chosen: &Chosen) -> Result<Reached> {
    origin.reach(chosen, |dial, path| plan(chosen, dial, path))
}

/// Brings to the server what mounts of a source that died had in their journals. Mounts nothing.
///
/// # Errors
/// The source is none that has journals, or its server cannot be reached.
pub(crate) fn recover(source: &std::ffi::OsStr) -> Result<Vec<Recovered>> {
    let chosen = Chosen::default();
    let plan = Origin::parse(source)?.recovery(&chosen, |dial, path| plan(&chosen, dial, path))?;
    Ok(wirefs_driver::mount::recover_left(&plan)?)
}

fn plan(chosen: &Chosen, dial: Arc<dyn Dial>, path: Vec<u8>) -> MountPlan {
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    MountPlan {
        dial,
        path,
        user: ["USER", "LOGNAME"]
            .iter()
            .find_map(|name| std::env::var(name).ok())
            .unwrap_or_else(|| uid.to_string()),
        mode: chosen.mode,
        deadline: chosen.deadline,
        cache_bytes_max: chosen.cache_bytes_max,
        threads: chosen.threads,
        connections_max: chosen.connections,
        uid: chosen.uid.unwrap_or(uid),
        gid: chosen.gid.unwrap_or(gid),
        store: None,
        journal: None,
        tell: tell_wait,
    }
}

/// Tells a person what the mount waits for.
fn tell_wait(waits: Waits) {
    let what = match waits {
        Waits::Ending => {
            "until an earlier mount of this directory, which is unmounted, has sent its changes; it is waited for up to 30 s"
        }
        Waits::Connection => "for a connection to the server",
        Waits::Answer => "for the server to answer",
        Waits::Tree => {
            "until another mount, which has this directory for itself, has sent its changes; a dead one is waited for up to 20 s"
        }
        Waits::Journal => {
            "for the server to carry out what an earlier mount left; after a crash it first waits up to 20 s for other mounts that it knew"
        }
    };
    note!("wirefs: waiting {what}");
}

/// Tells which key was pinned at the first meeting.
fn greet(peer: &PeerInfo) {
    if let (Some(file), Some(key)) = (&peer.pinned_in, &peer.identity) {
        note!(
            "first connection to {}: its key is {}\n  compare it with what `wirefs serve` printed there; it is now known in {}",
            peer.address,
            key.fingerprint(),
            file.display()
        );
    }
}

fn mount(
    connected: Connected,
    stage: &Stage,
    mountpoint: &Path,
    chosen: &Chosen,
    source: &str,
) -> Result<Mounted> {
    let is_root = rustix::process::geteuid().is_root();
    // The server checks rights as each caller, so that letting them in here gives them nothing that they lack there.
    let serves_all = connected.attachment().acts_for_callers && is_root;
    let options = options(connected.attachment(), chosen, source, serves_all);
    Ok(stage.mount(|| connected.mount(mountpoint, &options, serves_all))?)
}

fn options(attachment: &Attachment, chosen: &Chosen, source: &str, serves_all: bool) -> MountOptions {
    MountOptions {
        fs_name: chosen.fs_name.clone().unwrap_or_else(|| source.to_owned()),
        allow_other: chosen.allow_other || serves_all,
        // Such a server checks rights as each caller where the host does; a tree of its own has only this kernel to do so.
        default_permissions: chosen.default_permissions || attachment.acts_for_callers,
        read_only: chosen.read_only || attachment.read_only,
        suid: chosen.suid,
        dev: chosen.dev,
        extra: chosen.extra.clone(),
        ..MountOptions::default()
    }
}

/// Ends a mount on request: what is written goes to the server first. A mount that is in use is taken out of sight, and
/// ends with its last user.
fn end(control: &MountControl) {
    let Err(error) = control.unmount(false) else { return };
    note!("wirefs: {error}\n  it is out of sight now, and ends with the last program that uses it");
    if let Err(error) = control.unmount(true) {
        note!("wirefs: {error}");
    }
}
