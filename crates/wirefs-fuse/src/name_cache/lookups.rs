//! Lookups whose answers may be in transit and would renew a name that is being invalidated.
//!
//! | state of the name's lookup | then |
//! |---|---|
//! | in progress | it is answered without validity |
//! | answered less than a second ago, for a directory that the kernel had cached | the name expires now, and again after that second |
//! | answered less than a second ago, for any other object | the name is dropped |
//! | else | the name expires |
//!
//! A lookup of a directory without a cached dentry locks the parent, and the invalidation waits for that lock. A
//! renewed directory name gets no validity within [`QUIET_MS`] of its invalidation, so that the second invalidation
//! is rarely needed.

use super::TRANSIT_MS;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use wirefs_client::call::{Answer, Entry, TreeNodeId};
use wirefs_op::Kind;

/// Slots, selected by a hash of the name; names with the same slot are treated as one.
const SLOTS: usize = 4096;
/// For this time after a directory's name was invalidated, a renewed name gets no validity.
pub(super) const QUIET_MS: u64 = 5000;

/// A lookup in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lookup {
    slot: usize,
    /// The number of invalidations in its slot when it began.
    taken: u64,
}

/// A lookup whose answer is being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answering {
    slot: usize,
    renews: Renews,
}

/// The dentry that an answer validates without holding a lock.
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
            // Absent names are looked up with the directory locked; a failed lookup drops the name.
            _ => Renews::Nothing,
        }
    }
}

/// The form of an invalidation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NameInvalidation {
    /// Whether the name is dropped with everything below it; else it expires.
    pub(crate) drops: bool,
    /// The time until a second invalidation.
    pub(crate) repeat_after: Option<Duration>,
}

/// Answers of one type that may be in transit.
#[derive(Debug, Default)]
struct InTransit {
    being_written: u32,
    /// When the last one has surely arrived, in ms since the start.
    arrived_ms: u64,
}

impl InTransit {
    fn begin(&mut self) {
        self.being_written += 1;
    }

    fn written(&mut self, now_ms: u64) {
        self.being_written = self.being_written.saturating_sub(1);
        self.arrived_ms = self.arrived_ms.max(now_ms + TRANSIT_MS);
    }

    /// The longest remaining transit, if there is any.
    fn left_ms(&self, now_ms: u64) -> Option<u64> {
        let left = self.arrived_ms.saturating_sub(now_ms);
        let left = if self.being_written > 0 { TRANSIT_MS } else { left };
        (left > 0).then_some(left)
    }
}

#[derive(Debug, Default)]
struct Slot {
    taken: u64,
    taken_ms: Option<u64>,
    directories: InTransit,
    others: InTransit,
}

impl Slot {
    fn of(&mut self, renews: Renews) -> Option<&mut InTransit> {
        match renews {
            Renews::Nothing => None,
            Renews::Directory => Some(&mut self.directories),
            Renews::Other => Some(&mut self.others),
        }
    }

    fn is_quiet(&self, now_ms: u64) -> bool {
        self.taken_ms.is_none_or(|taken| now_ms >= taken + QUIET_MS)
    }
}

/// The lookups of one mount.
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

    /// Prepares an answer, which may lose its validity.
    pub(super) fn answering(&self, lookup: Lookup, answer: &mut Answer, now_ms: u64) -> Answering {
        let Lookup { slot: index, taken } = lookup;
        let Some(mut slot) = self.slot(index) else {
            return Answering { slot: index, renews: Renews::Nothing };
        };
        let is_taken_back = slot.taken != taken;
        if is_taken_back || Renews::by(answer) == Renews::Directory && !slot.is_quiet(now_ms) {
            match answer {
                Answer::Entry(entry) => entry.entry_ttl = Duration::ZERO,
                Answer::NoEntry(time) => *time = Duration::ZERO,
                _ => {}
            }
        }
        let renews = Renews::by(answer);
        if let Some(in_transit) = slot.of(renews) {
            in_transit.begin();
        }
        Answering { slot: index, renews }
    }

    /// The answer was written.
    pub(super) fn answered(&self, answering: Answering, now_ms: u64) {
        if let Some(mut slot) = self.slot(answering.slot)
            && let Some(in_transit) = slot.of(answering.renews)
        {
            in_transit.written(now_ms);
        }
    }

    /// Begins the invalidation of a name.
    pub(super) fn begin_invalidation(
        &self,
        directory: TreeNodeId,
        name: &[u8],
        is_directory: bool,
        now_ms: u64,
    ) -> NameInvalidation {
        let Some(mut slot) = self.slot(slot(directory, name)) else {
            return NameInvalidation { drops: !is_directory, repeat_after: None };
        };
        slot.taken += 1;
        if is_directory {
            slot.taken_ms = Some(now_ms);
        }
        let (of_directory, of_other) = (slot.directories.left_ms(now_ms), slot.others.left_ms(now_ms));
        match is_directory {
            true => NameInvalidation { drops: false, repeat_after: of_directory.map(Duration::from_millis) },
            false => NameInvalidation { drops: of_directory.or(of_other).is_some(), repeat_after: None },
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
