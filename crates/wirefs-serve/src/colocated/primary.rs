//! The server that has bound the name. Secondaries connect to it.

use super::super::shared::Shared;
use super::session_hash;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::time::Instant;
use wirefs_server::{Colocation, RECOVERY_PERIOD, ServerInput};

/// The maximum number of secondaries. Others are disconnected, and go on without an answer after a while.
const SECONDARIES_MAX: usize = 256;
/// The message that lets a secondary admit clients.
pub(super) const ADMIT: u8 = b'g';

/// The connection of a secondary.
struct SecondaryConnection {
    stream: UnixStream,
    /// The secondary may admit clients.
    may_admit: bool,
    /// The secondary has reported that its leases have ended.
    is_settled: bool,
    hash: [u8; 8],
    bytes: usize,
}

pub(super) struct Primary {
    listener: UnixListener,
    secondaries: Vec<SecondaryConnection>,
    /// The times until which clients of ended servers may use their leases.
    leased_until: Vec<Instant>,
}

impl Primary {
    pub(super) fn new(listener: UnixListener) -> io::Result<Primary> {
        listener.set_nonblocking(true)?;
        Ok(Primary { listener, secondaries: Vec::new(), leased_until: Vec::new() })
    }

    /// Takes over from a primary that has ended.
    pub(super) fn after_another(self, shared: &Arc<Shared>) -> Primary {
        shared.handle(ServerInput::Colocation(Colocation::Present));
        Primary { leased_until: vec![Instant::now() + RECOVERY_PERIOD], ..self }
    }

    /// Runs until the server ends.
    pub(super) fn run(mut self, shared: &Arc<Shared>) {
        loop {
            let mut sources = vec![self.listener.as_fd()];
            sources.extend(self.secondaries.iter().map(|secondary| secondary.stream.as_fd()));
            let readable = shared.colocated.wait(&sources, self.leased_until.iter().min().copied());
            let requests = shared.colocated.take_requests();
            if requests.ending.is_some() {
                return;
            }
            let before = self.count();
            if requests.permits_secondaries {
                self.secondaries.retain_mut(SecondaryConnection::permit);
            }
            self.listen_to_visitors(shared, readable.get(1..).unwrap_or_default());
            self.leased_until.retain(|until| *until > Instant::now());
            if before > 0 && self.count() == 0 {
                shared.handle(ServerInput::Colocation(Colocation::None));
            }
            if readable.first().is_some_and(|readable| *readable) {
                self.admit(shared);
            }
        }
    }

    /// The number of secondaries, and of ended servers whose leases may still be in use.
    fn count(&self) -> usize {
        self.secondaries.len() + self.leased_until.len()
    }

    fn listen_to_visitors(&mut self, shared: &Arc<Shared>, readable: &[bool]) {
        let mut readable = readable.iter().copied();
        let leased_until = &mut self.leased_until;
        self.secondaries.retain_mut(|secondary| {
            if !readable.next().unwrap_or(false) || secondary.receive(shared) {
                return true;
            }
            if secondary.may_admit && !secondary.is_settled {
                leased_until.push(Instant::now() + RECOVERY_PERIOD);
            }
            false
        });
    }

    fn admit(&mut self, shared: &Arc<Shared>) {
        while let Ok((stream, _)) = self.listener.accept() {
            if self.secondaries.len() >= SECONDARIES_MAX || stream.set_nonblocking(true).is_err() {
                continue;
            }
            let secondary =
                SecondaryConnection { stream, may_admit: false, is_settled: false, hash: [0; 8], bytes: 0 };
            self.secondaries.push(secondary);
            shared.handle(ServerInput::Colocation(Colocation::Starting));
        }
    }
}

impl SecondaryConnection {
    /// Lets the secondary admit clients; `false` if it has ended.
    fn permit(&mut self) -> bool {
        self.may_admit || {
            self.may_admit = true;
            (&self.stream).write_all(&[ADMIT]).is_ok()
        }
    }

    /// Receives messages; `false` if the secondary has ended.
    fn receive(&mut self, shared: &Arc<Shared>) -> bool {
        loop {
            let Some(room) = self.hash.get_mut(self.bytes..) else { return false };
            match (&self.stream).read(room) {
                Ok(0) => return false,
                Ok(count) => self.bytes += count,
                Err(error) => {
                    return matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted);
                }
            }
            if self.bytes == self.hash.len() {
                self.bytes = 0;
                self.handle(shared, u64::from_le_bytes(self.hash));
            }
        }
    }

    fn handle(&mut self, shared: &Arc<Shared>, hash: u64) {
        if hash == 0 {
            self.is_settled = true;
            return;
        }
        let found = {
            let sessions = &shared.core().sessions;
            sessions.ids().find(|session| session_hash(&(*session, sessions.owner(*session))) == hash)
        };
        if let Some(session) = found {
            shared.handle(ServerInput::Moved(session));
        }
    }
}
