//! One card: its socket, and the frames to send over it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

use wirefs_circuit::{Card, CardAddress, CardId, CircuitNode, Time};
use wirefs_raw::{Blocked, EtherSocket, Frames, HardwareAddress, RawError, Ring};

use super::ETHER_TYPE;

/// The receive ring of a card, in bytes: larger than the in-flight data of one circuit in full packets. A larger ring
/// has worse cache locality: the kernel fills one slot after the other.
const RECEIVE_RING_BYTES: usize = 8 << 20;
/// Packets sealed at a time, before other threads may lock the mux.
const FILL_PACKETS: usize = 16;

/// The sending side of a card.
#[derive(Debug)]
pub(super) struct CardSender {
    pub(super) socket: EtherSocket,
    id: CardId,
    frames: Mutex<Frames>,
    /// Another thread has packets for the card: the thread with the frames checks this flag after it has released them.
    resend: AtomicBool,
    /// The kernel's send buffer is full.
    blocked: AtomicBool,
}

/// The result of one fill.
pub(super) struct FilledBatch<'a> {
    frames: MutexGuard<'a, Frames>,
    /// There may be more packets.
    is_full: bool,
    /// Packets that were added.
    pub(super) added: usize,
}

impl CardSender {
    /// Opens a card for sending and receiving.
    pub(super) fn open(name: &str, id: CardId) -> Result<(CardSender, Ring, Card), RawError> {
        let socket = EtherSocket::open(name, ETHER_TYPE)?;
        let packet_bytes = socket.mtu()?.min(wirefs_circuit::limits::PACKET_BYTES_MAX);
        let ring = Ring::open(&socket, packet_bytes, RECEIVE_RING_BYTES)?;
        let card = Card { address: CardAddress(socket.address().0), packet_bytes };
        let frames = Mutex::new(Frames::new(packet_bytes));
        let (resend, blocked) = (AtomicBool::new(false), AtomicBool::new(false));
        Ok((CardSender { socket, id, frames, resend, blocked }, ring, card))
    }

    /// Locks the frames. Returns `None` if another thread has them; that thread will check for more packets.
    ///
    /// INVARIANT: `resend` is set before the lock is tried, and checked after it is released; so one of the two threads
    /// sees the other.
    pub(super) fn take(&self) -> Option<MutexGuard<'_, Frames>> {
        self.resend.store(true, Ordering::SeqCst);
        let frames = self.frames.try_lock().ok()?;
        self.resend.store(false, Ordering::SeqCst);
        Some(frames)
    }

    /// Fills the frames with the packets that may leave now. A request goes alone, so that it is sent before more
    /// packets are prepared.
    pub(super) fn fill<'a>(
        &self,
        mut frames: MutexGuard<'a, Frames>,
        node: &mut CircuitNode,
        now: Time,
    ) -> FilledBatch<'a> {
        let (mut added, mut is_full) = (0, false);
        if frames.is_sent() {
            frames.clear();
            is_full = true;
            let mut is_more = true;
            while added < FILL_PACKETS && is_more {
                is_full = frames.push(|room| {
                    let packet = node.poll_packet(now, self.id, room)?;
                    is_more = packet.is_more;
                    Some((HardwareAddress(packet.destination.0), packet.bytes))
                });
                if !is_full {
                    break;
                }
                added += 1;
            }
        }
        FilledBatch { frames, is_full, added }
    }

    /// Sends the frames. Returns whether this thread has more to do.
    pub(super) fn send(&self, batch: FilledBatch<'_>) -> bool {
        let FilledBatch { mut frames, is_full, .. } = batch;
        if !frames.is_sent() {
            match self.socket.send(&mut frames).blocked {
                // A card that is down drops the frames: a loss like any other.
                Some(Blocked::Refused(_)) => frames.clear(),
                Some(Blocked::Full) | None => {}
            }
        }
        let is_blocked = !frames.is_sent();
        self.blocked.store(is_blocked, Ordering::Relaxed);
        drop(frames);
        is_full && !is_blocked || self.resend.load(Ordering::SeqCst)
    }

    /// Returns whether frames wait for the kernel.
    pub(super) fn is_blocked(&self) -> bool {
        self.blocked.load(Ordering::Relaxed)
    }
}
