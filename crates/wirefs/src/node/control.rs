//! The control socket of a node: how `node list` and `node down` talk to the process that is the node. One JSON object a
//! line each way.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, Timespec};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use wirefs_driver::node::{NodeHost, NodeInfo};

use super::ether::Dials;
use super::list::Listed;
use super::mounting::Mounting;
use crate::control::address;
use crate::failure::failure;
use crate::places;

/// The socket's name in the runtime directory; not one that belongs to a mount.
const SOCKET: &str = "node.control";
/// A line in either direction is at most this long, in bytes.
const LINE_BYTES_MAX: u64 = 1024 * 1024;
/// Conversations at once, at most; more are closed.
const LINES_MAX: usize = 32;
/// How long a node may take to answer, unless it is asked to wait for something.
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// The longest wait for a change, so that who has gone is noticed.
const CHANGE_WAIT: Duration = Duration::from_secs(1);

/// What is asked of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub(super) enum Asked {
    /// Who is there.
    List,
    /// The same now and whenever it changes.
    Watch,
    /// Bring to others what mounts at these places left in their journals.
    Recover { places: Vec<String> },
    /// End.
    Down,
}

/// A conversation with the process that is the node.
pub(super) struct NodeLine {
    stream: BufReader<UnixStream>,
}

impl NodeLine {
    /// Connects to this user's node. `None`: there is none.
    pub(super) fn find() -> Option<NodeLine> {
        places::runtime_dirs().iter().find_map(|dir| {
            let stream = address::connect(&dir.join(SOCKET)).ok()?;
            // Names in /tmp can be anyone's: only what our own user, or root, serves is believed.
            let server = rustix::net::sockopt::socket_peercred(&stream).ok()?;
            let ours = rustix::process::geteuid();
            let is_ours = server.uid.is_root() || server.uid == ours || ours.is_root();
            stream.set_write_timeout(Some(ANSWER_MAX)).ok()?;
            is_ours.then(|| NodeLine { stream: BufReader::new(stream) })
        })
    }

    pub(super) fn ask(&mut self, asked: Asked) -> io::Result<()> {
        let mut line = serde_json::to_string(&asked)?;
        line.push('\n');
        self.stream.get_mut().write_all(line.as_bytes())
    }

    /// Waits for the next answer, at most `patience`.
    pub(super) fn answer<T: DeserializeOwned>(&mut self, patience: Option<Duration>) -> io::Result<Vec<T>> {
        self.stream.get_ref().set_read_timeout(patience)?;
        let mut line = String::new();
        match self.stream.by_ref().take(LINE_BYTES_MAX).read_line(&mut line)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(serde_json::from_str(&line)?),
        }
    }

    /// One list.
    pub(super) fn list(&mut self) -> io::Result<Vec<Listed>> {
        self.ask(Asked::List)?;
        self.answer(Some(ANSWER_MAX))
    }

    /// Waits until the process has ended, at most `timeout`. Whether it has.
    pub(super) fn await_end(mut self, timeout: Duration) -> bool {
        let end = Instant::now() + timeout;
        // The kernel closes what the process had open one after the other, this line perhaps before its port.
        let process = rustix::net::sockopt::socket_peercred(self.stream.get_ref())
            .and_then(|peer| rustix::process::pidfd_open(peer.pid, rustix::process::PidfdFlags::empty()));
        if self.stream.get_ref().set_read_timeout(Some(timeout)).is_err() {
            return false;
        }
        let is_closed = match self.stream.read(&mut [0]) {
            Ok(count) => count == 0,
            Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
        };
        // Without a process to look at it has ended, or the kernel has no such descriptors.
        is_closed && process.map_or(true, |process| has_ended(&process, end))
    }
}

/// Whether a process ends until then.
fn has_ended(process: &OwnedFd, end: Instant) -> bool {
    let left = end.saturating_duration_since(Instant::now());
    let Ok(left) = Timespec::try_from(left) else { return false };
    let mut watched = [PollFd::new(process, PollFlags::IN)];
    matches!(rustix::event::poll(&mut watched, Some(&left)), Ok(ready) if ready > 0)
}

/// The socket of a node; dropping it removes its name.
#[derive(Debug)]
pub(super) struct NodeSocket {
    path: PathBuf,
}

impl Drop for NodeSocket {
    fn drop(&mut self) {
        let _gone = std::fs::remove_file(&self.path);
    }
}

impl NodeSocket {
    /// Takes the place of this user's node.
    ///
    /// # Errors
    /// There is one already, or the runtime directory cannot be used.
    pub(super) fn take() -> Result<(NodeSocket, UnixListener)> {
        let path = places::make_runtime_dir()?.join(SOCKET);
        if address::connect(&path).is_ok() {
            return Err(failure(
                "this user has a node here already",
                "end it with `wirefs node down`, or see it with `wirefs node list`",
            ));
        }
        // One of a process that died.
        let _stale = std::fs::remove_file(&path);
        let listener =
            address::bind(&path).with_context(|| format!("cannot make the socket {}", path.display()))?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))
            .with_context(|| format!("cannot protect the socket {}", path.display()))?;
        Ok((NodeSocket { path }, listener))
    }
}

/// Answers on threads of its own.
///
/// # Errors
/// The system gives no thread.
pub(super) fn serve(
    listener: UnixListener,
    host: Arc<NodeHost>,
    dials: Dials,
    mounting: Mounting,
) -> Result<()> {
    let lines = Arc::new(AtomicUsize::new(0));
    let mounting = Arc::new(mounting);
    let accept = move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            if lines.fetch_add(1, Ordering::Relaxed) >= LINES_MAX {
                lines.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            let (host, dials, count) = (Arc::clone(&host), dials.clone(), Arc::clone(&lines));
            let mounting = Arc::clone(&mounting);
            let talk = move || {
                // Whoever asked and went away need not be told.
                let _gone = converse(stream, &host, &dials, &mounting);
                count.fetch_sub(1, Ordering::Relaxed);
            };
            if thread::Builder::new().name("wirefs-control-line".into()).spawn(talk).is_err() {
                lines.fetch_sub(1, Ordering::Relaxed);
            }
        }
    };
    thread::Builder::new().name("wirefs-control".into()).spawn(accept).context("cannot start a thread")?;
    Ok(())
}

fn converse(stream: UnixStream, host: &NodeHost, dials: &Dials, mounting: &Mounting) -> io::Result<()> {
    let mut writer = stream.try_clone()?;
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = String::new();
        if reader.by_ref().take(LINE_BYTES_MAX).read_line(&mut line)? == 0 {
            return Ok(());
        }
        match serde_json::from_str(&line)? {
            Asked::List => tell(&mut writer, host, dials)?,
            Asked::Watch => watch(&mut writer, host, dials)?,
            Asked::Recover { places } => say_line(&mut writer, &mounting.recover(&places))?,
            Asked::Down => {
                let own = rustix::process::getpid();
                rustix::process::kill_process(own, rustix::process::Signal::TERM)?;
            }
        }
    }
}

fn tell(writer: &mut UnixStream, host: &NodeHost, dials: &Dials) -> io::Result<()> {
    let turns = host.counters().probe_periods;
    let of = |node: &NodeInfo| Listed::of(node, turns, &dials.taken(&node.record.key));
    let mut listed: Vec<Listed> = host.nodes().iter().map(of).collect();
    for own in listed.iter_mut().filter(|node| node.own) {
        own.registry = host.registry();
    }
    say_line(writer, &listed)
}

fn say_line(writer: &mut UnixStream, said: &[impl Serialize]) -> io::Result<()> {
    let mut line = serde_json::to_string(said)?;
    line.push('\n');
    writer.write_all(line.as_bytes())
}

fn watch(writer: &mut UnixStream, host: &NodeHost, dials: &Dials) -> io::Result<()> {
    let mut seen = host.await_change(0, Duration::ZERO);
    while !host.is_over() {
        tell(writer, host, dials)?;
        seen = host.await_change(seen, CHANGE_WAIT);
    }
    Ok(())
}
