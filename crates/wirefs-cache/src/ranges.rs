//! The cached bytes of one file, in shared buffers.

use bytes::{Bytes, BytesMut};
use std::collections::BTreeMap;
use std::ops::Range;

/// Cached byte ranges of one file.
///
/// INVARIANT: parts are not empty and do not overlap.
#[derive(Clone, Debug, Default)]
pub struct CachedRanges {
    parts: BTreeMap<u64, SharedBytes>,
    bytes: usize,
}

/// A slice of a shared buffer, and the size of the buffer. The whole buffer stays in memory while a slice of
/// it is shared.
#[derive(Clone, Debug)]
struct SharedBytes {
    data: Bytes,
    whole: usize,
}

impl SharedBytes {
    fn new(data: Bytes) -> SharedBytes {
        SharedBytes { whole: data.len(), data }
    }

    /// Returns a part. A part of less than half of the buffer is copied, so that cached data holds at most
    /// twice its size in memory.
    fn part(&self, range: Range<usize>) -> SharedBytes {
        let data = self.data.slice(range);
        if 2 * data.len() < self.whole {
            SharedBytes::new(Bytes::copy_from_slice(&data))
        } else {
            SharedBytes { data, ..*self }
        }
    }

    fn len(&self) -> usize {
        self.data.len()
    }
}

fn end_of(start: u64, shared: &SharedBytes) -> u64 {
    start + shared.len() as u64
}

impl CachedRanges {
    /// Returns the number of cached bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Inserts bytes, which replace cached ones.
    pub fn insert(&mut self, offset: u64, data: Bytes) {
        if data.is_empty() {
            return;
        }
        self.remove(offset, offset + data.len() as u64);
        self.bytes += data.len();
        self.parts.insert(offset, SharedBytes::new(data));
    }

    /// Inserts bytes only where none are cached.
    pub fn insert_missing(&mut self, offset: u64, data: &Bytes) {
        let end = offset + data.len() as u64;
        let whole = SharedBytes::new(data.clone());
        let mut at = offset;
        while let Some((from, to)) = self.first_gap(at, end) {
            let gap = whole.part((from - offset) as usize..(to - offset) as usize);
            self.bytes += gap.len();
            self.parts.insert(from, gap);
            at = to;
        }
    }

    /// Removes `start..end`.
    pub fn remove(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        let before = self.parts.range(..start).next_back().map(|(at, shared)| (*at, shared.clone()));
        if let Some((at, shared)) = before
            && end_of(at, &shared) > start
        {
            self.put(at, shared.part(0..(start - at) as usize));
            if end_of(at, &shared) > end {
                self.put(end, shared.part((end - at) as usize..shared.len()));
            }
        }
        let inside: Vec<u64> = self.parts.range(start..end).map(|(at, _)| *at).collect();
        for at in inside {
            let Some(shared) = self.take(at) else { continue };
            if end_of(at, &shared) > end {
                self.put(end, shared.part((end - at) as usize..shared.len()));
            }
        }
    }

    fn put(&mut self, at: u64, shared: SharedBytes) {
        self.take(at);
        if shared.len() > 0 {
            self.bytes += shared.len();
            self.parts.insert(at, shared);
        }
    }

    fn take(&mut self, at: u64) -> Option<SharedBytes> {
        let shared = self.parts.remove(&at)?;
        self.bytes -= shared.len();
        Some(shared)
    }

    /// Removes all bytes from `size` on.
    pub fn truncate(&mut self, size: u64) {
        self.remove(size, u64::MAX);
    }

    /// Removes all bytes.
    pub fn clear(&mut self) {
        self.parts.clear();
        self.bytes = 0;
    }

    /// Returns the end of the contiguous cached bytes from `offset` on, at most `limit`; `offset` itself if
    /// it is not cached.
    ///
    /// # Cost
    /// Proportional to the parts between `offset` and `limit`, not those of the whole file.
    pub fn cached_to(&self, offset: u64, limit: u64) -> u64 {
        let mut end = offset;
        let first = self.parts.range(..=offset).next_back();
        for (at, shared) in first.into_iter().chain(self.parts.range(offset.saturating_add(1)..)) {
            if *at > end || end >= limit {
                break;
            }
            end = end.max(end_of(*at, shared));
        }
        end.min(limit.max(offset))
    }

    /// Returns the start and end of each part; parts may be adjacent.
    pub fn extents(&self) -> impl Iterator<Item = (u64, u64)> {
        self.parts.iter().map(|(at, shared)| (*at, end_of(*at, shared)))
    }

    /// Returns `start..end`, if all of it is cached. Shares the buffer if one part has it all, else copies.
    pub fn read(&self, start: u64, end: u64) -> Option<Bytes> {
        if start >= end {
            return Some(Bytes::new());
        }
        let (at, shared) = self.parts.range(..=start).next_back()?;
        if end_of(*at, shared) >= end {
            return Some(shared.data.slice((start - at) as usize..(end - at) as usize));
        }
        if self.cached_to(start, end) < end {
            return None;
        }
        let mut whole = BytesMut::with_capacity((end - start) as usize);
        for (at, shared) in self.parts.range(*at..end) {
            let from = start.saturating_sub(*at) as usize;
            let to = ((end - at) as usize).min(shared.len());
            whole.extend_from_slice(shared.data.get(from..to)?);
        }
        Some(whole.freeze())
    }

    /// Returns the first gap in `start..end`.
    pub fn first_gap(&self, start: u64, end: u64) -> Option<(u64, u64)> {
        let from = self.cached_to(start, end);
        if from >= end {
            return None;
        }
        let to = self.parts.range(from..end).next().map_or(end, |(at, _)| *at);
        Some((from, to))
    }
}

#[cfg(test)]
mod tests;
