//! Send times and losses of the packets to one host, without a record per packet.
//!
//! Packets to one host are numbered in send order. Groups, sixteen per cycle, record when the packets between
//! two numbers were sent, and count them and their replies. A group is *closed* when none of its packets is
//! expected any more: those without a reply are lost. So send time and loss of each packet follow from its
//! number.
//!
//! A group is closed when a packet sent well after it was answered (the reordering window is allowed for), or
//! when the receive buffer was empty long enough after it. Neither rule takes a slow driver or a growing
//! queue for loss: in both cases no later packet was answered, and the buffer was not empty.
//!
//! # Source
//! The first rule is that of RACK (RFC 8985, 6.2), with groups instead of single packets.

use std::collections::VecDeque;
use std::time::Duration;

use wirefs_op::Time;

use crate::limits::SEND_GROUPS_MAX;
use crate::packet::PacketSequence;

/// Groups per cycle.
const GROUPS_PER_CYCLE: u32 = 16;
/// The shortest time between two groups.
const SPACING_MIN: Duration = Duration::from_micros(100);
/// The longest time between two groups.
const SPACING_MAX: Duration = Duration::from_secs(1);

/// Packets sent within a short time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SendGroup {
    /// When the first packet was sent.
    pub(crate) begun: Time,
    /// When the last packet was sent.
    pub(crate) ended: Time,
    /// The number of the first packet.
    first: u64,
    /// Packets with pieces of blocks that still exist.
    pub(crate) pieces: Tally,
    /// Padding probes.
    pub(crate) probes: Tally,
}

/// Counts of sent and answered packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) sent: u64,
    pub(crate) answered: u64,
}

impl Tally {
    /// Returns the number of unanswered packets.
    pub(crate) fn missing(self) -> u64 {
        self.sent.saturating_sub(self.answered)
    }
}

/// The open groups of one host.
#[derive(Debug)]
pub(crate) struct Timeline {
    next: u64,
    groups: VecDeque<SendGroup>,
    spacing: Duration,
    /// Packets with pieces that are expected back.
    in_flight: u64,
    /// The group of the last reply; the next reply is mostly of the same group.
    recent: usize,
}

impl Timeline {
    /// Creates an empty timeline.
    pub(crate) fn new() -> Timeline {
        Timeline { next: 0, groups: VecDeque::new(), spacing: SPACING_MIN, in_flight: 0, recent: 0 }
    }

    /// Adapts the group length to the cycle time.
    pub(crate) fn set_cycle(&mut self, cycle: Duration) {
        self.spacing = (cycle / GROUPS_PER_CYCLE).clamp(SPACING_MIN, SPACING_MAX);
    }

    /// Records a transmission and returns the number of the packet.
    pub(crate) fn send(&mut self, now: Time, is_probe: bool) -> PacketSequence {
        let spacing = self.spacing;
        if self.groups.back().is_none_or(|last| now - last.begun >= spacing) {
            self.begin_group(now);
        }
        if let Some(last) = self.groups.back_mut() {
            last.ended = now;
            if is_probe { &mut last.probes } else { &mut last.pieces }.sent += 1;
        }
        self.in_flight += u64::from(!is_probe);
        let sequence = PacketSequence(self.next);
        self.next += 1;
        sequence
    }

    fn begin_group(&mut self, now: Time) {
        if self.groups.len() >= SEND_GROUPS_MAX {
            self.merge();
        }
        let none = Tally::default();
        self.groups.push_back(SendGroup {
            begun: now,
            ended: now,
            first: self.next,
            pieces: none,
            probes: none,
        });
    }

    /// Merges the groups in pairs, because the cycle became longer.
    fn merge(&mut self) {
        let groups = std::mem::take(&mut self.groups);
        let mut merged: VecDeque<SendGroup> = VecDeque::with_capacity(SEND_GROUPS_MAX);
        for (number, group) in groups.into_iter().enumerate() {
            match merged.back_mut() {
                Some(last) if number % 2 == 1 => {
                    last.ended = group.ended;
                    for (sum, part) in [(&mut last.pieces, group.pieces), (&mut last.probes, group.probes)] {
                        sum.sent += part.sent;
                        sum.answered += part.answered;
                    }
                }
                _ => merged.push_back(group),
            }
        }
        self.groups = merged;
        self.spacing = (self.spacing * 2).min(SPACING_MAX);
    }

    /// Returns the number of the packet sent last; `None` before the first.
    pub(crate) fn newest(&self) -> Option<PacketSequence> {
        self.next.checked_sub(1).map(PacketSequence)
    }

    /// Returns the lowest number that is still expected.
    pub(crate) fn closed_below(&self) -> PacketSequence {
        PacketSequence(self.groups.front().map_or(self.next, |group| group.first))
    }

    /// Returns the number of packets with pieces that are expected back.
    pub(crate) fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Returns the approximate send time of a packet, the middle of its group; `None` if it is no longer
    /// expected.
    pub(crate) fn sent_about(&self, sequence: PacketSequence) -> Option<Time> {
        let group = self.groups.get(self.place(sequence)?)?;
        Some(group.begun + (group.ended - group.begun) / 2)
    }

    /// Records the first reply to a packet with a piece.
    pub(crate) fn answered(&mut self, sequence: PacketSequence) {
        let place = self.recent_place(sequence).or_else(|| self.place(sequence));
        if let Some((place, group)) = place.and_then(|place| Some((place, self.groups.get_mut(place)?))) {
            self.recent = place;
            group.pieces.answered += 1;
            self.in_flight = self.in_flight.saturating_sub(1);
        }
    }

    /// Records a reply to a padding probe. Returns `false` for a duplicate: all probes of that group were
    /// answered before.
    pub(crate) fn probe_answered(&mut self, sequence: PacketSequence) -> bool {
        let group = self.place(sequence).and_then(|place| self.groups.get_mut(place));
        let group = group.filter(|group| group.probes.answered < group.probes.sent);
        group.map(|group| group.probes.answered += 1).is_some()
    }

    /// Removes a packet whose block was dropped, so that it does not count as lost.
    pub(crate) fn forget(&mut self, sequence: PacketSequence) {
        if let Some(group) = self.place(sequence).and_then(|place| self.groups.get_mut(place)) {
            group.pieces.sent = group.pieces.sent.saturating_sub(1);
            self.in_flight = self.in_flight.saturating_sub(1);
        }
    }

    /// Closes the oldest group if all its packets were sent at `until` or before.
    pub(crate) fn close(&mut self, until: Time) -> Option<SendGroup> {
        if self.groups.front()?.ended > until {
            return None;
        }
        let group = self.groups.pop_front()?;
        self.in_flight = self.in_flight.saturating_sub(group.pieces.missing());
        Some(group)
    }

    /// Returns the group of the last reply if it contains the number.
    fn recent_place(&self, sequence: PacketSequence) -> Option<usize> {
        let first = self.groups.get(self.recent)?.first;
        let end = self.groups.get(self.recent + 1).map_or(self.next, |next| next.first);
        (first..end).contains(&sequence.0).then_some(self.recent)
    }

    /// Returns the group that contains the number.
    fn place(&self, sequence: PacketSequence) -> Option<usize> {
        if sequence.0 >= self.next {
            return None;
        }
        self.groups.partition_point(|group| group.first <= sequence.0).checked_sub(1)
    }
}

#[cfg(test)]
mod tests;
