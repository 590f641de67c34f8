//! The receiving direction of TLS.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use rustix::event::PollFlags;
use rustix::io::Errno;

use super::cipher::Incoming;
use super::session::Step;
use super::shared::{Shared, State};
use crate::assembly::Assembly;
use crate::carrier::FrameSource;
use crate::closer::Closer;
use crate::lost::CarrierLost;
use crate::stream::wait;

pub(super) struct TlsSource {
    shared: Arc<Shared>,
    closer: Closer,
    incoming: Incoming,
    assembly: Assembly,
    /// The server's first byte, which accepts the client, is still expected.
    expects_greeting: bool,
    is_ended: bool,
}

impl TlsSource {
    pub(super) fn new(
        shared: Arc<Shared>,
        closer: Closer,
        incoming: Incoming,
        assembly: Assembly,
        expects_greeting: bool,
    ) -> Self {
        Self { shared, closer, incoming, assembly, expects_greeting, is_ended: false }
    }

    /// Appends decrypted bytes of the stream.
    pub(super) fn append_plain(&mut self, plain: &[u8]) {
        append_plain(&mut self.expects_greeting, &mut self.assembly, plain);
    }

    /// Waits until the server has accepted or refused us. Returns `false` if it did neither before the deadline.
    pub(super) fn await_greeting(&mut self, deadline: Instant) -> Result<bool, CarrierLost> {
        loop {
            self.decrypt()?;
            if !self.expects_greeting {
                return Ok(true);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            if wait(&self.shared.socket, PollFlags::IN, None, Some(left))? && self.fill()? == 0 {
                return Err(CarrierLost::PeerClosed);
            }
        }
    }

    /// Decrypts the received records.
    fn decrypt(&mut self) -> Result<(), CarrierLost> {
        let mut state = self.shared.lock();
        let result = loop {
            let mut plain =
                |bytes: &[u8]| append_plain(&mut self.expects_greeting, &mut self.assembly, bytes);
            let State { session, outgoing, is_peer_closed, .. } = &mut *state;
            match session.step(&mut self.incoming, outgoing, &mut plain) {
                Ok(Step::Progress) => {}
                Ok(Step::Ready | Step::Handshaking) => break Ok(()),
                Ok(Step::PeerClosed) => {
                    *is_peer_closed = true;
                    break Ok(());
                }
                Err(error) => break Err(self.shared.explain(error)),
            }
        };
        state.leftover.clear();
        state.leftover.extend_from_slice(self.incoming.filled());
        result
    }

    /// Reads records, blocking if necessary. Returns 0 at the end of the stream.
    fn fill(&mut self) -> Result<usize, CarrierLost> {
        loop {
            if self.closer.is_closed() {
                return Err(CarrierLost::Closed);
            }
            let room = self.incoming.room();
            let room_bytes = room.len();
            match rustix::io::read(&self.shared.socket, room) {
                Ok(count) => {
                    self.incoming.took(count);
                    self.assembly.record_read(count, room_bytes);
                    return Ok(count);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    wait(&self.shared.socket, PollFlags::IN, None, None)?;
                }
                Err(_) if self.closer.is_closed() => return Err(CarrierLost::Closed),
                Err(errno) => return Err(CarrierLost::Io(errno.into())),
            }
        }
    }

    /// Returns the result of `receive` at the end of the stream.
    fn end(&self) -> Result<Option<Bytes>, CarrierLost> {
        if self.closer.is_closed() {
            return Err(CarrierLost::Closed);
        }
        self.assembly.end()?;
        // An attacker on the path can end a TCP stream; only the peer can send close_notify.
        if self.shared.lock().is_peer_closed { Ok(None) } else { Err(CarrierLost::Cut { received_bytes: 0 }) }
    }
}

/// The greeting is the first byte of the stream; frames follow.
fn append_plain(expects_greeting: &mut bool, assembly: &mut Assembly, mut plain: &[u8]) {
    if *expects_greeting && !plain.is_empty() {
        plain = plain.get(1..).unwrap_or_default();
        *expects_greeting = false;
    }
    assembly.append(plain);
}

impl FrameSource for TlsSource {
    fn receive(&mut self) -> Result<Option<Bytes>, CarrierLost> {
        loop {
            if let Some(body) = self.assembly.next_body()? {
                return Ok(Some(body));
            }
            if self.is_ended {
                return self.end();
            }
            self.decrypt()?;
            if self.assembly.has_body() {
                continue;
            }
            let is_peer_closed = self.shared.lock().is_peer_closed;
            if is_peer_closed || self.fill()? == 0 {
                self.is_ended = true;
            }
        }
    }
}
