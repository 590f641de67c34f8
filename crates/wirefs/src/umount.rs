//! `wirefs umount`: takes a mount away, kindly or by force.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use rustix::process::Signal;
use wirefs_fuse::UnmountError;

use crate::arguments;
use crate::control::{self, Ask, Line, Told};
use crate::echo;
use crate::mountpoint;
use crate::terminal::note;

/// How long the process of a mount may take to end once the mount is gone.
const END_MAX: Duration = Duration::from_secs(15);
/// By force: how long what is written may take to get to the server.
const FORCED_SYNC_MAX: Duration = Duration::from_secs(3);
/// By force: how long the process may take to end.
const FORCED_END_MAX: Duration = Duration::from_secs(2);

/// Unmounts, and returns once the process that served the mount has ended.
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
    // It first brings to the server what is on its way.
    if line.is_some_and(|line| !line.await_end(END_MAX)) {
        note!(
            "wirefs: unmounted, but its process still waits for the server; `wirefs status` no longer shows it, it ends by itself"
        );
    }
    Ok(())
}

/// What is written gets a moment to reach the server; then programs are cut off and the name goes. Each step works without
/// the ones before it.
fn force(path: &Path, mut line: Option<Line>) -> Result<()> {
    let is_settled = line.as_mut().is_some_and(settle);
    if is_settled {
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
    // Needs the name, so it goes first. A dead mount has no connection to cut; a user may lack the right to.
    let cut = wirefs_fuse::abort(path);
    let detached = match wirefs_fuse::unmount(path, true) {
        // Cutting the connection unmounts too where nobody uses it.
        Err(UnmountError::NotMounted { .. }) if cut.is_ok() => Ok(()),
        detached => detached,
    };
    end(line);
    Ok(detached?)
}

/// Whether everything is at the server. Waits a moment only, and not at all for a server that is known to be gone.
fn settle(line: &mut Line) -> bool {
    if line.set_patience(FORCED_SYNC_MAX).is_err() || !is_connected(line) || line.ask(Ask::Sync).is_err() {
        return false;
    }
    let deadline = Instant::now() + FORCED_SYNC_MAX;
    while Instant::now() < deadline {
        match line.answer() {
            Ok(Told::Done) => return true,
            Ok(Told::Progress { .. }) => {}
            Ok(Told::Status(_) | Told::Echo(_) | Told::Failed { .. }) | Err(_) => return false,
        }
    }
    false
}

fn is_connected(line: &mut Line) -> bool {
    line.ask(Ask::Status).is_ok() && matches!(line.answer(), Ok(Told::Status(report)) if report.connected)
}

/// Sees to it that the process ends: with it goes the connection, if nothing else could cut it.
fn end(line: Option<Line>) {
    let Some(line) = line else { return };
    let process = line.process();
    if line.await_end(FORCED_END_MAX) {
        return;
    }
    if let Some(process) = process {
        // The socket's peer is our own user's (or we are root), and it is the one that serves this mount.
        let _gone = rustix::process::kill_process(process, Signal::KILL);
        await_gone(process);
    }
}

fn await_gone(process: rustix::process::Pid) {
    let deadline = Instant::now() + FORCED_END_MAX;
    while rustix::process::test_kill_process(process).is_ok() && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(5));
    }
}
