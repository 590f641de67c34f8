//! Packets that do not go out in the buffer that they came in: new ones, rebuilt ones, ballast.

use bytes::Bytes;
use wirefs_op::Time;

use super::{Echo, Known};
use crate::host::HostId;
use crate::index::Lane;
use crate::outbox::Item;
use crate::packet::{self, Cargo, OVERHEAD_BYTES, Piece, Sequence};

/// A packet that was written into a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Its bytes.
    pub bytes: usize,
    /// The number for its header.
    pub number: u16,
}

impl Echo {
    /// Writes the next packet that is due for a host into `buffer`, which has room for
    /// [`packet_bytes_max`](Echo::packet_bytes_max). None when nothing is due, or the rate forbids it.
    pub fn poll_packet(&mut self, now: Time, host: HostId, buffer: &mut [u8]) -> Option<Written> {
        let now = self.clock.run(now);
        let record = self.hosts.get_mut(usize::from(host.0))?;
        if !record.may_send(now) || buffer.len() < self.piece_bytes_max + OVERHEAD_BYTES {
            return None;
        }
        while let Some(record) =
            self.hosts.get_mut(usize::from(host.0)).filter(|record| record.is_answering())
        {
            let Some(Item { piece, body, .. }) = record.outbox.pop(now) else {
                break;
            };
            if let Some(written) = self.launch(now, host, piece, &body, buffer) {
                self.counters.launched += 1;
                return Some(written);
            }
        }
        self.host_mut(host)?.take_ballast().then_some(())?;
        let (bytes, cargo) = (self.piece_bytes_max + OVERHEAD_BYTES, Cargo::Ballast);
        let packet = buffer.get_mut(..bytes)?;
        packet.fill(0);
        let sequence = self.host_mut(host)?.send(now, true);
        self.counters.ballast += 1;
        self.sealer.seal(host, sequence, now, cargo, packet).then(|| written(bytes, sequence))
    }

    /// Sends a packet from the outbox, unless its block was dropped meanwhile.
    fn launch(
        &mut self,
        now: Time,
        host: HostId,
        piece: Piece,
        body: &Bytes,
        buffer: &mut [u8],
    ) -> Option<Written> {
        let record = self.hosts.get_mut(usize::from(host.0))?;
        let sequence = match &mut self.known {
            Known::Index(index) => {
                let mut entry = index.find(piece.id)?;
                if entry.lane(piece.lane) != Some(Lane::Here { host }) {
                    return None;
                }
                let sequence = record.send(now, false);
                entry.set_lane(piece.lane, Lane::out(host, sequence));
                sequence
            }
            Known::Root(root) => {
                if root.dropped.contains(piece.id) {
                    record.assigned = record.assigned.saturating_sub(1);
                    return None;
                }
                let sequence = record.send(now, false);
                if let Some(window) = root.windows.get_mut(usize::from(host.0)) {
                    window.send(sequence);
                }
                sequence
            }
        };
        let bytes = OVERHEAD_BYTES + body.len();
        let packet = buffer.get_mut(..bytes)?;
        packet::body_mut(packet).copy_from_slice(body);
        self.sealer.seal(host, sequence, now, Cargo::Piece(piece), packet).then(|| written(bytes, sequence))
    }
}

/// The part of a sequence number that a packet's header has room for.
pub(super) fn number(sequence: Sequence) -> u16 {
    sequence.0 as u16
}

fn written(bytes: usize, sequence: Sequence) -> Written {
    Written { bytes, number: number(sequence) }
}
