//! The control socket of a node: `node list` and `node down` use it to talk to the node's process. One JSON object per
//! line in each direction.

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
use wirefs_nodehost::{NodeHost, NodeInfo};

use super::ether::Dials;
use super::list::Listed;
use super::mounting::Mounting;
use crate::control::address;
use crate::failure::failure;
use crate::user_dirs;

/// The socket's name in the runtime directory; never the name of a mount's socket.
const SOCKET: &str = "node.control";
/// The maximum length of a line, in bytes.
const LINE_BYTES_MAX: u64 = 1024 * 1024;
/// The maximum number of concurrent clients; further ones are closed.
const CLIENTS_MAX: usize = 32;
/// The timeout of a reply, unless the request waits for something.
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// The longest wait for a change, so that a disconnected client is noticed.
const CHANGE_WAIT: Duration = Duration::from_secs(1);

/// A request to a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub(super) enum NodeRequest {
    /// Return the nodes.
    List,
    /// Return the nodes now and after each change.
    Watch,
    /// Send the pending changes in journals of mounts at these mountpoints to their nodes.
    Recover { places: Vec<String> },
    /// Leave, and end.
    Down,
}

/// A connection to the node's process.
pub(super) struct NodeClient {
    stream: BufReader<UnixStream>,
}

impl NodeClient {
    /// Connects to this user's node. Returns `None` if there is none.
    pub(super) fn find() -> Option<NodeClient> {
        user_dirs::runtime_dirs().iter().find_map(|dir| {
            let stream = address::connect(&dir.join(SOCKET)).ok()?;
            // Anyone can create names in /tmp: only sockets of our own user, or root, are trusted.
            let server = rustix::net::sockopt::socket_peercred(&stream).ok()?;
            let ours = rustix::process::geteuid();
            let is_ours = server.uid.is_root() || server.uid == ours || ours.is_root();
            stream.set_write_timeout(Some(ANSWER_MAX)).ok()?;
            is_ours.then(|| NodeClient { stream: BufReader::new(stream) })
        })
    }

    pub(super) fn send(&mut self, request: NodeRequest) -> io::Result<()> {
        let mut line = serde_json::to_string(&request)?;
        line.push('\n');
        self.stream.get_mut().write_all(line.as_bytes())
    }

    /// Waits for the next reply, at most `timeout`.
    pub(super) fn answer<T: DeserializeOwned>(&mut self, timeout: Option<Duration>) -> io::Result<Vec<T>> {
        self.stream.get_ref().set_read_timeout(timeout)?;
        let mut line = String::new();
        match self.stream.by_ref().take(LINE_BYTES_MAX).read_line(&mut line)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(serde_json::from_str(&line)?),
        }
    }

    /// Requests one list.
    pub(super) fn list(&mut self) -> io::Result<Vec<Listed>> {
        self.send(NodeRequest::List)?;
        self.answer(Some(ANSWER_MAX))
    }

    /// Waits until the process has ended, at most `timeout`. Returns whether it has.
    pub(super) fn wait_for_exit(mut self, timeout: Duration) -> bool {
        let end = Instant::now() + timeout;
        // The kernel closes a process's descriptors in sequence, this socket perhaps before its port.
        let process = rustix::net::sockopt::socket_peercred(self.stream.get_ref())
            .and_then(|peer| rustix::process::pidfd_open(peer.pid, rustix::process::PidfdFlags::empty()));
        if self.stream.get_ref().set_read_timeout(Some(timeout)).is_err() {
            return false;
        }
        let is_closed = match self.stream.read(&mut [0]) {
            Ok(count) => count == 0,
            Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
        };
        // Without a pidfd the process has ended, or the kernel does not support them.
        is_closed && process.map_or(true, |process| has_ended(&process, end))
    }
}

/// Returns whether a process ends before a deadline.
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
    /// Creates the socket of this user's node.
    ///
    /// # Errors
    /// Fails if the user has a node already, or the runtime directory cannot be used.
    pub(super) fn take() -> Result<(NodeSocket, UnixListener)> {
        let path = user_dirs::create_runtime_dir()?.join(SOCKET);
        if address::connect(&path).is_ok() {
            return Err(failure(
                "this user already runs a node on this machine",
                "stop it with `wirefs node down`; `wirefs node list` shows it",
            ));
        }
        // Left by a process that died.
        let _stale = std::fs::remove_file(&path);
        let listener =
            address::bind(&path).with_context(|| format!("cannot make the socket {}", path.display()))?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))
            .with_context(|| format!("cannot protect the socket {}", path.display()))?;
        Ok((NodeSocket { path }, listener))
    }
}

/// Serves the socket in threads of its own.
///
/// # Errors
/// The system has no thread left.
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
            if lines.fetch_add(1, Ordering::Relaxed) >= CLIENTS_MAX {
                lines.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            let (host, dials, count) = (Arc::clone(&host), dials.clone(), Arc::clone(&lines));
            let mounting = Arc::clone(&mounting);
            let talk = move || {
                // Fails if the client has disconnected.
                let _gone = serve_client(stream, &host, &dials, &mounting);
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

fn serve_client(stream: UnixStream, host: &NodeHost, dials: &Dials, mounting: &Mounting) -> io::Result<()> {
    let mut writer = stream.try_clone()?;
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = String::new();
        if reader.by_ref().take(LINE_BYTES_MAX).read_line(&mut line)? == 0 {
            return Ok(());
        }
        match serde_json::from_str(&line)? {
            NodeRequest::List => send_list(&mut writer, host, dials)?,
            NodeRequest::Watch => watch(&mut writer, host, dials)?,
            NodeRequest::Recover { places } => write_line(&mut writer, &mounting.recover(&places))?,
            NodeRequest::Down => {
                let own = rustix::process::getpid();
                rustix::process::kill_process(own, rustix::process::Signal::TERM)?;
            }
        }
    }
}

fn send_list(writer: &mut UnixStream, host: &NodeHost, dials: &Dials) -> io::Result<()> {
    let probe_periods = host.counters().probe_periods;
    let of = |node: &NodeInfo| Listed::of(node, probe_periods, &dials.route(&node.record.key));
    let mut listed: Vec<Listed> = host.nodes().iter().map(of).collect();
    for own in listed.iter_mut().filter(|node| node.own) {
        own.registry = host.registry();
    }
    write_line(writer, &listed)
}

fn write_line(writer: &mut UnixStream, items: &[impl Serialize]) -> io::Result<()> {
    let mut line = serde_json::to_string(items)?;
    line.push('\n');
    writer.write_all(line.as_bytes())
}

fn watch(writer: &mut UnixStream, host: &NodeHost, dials: &Dials) -> io::Result<()> {
    let mut seen = host.await_change(0, Duration::ZERO);
    while !host.is_over() {
        send_list(writer, host, dials)?;
        seen = host.await_change(seen, CHANGE_WAIT);
    }
    Ok(())
}
