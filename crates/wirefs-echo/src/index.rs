//! The index of `--keep=index`: per block the id, and per packet its host and sequence number. That suffices
//! to recognize each packet, to detect a missing one, and to report a lost block. The contents are only in
//! the packets.
//!
//! ```text
//! entry:   id 16 | flags 1 | lane 5 | lane 5 | …
//! lane:    state and host 1 | sequence, low half 4
//! ```

use std::collections::BTreeSet;

use crate::block::EchoBlockId;
use crate::host::HostId;
use crate::packet::{LaneId, PacketSequence};

mod buckets;

use buckets::Buckets;

/// Offset of the flags, after the id.
const FLAGS_AT: usize = EchoBlockId::BYTES;
const LANES_AT: usize = FLAGS_AT + 1;
const LANE_BYTES: usize = 5;
/// Sequence numbers with equal low halves are further apart than all packets in flight.
const SEQUENCE_SPAN: u64 = 1 << 31;

/// State of one packet of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LaneState {
    /// Sent, and expected back.
    InFlight {
        /// The host that it was sent to.
        host: HostId,
        /// The low half of its sequence number.
        low: u32,
    },
    /// In the send queue.
    Queued {
        /// The host that it will be sent to.
        host: HostId,
    },
    /// It did not come back in time.
    Overdue {
        /// The host that it was sent to.
        host: HostId,
        /// The low half of its sequence number, which identifies it if it arrives late.
        low: u32,
    },
}

impl LaneState {
    /// Returns the state of a packet sent with this number.
    pub(crate) fn in_flight(host: HostId, sequence: PacketSequence) -> LaneState {
        LaneState::InFlight { host, low: low_half(sequence) }
    }

    /// Returns the host of the packet.
    pub(crate) fn host(self) -> HostId {
        match self {
            LaneState::InFlight { host, .. }
            | LaneState::Queued { host }
            | LaneState::Overdue { host, .. } => host,
        }
    }

    fn decode([state, low @ ..]: [u8; LANE_BYTES]) -> LaneState {
        let host = HostId(state & 0x3f);
        let low = u32::from_le_bytes(low);
        match state >> 6 {
            0 => LaneState::InFlight { host, low },
            1 => LaneState::Queued { host },
            _ => LaneState::Overdue { host, low },
        }
    }

    fn encode(self) -> [u8; LANE_BYTES] {
        let (state, host, low) = match self {
            LaneState::InFlight { host, low } => (0, host, low),
            LaneState::Queued { host } => (1, host, 0),
            LaneState::Overdue { host, low } => (2, host, low),
        };
        let [a, b, c, d] = low.to_le_bytes();
        [state << 6 | host.0, a, b, c, d]
    }
}

/// The flags of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags {
    /// A fetch is pending.
    pub(crate) is_wanted: bool,
    /// Too few of its packets are left, and the loss was reported.
    pub(crate) is_lost: bool,
}

/// The blocks of a store.
#[derive(Debug)]
pub(crate) struct Index {
    buckets: Buckets,
    lanes: usize,
    /// The next bucket of the sweep.
    cursor: usize,
}

/// The index entry of one block.
#[derive(Debug)]
pub(crate) struct Entry<'index> {
    bytes: &'index mut [u8],
}

impl Index {
    /// Creates an empty index of blocks with `lanes` packets each.
    pub(crate) fn new(lanes: usize) -> Index {
        Index { buckets: Buckets::new(LANES_AT + lanes * LANE_BYTES), lanes, cursor: 0 }
    }

    /// Returns the number of blocks.
    pub(crate) fn len(&self) -> usize {
        self.buckets.len()
    }

    /// Returns the memory use in bytes, free places included.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.buckets.memory_bytes()
    }

    /// Returns the entry of a block.
    pub(crate) fn find(&mut self, id: EchoBlockId) -> Option<Entry<'_>> {
        Some(Entry { bytes: self.buckets.find(id)? })
    }

    /// Returns whether a block exists.
    pub(crate) fn contains(&self, id: EchoBlockId) -> bool {
        self.buckets.contains(id)
    }

    /// Returns the lowest ids above `after` in order, at most `count_max`.
    pub(crate) fn ids_after(&self, after: Option<EchoBlockId>, count_max: usize) -> Vec<EchoBlockId> {
        let mut lowest = BTreeSet::new();
        for id in self.buckets.ids().filter(|&id| after.is_none_or(|after| id > after)) {
            if lowest.len() < count_max {
                lowest.insert(id);
            } else if lowest.last().is_some_and(|&last| id < last) {
                lowest.insert(id);
                lowest.pop_last();
            }
        }
        lowest.into_iter().collect()
    }

    /// Adds a block whose packets are queued for these hosts, one for each lane. The block must not exist.
    pub(crate) fn insert(&mut self, id: EchoBlockId, hosts: &[HostId]) {
        let mut entry = Entry { bytes: self.buckets.insert(id) };
        for (lane, &host) in hosts.iter().enumerate().take(self.lanes) {
            entry.set_lane(LaneId(lane as u8), LaneState::Queued { host });
        }
    }

    /// Removes a block.
    pub(crate) fn remove(&mut self, id: EchoBlockId) {
        self.buckets.remove(id);
    }

    /// Returns the number of buckets that [`sweep`](Self::sweep) visits in one round.
    pub(crate) fn group_count(&self) -> usize {
        self.buckets.count()
    }

    /// Visits the blocks of the next bucket, round robin.
    pub(crate) fn sweep(&mut self, mut look: impl FnMut(Entry<'_>)) {
        if self.cursor >= self.buckets.count() {
            self.cursor = 0;
        }
        for bytes in self.buckets.entries_mut(self.cursor) {
            look(Entry { bytes });
        }
        self.cursor += 1;
    }
}

impl Entry<'_> {
    /// Returns the block's id.
    pub(crate) fn id(&self) -> EchoBlockId {
        EchoBlockId(self.bytes.first_chunk().copied().unwrap_or_default())
    }

    /// Returns the state of one packet; `None` if the block has fewer.
    pub(crate) fn lane(&self, lane: LaneId) -> Option<LaneState> {
        let at = LANES_AT + usize::from(lane.0) * LANE_BYTES;
        Some(LaneState::decode(*self.bytes.get(at..)?.first_chunk()?))
    }

    /// Sets the state of one packet.
    pub(crate) fn set_lane(&mut self, lane: LaneId, to: LaneState) {
        let at = LANES_AT + usize::from(lane.0) * LANE_BYTES;
        if let Some(field) = self.bytes.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
            *field = to.encode();
        }
    }

    /// Returns the states of all packets.
    pub(crate) fn lanes(&self) -> impl Iterator<Item = (LaneId, LaneState)> + '_ {
        let fields = self.bytes.get(LANES_AT..).unwrap_or_default().as_chunks().0;
        fields.iter().enumerate().map(|(number, field)| (LaneId(number as u8), LaneState::decode(*field)))
    }

    /// Returns the flags.
    pub(crate) fn flags(&self) -> Flags {
        let bits = self.bytes.get(FLAGS_AT).copied().unwrap_or(0);
        Flags { is_wanted: bits & 1 != 0, is_lost: bits & 2 != 0 }
    }

    /// Sets the flags.
    pub(crate) fn set_flags(&mut self, flags: Flags) {
        if let Some(bits) = self.bytes.get_mut(FLAGS_AT) {
            *bits = u8::from(flags.is_wanted) | u8::from(flags.is_lost) << 1;
        }
    }
}

/// Returns the low half of a sequence number, which an entry stores.
pub(crate) fn low_half(sequence: PacketSequence) -> u32 {
    // The high half follows from the number sent last.
    sequence.0 as u32
}

/// Returns the full sequence number for a stored low half: the latest that is not after `newest`.
pub(crate) fn whole(low: u32, newest: PacketSequence) -> PacketSequence {
    let back = low_half(newest).wrapping_sub(low);
    PacketSequence(newest.0.saturating_sub(u64::from(back)))
}

/// Returns whether a packet with this number can match an entry; otherwise only the low halves are equal.
pub(crate) fn is_recent(sequence: PacketSequence, newest: PacketSequence) -> bool {
    sequence <= newest && newest.0 - sequence.0 < SEQUENCE_SPAN
}

#[cfg(test)]
mod tests;
