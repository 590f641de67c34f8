//! The client of control sockets.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use super::{ControlReply, ControlRequest, LINE_BYTES_MAX, address, socket_name};
use crate::user_dirs;

/// The timeout of a reply, unless the request waits for something.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// A connection to the process of a mount.
#[derive(Debug)]
pub(crate) struct ControlClient {
    stream: BufReader<UnixStream>,
}

/// Connects to the process of the mount at `mountpoint` (resolved). Returns `None` if this user has none.
pub(crate) fn find(mountpoint: &Path) -> Option<ControlClient> {
    let name = socket_name(mountpoint);
    user_dirs::runtime_dirs().iter().find_map(|dir| ControlClient::connect(&dir.join(&name)))
}

/// Connects to the processes of all mounts of this user, sorted by name.
pub(crate) fn find_all() -> Vec<ControlClient> {
    let entries =
        user_dirs::runtime_dirs().into_iter().filter_map(|dir| std::fs::read_dir(dir).ok()).flatten();
    let mut sockets: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "sock"))
        .collect();
    sockets.sort();
    sockets.iter().filter_map(|path| ControlClient::connect(path)).collect()
}

impl AsFd for ControlClient {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.get_ref().as_fd()
    }
}

impl ControlClient {
    fn connect(path: &Path) -> Option<ControlClient> {
        let stream = address::connect(path).ok()?;
        // Anyone can create names in /tmp: only sockets of our own user, or root, are trusted.
        let server = rustix::net::sockopt::socket_peercred(&stream).ok()?;
        let ours = rustix::process::geteuid();
        if !server.uid.is_root() && server.uid != ours && !ours.is_root() {
            return None;
        }
        stream.set_read_timeout(Some(ANSWER_MAX)).ok()?;
        stream.set_write_timeout(Some(ANSWER_MAX)).ok()?;
        Some(ControlClient { stream: BufReader::new(stream) })
    }

    /// Sets the timeout of further replies.
    ///
    /// # Errors
    /// An error of the system.
    pub(crate) fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
        self.stream.get_ref().set_read_timeout(Some(timeout))
    }

    /// Sends a request.
    ///
    /// # Errors
    /// The process has ended or hangs.
    pub(crate) fn send(&mut self, send: ControlRequest) -> io::Result<()> {
        let mut line = serde_json::to_string(&send)?;
        line.push('\n');
        self.stream.get_mut().write_all(line.as_bytes())
    }

    /// Waits for the next reply.
    ///
    /// # Errors
    /// The process has ended or hangs, or is of another version with other replies.
    pub(crate) fn answer(&mut self) -> io::Result<ControlReply> {
        let mut line = String::new();
        match self.stream.by_ref().take(LINE_BYTES_MAX).read_line(&mut line) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => Ok(serde_json::from_str(&line)?),
            // A socket reports a timeout as `WouldBlock`, whose text speaks of resources.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(io::ErrorKind::TimedOut.into()),
            Err(error) => Err(error),
        }
    }

    /// Waits until the process has ended, at most `timeout`. Returns whether it has.
    pub(crate) fn wait_for_exit(mut self, timeout: Duration) -> bool {
        if self.set_timeout(timeout).is_err() {
            return false;
        }
        match self.stream.read(&mut [0]) {
            Ok(count) => count == 0,
            // It ended with unread data.
            Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
        }
    }

    /// Returns the user of the mount's process.
    pub(crate) fn user(&self) -> Option<rustix::process::Uid> {
        rustix::net::sockopt::socket_peercred(self.stream.get_ref()).ok().map(|server| server.uid)
    }

    /// Returns the process id of the mount.
    pub(crate) fn process(&self) -> Option<rustix::process::Pid> {
        rustix::net::sockopt::socket_peercred(self.stream.get_ref()).ok().map(|server| server.pid)
    }
}
