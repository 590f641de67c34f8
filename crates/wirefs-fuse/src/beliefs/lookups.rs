//! Lookups whose answers may be on their way to who asked, where they would renew a name that is being taken back.
//!
//! | a name is taken back while its lookup | then |
//! |---|---|
//! | is under way | it is answered for no time |
//! | was answered within a second: a directory that the kernel held | it expires now, and again when that second is over |
//! | the same: anything else that there is | it is dropped |
//! | else | it expires |
//!
//! A directory that the kernel did not hold is looked up with the one above locked, which who takes a name back waits for. One whose
//! name was taken back within [`CALM_MS`] is told for no time, so that it is rare that something has to be waited for.

use super::ON_ITS_WAY_MS;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use wirefs_client::call::{Answer, Entry, TreeNodeId};
use wirefs_op::Kind;

/// Names are told apart by so many values of their hash; those that share one count as the same.
const SLOTS: usize = 4096;
/// So long after a directory's name was taken back a renewed one is told for no time.
pub(super) const CALM_MS: u64 = 5000;

/// One lookup that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lookup {
    slot: usize,
    /// How often something of its slot had been taken back when it began.
    taken: u64,
}

/// One lookup whose answer is being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answering {
    slot: usize,
    renews: Renews,
}

/// What an answer makes the kernel believe though it holds no lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Renews {
    Nothing,
    Directory,
    Other,
}

impl Renews {
    fn by(answer: &Answer) -> Renews {
        match answer {
            Answer::Entry(Entry { entry_ttl, .. }) if entry_ttl.is_zero() => Renews::Nothing,
            Answer::Entry(Entry { stat, is_held, .. }) if stat.kind == Kind::Directory => match is_held {
                true => Renews::Directory,
                false => Renews::Nothing,
            },
            Answer::Entry(_) => Renews::Other,
            // What is not there is looked up with the directory locked; a look that failed drops the name.
            _ => Renews::Nothing,
        }
    }
}

/// How a name is to be taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TakenBack {
    /// With what is below; else it expires.
    pub(crate) drops: bool,
    /// Once more after this time.
    pub(crate) again: Option<Duration>,
}

/// Answers of one kind.
#[derive(Debug, Default)]
struct OnTheirWay {
    being_written: u32,
    /// When the last one is surely with the one who asked, in ms since the start.
    over_ms: u64,
}

impl OnTheirWay {
    fn begin(&mut self) {
        self.being_written += 1;
    }

    fn written(&mut self, now_ms: u64) {
        self.being_written = self.being_written.saturating_sub(1);
        self.over_ms = self.over_ms.max(now_ms + ON_ITS_WAY_MS);
    }

    /// How long they may still take, if there are any.
    fn left_ms(&self, now_ms: u64) -> Option<u64> {
        let left = self.over_ms.saturating_sub(now_ms);
        let left = if self.being_written > 0 { ON_ITS_WAY_MS } else { left };
        (left > 0).then_some(left)
    }
}

#[derive(Debug, Default)]
struct Slot {
    taken: u64,
    taken_ms: Option<u64>,
    directories: OnTheirWay,
    others: OnTheirWay,
}

impl Slot {
    fn of(&mut self, renews: Renews) -> Option<&mut OnTheirWay> {
        match renews {
            Renews::Nothing => None,
            Renews::Directory => Some(&mut self.directories),
            Renews::Other => Some(&mut self.others),
        }
    }

    fn is_calm(&self, now_ms: u64) -> bool {
        self.taken_ms.is_none_or(|taken| now_ms >= taken + CALM_MS)
    }
}

/// Those of one mount.
#[derive(Debug)]
pub(super) struct Lookups(Vec<Mutex<Slot>>);

impl Default for Lookups {
    fn default() -> Lookups {
        Lookups(std::iter::repeat_with(Mutex::default).take(SLOTS).collect())
    }
}

impl Lookups {
    pub(super) fn begin(&self, directory: TreeNodeId, name: &[u8]) -> Lookup {
        let slot = slot(directory, name);
        Lookup { slot, taken: self.slot(slot).map_or(0, |slot| slot.taken) }
    }

    /// The answer is about to be written: it may tell the name for no time from here on.
    pub(super) fn answering(&self, lookup: Lookup, answer: &mut Answer, now_ms: u64) -> Answering {
        let Lookup { slot: index, taken } = lookup;
        let Some(mut slot) = self.slot(index) else {
            return Answering { slot: index, renews: Renews::Nothing };
        };
        let is_taken_back = slot.taken != taken;
        if is_taken_back || Renews::by(answer) == Renews::Directory && !slot.is_calm(now_ms) {
            match answer {
                Answer::Entry(entry) => entry.entry_ttl = Duration::ZERO,
                Answer::NoEntry(time) => *time = Duration::ZERO,
                _ => {}
            }
        }
        let renews = Renews::by(answer);
        if let Some(on_their_way) = slot.of(renews) {
            on_their_way.begin();
        }
        Answering { slot: index, renews }
    }

    /// It was written.
    pub(super) fn answered(&self, answering: Answering, now_ms: u64) {
        if let Some(mut slot) = self.slot(answering.slot)
            && let Some(on_their_way) = slot.of(answering.renews)
        {
            on_their_way.written(now_ms);
        }
    }

    /// A name is about to be taken back.
    pub(super) fn take_back(
        &self,
        directory: TreeNodeId,
        name: &[u8],
        is_directory: bool,
        now_ms: u64,
    ) -> TakenBack {
        let Some(mut slot) = self.slot(slot(directory, name)) else {
            return TakenBack { drops: !is_directory, again: None };
        };
        slot.taken += 1;
        if is_directory {
            slot.taken_ms = Some(now_ms);
        }
        let (of_directory, of_other) = (slot.directories.left_ms(now_ms), slot.others.left_ms(now_ms));
        match is_directory {
            true => TakenBack { drops: false, again: of_directory.map(Duration::from_millis) },
            false => TakenBack { drops: of_directory.or(of_other).is_some(), again: None },
        }
    }

    fn slot(&self, index: usize) -> Option<MutexGuard<'_, Slot>> {
        self.0.get(index).map(|slot| slot.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn slot(directory: TreeNodeId, name: &[u8]) -> usize {
    let mut hasher = DefaultHasher::new();
    (directory.0, name).hash(&mut hasher);
    usize::try_from(hasher.finish() % SLOTS as u64).unwrap_or(0)
}

#[cfg(test)]
mod tests;
