//! What the two directions of one TLS carrier share.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::net::{SendFlags, Shutdown};

use super::cipher::{Incoming, Outgoing};
use super::seal::Farewell;
use super::session::Session;
use crate::assembly::Assembly;
use crate::carrier::{Carrier, PeerInfo};
use crate::closer::Closer;
use crate::lost::CarrierLost;

use super::sink::TlsSink;
use super::source::TlsSource;

/// The session, shared by the reading and the writing thread. The lock is held for one batch of encryption or
/// decryption, never for a system call that can block.
pub(super) struct Shared {
    pub(super) socket: Arc<OwnedFd>,
    pub(super) state: Mutex<State>,
    /// The sink holds records that are encrypted but not sent, so nothing may be sent past it.
    pub(super) is_unsent: AtomicBool,
    /// The line that a server's authorized-keys file needs for our key; empty on the server.
    pub(super) own_line: String,
}

pub(super) struct State {
    pub(super) session: Session,
    /// Records in the order they were encrypted, which is the order they must be sent in.
    pub(super) outgoing: Outgoing,
    /// A copy of what has arrived but is no whole record yet; see [`Session::seal`].
    pub(super) leftover: Vec<u8>,
    /// The peer's farewell has arrived: the stream's end is no cut.
    pub(super) is_peer_closed: bool,
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says farewell if the line is free, then ends both directions.
    fn close(&self) {
        let mut state = self.lock();
        if !self.is_unsent.load(Ordering::SeqCst) && state.outgoing.is_empty() {
            let State { session, outgoing, leftover, .. } = &mut *state;
            if session.seal(&mut Farewell, leftover, outgoing).is_ok() {
                // Best effort: whoever loses it sees a cut, which the session above survives anyway.
                let _sent = rustix::net::send(
                    &self.socket,
                    outgoing.rest(),
                    SendFlags::DONTWAIT | SendFlags::NOSIGNAL,
                );
            }
        }
        drop(state);
        let _gone = rustix::net::shutdown(&self.socket, Shutdown::Both);
    }

    /// What a TLS failure means for the carrier.
    pub(super) fn explain(&self, error: rustls::Error) -> CarrierLost {
        match error {
            rustls::Error::AlertReceived(rustls::AlertDescription::AccessDenied)
                if !self.own_line.is_empty() =>
            {
                CarrierLost::Refused { line: self.own_line.clone() }
            }
            other => CarrierLost::Tls(other),
        }
    }
}

/// A session whose handshake is over, with what has arrived behind it.
pub(super) struct Established {
    pub(super) socket: OwnedFd,
    pub(super) session: Session,
    pub(super) incoming: Incoming,
    pub(super) outgoing: Outgoing,
    /// Decrypted already.
    pub(super) behind: Vec<u8>,
    pub(super) own_line: String,
}

/// The parts of a TLS carrier, the source still with its own type.
pub(super) struct Parts {
    pub(super) source: TlsSource,
    pub(super) sink: TlsSink,
    pub(super) closer: Closer,
}

impl Established {
    /// Splits the connection into its directions. `expects_greeting` on the client.
    pub(super) fn split(mut self, expects_greeting: bool) -> Parts {
        let shared = Arc::new(Shared {
            socket: Arc::new(self.socket),
            state: Mutex::new(State {
                leftover: self.incoming.filled().to_vec(),
                session: self.session,
                outgoing: self.outgoing,
                is_peer_closed: false,
            }),
            is_unsent: AtomicBool::new(false),
            own_line: self.own_line,
        });
        let closer = Closer::new({
            let shared = Arc::clone(&shared);
            move || shared.close()
        });
        let mut source = TlsSource::new(
            Arc::clone(&shared),
            closer.clone(),
            self.incoming,
            Assembly::new(),
            expects_greeting,
        );
        source.take_in(&self.behind);
        Parts { source, sink: TlsSink::new(shared, closer.clone()), closer }
    }
}

impl Parts {
    pub(super) fn into_carrier(self, peer: PeerInfo) -> Carrier {
        Carrier { source: Box::new(self.source), sink: Box::new(self.sink), closer: self.closer, peer }
    }
}
