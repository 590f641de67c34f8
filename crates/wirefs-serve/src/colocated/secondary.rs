//! A server that found a primary. It admits clients once the primary has no exclusive session.

use super::super::log;
use super::super::shared::Shared;
use super::primary::ADMIT;
use super::{Requests, WAITING_MAX};
use rustix::net::sockopt::socket_peercred;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wirefs_server::{Colocation, EXCLUSIVE_END_MAX, RECOVERY_PERIOD, ServerInput};

pub(super) struct Secondary {
    stream: UnixStream,
    /// This server admits clients.
    admits_clients: bool,
    /// The time until which it waits for the primary.
    until: Instant,
    waiting: Vec<u64>,
}

impl Secondary {
    pub(super) fn new(stream: UnixStream) -> io::Result<Secondary> {
        stream.set_nonblocking(true)?;
        let until = Instant::now() + patience_for(&stream);
        Ok(Secondary { stream, admits_clients: false, until, waiting: Vec::new() })
    }

    /// Continues with a new primary.
    pub(super) fn after(self, before: Secondary) -> Secondary {
        Secondary { stream: self.stream, ..before }
    }

    /// Runs until the primary has ended, and returns the state for the next one. `None`: this server ends.
    pub(super) fn run(mut self, shared: &Arc<Shared>) -> Option<Secondary> {
        // Sessions that were reported to the previous primary.
        let waiting = std::mem::take(&mut self.waiting);
        if !self.report(Requests { waiting, ..Requests::default() }) {
            return Some(self);
        }
        loop {
            let until = (!self.admits_clients).then_some(self.until);
            let readable = shared.colocated.wait(&[self.stream.as_fd()], until);
            let requests = shared.colocated.take_requests();
            if let Some(is_settled) = requests.ending {
                if is_settled {
                    // A primary that has ended does not need it.
                    let _sent = (&self.stream).write_all(&0_u64.to_le_bytes());
                }
                return None;
            }
            if !self.report(requests) || (readable.contains(&true) && !self.receive(shared)) {
                return Some(self);
            }
            if !self.admits_clients && Instant::now() >= self.until {
                log::line(format_args!(
                    "another server of this directory does not answer; going on without it"
                ));
                self.admit(shared);
            }
        }
    }

    /// Reports the sessions whose clients wait here; `false` if the primary has ended.
    fn report(&mut self, requests: Requests) -> bool {
        let known = std::mem::take(&mut self.waiting);
        let new: Vec<u64> = requests.waiting.into_iter().filter(|hash| !known.contains(hash)).collect();
        let is_sent = new.iter().all(|hash| (&self.stream).write_all(&hash.to_le_bytes()).is_ok());
        self.waiting = known.into_iter().chain(new).take(WAITING_MAX).collect();
        is_sent
    }

    /// Receives messages; `false` if the primary has ended.
    fn receive(&mut self, shared: &Arc<Shared>) -> bool {
        let mut received = [0; 64];
        match (&self.stream).read(&mut received) {
            Ok(0) => false,
            Ok(count) => {
                if !self.admits_clients && received.iter().take(count).any(|byte| *byte == ADMIT) {
                    self.admit(shared);
                }
                true
            }
            Err(error) => matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted),
        }
    }

    fn admit(&mut self, shared: &Arc<Shared>) {
        self.admits_clients = true;
        admit_clients(shared);
    }
}

/// Lets clients attach, without an exclusive session.
pub(super) fn admit_clients(shared: &Arc<Shared>) {
    shared.handle(ServerInput::Colocation(Colocation::Present));
}

/// The time that the primary may take to answer. A process of another user may have bound the name only to delay this
/// server, so it gets less.
fn patience_for(stream: &UnixStream) -> Duration {
    let peer = socket_peercred(stream).map(|peer| peer.uid);
    let is_trusted = peer.is_ok_and(|uid| uid.is_root() || uid == rustix::process::geteuid());
    if is_trusted { EXCLUSIVE_END_MAX } else { RECOVERY_PERIOD }
}
