//! State shared by the two directions of one TLS carrier.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::net::SendFlags;

use super::cipher::{Incoming, Outgoing};
use super::seal::CloseNotify;
use super::session::Session;
use crate::assembly::Assembly;
use crate::carrier::{Carrier, PeerInfo};
use crate::closer::Closer;
use crate::lost::CarrierLost;
use crate::stream::{linger, shut};

use super::sink::TlsSink;
use super::source::TlsSource;

/// The session, shared by the reading and the writing thread. The lock is held for one batch of encryption or
/// decryption, never for a blocking system call.
pub(super) struct Shared {
    pub(super) socket: Arc<OwnedFd>,
    pub(super) state: Mutex<State>,
    /// The sink holds encrypted records that are not sent; no other record may be sent before them.
    pub(super) is_unsent: AtomicBool,
    /// The line that a server's authorized-keys file needs for our key; empty on the server.
    pub(super) own_line: String,
}

pub(super) struct State {
    pub(super) session: Session,
    /// Records in the order of their encryption, which is the order to send them in.
    pub(super) outgoing: Outgoing,
    /// A copy of the received bytes of an incomplete record; see [`Session::seal`].
    pub(super) leftover: Vec<u8>,
    /// The peer's close_notify has arrived: the stream's end is regular.
    pub(super) is_peer_closed: bool,
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends close_notify if no record is unsent.
    fn notify(&self) {
        let mut state = self.lock();
        if !self.is_unsent.load(Ordering::SeqCst) && state.outgoing.is_empty() {
            let State { session, outgoing, leftover, .. } = &mut *state;
            if session.seal(&mut CloseNotify, leftover, outgoing).is_ok() {
                // Best effort: without it the peer reports a truncated stream, which its session survives.
                let _sent = rustix::net::send(
                    &self.socket,
                    outgoing.rest(),
                    SendFlags::DONTWAIT | SendFlags::NOSIGNAL,
                );
            }
        }
    }

    /// Returns the carrier's error for a TLS error.
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

/// A session after its handshake, with the data that arrived after it.
pub(super) struct Established {
    pub(super) socket: OwnedFd,
    pub(super) session: Session,
    pub(super) incoming: Incoming,
    pub(super) outgoing: Outgoing,
    /// Already decrypted.
    pub(super) trailing: Vec<u8>,
    pub(super) own_line: String,
}

/// The parts of a TLS carrier; the source has its own type.
pub(super) struct TlsParts {
    pub(super) source: TlsSource,
    pub(super) sink: TlsSink,
    pub(super) closer: Closer,
}

impl Established {
    /// Splits the connection into its directions. `expects_greeting`: on the client.
    pub(super) fn split(mut self, expects_greeting: bool) -> TlsParts {
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
        let (shutting, lingering) = (Arc::clone(&shared), Arc::clone(&shared));
        let close = move || {
            shutting.notify();
            shut(&shutting.socket);
        };
        let closer = Closer::lingering(close, move || {
            lingering.notify();
            linger(&lingering.socket);
        });
        let mut source = TlsSource::new(
            Arc::clone(&shared),
            closer.clone(),
            self.incoming,
            Assembly::new(),
            expects_greeting,
        );
        source.append_plain(&self.trailing);
        TlsParts { source, sink: TlsSink::new(shared, closer.clone()), closer }
    }
}

impl TlsParts {
    pub(super) fn into_carrier(self, peer: PeerInfo) -> Carrier {
        Carrier { source: Box::new(self.source), sink: Box::new(self.sink), closer: self.closer, peer }
    }
}
