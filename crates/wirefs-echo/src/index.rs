//! What `--keep=index` remembers of each block: its id, and for each of its packets the host it is with and the sequence
//! number with which it went there. That is enough to know each packet when it comes, to notice the one that does not,
//! and to name the block that is lost; the contents are nowhere but in the packets.
//!
//! ```text
//! entry:   id 16 | flags 1 | lane 5 | lane 5 | …
//! lane:    state and host 1 | sequence, low half 4
//! ```

use std::collections::BTreeSet;

use crate::block::BlockId;
use crate::host::HostId;
use crate::packet::{LaneId, Sequence};

mod buckets;

use buckets::Buckets;

/// The flags behind the id.
const FLAGS_AT: usize = BlockId::BYTES;
const LANES_AT: usize = FLAGS_AT + 1;
const LANE_BYTES: usize = 5;
/// Sequence numbers whose low halves could be confused are further apart than anything that is under way.
const SEQUENCE_SPAN: u64 = 1 << 31;

/// What became of one packet of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// It was sent and is expected back.
    Out {
        /// Where it was sent.
        host: HostId,
        /// The low half of its sequence number.
        low: u32,
    },
    /// It waits here to be sent.
    Here {
        /// Where it will go.
        host: HostId,
    },
    /// It did not come back in time.
    Overdue {
        /// Where it was sent.
        host: HostId,
        /// The low half of its sequence number, by which it is known if it comes after all.
        low: u32,
    },
}

impl Lane {
    /// A packet that was sent with this number.
    pub(crate) fn out(host: HostId, sequence: Sequence) -> Lane {
        Lane::Out { host, low: low_half(sequence) }
    }

    /// The host it belongs to.
    pub(crate) fn host(self) -> HostId {
        match self {
            Lane::Out { host, .. } | Lane::Here { host } | Lane::Overdue { host, .. } => host,
        }
    }

    fn decode([state, low @ ..]: [u8; LANE_BYTES]) -> Lane {
        let host = HostId(state & 0x3f);
        let low = u32::from_le_bytes(low);
        match state >> 6 {
            0 => Lane::Out { host, low },
            1 => Lane::Here { host },
            _ => Lane::Overdue { host, low },
        }
    }

    fn encode(self) -> [u8; LANE_BYTES] {
        let (state, host, low) = match self {
            Lane::Out { host, low } => (0, host, low),
            Lane::Here { host } => (1, host, 0),
            Lane::Overdue { host, low } => (2, host, low),
        };
        let [a, b, c, d] = low.to_le_bytes();
        [state << 6 | host.0, a, b, c, d]
    }
}

/// What is noted about a block beside its lanes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags {
    /// Somebody waits for its contents.
    pub(crate) is_wanted: bool,
    /// Too few of its packets are left, and this was reported.
    pub(crate) is_lost: bool,
}

/// The blocks of a store.
#[derive(Debug)]
pub(crate) struct Index {
    buckets: Buckets,
    lanes: usize,
    /// Where the sweep goes on.
    cursor: usize,
}

/// One block of the index.
#[derive(Debug)]
pub(crate) struct Entry<'index> {
    bytes: &'index mut [u8],
}

impl Index {
    /// Makes an empty index of blocks that take `lanes` packets each.
    pub(crate) fn new(lanes: usize) -> Index {
        Index { buckets: Buckets::new(LANES_AT + lanes * LANE_BYTES), lanes, cursor: 0 }
    }

    /// Blocks in it.
    pub(crate) fn len(&self) -> usize {
        self.buckets.len()
    }

    /// The memory that it takes, unused parts included, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.buckets.memory_bytes()
    }

    /// The block with this id.
    pub(crate) fn find(&mut self, id: BlockId) -> Option<Entry<'_>> {
        Some(Entry { bytes: self.buckets.find(id)? })
    }

    /// Whether there is a block with this id.
    pub(crate) fn contains(&self, id: BlockId) -> bool {
        self.buckets.contains(id)
    }

    /// The lowest ids after this one, in order, at most so many.
    pub(crate) fn ids_after(&self, after: Option<BlockId>, count_max: usize) -> Vec<BlockId> {
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

    /// Adds a block whose packets wait to be sent to these hosts, one for each lane. It must not be there yet.
    pub(crate) fn insert(&mut self, id: BlockId, hosts: &[HostId]) {
        let mut entry = Entry { bytes: self.buckets.insert(id) };
        for (lane, &host) in hosts.iter().enumerate().take(self.lanes) {
            entry.set_lane(LaneId(lane as u8), Lane::Here { host });
        }
    }

    /// Takes a block out.
    pub(crate) fn remove(&mut self, id: BlockId) {
        self.buckets.remove(id);
    }

    /// How many groups of blocks [`sweep`](Self::sweep) goes through.
    pub(crate) fn group_count(&self) -> usize {
        self.buckets.count()
    }

    /// Shows the blocks of the next group, in a round that never ends.
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
    /// Its id.
    pub(crate) fn id(&self) -> BlockId {
        BlockId(self.bytes.first_chunk().copied().unwrap_or_default())
    }

    /// One of its packets; none when a block has fewer.
    pub(crate) fn lane(&self, lane: LaneId) -> Option<Lane> {
        let at = LANES_AT + usize::from(lane.0) * LANE_BYTES;
        Some(Lane::decode(*self.bytes.get(at..)?.first_chunk()?))
    }

    /// Notes what became of one of its packets.
    pub(crate) fn set_lane(&mut self, lane: LaneId, to: Lane) {
        let at = LANES_AT + usize::from(lane.0) * LANE_BYTES;
        if let Some(field) = self.bytes.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
            *field = to.encode();
        }
    }

    /// All its packets.
    pub(crate) fn lanes(&self) -> impl Iterator<Item = (LaneId, Lane)> + '_ {
        let fields = self.bytes.get(LANES_AT..).unwrap_or_default().as_chunks().0;
        fields.iter().enumerate().map(|(number, field)| (LaneId(number as u8), Lane::decode(*field)))
    }

    /// What is noted beside.
    pub(crate) fn flags(&self) -> Flags {
        let bits = self.bytes.get(FLAGS_AT).copied().unwrap_or(0);
        Flags { is_wanted: bits & 1 != 0, is_lost: bits & 2 != 0 }
    }

    /// Notes it.
    pub(crate) fn set_flags(&mut self, flags: Flags) {
        if let Some(bits) = self.bytes.get_mut(FLAGS_AT) {
            *bits = u8::from(flags.is_wanted) | u8::from(flags.is_lost) << 1;
        }
    }
}

/// The part of a sequence number that an entry has room for.
pub(crate) fn low_half(sequence: Sequence) -> u32 {
    // The rest follows from what was sent last.
    sequence.0 as u32
}

/// The whole sequence number whose low half an entry holds: the latest that is not after `newest`.
pub(crate) fn whole(low: u32, newest: Sequence) -> Sequence {
    let back = low_half(newest).wrapping_sub(low);
    Sequence(newest.0.saturating_sub(u64::from(back)))
}

/// Whether a packet with this number can be the one that an entry means: else only the low halves are equal.
pub(crate) fn is_recent(sequence: Sequence, newest: Sequence) -> bool {
    sequence <= newest && newest.0 - sequence.0 < SEQUENCE_SPAN
}

#[cfg(test)]
mod tests;
