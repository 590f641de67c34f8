//! Reads the journal of a dead mount, segment by segment.

use crate::entry::{Entry, NOT_EXCLUSIVE, Record};
use crate::header::{Header, HeaderFault};
use crate::outcome::ChangeOutcome;
use crate::segment::{Scan, Tail};
use std::collections::{BTreeMap, BTreeSet};

/// The first damage of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The number of the segment.
    pub segment: u64,
    /// The offset of the first damaged byte in it.
    pub at: u64,
}

/// The changes of one segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SegmentRecords {
    /// Changes in order, with nothing missing before them.
    pub records: Vec<Record>,
    /// Changes behind damage, which must not be applied.
    pub after_damage: Vec<Record>,
}

/// The contents of a journal, as far as it was read.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// The owner of the journal, by its first segment.
    pub header: Option<Header>,
    /// The first damage; a torn end is none.
    pub damage: Option<Damage>,
    /// The number of changes behind damage.
    pub after_damage: u64,
    /// The server has answered all changes below; 0 or 1: none.
    pub answered: u64,
    /// The server's disk has all changes below.
    pub durable: u64,
    /// The outcomes of the needed changes.
    pub outcomes: BTreeMap<u64, ChangeOutcome>,
    /// No other client came between the changes from this one on.
    pub exclusive_from: Option<u64>,
    /// The latest change time that the server has reported, in nanoseconds since 1970.
    pub latest_time: u64,
    /// Numbers and bytes of the changes before any damage.
    records: Vec<(u64, u64)>,
    progress: Progress,
}

/// The state of reading a journal.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    /// The number of the next segment, after the first one.
    next: Option<u64>,
    /// The number of the last change.
    last: u64,
    /// A torn end. It becomes damage if an entry follows it.
    torn: Option<Damage>,
    /// The damage is a hole in the last used segment.
    has_hole: bool,
}

impl Survey {
    /// Takes the next segment, in the order of their numbers.
    ///
    /// # Errors
    /// Fails if another version wrote it: the whole journal must then stay untouched.
    pub fn take(
        &mut self,
        number: u64,
        scan: Result<Scan, HeaderFault>,
    ) -> Result<SegmentRecords, HeaderFault> {
        let Scan { header, entries, rest } = match scan {
            Ok(scan) => scan,
            Err(fault @ HeaderFault::Version(_)) => return Err(fault),
            // Its process died after creating the file, or the disk did not get its header.
            Err(HeaderFault::Blank) => {
                self.progress.torn.get_or_insert(Damage { segment: number, at: 0 });
                self.progress.next = self.progress.next.map(|_| number + 1);
                return Ok(SegmentRecords::default());
            }
            Err(HeaderFault::Foreign | HeaderFault::Damaged) => {
                self.is_damaged(number, 0);
                return Ok(SegmentRecords::default());
            }
        };
        let first = self.header.get_or_insert_with(|| header.clone());
        let is_next = self.progress.next.is_none_or(|next| next == number) && header.segment == number;
        if !is_next || header.session != first.session {
            self.is_damaged(number, 0);
        }
        let has_any = !entries.is_empty() || rest != Tail::Blank;
        self.progress.has_hole &= !has_any;
        if let Some(torn) = self.progress.torn.filter(|_| has_any) {
            self.is_damaged(torn.segment, torn.at);
        }
        self.progress.next = Some(number + 1);
        let mut taken = SegmentRecords::default();
        for entry in entries {
            self.entry(number, entry, &mut taken);
        }
        match rest {
            Tail::Blank => {}
            Tail::Torn { at } => {
                self.progress.torn.get_or_insert(Damage { segment: number, at });
            }
            Tail::Corrupt { at, after_damage, is_hole } => {
                self.progress.has_hole = is_hole && self.damage.is_none();
                self.is_damaged(number, at);
                for entry in after_damage {
                    self.entry(number, entry, &mut taken);
                }
            }
        }
        Ok(taken)
    }

    /// Ends the journal, in this kernel run. In another run the machine may have lost power while its disk wrote the last sectors, in any order:
    /// then a hole is the regular end. No program was promised an entry behind it.
    pub fn ended(&mut self, run: u64) {
        let is_anothers = self.header.as_ref().is_some_and(|header| header.run != run);
        if is_anothers && std::mem::take(&mut self.progress.has_hole) {
            (self.damage, self.after_damage) = (None, 0);
        }
    }

    fn is_damaged(&mut self, segment: u64, at: u64) {
        self.damage.get_or_insert(Damage { segment, at });
    }

    fn entry(&mut self, segment: u64, entry: Entry, taken: &mut SegmentRecords) {
        match entry {
            Entry::Change(record) => {
                if record.number <= self.progress.last {
                    self.is_damaged(segment, 0);
                }
                self.progress.last = self.progress.last.max(record.number);
                if self.damage.is_some() {
                    self.after_damage += 1;
                    taken.after_damage.push(record);
                } else {
                    self.records.push((record.number, record.body.len() as u64));
                    taken.records.push(record);
                }
            }
            Entry::Answered(below) => self.answered = self.answered.max(below),
            Entry::Durable(below) => {
                self.durable = self.durable.max(below);
                self.outcomes = self.outcomes.split_off(&self.durable);
            }
            Entry::Exclusive(from) => self.exclusive_from = Some(from).filter(|from| *from != NOT_EXCLUSIVE),
            Entry::LatestTime(nanos) => self.latest_time = self.latest_time.max(nanos),
            Entry::Outcome(number, outcome) => {
                self.outcomes.insert(number, outcome);
            }
        }
    }

    /// Returns the number of needed changes from a number on, and their bytes.
    pub fn needed_from(&self, number: u64) -> (u64, u64) {
        let from = number.max(self.durable);
        let needed = self.records.iter().filter(|(number, _)| *number >= from);
        needed.fold((0, 0), |(count, sum), (_, bytes)| (count + 1, sum + bytes))
    }

    /// Returns the outcome of a change.
    pub fn outcome(&self, number: u64) -> ChangeOutcome {
        let known = self.outcomes.get(&number).copied().unwrap_or_default();
        ChangeOutcome { is_answered: known.is_answered || number < self.answered, ..known }
    }

    /// Returns the changes whose rejection is known to their programs.
    pub fn rejected(&self) -> BTreeSet<u64> {
        self.outcomes.iter().filter(|(_, outcome)| outcome.is_rejected).map(|(number, _)| *number).collect()
    }

    /// Returns whether no other client came between the needed changes, as far as the client knew.
    pub fn is_exclusive(&self) -> bool {
        let first = self.records.iter().map(|(number, _)| *number).find(|number| *number >= self.durable);
        first.is_none_or(|first| self.exclusive_from.is_some_and(|from| first >= from))
    }

    /// Returns the number after the last change.
    pub fn end(&self) -> u64 {
        self.progress.last + 1
    }

    /// Returns whether the server has answered anything and so must know the session's numbers. A missing first segment proves it even if a power
    /// loss removed the entry that says so.
    pub fn has_answers(&self) -> bool {
        let is_first_gone = self.header.as_ref().is_some_and(|header| header.segment > 1);
        self.answered > 1 || self.durable > 1 || is_first_gone
    }
}

#[cfg(test)]
mod tests;
