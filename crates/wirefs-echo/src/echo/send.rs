//! Packets that are not sent in the buffer in which they arrived: new ones, rebuilt ones, padding probes.

use bytes::Bytes;
use wirefs_op::Time;

use super::{BlockRecords, Echo};
use crate::host::HostId;
use crate::index::LaneState;
use crate::packet::{self, OVERHEAD_BYTES, PacketPayload, PacketSequence, Piece};
use crate::send_queue::QueuedPacket;

/// A packet written into a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrittenPacket {
    /// Size of the payload in bytes.
    pub bytes: usize,
    /// The sequence number for the ICMP header.
    pub number: u16,
}

impl Echo {
    /// Writes the next packet due for a host into `buffer`, which must have room for
    /// [`packet_bytes_max`](Echo::packet_bytes_max). Returns `None` if no packet is due, or the rate forbids
    /// it.
    pub fn poll_packet(&mut self, now: Time, host: HostId, buffer: &mut [u8]) -> Option<WrittenPacket> {
        let now = self.clock.advance(now);
        let record = self.hosts.get_mut(usize::from(host.0))?;
        if !record.may_send(now) || buffer.len() < self.piece_bytes_max + OVERHEAD_BYTES {
            return None;
        }
        while let Some(record) =
            self.hosts.get_mut(usize::from(host.0)).filter(|record| record.is_answering())
        {
            let Some(QueuedPacket { piece, body, .. }) = record.send_queue.pop(now) else {
                break;
            };
            if let Some(written) = self.launch(now, host, piece, &body, buffer) {
                self.counters.launched += 1;
                return Some(written);
            }
        }
        self.host_mut(host)?.take_probe().then_some(())?;
        let (bytes, payload) = (self.piece_bytes_max + OVERHEAD_BYTES, PacketPayload::Probe);
        let packet = buffer.get_mut(..bytes)?;
        packet.fill(0);
        let sequence = self.host_mut(host)?.send(now, true);
        self.counters.probes += 1;
        self.sealer.seal(host, sequence, now, payload, packet).then(|| written(bytes, sequence))
    }

    /// Sends a queued packet, unless its block was dropped meanwhile.
    fn launch(
        &mut self,
        now: Time,
        host: HostId,
        piece: Piece,
        body: &Bytes,
        buffer: &mut [u8],
    ) -> Option<WrittenPacket> {
        let record = self.hosts.get_mut(usize::from(host.0))?;
        let sequence = match &mut self.records {
            BlockRecords::Index(index) => {
                let mut entry = index.find(piece.id)?;
                if entry.lane(piece.lane) != Some(LaneState::Queued { host }) {
                    return None;
                }
                let sequence = record.send(now, false);
                entry.set_lane(piece.lane, LaneState::in_flight(host, sequence));
                sequence
            }
            BlockRecords::RootOnly(root) => {
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
        self.sealer
            .seal(host, sequence, now, PacketPayload::Piece(piece), packet)
            .then(|| written(bytes, sequence))
    }
}

/// Returns the part of a sequence number that fits in the ICMP header.
pub(super) fn number(sequence: PacketSequence) -> u16 {
    sequence.0 as u16
}

fn written(bytes: usize, sequence: PacketSequence) -> WrittenPacket {
    WrittenPacket { bytes, number: number(sequence) }
}
