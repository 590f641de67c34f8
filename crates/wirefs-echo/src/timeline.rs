//! When packets went to a host, and how many of them came back, without a note for each.
//!
//! The packets to one host are numbered in the order of sending. Marks, sixteen to a lap, say when the packets between
//! two numbers were sent, and count them and what came back. A mark is *closed* when none of it is expected any more:
//! what was sent in it and did not come is lost. So time and loss of any packet follow from its number.
//!
//! A mark is closed when a packet that was sent well after it has come back (packets that overtake one another allowed
//! for), or when the receive buffer was seen empty long enough after it. Neither mistakes a slow driver, or a queue that
//! grows, for loss: then nothing that was sent later has come back either, and the buffer was not empty.
//!
//! # Source
//! The first rule is that of RACK (RFC 8985, section 6.2), with marks in the place of single packets.

use std::collections::VecDeque;
use std::time::Duration;

use wirefs_op::Time;

use crate::limits::MARKS_MAX;
use crate::packet::Sequence;

/// Marks in the time of one lap.
const MARKS_PER_LAP: u32 = 16;
/// The shortest time between two marks.
const SPACING_MIN: Duration = Duration::from_micros(100);
/// The longest time between two marks.
const SPACING_MAX: Duration = Duration::from_secs(1);

/// The packets that were sent within a short time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// When the first of them was sent.
    pub(crate) begun: Time,
    /// When the last of them was sent.
    pub(crate) ended: Time,
    /// The number of the first.
    first: u64,
    /// How many of them carry pieces of blocks and are still wanted.
    pub(crate) pieces: Tally,
    /// How many carry nothing.
    pub(crate) ballast: Tally,
}

/// Packets sent, and those of them that came back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) sent: u64,
    pub(crate) answered: u64,
}

impl Tally {
    /// Those that did not come back.
    pub(crate) fn missing(self) -> u64 {
        self.sent.saturating_sub(self.answered)
    }
}

/// The marks of what is still expected from a host.
#[derive(Debug)]
pub(crate) struct Timeline {
    next: u64,
    marks: VecDeque<Mark>,
    spacing: Duration,
    /// Packets with pieces that are expected back.
    out: u64,
    /// The mark of the packet that came back last: the next one is mostly of the same.
    recent: usize,
}

impl Timeline {
    /// Makes an empty time line.
    pub(crate) fn new() -> Timeline {
        Timeline { next: 0, marks: VecDeque::new(), spacing: SPACING_MIN, out: 0, recent: 0 }
    }

    /// Fits the marks to the length of a lap.
    pub(crate) fn set_lap(&mut self, lap: Duration) {
        self.spacing = (lap / MARKS_PER_LAP).clamp(SPACING_MIN, SPACING_MAX);
    }

    /// Gives the number of a packet that is sent now.
    pub(crate) fn send(&mut self, now: Time, is_ballast: bool) -> Sequence {
        let spacing = self.spacing;
        if self.marks.back().is_none_or(|last| now - last.begun >= spacing) {
            self.begin_mark(now);
        }
        if let Some(last) = self.marks.back_mut() {
            last.ended = now;
            if is_ballast { &mut last.ballast } else { &mut last.pieces }.sent += 1;
        }
        self.out += u64::from(!is_ballast);
        let sequence = Sequence(self.next);
        self.next += 1;
        sequence
    }

    fn begin_mark(&mut self, now: Time) {
        if self.marks.len() >= MARKS_MAX {
            self.merge();
        }
        let none = Tally::default();
        self.marks.push_back(Mark { begun: now, ended: now, first: self.next, pieces: none, ballast: none });
    }

    /// Makes one mark of each two, because the laps became longer than the marks were made for.
    fn merge(&mut self) {
        let marks = std::mem::take(&mut self.marks);
        let mut merged: VecDeque<Mark> = VecDeque::with_capacity(MARKS_MAX);
        for (number, mark) in marks.into_iter().enumerate() {
            match merged.back_mut() {
                Some(last) if number % 2 == 1 => {
                    last.ended = mark.ended;
                    for (sum, part) in [(&mut last.pieces, mark.pieces), (&mut last.ballast, mark.ballast)] {
                        sum.sent += part.sent;
                        sum.answered += part.answered;
                    }
                }
                _ => merged.push_back(mark),
            }
        }
        self.marks = merged;
        self.spacing = (self.spacing * 2).min(SPACING_MAX);
    }

    /// The number of the packet sent last; none before the first.
    pub(crate) fn newest(&self) -> Option<Sequence> {
        self.next.checked_sub(1).map(Sequence)
    }

    /// Packets with lower numbers are not expected any more.
    pub(crate) fn closed_below(&self) -> Sequence {
        Sequence(self.marks.front().map_or(self.next, |mark| mark.first))
    }

    /// Packets with pieces that are expected back.
    pub(crate) fn out(&self) -> u64 {
        self.out
    }

    /// About when a packet was sent: the middle of its mark. None when it is not expected any more.
    pub(crate) fn sent_about(&self, sequence: Sequence) -> Option<Time> {
        let mark = self.marks.get(self.place(sequence)?)?;
        Some(mark.begun + (mark.ended - mark.begun) / 2)
    }

    /// Notes that a packet with a piece came back, for the first time.
    pub(crate) fn answered(&mut self, sequence: Sequence) {
        let place = self.recent_place(sequence).or_else(|| self.place(sequence));
        if let Some((place, mark)) = place.and_then(|place| Some((place, self.marks.get_mut(place)?))) {
            self.recent = place;
            mark.pieces.answered += 1;
            self.out = self.out.saturating_sub(1);
        }
    }

    /// Notes that a packet without content came back. Whether it can be the first time: of those sent at about the same
    /// time, fewer came than were sent.
    pub(crate) fn ballast_answered(&mut self, sequence: Sequence) -> bool {
        let mark = self.place(sequence).and_then(|place| self.marks.get_mut(place));
        let mark = mark.filter(|mark| mark.ballast.answered < mark.ballast.sent);
        mark.map(|mark| mark.ballast.answered += 1).is_some()
    }

    /// Notes that a packet with a piece is not wanted any more, so that its absence is no loss.
    pub(crate) fn forgive(&mut self, sequence: Sequence) {
        if let Some(mark) = self.place(sequence).and_then(|place| self.marks.get_mut(place)) {
            mark.pieces.sent = mark.pieces.sent.saturating_sub(1);
            self.out = self.out.saturating_sub(1);
        }
    }

    /// Closes the oldest mark, if everything in it was sent at `until` or before.
    pub(crate) fn close(&mut self, until: Time) -> Option<Mark> {
        if self.marks.front()?.ended > until {
            return None;
        }
        let mark = self.marks.pop_front()?;
        self.out = self.out.saturating_sub(mark.pieces.missing());
        Some(mark)
    }

    /// The mark that a number lies in, if it is that of the last one.
    fn recent_place(&self, sequence: Sequence) -> Option<usize> {
        let first = self.marks.get(self.recent)?.first;
        let end = self.marks.get(self.recent + 1).map_or(self.next, |next| next.first);
        (first..end).contains(&sequence.0).then_some(self.recent)
    }

    /// The mark that a number lies in.
    fn place(&self, sequence: Sequence) -> Option<usize> {
        if sequence.0 >= self.next {
            return None;
        }
        self.marks.partition_point(|mark| mark.first <= sequence.0).checked_sub(1)
    }
}

#[cfg(test)]
mod tests;
