//! One card: its socket, and the frames that leave over it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

use wirefs_circuit::{Card, CardAddress as Address, CardId, CircuitNode as Node, Time};
use wirefs_raw::{Blocked, EtherSocket, Frames, HardwareAddress, RawError, Ring};

use super::ETHER_TYPE;

/// The receive ring of a card, in bytes: more than the peer of one circuit may have under way in full packets. What it is larger
/// it is colder: the kernel fills one slot after the other.
const RING_BYTES: usize = 8 << 20;
/// Packets that are sealed at once, before others may have the machine.
const FILL_PACKETS: usize = 16;

/// A card to send over.
#[derive(Debug)]
pub(super) struct OutCard {
    pub(super) socket: EtherSocket,
    id: CardId,
    frames: Mutex<Frames>,
    /// Somebody has something for it: whoever has the frames looks again before it lets go of them for good.
    again: AtomicBool,
    /// The kernel takes no more for now.
    stuck: AtomicBool,
}

/// What one filling brought.
pub(super) struct Filling<'a> {
    frames: MutexGuard<'a, Frames>,
    /// There may be more.
    is_full: bool,
    /// Packets that were added.
    pub(super) added: usize,
}

impl OutCard {
    /// Opens a card for sending and receiving.
    pub(super) fn open(name: &str, id: CardId) -> Result<(OutCard, Ring, Card), RawError> {
        let socket = EtherSocket::open(name, ETHER_TYPE)?;
        let packet_bytes = socket.mtu()?.min(wirefs_circuit::limits::PACKET_BYTES_MAX);
        let ring = Ring::open(&socket, packet_bytes, RING_BYTES)?;
        let card = Card { address: Address(socket.address().0), packet_bytes };
        let frames = Mutex::new(Frames::new(packet_bytes));
        let (again, stuck) = (AtomicBool::new(false), AtomicBool::new(false));
        Ok((OutCard { socket, id, frames, again, stuck }, ring, card))
    }

    /// Takes the frames; none: another thread has them, and will look again.
    ///
    /// INVARIANT: the wish is noted before the frames are tried for, and looked at after they were let go of; so one of the
    /// two threads sees the other.
    pub(super) fn take(&self) -> Option<MutexGuard<'_, Frames>> {
        self.again.store(true, Ordering::SeqCst);
        let frames = self.frames.try_lock().ok()?;
        self.again.store(false, Ordering::SeqCst);
        Some(frames)
    }

    /// Fills the frames with what is to leave now: a request alone, so that it is under way before it is looked for what may
    /// follow it.
    pub(super) fn fill<'a>(
        &self,
        mut frames: MutexGuard<'a, Frames>,
        node: &mut Node,
        now: Time,
    ) -> Filling<'a> {
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
        Filling { frames, is_full, added }
    }

    /// Sends them. Returns whether there is more for this thread to do.
    pub(super) fn send(&self, filling: Filling<'_>) -> bool {
        let Filling { mut frames, is_full, .. } = filling;
        if !frames.is_sent() {
            match self.socket.send(&mut frames).blocked {
                // A card that is down takes nothing: that is a loss like any other.
                Some(Blocked::Refused(_)) => frames.clear(),
                Some(Blocked::Full) | None => {}
            }
        }
        let is_stuck = !frames.is_sent();
        self.stuck.store(is_stuck, Ordering::Relaxed);
        drop(frames);
        is_full && !is_stuck || self.again.load(Ordering::SeqCst)
    }

    /// Whether frames wait for the kernel.
    pub(super) fn is_stuck(&self) -> bool {
        self.stuck.load(Ordering::Relaxed)
    }
}
