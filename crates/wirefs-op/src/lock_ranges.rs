//! The byte ranges that one owner has locked, for tables of locks.

use crate::stat::{LockKind, LockRange};

/// Locked ranges, ordered and not overlapping. None has the kind `Unlock`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LockRanges(Vec<LockRange>);

impl LockRanges {
    /// Returns the number of ranges.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if nothing is locked.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns all ranges in order.
    pub fn to_vec(&self) -> Vec<LockRange> {
        self.0.clone()
    }

    /// Sets the lock of the bytes of `range`, replacing or removing earlier ones.
    pub fn set(&mut self, range: LockRange) {
        let mut ranges: Vec<_> = self.0.iter().flat_map(|held| without(*held, range)).collect();
        if range.kind != LockKind::Unlock {
            ranges.push(range);
        }
        ranges.sort_by_key(|range| range.start);
        self.0.clear();
        for range in ranges {
            match self.0.last_mut() {
                Some(last) if continues(last, &range) => last.end = range.end,
                Some(_) | None => self.0.push(range),
            }
        }
    }

    /// Returns a range that conflicts with `wanted`.
    pub fn conflict(&self, wanted: LockRange) -> Option<LockRange> {
        let is_shared = |held: &LockRange| held.kind == LockKind::Read && wanted.kind == LockKind::Read;
        self.0.iter().find(|held| overlap(held, &wanted) && !is_shared(held)).copied()
    }
}

fn overlap(one: &LockRange, other: &LockRange) -> bool {
    one.start <= other.end && other.start <= one.end
}

/// Returns true if `next` directly follows `last` and is otherwise the same lock.
fn continues(last: &LockRange, next: &LockRange) -> bool {
    last.kind == next.kind && last.pid == next.pid && last.end.checked_add(1) == Some(next.start)
}

/// Returns the parts of `held` outside `range`.
fn without(held: LockRange, range: LockRange) -> impl Iterator<Item = LockRange> {
    let before = (held.start < range.start).then(|| LockRange { end: held.end.min(range.start - 1), ..held });
    let after = (held.end > range.end).then(|| LockRange { start: held.start.max(range.end + 1), ..held });
    before.into_iter().chain(after)
}

/// Returns the changes that restore the locks `before` within the bytes of `range`. Locks come first, so that
/// the owner never loses one that it had.
pub fn restoring(range: LockRange, before: &[LockRange]) -> Vec<LockRange> {
    let mut gaps = LockRanges(vec![LockRange { kind: LockKind::Write, ..range }]);
    let mut back = Vec::new();
    for held in before.iter().filter(|held| overlap(held, &range)) {
        let part = LockRange { start: held.start.max(range.start), end: held.end.min(range.end), ..*held };
        back.push(part);
        gaps.set(LockRange { kind: LockKind::Unlock, ..part });
    }
    let unlock = |gap: LockRange| LockRange { kind: LockKind::Unlock, ..gap };
    back.extend(gaps.0.into_iter().map(unlock));
    back
}

#[cfg(test)]
mod tests;
