//! Virtual networks: packets with delay, loss, duplication and reordering, and ordered streams.

use crate::Dice;
use std::collections::BTreeSet;
use std::time::Duration;
use wirefs_op::Time;

/// A minimum and a maximum, in microseconds.
pub type Span = (u64, u64);

/// Parts of a whole in [`PacketFaults`].
pub const PARTS: u64 = 1_000_000;

/// The faults of a packet network; rates in parts of [`PARTS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketFaults {
    /// The rate of lost copies.
    pub loss: u64,
    /// The rate of packets with a second copy.
    pub duplication: u64,
    /// The rate of copies with the delay `late_us`, which later packets overtake.
    pub reordering: u64,
    /// The delay of a copy, in microseconds.
    pub delay_us: Span,
    /// The delay of a reordered copy, in microseconds.
    pub late_us: Span,
}

/// A network of packets between addresses.
#[derive(Clone, Debug)]
pub struct PacketNet<A> {
    /// The present faults.
    pub faults: PacketFaults,
    cut: BTreeSet<(A, A)>,
}

impl<A: Copy + Ord> PacketNet<A> {
    /// Returns a network without cuts.
    pub fn new(faults: PacketFaults) -> PacketNet<A> {
        PacketNet { faults, cut: BTreeSet::new() }
    }

    /// Loses all packets in one direction.
    pub fn cut(&mut self, from: A, to: A) {
        self.cut.insert((from, to));
    }

    /// Loses all packets in both directions.
    pub fn partition(&mut self, one: A, other: A) {
        self.cut(one, other);
        self.cut(other, one);
    }

    /// Ends the cut of one direction.
    pub fn restore(&mut self, from: A, to: A) {
        self.cut.remove(&(from, to));
    }

    /// Ends all cuts.
    pub fn heal(&mut self) {
        self.cut.clear();
    }

    /// Returns whether packets in this direction are lost.
    pub fn is_cut(&self, from: A, to: A) -> bool {
        self.cut.contains(&(from, to))
    }

    /// Returns the delays of the copies of a packet that arrive; a lost packet has none.
    pub fn delays(&self, dice: &mut Dice, from: A, to: A) -> Vec<Duration> {
        if self.is_cut(from, to) {
            return Vec::new();
        }
        let PacketFaults { loss, duplication, reordering, delay_us, late_us } = self.faults;
        let copies = if dice.chance(duplication, PARTS) { 2 } else { 1 };
        let mut delays = Vec::with_capacity(copies);
        for _ in 0..copies {
            if dice.chance(loss, PARTS) {
                continue;
            }
            let span = if dice.chance(reordering, PARTS) { late_us } else { delay_us };
            delays.push(delay(dice, span));
        }
        delays
    }
}

/// Returns a random delay.
pub fn delay(dice: &mut Dice, (least_us, most_us): Span) -> Duration {
    Duration::from_micros(dice.between(least_us, most_us))
}

/// The order of a stream: a message never arrives before an earlier one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InOrder(Time);

impl InOrder {
    /// Returns the arrival of the next message that would arrive at `at` without earlier ones.
    pub fn arrives(&mut self, at: Time) -> Time {
        self.0 = at.max(self.0);
        self.0
    }

    /// Returns the arrival of the last message.
    pub fn last(&self) -> Time {
        self.0
    }
}

/// The order of a stream with two lanes: urgent messages may overtake others, never the reverse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TwoLanes {
    urgent: InOrder,
    other: InOrder,
}

impl TwoLanes {
    /// Returns the arrival of the next message that would arrive at `at` without earlier ones.
    pub fn arrives(&mut self, at: Time, is_urgent: bool) -> Time {
        if is_urgent { self.urgent.arrives(at) } else { self.other.arrives(at.max(self.urgent.last())) }
    }

    /// Returns the arrival of the last urgent message.
    pub fn last_urgent(&self) -> Time {
        self.urgent.last()
    }

    /// Returns the arrival of the last other message.
    pub fn last_other(&self) -> Time {
        self.other.last()
    }
}

#[cfg(test)]
mod tests;
