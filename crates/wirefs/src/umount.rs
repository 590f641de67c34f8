//! `wirefs umount`: unmounts, if necessary by force, and reports changes that the server does not have.

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
use crate::progress::Progress;
use crate::status::request_status;
use crate::terminal::note;
use crate::unsent::{self, Unsent};

mod other_namespace;

/// The time for the process of a mount to end once it has sent everything.
const END_MAX: Duration = Duration::from_secs(15);
/// By force: the time for pending writes to reach the server.
const FORCED_SYNC_MAX: Duration = Duration::from_secs(3);
/// By force: the time for the process to end.
const FORCED_END_MAX: Duration = Duration::from_secs(2);

/// Unmounts, and returns when the process of the mount has ended.
///
/// # Errors
/// Fails if the mount is in use, or the server did not take all changes.
pub(crate) fn run(arguments: &arguments::Umount) -> Result<()> {
    let path = &arguments.mountpoint;
    let resolved = mountpoint::resolve(path).unwrap_or_else(|_| path.clone());
    let mut line = control::find(&resolved);
    let source = line.as_mut().and_then(|line| request_status(line).ok()).map(|report| report.source);
    if arguments.force {
        force(path, line)?;
        source.iter().for_each(|source| report_left(source));
        return Ok(());
    }
    let Some(mut line) = line else { return Ok(wirefs_fuse::unmount(path, false)?) };
    if echo::is_echo(&resolved) {
        echo::prepare(&mut line, path, arguments.save.as_deref(), arguments.discard)?;
    }
    // Requested before the unmount: afterwards the process may end at any time.
    let is_asked = line.send(ControlRequest::AwaitEnd).is_ok();
    let device = mountpoint::device(&resolved);
    wirefs_fuse::unmount(path, false)?;
    let source = source.unwrap_or_else(|| "the server".to_owned());
    let keeper = || device.as_deref().and_then(other_namespace::keeper);
    let unsent = match is_asked.then(|| await_end(&mut line, &source, keeper)) {
        Some(End::HeldElsewhere(process)) => {
            note!("wirefs: {}", other_namespace::message(path, process));
            return Ok(());
        }
        Some(End::Ended(unsent)) => unsent,
        None => None,
    };
    let has_ended = line.wait_for_exit(END_MAX);
    if let Some(unsent) = unsent.filter(|unsent| !unsent.is_empty()) {
        return Err(unsent.error(&path.to_string_lossy(), &source));
    }
    if !has_ended {
        note!("wirefs: {} is unmounted, but its process goes on; `wirefs status` shows it", path.display());
    }
    Ok(())
}

/// The end of the wait for a mount.
enum End {
    /// The mount has ended, with the changes that the server does not have; `None` if the process did not say.
    Ended(Option<Unsent>),
    /// The server has everything, and this process keeps the mount in its mount namespace.
    HeldElsewhere(u32),
}

/// Waits until the mount has ended, and shows the progress after one second. A mount without unsent changes may be in
/// another mount namespace: `keeper` finds a process there.
fn await_end(line: &mut ControlClient, source: &str, keeper: impl Fn() -> Option<u32>) -> End {
    let mut progress = Progress::default();
    let mut idle_since = None;
    loop {
        match line.answer() {
            Ok(ControlReply::Progress(unsent)) if unsent.is_empty() => {
                progress.show("waiting for the mount's process; Ctrl-C leaves that to the background");
                let since = *idle_since.get_or_insert_with(Instant::now);
                if since.elapsed() >= END_MAX
                    && let Some(process) = keeper()
                {
                    progress.clear();
                    return End::HeldElsewhere(process);
                }
            }
            Ok(ControlReply::Progress(unsent)) => {
                idle_since = None;
                progress.show(&format!(
                    "sending {} to {source}; Ctrl-C leaves that to the background",
                    unsent.amount()
                ));
            }
            Ok(ControlReply::Ended(unsent)) => {
                progress.clear();
                return End::Ended(Some(unsent));
            }
            Ok(
                ControlReply::Status(_)
                | ControlReply::Sample(_)
                | ControlReply::Echo(_)
                | ControlReply::Done
                | ControlReply::Failed { .. },
            )
            | Err(_) => {
                progress.clear();
                return End::Ended(unsent::left().remove(source));
            }
        }
    }
}

/// After an unmount by force: names the changes that stay in journals.
fn report_left(source: &str) {
    if let Some(unsent) = unsent::left().get(source) {
        note!("wirefs: {}", unsent::line(source, unsent));
    }
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
            Ok(ControlReply::Progress(_)) => {}
            Ok(
                ControlReply::Status(_)
                | ControlReply::Sample(_)
                | ControlReply::Echo(_)
                | ControlReply::Ended(_)
                | ControlReply::Failed { .. },
            )
            | Err(_) => return false,
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
