//! Inode numbers and generations of one file system, in open-addressing tables with linear probing.
//!
//! Hashes are spread over several tables, so that the growth of one table is a short pause.

use wirefs_op::mix;

/// An empty slot. A flag in [`Table`] represents the one object with this value.
const EMPTY: Slot = Slot { ino: [0; 2], generation: 0 };
/// The number of tables.
const PARTS: usize = 64;
/// The minimal growth of a table, in slots.
const SLOTS_MIN: usize = 4;
/// The denominator of the maximal load.
const LOAD_SLOTS: usize = 5;
/// The numerator of the maximal load: 4/5 of the slots.
const LOAD_TAKEN: usize = 4;

/// One object. The inode number is split in two halves, so that a slot takes 12 bytes instead of 16.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot {
    ino: [u32; 2],
    generation: u32,
}

impl Slot {
    fn new(ino: u64, generation: u32) -> Slot {
        Slot { ino: [(ino >> 32) as u32, ino as u32], generation }
    }

    fn hash(self) -> u64 {
        let ino = u64::from(self.ino[0]) << 32 | u64::from(self.ino[1]);
        mix(ino ^ mix(u64::from(self.generation)))
    }
}

/// A set of `(inode, generation)`.
#[derive(Clone, Debug)]
pub(super) struct Table {
    parts: Box<[Part; PARTS]>,
    /// True if the set contains the object whose value equals an empty slot.
    has_zero: bool,
}

impl Default for Table {
    fn default() -> Table {
        Table { parts: Box::new(std::array::from_fn(|_| Part::default())), has_zero: false }
    }
}

impl Table {
    pub(super) fn contains(&self, ino: u64, generation: u32) -> bool {
        let slot = Slot::new(ino, generation);
        if slot == EMPTY {
            return self.has_zero;
        }
        let hash = slot.hash();
        self.parts[part_of(hash)].find(slot, hash).is_ok()
    }

    /// Returns true if the object is new.
    pub(super) fn insert(&mut self, ino: u64, generation: u32) -> bool {
        let slot = Slot::new(ino, generation);
        if slot == EMPTY {
            return !std::mem::replace(&mut self.has_zero, true);
        }
        let hash = slot.hash();
        self.parts[part_of(hash)].insert(slot, hash)
    }

    /// Returns true if the object was present.
    pub(super) fn remove(&mut self, ino: u64, generation: u32) -> bool {
        let slot = Slot::new(ino, generation);
        if slot == EMPTY {
            return std::mem::replace(&mut self.has_zero, false);
        }
        let hash = slot.hash();
        self.parts[part_of(hash)].remove(slot, hash)
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.has_zero && self.parts.iter().all(|part| part.taken == 0)
    }

    pub(super) fn bytes(&self) -> usize {
        let slots: usize = self.parts.iter().map(|part| part.slots.capacity()).sum();
        size_of::<[Part; PARTS]>() + slots * size_of::<Slot>()
    }
}

/// Uses the low bits of the hash; the high bits select the slot.
fn part_of(hash: u64) -> usize {
    hash as usize % PARTS
}

/// One table.
///
/// INVARIANT: no slot between an object's home slot and its slot is empty, and at least one slot of the table
/// is.
#[derive(Clone, Debug, Default)]
struct Part {
    slots: Vec<Slot>,
    taken: usize,
}

impl Part {
    fn insert(&mut self, slot: Slot, hash: u64) -> bool {
        let Err(at) = self.find(slot, hash) else { return false };
        self.taken += 1;
        if self.taken * LOAD_SLOTS <= self.slots.len() * LOAD_TAKEN {
            self.put(at, slot);
        } else {
            self.resize(self.slots.len() + (self.slots.len() / 4).max(SLOTS_MIN));
            if let Err(at) = self.find(slot, hash) {
                self.put(at, slot);
            }
        }
        true
    }

    fn remove(&mut self, slot: Slot, hash: u64) -> bool {
        let Ok(at) = self.find(slot, hash) else { return false };
        self.close_gap(at);
        self.taken -= 1;
        if self.taken * 4 < self.slots.len() {
            self.resize(self.slots.len() / 2);
        }
        true
    }

    /// Returns the slot where the search for a hash starts. Preserves the order of hashes, so that a larger
    /// table is filled sequentially.
    fn home(&self, hash: u64) -> usize {
        ((u128::from(hash) * self.slots.len() as u128) >> 64) as usize
    }

    fn next(&self, at: usize) -> usize {
        if at + 1 == self.slots.len() { 0 } else { at + 1 }
    }

    /// Returns the index of the slot, or the index where it would be inserted (out of range in a table
    /// without slots).
    fn find(&self, slot: Slot, hash: u64) -> Result<usize, usize> {
        let mut at = self.home(hash);
        loop {
            match self.slots.get(at) {
                Some(found) if *found == slot => return Ok(at),
                Some(found) if *found != EMPTY => at = self.next(at),
                Some(_) | None => return Err(at),
            }
        }
    }

    fn put(&mut self, at: usize, slot: Slot) {
        if let Some(free) = self.slots.get_mut(at) {
            *free = slot;
        }
    }

    /// Clears a slot, and moves later objects whose probe sequence this would break.
    fn close_gap(&mut self, gap: usize) {
        let mut gap = gap;
        let mut at = gap;
        loop {
            self.put(gap, EMPTY);
            let moved = loop {
                at = self.next(at);
                match self.slots.get(at).copied() {
                    Some(slot) if slot == EMPTY => return,
                    Some(slot) if is_between(gap, self.home(slot.hash()), at) => {}
                    Some(slot) => break slot,
                    None => return,
                }
            };
            self.put(gap, moved);
            gap = at;
        }
    }

    fn resize(&mut self, slots: usize) {
        let old = std::mem::replace(&mut self.slots, vec![EMPTY; slots]);
        for slot in old.into_iter().filter(|slot| *slot != EMPTY) {
            if let Err(at) = self.find(slot, slot.hash()) {
                self.put(at, slot);
            }
        }
    }
}

/// Returns true if `home` is after `gap` and not after `at`, in cyclic order.
fn is_between(gap: usize, home: usize, at: usize) -> bool {
    if gap <= at { gap < home && home <= at } else { gap < home || home <= at }
}
