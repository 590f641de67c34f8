//! One direction of a link as a state machine: decides which frames are delayed, duplicated, corrupted or lost.
//!
//! ```text
//! push ─ cut? ─ room? ─ rate (queue, tail drop) ─ loss? ─ bit flip? ─┬─ in order:  ring ─┬─ poll
//!                                                                    └─ reordered: heap ─┘
//! ```

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use wirefs_op::Time;

use crate::counters::LaneCounters;
use crate::profile::LaneProfile;
use crate::random::Random;

/// The maximum bytes in flight per direction; further frames are dropped, counted as queue drops.
pub const HELD_BYTES_MAX: u64 = 256 << 20;
/// The bytes of an Ethernet header, which are never corrupted, so that the frame still arrives.
const ETHERNET_HEADER_BYTES: usize = 14;

/// A frame in flight, ordered by departure.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct QueuedFrame {
    leave: Time,
    sequence: u64,
    frame: Vec<u8>,
}

/// The random decisions about one frame.
struct FrameFate {
    lost: bool,
    duplicated: bool,
    reordered: bool,
    corrupted: bool,
    jitter_ns: u64,
    bit: u64,
}

/// One direction of a link.
///
/// Usage: [`push`](EmulatedLane::push) each frame with the time at which it was sent; at [`deadline`](EmulatedLane::deadline) or later,
/// [`poll`](EmulatedLane::poll) until it returns `None`.
#[derive(Debug)]
pub struct EmulatedLane {
    profile: LaneProfile,
    random: Random,
    cut: bool,
    /// Frames in order; `leave` never decreases.
    ring: VecDeque<QueuedFrame>,
    /// Reordered frames, which later ones overtake.
    heap: BinaryHeap<Reverse<QueuedFrame>>,
    held_bytes: u64,
    /// When the rate limiter has sent all frames pushed so far.
    busy_until: Time,
    /// The departure of the last frame of the ring.
    last_leave: Time,
    sequence: u64,
    counters: LaneCounters,
}

impl EmulatedLane {
    /// Creates an empty direction; `seed` determines its random decisions.
    pub fn new(profile: LaneProfile, seed: u64) -> EmulatedLane {
        EmulatedLane {
            profile,
            random: Random::new(seed),
            cut: false,
            ring: VecDeque::new(),
            heap: BinaryHeap::new(),
            held_bytes: 0,
            busy_until: Time::default(),
            last_leave: Time::default(),
            sequence: 0,
            counters: LaneCounters::default(),
        }
    }

    /// Returns the current profile.
    pub fn profile(&self) -> &LaneProfile {
        &self.profile
    }

    /// Replaces the profile. Frames in flight keep their times; new ones do not overtake them.
    pub fn set_profile(&mut self, profile: LaneProfile) {
        self.profile = profile;
    }

    /// Drops all frames in flight, and all frames until [`heal`](EmulatedLane::heal).
    pub fn cut(&mut self) {
        self.cut = true;
        self.counters.dropped_by_cut += (self.ring.len() + self.heap.len()) as u64;
        self.ring.clear();
        self.heap.clear();
        self.held_bytes = 0;
        self.busy_until = Time::default();
        self.last_leave = Time::default();
    }

    /// Restores the direction.
    pub fn heal(&mut self) {
        self.cut = false;
    }

    /// Returns the counters since creation.
    pub fn counters(&self) -> &LaneCounters {
        &self.counters
    }

    /// Returns the number of frames in flight.
    pub fn held_frames(&self) -> usize {
        self.ring.len() + self.heap.len()
    }

    /// Accepts a frame sent at `now` and decides its fate.
    pub fn push(&mut self, now: Time, mut frame: Vec<u8>) {
        let fate = self.draw();
        let bytes = frame.len() as u64;
        self.counters.offered_frames += 1;
        self.counters.offered_bytes += bytes;
        if self.cut {
            self.counters.dropped_by_cut += 1;
            return;
        }
        let Some(sent) = self.send(now, bytes) else {
            self.counters.dropped_by_queue += 1;
            return;
        };
        if fate.lost {
            self.counters.dropped_by_loss += 1;
            return;
        }
        if fate.corrupted {
            self.counters.corrupted += 1;
            flip_bit(&mut frame, fate.bit);
        }
        let arrive = sent + self.profile.delay + std::time::Duration::from_nanos(fate.jitter_ns);
        if fate.duplicated {
            self.counters.duplicated += 1;
            self.hold_in_order(arrive, frame.clone());
        }
        if fate.reordered {
            self.counters.reordered += 1;
            self.hold_back(arrive + self.profile.reorder_delay, frame);
        } else {
            self.hold_in_order(arrive, frame);
        }
    }

    /// Returns the next frame due at `now`.
    pub fn poll(&mut self, now: Time) -> Option<Vec<u8>> {
        if self.deadline().is_none_or(|due| due > now) {
            return None;
        }
        let ring_key = self.ring.front().map(|held| (held.leave, held.sequence));
        let heap_key = self.heap.peek().map(|Reverse(held)| (held.leave, held.sequence));
        let from_ring = match (ring_key, heap_key) {
            (Some(ring), Some(heap)) => ring < heap,
            (ring, _) => ring.is_some(),
        };
        let held = if from_ring { self.ring.pop_front() } else { self.heap.pop().map(|Reverse(held)| held) }?;
        let bytes = held.frame.len() as u64;
        self.held_bytes -= bytes;
        self.counters.delivered_frames += 1;
        self.counters.delivered_bytes += bytes;
        Some(held.frame)
    }

    /// Returns the departure of the next frame, `None` if none is in flight.
    pub fn deadline(&self) -> Option<Time> {
        let ring = self.ring.front().map(|held| held.leave);
        let heap = self.heap.peek().map(|Reverse(held)| held.leave);
        match (ring, heap) {
            (Some(ring), Some(heap)) => Some(ring.min(heap)),
            (ring, heap) => ring.or(heap),
        }
    }

    /// Draws the same number of random values for every frame, so that one probability does not change the pattern of
    /// another.
    fn draw(&mut self) -> FrameFate {
        let jitter_ns = u64::try_from(self.profile.jitter.as_nanos()).unwrap_or(u64::MAX);
        FrameFate {
            lost: self.random.chance(self.profile.loss),
            duplicated: self.random.chance(self.profile.duplicate),
            reordered: self.random.chance(self.profile.reorder),
            corrupted: self.random.chance(self.profile.corrupt),
            jitter_ns: self.random.below(jitter_ns.saturating_add(1)),
            bit: self.random.next_u64(),
        }
    }

    /// Returns when the rate limiter has sent a frame of this size; `None` if the queue is full.
    fn send(&mut self, now: Time, bytes: u64) -> Option<Time> {
        if self.held_bytes + bytes > HELD_BYTES_MAX {
            return None;
        }
        let Some(rate_bits) = self.profile.rate_bits else {
            return Some(now);
        };
        let waiting = self.busy_until.since(now);
        let waiting_bytes = waiting.as_nanos() * u128::from(rate_bits) / 8 / 1_000_000_000;
        let room = u128::from(self.profile.queue_bytes_for(rate_bits));
        // An idle link accepts any frame: a queue smaller than one frame must not block everything.
        if waiting_bytes > 0 && waiting_bytes + u128::from(bytes) > room {
            return None;
        }
        let sending_ns = (u128::from(bytes) * 8 * 1_000_000_000).div_ceil(u128::from(rate_bits));
        let sending = std::time::Duration::from_nanos(u64::try_from(sending_ns).unwrap_or(u64::MAX));
        self.busy_until = self.busy_until.max(now) + sending;
        Some(self.busy_until)
    }

    fn hold_in_order(&mut self, arrive: Time, frame: Vec<u8>) {
        self.last_leave = self.last_leave.max(arrive);
        let held = self.held(self.last_leave, frame);
        self.ring.push_back(held);
    }

    fn hold_back(&mut self, arrive: Time, frame: Vec<u8>) {
        let held = self.held(arrive, frame);
        self.heap.push(Reverse(held));
    }

    fn held(&mut self, leave: Time, frame: Vec<u8>) -> QueuedFrame {
        self.sequence += 1;
        self.held_bytes += frame.len() as u64;
        QueuedFrame { leave, sequence: self.sequence, frame }
    }
}

/// Flips one bit after the Ethernet header, chosen by `bit`; a frame without a payload is not changed.
fn flip_bit(frame: &mut [u8], bit: u64) {
    let payload_bits = frame.len().saturating_sub(ETHERNET_HEADER_BYTES) as u64 * 8;
    if payload_bits == 0 {
        return;
    }
    let chosen = bit % payload_bits;
    if let Some(byte) = frame.get_mut(ETHERNET_HEADER_BYTES + (chosen / 8) as usize) {
        *byte ^= 1 << (chosen % 8);
    }
}

#[cfg(test)]
mod tests;
