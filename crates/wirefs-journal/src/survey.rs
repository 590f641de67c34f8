//! What an earlier mount left, segment by segment.

use crate::entry::{Entry, NOT_ALONE, Record};
use crate::header::{Header, HeaderFault};
use crate::segment::{Rest, Scan};
use crate::told::Told;
use std::collections::{BTreeMap, BTreeSet};
use wirefs_op::FileId;

/// Where a journal is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The segment.
    pub segment: u64,
    /// The first damaged byte in it.
    pub at: u64,
}

/// What one segment gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Changes in order, with nothing missing before them.
    pub records: Vec<Record>,
    /// Changes behind a damaged place: they may not be carried out.
    pub behind: Vec<Record>,
}

/// What a journal holds, as far as it was looked through.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// Whose it is, by its first segment.
    pub header: Option<Header>,
    /// Where it is damaged first, in its midst: a torn end is none.
    pub damage: Option<Damage>,
    /// Changes that stand behind a damaged place.
    pub behind: u64,
    /// The server has answered all changes below; 1 or 0: none.
    pub answered: u64,
    /// The server's disk has all changes below.
    pub forget: u64,
    /// What the client was told of the changes that are needed.
    pub told: BTreeMap<u64, Told>,
    /// From this change on nobody else has come between.
    pub alone_from: Option<u64>,
    /// The latest time of change that the server has told, in nanoseconds since 1970.
    pub seen: u64,
    /// The files whose contents the server's disk has, as the changes below these numbers left them.
    pub synced: BTreeMap<FileId, u64>,
    /// Numbers and bytes of the changes before any damage.
    records: Vec<(u64, u64)>,
    next: Option<u64>,
    last: u64,
    /// A torn end, which is damage if more was written behind it.
    torn: Option<Damage>,
    /// The damage is a hole in the last segment that has anything.
    has_hole: bool,
}

impl Survey {
    /// Takes the next segment, in the order of their numbers.
    ///
    /// # Errors
    /// Another version wrote it: the whole journal is to be left as it is.
    pub fn take(&mut self, number: u64, scan: Result<Scan, HeaderFault>) -> Result<Taken, HeaderFault> {
        let Scan { header, entries, rest } = match scan {
            Ok(scan) => scan,
            Err(fault @ HeaderFault::Version(_)) => return Err(fault),
            // It was made, and its maker died, or the disk was not given its beginning.
            Err(HeaderFault::Blank) => {
                self.torn.get_or_insert(Damage { segment: number, at: 0 });
                self.next = self.next.map(|_| number + 1);
                return Ok(Taken::default());
            }
            Err(HeaderFault::Foreign | HeaderFault::Damaged) => {
                self.is_damaged(number, 0);
                return Ok(Taken::default());
            }
        };
        let first = self.header.get_or_insert_with(|| header.clone());
        let is_next = self.next.is_none_or(|next| next == number) && header.segment == number;
        if !is_next || header.session != first.session {
            self.is_damaged(number, 0);
        }
        let has_any = !entries.is_empty() || rest != Rest::Blank;
        self.has_hole &= !has_any;
        if let Some(torn) = self.torn.filter(|_| has_any) {
            self.is_damaged(torn.segment, torn.at);
        }
        self.next = Some(number + 1);
        let mut taken = Taken::default();
        for entry in entries {
            self.entry(number, entry, &mut taken);
        }
        match rest {
            Rest::Blank => {}
            Rest::Torn { at } => {
                self.torn.get_or_insert(Damage { segment: number, at });
            }
            Rest::Corrupt { at, behind, is_hole } => {
                self.has_hole = is_hole && self.damage.is_none();
                self.is_damaged(number, at);
                for entry in behind {
                    self.entry(number, entry, &mut taken);
                }
            }
        }
        Ok(taken)
    }

    /// All segments were taken, in this run of the kernel. In another one a machine may have lost power while its disk was given the last of
    /// what was written, which it takes in any order: a hole there is the end. Nobody was promised what is behind it.
    pub fn ended(&mut self, run: u64) {
        let is_anothers = self.header.as_ref().is_some_and(|header| header.run != run);
        if is_anothers && std::mem::take(&mut self.has_hole) {
            (self.damage, self.behind) = (None, 0);
        }
    }

    fn is_damaged(&mut self, segment: u64, at: u64) {
        self.damage.get_or_insert(Damage { segment, at });
    }

    fn entry(&mut self, segment: u64, entry: Entry, taken: &mut Taken) {
        match entry {
            Entry::Record(record) => {
                if record.number <= self.last {
                    self.is_damaged(segment, 0);
                }
                self.last = self.last.max(record.number);
                if self.damage.is_some() {
                    self.behind += 1;
                    taken.behind.push(record);
                } else {
                    self.records.push((record.number, record.body.len() as u64));
                    taken.records.push(record);
                }
            }
            Entry::Answered(below) => self.answered = self.answered.max(below),
            Entry::Forget(below) => {
                self.forget = self.forget.max(below);
                self.told = self.told.split_off(&self.forget);
                self.synced.retain(|_, synced| *synced > self.forget);
            }
            Entry::Alone(from) => self.alone_from = Some(from).filter(|from| *from != NOT_ALONE),
            Entry::Seen(nanos) => self.seen = self.seen.max(nanos),
            Entry::Synced(below, file) => {
                let known = self.synced.entry(file).or_insert(below);
                *known = below.max(*known);
            }
            Entry::Told(number, told) => {
                self.told.insert(number, told);
            }
        }
    }

    /// Changes from a number on that are needed, and their bytes.
    pub fn needed_from(&self, number: u64) -> (u64, u64) {
        let from = number.max(self.forget);
        let needed = self.records.iter().filter(|(number, _)| *number >= from);
        needed.fold((0, 0), |(count, sum), (_, bytes)| (count + 1, sum + bytes))
    }

    /// What the client was told of a change.
    pub fn told(&self, number: u64) -> Told {
        let known = self.told.get(&number).copied().unwrap_or_default();
        Told { is_answered: known.is_answered || number < self.answered, ..known }
    }

    /// The changes that the server refused, as their programs know.
    pub fn refused(&self) -> BTreeSet<u64> {
        self.told.iter().filter(|(_, told)| told.is_refused).map(|(number, _)| *number).collect()
    }

    /// Whether nobody else has come between the changes that are needed, as far as their client knew.
    pub fn is_of_one_alone(&self) -> bool {
        let first = self.records.iter().map(|(number, _)| *number).find(|number| *number >= self.forget);
        first.is_none_or(|first| self.alone_from.is_some_and(|from| first >= from))
    }

    /// The number behind the last change.
    pub fn end(&self) -> u64 {
        self.last + 1
    }

    /// Whether the server has answered anything, so that it must know the session's numbers. It has where the first segment is gone, though
    /// a power cut may have taken what was noted of that.
    pub fn has_answers(&self) -> bool {
        let is_first_gone = self.header.as_ref().is_some_and(|header| header.segment > 1);
        self.answered > 1 || self.forget > 1 || is_first_gone
    }
}

#[cfg(test)]
mod tests;
