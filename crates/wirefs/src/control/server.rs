//! The server of the control socket, in the process of the mount.

mod reconnect;

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use wirefs_mount::MountControl;
use wirefs_pingfs::OpenError;

use super::end::End;
use super::{ControlReply, ControlRequest, LINE_BYTES_MAX, address, socket_name};
use crate::activity::{Activity, Sample};
use crate::arguments::LimitChange;
use crate::echo::{self, EchoReport};
use crate::status::{Constants, Report};
use crate::unsent::Unsent;
use crate::user_dirs;

/// The maximum number of concurrent clients; further ones are closed.
const CLIENTS_MAX: usize = 32;
/// The interval of progress replies of a sync.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// The socket of a mount. Dropping it removes its name, unless the next mount at the same mountpoint has taken it.
#[derive(Debug)]
pub(crate) struct ControlSocket {
    path: PathBuf,
    /// Device and inode of the file.
    file: Option<(u64, u64)>,
    end: Arc<End>,
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        if file_at(&self.path) == self.file {
            let _gone = std::fs::remove_file(&self.path);
        }
    }
}

fn file_at(path: &Path) -> Option<(u64, u64)> {
    std::fs::symlink_metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

impl ControlSocket {
    /// Creates the socket and serves it on threads of its own.
    ///
    /// # Errors
    /// The runtime directory cannot be used.
    pub(crate) fn open(
        mountpoint: &Path,
        mount: MountControl,
        constants: Constants,
    ) -> Result<ControlSocket> {
        let path = user_dirs::create_runtime_dir()?.join(socket_name(mountpoint));
        // Left by a process that died; the mountpoint is ours now.
        let _stale = std::fs::remove_file(&path);
        let listener =
            address::bind(&path).with_context(|| format!("cannot make the socket {}", path.display()))?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))
            .with_context(|| format!("cannot protect the socket {}", path.display()))?;
        let file = file_at(&path);
        let end = Arc::new(End::default());
        let socket = ControlSocket { path, file, end: Arc::clone(&end) };
        let lines = Arc::new(AtomicUsize::new(0));
        let host = Arc::new(Host { mount, constants, end });
        thread::Builder::new()
            .name("wirefs-control".into())
            .spawn(move || accept(&listener, &host, &lines))
            .context("cannot start a thread")?;
        Ok(socket)
    }

    /// Tells all clients that wait for it how the mount has ended.
    pub(crate) fn report_end(&self, unsent: &Unsent) {
        self.end.report(unsent);
    }
}

/// The mount behind the socket.
struct Host {
    mount: MountControl,
    constants: Constants,
    end: Arc<End>,
}

fn accept(listener: &UnixListener, host: &Arc<Host>, lines: &Arc<AtomicUsize>) {
    for stream in listener.incoming() {
        let Ok(stream) = stream else { return };
        if lines.fetch_add(1, Ordering::Relaxed) >= CLIENTS_MAX {
            lines.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let (host, count) = (Arc::clone(host), Arc::clone(lines));
        let talk = move || {
            // Fails if the client has disconnected.
            let _gone = serve_client(stream, &host);
            count.fetch_sub(1, Ordering::Relaxed);
        };
        if thread::Builder::new().name("wirefs-control-line".into()).spawn(talk).is_err() {
            lines.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

fn serve_client(stream: UnixStream, host: &Host) -> io::Result<()> {
    let mut writer = stream.try_clone()?;
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = String::new();
        if reader.by_ref().take(LINE_BYTES_MAX).read_line(&mut line)? == 0 {
            return Ok(());
        }
        match serde_json::from_str(&line) {
            Ok(ControlRequest::Status) => {
                let report = Report::of(&host.mount.status(), &host.constants);
                send_reply(&mut writer, &ControlReply::Status(Box::new(report)))?;
            }
            Ok(ControlRequest::Sample) => {
                let status = Report::of(&host.mount.status(), &host.constants);
                let sample = Sample { status, activity: Activity::of(&host.mount) };
                send_reply(&mut writer, &ControlReply::Sample(Box::new(sample)))?;
            }
            Ok(ControlRequest::Sync) => sync(&mut writer, &host.mount)?,
            // The line stays open until the process ends, which the client waits for.
            Ok(ControlRequest::AwaitEnd) => await_end(&mut writer, host)?,
            Ok(ControlRequest::Reconnect { prompts }) => reconnect::run(&mut writer, host, prompts)?,
            Ok(ControlRequest::Limit(change)) => send_reply(&mut writer, &limit(host, change))?,
            Ok(ControlRequest::Echo) => send_reply(
                &mut writer,
                &EchoReport::here().map_or_else(no_echo, |report| ControlReply::Echo(Box::new(report))),
            )?,
            Ok(ControlRequest::End { plan }) => {
                send_reply(&mut writer, &if echo::decide(plan) { ControlReply::Done } else { no_echo() })?;
            }
            Ok(ControlRequest::AddHost { host }) => send_reply(&mut writer, &outcome(echo::add_host(host)))?,
            Ok(ControlRequest::DrainHost { host }) => {
                send_reply(&mut writer, &outcome(echo::drain_host(host)))?
            }
            Err(error) => send_reply(
                &mut writer,
                &ControlReply::Failed { message: format!("not understood: {error}") },
            )?,
        }
    }
}

/// Changes a limit, pauses or resumes.
fn limit(host: &Host, change: LimitChange) -> ControlReply {
    let Some(limits) = host.constants.line.as_ref().map(|line| &line.limits) else {
        return ControlReply::Failed { message: "it has no connection to a wirefs server".to_owned() };
    };
    match change {
        LimitChange::Up { rate } => limits.up.set(rate),
        LimitChange::Down { rate } => limits.down.set(rate),
        LimitChange::Pause => {
            limits.set_paused(true);
            host.mount.disconnect();
        }
        LimitChange::Resume => {
            limits.set_paused(false);
            host.mount.connect_now();
        }
    }
    ControlReply::Done
}

fn outcome(outcome: Option<Result<(), OpenError>>) -> ControlReply {
    match outcome {
        Some(Ok(())) => ControlReply::Done,
        Some(Err(error)) => ControlReply::Failed { message: error.to_string() },
        None => no_echo(),
    }
}

fn no_echo() -> ControlReply {
    ControlReply::Failed { message: "it is not a PingFS".to_owned() }
}

/// Syncs on another thread, so that this one can report progress.
fn sync(writer: &mut UnixStream, mount: &MountControl) -> io::Result<()> {
    let (done, wait) = mpsc::channel();
    let syncing = mount.clone();
    thread::Builder::new().name("wirefs-sync".into()).spawn(move || {
        let _gone = done.send(syncing.sync());
    })?;
    loop {
        let reply = match wait.recv_timeout(PROGRESS_INTERVAL) {
            Ok(Ok(())) => ControlReply::Done,
            Ok(Err(errno)) => ControlReply::Failed { message: errno.to_string() },
            Err(mpsc::RecvTimeoutError::Timeout) => ControlReply::Progress(Unsent::of(&mount.unsent())),
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                ControlReply::Failed { message: "the sync ended early".to_owned() }
            }
        };
        send_reply(writer, &reply)?;
        if !matches!(reply, ControlReply::Progress(_)) {
            return Ok(());
        }
    }
}

/// Reports the unsent changes until the mount has ended.
fn await_end(writer: &mut UnixStream, host: &Host) -> io::Result<()> {
    let watcher = host.end.watch();
    loop {
        match watcher.wait(PROGRESS_INTERVAL) {
            Some(unsent) => return send_reply(writer, &ControlReply::Ended(unsent)),
            None => send_reply(writer, &ControlReply::Progress(Unsent::of(&host.mount.unsent())))?,
        }
    }
}

fn send_reply(writer: &mut UnixStream, reply: &ControlReply) -> io::Result<()> {
    let mut line = serde_json::to_string(reply)?;
    line.push('\n');
    writer.write_all(line.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn socket_removes_its_own_name_only() {
        let path = std::env::temp_dir().join(format!("wirefs-control-{}", std::process::id()));
        let socket = || ControlSocket { path: path.clone(), file: file_at(&path), end: Arc::default() };
        std::fs::write(&path, "first").unwrap();
        let first = socket();
        std::fs::rename(&path, path.with_extension("kept")).unwrap();
        std::fs::write(&path, "second").unwrap();
        let second = socket();
        drop(first);
        assert!(path.exists(), "the second one has the name");
        drop(second);
        assert!(!path.exists());
        std::fs::remove_file(path.with_extension("kept")).unwrap();
    }
}
