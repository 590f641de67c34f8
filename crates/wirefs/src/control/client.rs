//! Asking a mount.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use super::{Ask, LINE_BYTES_MAX, Told, address, socket_name};
use crate::places;

/// How long a mount may take to answer, unless it is asked to wait for something.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// A conversation with the process that serves a mount.
#[derive(Debug)]
pub(crate) struct Line {
    stream: BufReader<UnixStream>,
}

/// Connects to the process that serves the mount at `mountpoint` (resolved). `None`: there is none of this user's.
pub(crate) fn find(mountpoint: &Path) -> Option<Line> {
    let name = socket_name(mountpoint);
    places::runtime_dirs().iter().find_map(|dir| Line::connect(&dir.join(&name)))
}

/// Connects to the processes of all mounts of this user, in order of their names.
pub(crate) fn find_all() -> Vec<Line> {
    let entries = places::runtime_dirs().into_iter().filter_map(|dir| std::fs::read_dir(dir).ok()).flatten();
    let mut sockets: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "sock"))
        .collect();
    sockets.sort();
    sockets.iter().filter_map(|path| Line::connect(path)).collect()
}

impl Line {
    fn connect(path: &Path) -> Option<Line> {
        let stream = address::connect(path).ok()?;
        // Names in /tmp can be anyone's: only what our own user, or root, serves is believed.
        let server = rustix::net::sockopt::socket_peercred(&stream).ok()?;
        let ours = rustix::process::geteuid();
        if !server.uid.is_root() && server.uid != ours && !ours.is_root() {
            return None;
        }
        stream.set_read_timeout(Some(ANSWER_MAX)).ok()?;
        stream.set_write_timeout(Some(ANSWER_MAX)).ok()?;
        Some(Line { stream: BufReader::new(stream) })
    }

    /// Waits at most so long for each answer from now on.
    ///
    /// # Errors
    /// The system refuses.
    pub(crate) fn set_patience(&self, timeout: Duration) -> io::Result<()> {
        self.stream.get_ref().set_read_timeout(Some(timeout))
    }

    /// Sends a request.
    ///
    /// # Errors
    /// The process is gone or stuck.
    pub(crate) fn ask(&mut self, ask: Ask) -> io::Result<()> {
        let mut line = serde_json::to_string(&ask)?;
        line.push('\n');
        self.stream.get_mut().write_all(line.as_bytes())
    }

    /// Waits for the next answer.
    ///
    /// # Errors
    /// The process is gone or stuck, or is another version that answers otherwise.
    pub(crate) fn answer(&mut self) -> io::Result<Told> {
        let mut line = String::new();
        match self.stream.by_ref().take(LINE_BYTES_MAX).read_line(&mut line) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => Ok(serde_json::from_str(&line)?),
            // The socket's way to say it; the system's words for it are about resources.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(io::ErrorKind::TimedOut.into()),
            Err(error) => Err(error),
        }
    }

    /// Waits until the process has ended, at most `timeout`. Whether it has.
    pub(crate) fn await_end(mut self, timeout: Duration) -> bool {
        if self.set_patience(timeout).is_err() {
            return false;
        }
        match self.stream.read(&mut [0]) {
            Ok(count) => count == 0,
            // It ended with something unread.
            Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
        }
    }

    /// The process that serves.
    pub(crate) fn process(&self) -> Option<rustix::process::Pid> {
        rustix::net::sockopt::socket_peercred(self.stream.get_ref()).ok().map(|server| server.pid)
    }
}
