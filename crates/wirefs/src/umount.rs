//! `wirefs umount`: unmounts, if necessary by force.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use rustix::process::Signal;
use wirefs_fuse::UnmountError;

use crate::arguments;
use crate::control::{self, ControlClient, ControlReply, ControlRequest};
use crate::echo;
use crate::mountpoint;
use crate::terminal::note;

/// The time for the process of a mount to end after the unmount.
const END_MAX: Duration = Duration::from_secs(15);
/// By force: the time for pending writes to reach the server.
const FORCED_SYNC_MAX: Duration = Duration::from_secs(3);
/// By force: the time for the process to end.
const FORCED_END_MAX: Duration = Duration::from_secs(2);

/// Unmounts, and returns when the process of the mount has ended.
pub(crate) fn run(arguments: &arguments::Umount) -> Result<()> {
    let path = &arguments.mountpoint;
    let resolved = mountpoint::resolve(path).unwrap_or_else(|_| path.clone());
    let mut line = control::find(&resolved);
    if arguments.force {
        return force(path, line);
    }
    if let Some(line) = line.as_mut().filter(|_| echo::is_echo(&resolved)) {
        echo::prepare(line, path, arguments.save.as_deref(), arguments.discard)?;
    }
    wirefs_fuse::unmount(path, false)?;
    // The process sends pending writes to the server first.
    if line.is_some_and(|line| !line.wait_for_exit(END_MAX)) {
        note!(
            "wirefs: unmounted, but its process still waits for the server; `wirefs status` no longer shows it, it ends by itself"
        );
    }
    Ok(())
}

/// Gives pending writes a moment to reach the server; then aborts the FUSE connection and detaches the mount. Each step
/// works without the earlier ones.
fn force(path: &Path, mut line: Option<ControlClient>) -> Result<()> {
    let is_synced = line.as_mut().is_some_and(sync_briefly);
    if is_synced {
        match wirefs_fuse::unmount(path, false) {
            Ok(()) => {
                end(line);
                return Ok(());
            }
            Err(UnmountError::NotMounted { mountpoint }) => {
                return Err(UnmountError::NotMounted { mountpoint }.into());
            }
            Err(_) => {}
        }
    }
    // Needs the mountpoint, so it comes first. A dead mount has no connection; a user may not be allowed to abort it.
    let cut = wirefs_fuse::abort(path);
    let detached = match wirefs_fuse::unmount(path, true) {
        // Aborting the connection also unmounts an unused mount.
        Err(UnmountError::NotMounted { .. }) if cut.is_ok() => Ok(()),
        detached => detached,
    };
    end(line);
    Ok(detached?)
}

/// Returns whether everything is at the server. Waits briefly, and not at all for a server known to be unreachable.
fn sync_briefly(line: &mut ControlClient) -> bool {
    if line.set_timeout(FORCED_SYNC_MAX).is_err()
        || !is_connected(line)
        || line.send(ControlRequest::Sync).is_err()
    {
        return false;
    }
    let deadline = Instant::now() + FORCED_SYNC_MAX;
    while Instant::now() < deadline {
        match line.answer() {
            Ok(ControlReply::Done) => return true,
            Ok(ControlReply::Progress { .. }) => {}
            Ok(ControlReply::Status(_) | ControlReply::Echo(_) | ControlReply::Failed { .. }) | Err(_) => {
                return false;
            }
        }
    }
    false
}

fn is_connected(line: &mut ControlClient) -> bool {
    line.send(ControlRequest::Status).is_ok()
        && matches!(line.answer(), Ok(ControlReply::Status(report)) if report.connected)
}

/// Ends the process: that also ends the connection, if it could not be aborted.
fn end(line: Option<ControlClient>) {
    let Some(line) = line else { return };
    let process = line.process();
    if line.wait_for_exit(FORCED_END_MAX) {
        return;
    }
    if let Some(process) = process {
        // The socket's peer runs as our own user (or we are root), and it is the process of this mount.
        let _gone = rustix::process::kill_process(process, Signal::KILL);
        wait_until_gone(process);
    }
}

fn wait_until_gone(process: rustix::process::Pid) {
    let deadline = Instant::now() + FORCED_END_MAX;
    while rustix::process::test_kill_process(process).is_ok() && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(5));
    }
}
