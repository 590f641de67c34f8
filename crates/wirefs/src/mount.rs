//! `wirefs mount`: connects and authenticates, then mounts, then goes to the background.

pub(crate) mod daemon;
mod dial;
mod live;
mod origin;
mod persistent;
mod settings;
mod stage;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use wirefs_carrier::{Dial, LayeredDial, PeerInfo, RateLimits};
use wirefs_client::Attachment;
use wirefs_fuse::{MountError, MountOptions};
use wirefs_mount::{Connected, JournalRecovery, MountControl, MountPlan, MountStep, Mounted};

use crate::arguments::{self, Symlinks};
use crate::control::ControlSocket;
use crate::failure::{failure, print_error};
use crate::metrics::{MetricsPort, ObservedMount};
use crate::mountpoint::{self, TableMount};
use crate::status::{Constants, Line};
use crate::terminal::note;
use crate::unsent::Unsent;
use origin::ConnectedOrigin;
pub(crate) use origin::{Origin, TreeOpener};
pub(crate) use persistent::{JOURNALS, QUARANTINE};
use settings::MountSettings;
use stage::Stage;

/// Mounts, in the background unless the arguments disable that: then this process starts a second one, waits for its
/// report, and exits with its status.
pub(crate) fn run(arguments: &arguments::Mount, words: &[std::ffi::OsString]) -> Result<ExitCode> {
    run_origin(arguments, words, Origin::parse(&arguments.source)?)
}

/// Mounts an origin; the source in the arguments is only its name.
pub(crate) fn run_origin(
    arguments: &arguments::Mount,
    words: &[std::ffi::OsString],
    origin: Origin,
) -> Result<ExitCode> {
    if let Some(flags) = settings::remounted(arguments)? {
        if !arguments.fake {
            wirefs_fuse::remount(&arguments.mountpoint, &flags)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut settings = MountSettings::of(arguments, origin.default_mode())?;
    // Without a server the kernel must check permissions.
    settings.default_permissions |= origin.is_local();
    choose_symlinks(&mut settings, &origin)?;
    let mountpoint = examine(&arguments.mountpoint)?;
    if arguments.fake {
        return Ok(ExitCode::SUCCESS);
    }
    if !arguments.foreground && !arguments.reports {
        return daemon::start(words, 1);
    }
    let stage = Stage::begin(arguments.foreground)?;
    let metrics = settings.metrics.map(MetricsPort::bind).transpose()?;
    let (ConnectedOrigin { connected, server }, line) = connect(origin, &settings)?;
    print_pinned_key(connected.peer());
    let constants = Constants {
        source: arguments.source.to_string_lossy().into_owned(),
        read_only: connected.attachment().read_only,
        cache_bytes_max: settings.cache_bytes_max,
        metrics: metrics.as_ref().map(MetricsPort::address).transpose()?,
        line,
    };
    let name = constants.source.clone();
    let mounted = mount(connected, &stage, &mountpoint, &settings, &name)?;
    let control = mounted.control();
    if let Some(port) = metrics {
        port.serve(ObservedMount { mount: control.clone(), constants: constants.clone() })?;
    }
    let socket = match ControlSocket::open(&mountpoint, control.clone(), constants) {
        Ok(socket) => Some(socket),
        Err(error) => {
            // The mount works without it; only `status` and `sync` do not.
            print_error(&error.context("`wirefs status` will not show this mount"));
            None
        }
    };
    if arguments.reports {
        daemon::detach(&mountpoint, &control)?;
    } else {
        live::start(&arguments.source, &arguments.mountpoint, control);
    }
    let unsent = Unsent::of(&mounted.wait());
    if let Some(server) = server {
        server.stop();
    }
    if arguments.foreground {
        live::end();
    }
    // The driver has logged the changes that a journal keeps.
    if !unsent.is_empty() && (arguments.foreground || unsent.journal.is_none()) {
        print_error(&unsent.error(&arguments.mountpoint.to_string_lossy(), &name));
    }
    if let Some(socket) = socket {
        socket.report_end(&unsent);
    }
    stage.end();
    Ok(if unsent.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Sets the links that programs may follow, where the user does not say it.
fn choose_symlinks(settings: &mut MountSettings, origin: &Origin) -> Result<()> {
    let chosen = settings.symlinks.map_or_else(|| origin.default_symlinks(settings), Ok)?;
    if chosen == Symlinks::None {
        settings.extra.push("nosymfollow".to_owned());
    }
    settings.symlinks = Some(chosen);
    Ok(())
}

/// Checks what can be checked before the user has typed a password in vain. The mount itself checks the rest.
fn examine(path: &Path) -> Result<PathBuf> {
    let mountpoint = || path.to_path_buf();
    match std::fs::metadata(path) {
        Ok(found) if !found.is_dir() => Err(MountError::NotDirectory { mountpoint: mountpoint() }.into()),
        Ok(_) => {
            let resolved =
                mountpoint::resolve(path).with_context(|| format!("cannot use {}", path.display()))?;
            match mountpoint::mounted().into_iter().find(|mount| mount.mountpoint == resolved) {
                Some(TableMount { source, .. }) => {
                    Err(MountError::Mounted { mountpoint: mountpoint(), what: source }.into())
                }
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

/// Also returns the layers of the connections, unless the tree is in this process.
fn connect(origin: Origin, settings: &MountSettings) -> Result<(ConnectedOrigin, Option<Line>)> {
    let line = Line { limits: Arc::new(RateLimits::new(settings.up, settings.down)), packed: Arc::default() };
    let packed = settings.compresses.then(|| Arc::clone(&line.packed));
    let layered = |dial| Arc::new(LayeredDial::new(dial, Arc::clone(&line.limits), packed.clone()));
    let connected = origin.connect(settings, |dial, path| plan(settings, layered(dial), path))?;
    if connected.server.is_none() {
        return Ok((connected, Some(line)));
    }
    if settings.up.is_some() || settings.down.is_some() {
        return Err(failure(
            "--up and --down limit connections to a wirefs server, and this mount has none",
            "mount without them",
        ));
    }
    Ok((connected, None))
}

/// Sends the pending changes in the journals of a source's dead mounts to the server. Mounts nothing.
///
/// # Errors
/// Fails if the source has no journals, or its server cannot be reached.
pub(crate) fn recover(source: &std::ffi::OsStr) -> Result<Vec<JournalRecovery>> {
    let settings = MountSettings::default();
    let plan = Origin::parse(source)?.recovery(&settings, |dial, path| plan(&settings, dial, path))?;
    Ok(wirefs_mount::recover_journals(&plan)?)
}

fn plan(settings: &MountSettings, dial: Arc<dyn Dial>, path: Vec<u8>) -> MountPlan {
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    MountPlan {
        dial,
        path,
        user: ["USER", "LOGNAME"]
            .iter()
            .find_map(|name| std::env::var(name).ok())
            .unwrap_or_else(|| uid.to_string()),
        mode: settings.mode,
        deadline: settings.deadline,
        cache_bytes_max: settings.cache_bytes_max,
        threads: settings.threads,
        connections_max: settings.connections,
        uid: settings.uid.unwrap_or(uid),
        gid: settings.gid.unwrap_or(gid),
        confines_links: settings.symlinks == Some(Symlinks::Inside),
        store: None,
        journal: None,
        tell: report_wait,
    }
}

/// Tells the user why the mount waits.
fn report_wait(waits: MountStep) {
    let what = match waits {
        MountStep::Ending => {
            "for an earlier, unmounted mount of this directory to send its changes (up to 30 s)"
        }
        MountStep::Connection => "for a connection to the server",
        MountStep::Answer => "for the server to answer",
        MountStep::Tree => {
            "for another mount with exclusive use of this directory to send its changes (up to 20 s if it is dead)"
        }
        MountStep::Journal => {
            "for the server to execute the changes of an earlier mount (after a crash it first waits up to 20 s for the mounts it knew)"
        }
    };
    note!("wirefs: waiting {what}");
}

/// Prints the key that was pinned at the first connection.
fn print_pinned_key(peer: &PeerInfo) {
    if let (Some(file), Some(key)) = (&peer.pinned_in, &peer.identity) {
        note!(
            "first connection to {}: its key is {}\n  compare it with the key that `wirefs serve` printed there; it is now stored in {}",
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
    settings: &MountSettings,
    source: &str,
) -> Result<Mounted> {
    let is_root = rustix::process::geteuid().is_root();
    // The server checks permissions as each caller, so other local users gain no rights by access to the mount.
    let serves_all = connected.attachment().acts_for_callers && is_root;
    let options = options(connected.attachment(), settings, source, serves_all);
    Ok(stage.mount(|| connected.mount(mountpoint, &options, serves_all))?)
}

fn options(
    attachment: &Attachment,
    settings: &MountSettings,
    source: &str,
    serves_all: bool,
) -> MountOptions {
    MountOptions {
        fs_name: settings.fs_name.clone().unwrap_or_else(|| source.to_owned()),
        allow_other: settings.allow_other || serves_all,
        // Such a server checks permissions as each caller if the host does; for a tree of its own only this kernel can
        // check them.
        default_permissions: settings.default_permissions || attachment.acts_for_callers,
        read_only: settings.read_only || attachment.read_only,
        suid: settings.suid,
        dev: settings.dev,
        extra: settings.extra.clone(),
        ..MountOptions::default()
    }
}

/// Unmounts on request: pending writes are sent to the server first. A mount in use is detached, and ends with its last
/// user.
fn end(control: &MountControl) {
    let Err(error) = control.unmount(false) else { return };
    note!("wirefs: {error}\n  the mount is detached now, and ends with the last program that uses it");
    if let Err(error) = control.unmount(true) {
        note!("wirefs: {error}");
    }
}
