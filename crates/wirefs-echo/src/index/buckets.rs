//! A compact hash table of fixed-size entries: linear hashing with sorted buckets.
//!
//! A doubling table is half empty after each growth, and blocks while it grows. Here the number of buckets
//! follows the number of entries: when the average fill is exceeded, *one* bucket is split. A bucket is an
//! array of entries sorted by hash with few free places, so the overhead is one small header per 64 entries.
//!
//! # Source
//! W. Litwin, "Linear hashing: a new tool for file and table addressing" (VLDB 1980); sorted buckets instead
//! of chains are ours.

use std::cmp::Ordering;

use crate::block::EchoBlockId;

/// Average entries per bucket above which a bucket is split.
const FILL: usize = 64;
/// Average entries per bucket below which two buckets are merged.
const FILL_MIN: usize = 48;
/// Entries by which a full bucket grows.
const GROWTH: usize = 4;
/// Free places above which a bucket shrinks.
const SLACK_MAX: usize = 16;

/// All entries, each of `stride` bytes, which begin with the id.
#[derive(Debug)]
pub(super) struct Buckets {
    buckets: Vec<Vec<u8>>,
    stride: usize,
    len: usize,
}

impl Buckets {
    /// Creates an empty table of entries with `stride` bytes, at least the size of an id.
    pub(super) fn new(stride: usize) -> Buckets {
        Buckets { buckets: vec![Vec::new()], stride: stride.max(EchoBlockId::BYTES), len: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns the number of buckets.
    pub(super) fn count(&self) -> usize {
        self.buckets.len()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let contents: usize = self.buckets.iter().map(Vec::capacity).sum();
        contents + self.buckets.capacity() * size_of::<Vec<u8>>()
    }

    pub(super) fn contains(&self, id: EchoBlockId) -> bool {
        let bucket = self.buckets.get(self.bucket_of(id));
        bucket.is_some_and(|bucket| search(bucket, self.stride, id).is_ok())
    }

    pub(super) fn find(&mut self, id: EchoBlockId) -> Option<&mut [u8]> {
        let number = self.bucket_of(id);
        let bucket = self.buckets.get_mut(number)?;
        let at = search(bucket, self.stride, id).ok()? * self.stride;
        bucket.get_mut(at..at + self.stride)
    }

    /// Adds a zeroed entry with this id and returns it. An existing entry is overwritten.
    pub(super) fn insert(&mut self, id: EchoBlockId) -> &mut [u8] {
        if !self.contains(id) {
            if self.len >= self.buckets.len() * FILL {
                self.split_one();
            }
            self.len += 1;
        }
        let (number, stride) = (self.bucket_of(id), self.stride);
        let Some(bucket) = self.buckets.get_mut(number) else {
            return &mut [];
        };
        let at = match search(bucket, stride, id) {
            Ok(place) => place * stride,
            Err(place) => {
                open_gap(bucket, place * stride, stride);
                place * stride
            }
        };
        let entry = bucket.get_mut(at..at + stride).unwrap_or_default();
        entry.fill(0);
        if let Some(field) = entry.first_chunk_mut() {
            *field = id.0;
        }
        entry
    }

    pub(super) fn remove(&mut self, id: EchoBlockId) {
        let (number, stride) = (self.bucket_of(id), self.stride);
        let Some(bucket) = self.buckets.get_mut(number) else {
            return;
        };
        let Ok(place) = search(bucket, stride, id) else {
            return;
        };
        bucket.drain(place * stride..(place + 1) * stride);
        if bucket.capacity() - bucket.len() > SLACK_MAX * stride {
            bucket.shrink_to(bucket.len() + GROWTH * stride);
        }
        self.len -= 1;
        if self.buckets.len() > 1 && self.len < self.buckets.len() * FILL_MIN {
            self.merge_one();
        }
    }

    /// Returns the ids of all entries in no particular order.
    pub(super) fn ids(&self) -> impl Iterator<Item = EchoBlockId> + '_ {
        self.buckets.iter().flat_map(|bucket| bucket.chunks_exact(self.stride)).map(id_of)
    }

    /// Returns the entries of one bucket.
    pub(super) fn entries_mut(&mut self, bucket: usize) -> impl Iterator<Item = &mut [u8]> {
        let stride = self.stride;
        self.buckets.get_mut(bucket).map(|bucket| bucket.chunks_exact_mut(stride)).into_iter().flatten()
    }

    /// Returns the bucket of an id: the low bits of its hash, one bit fewer for buckets not split yet in this
    /// round.
    fn bucket_of(&self, id: EchoBlockId) -> usize {
        let round = self.buckets.len().next_power_of_two();
        // There are fewer buckets than a usize counts, so the high bits are not needed.
        let hash = hash(id) as usize;
        let number = hash & (round - 1);
        if number < self.buckets.len() { number } else { hash & (round / 2 - 1) }
    }

    /// Adds a bucket, and moves the entries there that belong to it now.
    fn split_one(&mut self) {
        let new = self.buckets.len();
        let from = new - (new + 1).next_power_of_two() / 2;
        let Some(old) = self.buckets.get_mut(from).map(std::mem::take) else {
            return;
        };
        self.buckets.push(Vec::new());
        let stride = self.stride;
        let moves = old.chunks_exact(stride).filter(|entry| self.bucket_of(id_of(entry)) == new).count();
        let mut parts = [Vec::new(), Vec::new()];
        let [stay, leave] = &mut parts;
        stay.reserve_exact(old.len() - moves * stride + GROWTH * stride);
        leave.reserve_exact((moves + GROWTH) * stride);
        for entry in old.chunks_exact(stride) {
            // Both parts stay sorted, because the order is kept.
            if self.bucket_of(id_of(entry)) == new { &mut *leave } else { &mut *stay }
                .extend_from_slice(entry);
        }
        let [stay, leave] = parts;
        for (number, part) in [(from, stay), (new, leave)] {
            if let Some(bucket) = self.buckets.get_mut(number) {
                *bucket = part;
            }
        }
    }

    /// Removes the last bucket and returns its entries to the bucket they came from.
    fn merge_one(&mut self) {
        let Some(last) = self.buckets.pop() else {
            return;
        };
        for entry in last.chunks_exact(self.stride) {
            let number = self.bucket_of(id_of(entry));
            if let Some(bucket) = self.buckets.get_mut(number) {
                let at =
                    search(bucket, self.stride, id_of(entry)).unwrap_or_else(|place| place) * self.stride;
                open_gap(bucket, at, self.stride);
                if let Some(to) = bucket.get_mut(at..at + self.stride) {
                    to.copy_from_slice(entry);
                }
            }
        }
        if self.buckets.capacity() > 2 * self.buckets.len() {
            self.buckets.shrink_to_fit();
        }
    }
}

/// Makes room for one entry at `at`, and reserves a few more.
fn open_gap(bucket: &mut Vec<u8>, at: usize, stride: usize) {
    if bucket.capacity() < bucket.len() + stride {
        bucket.reserve_exact(GROWTH * stride);
    }
    let end = bucket.len();
    bucket.resize(end + stride, 0);
    bucket.copy_within(at..end, at + stride);
}

fn id_of(entry: &[u8]) -> EchoBlockId {
    EchoBlockId(entry.first_chunk().copied().unwrap_or_default())
}

/// Returns the place of an id in a bucket, or where to insert it. Entries are sorted by uniformly distributed
/// hashes, so the interpolated guess is a few places off at most.
fn search(bucket: &[u8], stride: usize, id: EchoBlockId) -> Result<usize, usize> {
    let wanted = order(id);
    let count = bucket.len() / stride;
    // Compares the entry at a place with the wanted one; places past the end are greater.
    let compare = |place: usize| {
        bucket.get(place * stride..).and_then(<[u8]>::first_chunk).map_or(Ordering::Greater, |found| {
            let found = EchoBlockId(*found);
            if found == id { Ordering::Equal } else { (order(found), found).cmp(&(wanted, id)) }
        })
    };
    // Both factors have 32 bits at most.
    let mut place = ((u64::from(wanted) * count as u64) >> 32) as usize;
    match compare(place) {
        Ordering::Equal => return Ok(place),
        Ordering::Less => loop {
            place += 1;
            match compare(place) {
                Ordering::Less => {}
                Ordering::Equal => return Ok(place),
                Ordering::Greater => return Err(place),
            }
        },
        Ordering::Greater => {}
    }
    while place > 0 {
        match compare(place - 1) {
            Ordering::Less => return Err(place),
            Ordering::Equal => return Ok(place - 1),
            Ordering::Greater => place -= 1,
        }
    }
    Err(0)
}

/// Returns the part of the hash that orders a bucket; the low part selects the bucket.
fn order(id: EchoBlockId) -> u32 {
    // The high half.
    (hash(id) >> 32) as u32
}

/// Distributes ids uniformly, consecutive ones too. Only holders of the key can choose ids, so collisions are
/// no attack.
fn hash(id: EchoBlockId) -> u64 {
    let number = u128::from_be_bytes(id.0);
    let (high, low) = ((number >> 64) as u64, number as u64);
    let product = u128::from(low ^ 0x9E37_79B9_7F4A_7C15) * u128::from(high ^ 0xD6E8_FEB8_6659_FD93);
    let mixed = (product >> 64) as u64 ^ product as u64;
    mixed ^ mixed >> 29
}

#[cfg(test)]
mod tests;
