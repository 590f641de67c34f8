//! The private copy of a file that one open file has.

use bytes::{Bytes, BytesMut};
use wirefs_cache::CachedRanges;
use wirefs_op::limits::DATA_BYTES_MAX;
use wirefs_op::{FileId, SetStat, Stat, Timestamp};

/// The file from which a copy was made, identified by attributes that a rename does not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Base {
    id: FileId,
    version: u64,
    size: u64,
    mtime: Timestamp,
}

impl Base {
    pub(crate) fn of(stat: &Stat) -> Base {
        Base { id: stat.id, version: stat.version, size: stat.size, mtime: stat.mtime }
    }

    /// Whether an object with these attributes has the contents that the copy was made from. A change of others in the same tick
    /// of the server's clock as the one before it, to the same size, is not noticed.
    pub(crate) fn is(&self, stat: &Stat) -> bool {
        (self.id, self.size, self.mtime) == (stat.id, stat.size, stat.mtime)
    }

    /// An own change of attributes led from version `before` to this.
    pub(crate) fn advance(&mut self, before: u64, stat: &Stat) {
        if self.id == stat.id && self.version == before {
            *self = Base::of(stat);
        }
    }
}

/// So many writes make as many pieces at most before they are put together.
const PIECES_MAX: u32 = 1024;

/// The contents that the program reads and writes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Private {
    /// Gaps up to the size are zeros.
    ranges: CachedRanges,
    size: u64,
    /// There is something to publish.
    pub(crate) is_changed: bool,
    /// Times that were set after the last write: publishing must not change them.
    pub(crate) times: SetStat,
    writes: u32,
    pub(crate) base: Option<Base>,
}

impl Private {
    pub(crate) fn new(ranges: CachedRanges, size: u64) -> Private {
        Private { ranges, size, ..Private::default() }
    }

    /// Of a file that was cut to nothing.
    pub(crate) fn cut() -> Private {
        Private { is_changed: true, ..Private::default() }
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    pub(crate) fn bytes(&self) -> usize {
        self.ranges.bytes()
    }

    pub(crate) fn ranges(&self) -> &CachedRanges {
        &self.ranges
    }

    pub(crate) fn read(&self, offset: u64, count: u64) -> Bytes {
        let end = offset.saturating_add(count).min(self.size);
        if let Some(data) = self.ranges.read(offset.min(end), end) {
            return data;
        }
        let mut data = BytesMut::zeroed((end - offset) as usize);
        let mut at = offset;
        while at < end {
            let known = self.ranges.cached_to(at, end);
            if let Some(piece) = self.ranges.read(at, known)
                && let Some(place) = data.get_mut((at - offset) as usize..(known - offset) as usize)
            {
                place.copy_from_slice(&piece);
            }
            at = self.ranges.first_gap(known, end).map_or(end, |(_, to)| to);
        }
        data.freeze()
    }

    pub(crate) fn write(&mut self, offset: u64, data: Bytes) {
        self.size = self.size.max(offset + data.len() as u64);
        self.ranges.insert(offset, data);
        self.changed();
        self.writes += 1;
        if self.writes >= PIECES_MAX {
            self.put_together();
        }
    }

    pub(crate) fn resize(&mut self, size: u64) {
        self.ranges.truncate(size);
        self.size = size;
        self.changed();
    }

    /// Makes a hole.
    pub(crate) fn zero(&mut self, start: u64, end: u64) {
        self.ranges.remove(start, end);
        self.changed();
    }

    fn changed(&mut self) {
        self.is_changed = true;
        self.times = SetStat::default();
    }

    /// Notes what times were set.
    pub(crate) fn set_times(&mut self, set: &SetStat) {
        let SetStat { atime, mtime, .. } = self.times;
        self.times = SetStat { atime: set.atime.or(atime), mtime: set.mtime.or(mtime), ..self.times };
    }

    /// Its contents, in pieces that fit into a message.
    pub(crate) fn pieces(&self) -> Vec<(u64, Bytes)> {
        let mut pieces = Vec::new();
        let mut at = 0;
        while at < self.size {
            let end = self.ranges.cached_to(at, at + DATA_BYTES_MAX as u64);
            if let Some(data) = self.ranges.read(at, end).filter(|data| !data.is_empty()) {
                pieces.push((at, data));
                at = end;
            } else {
                at = self.ranges.first_gap(at, self.size).map_or(self.size, |(_, to)| to);
            }
        }
        pieces
    }

    fn put_together(&mut self) {
        self.writes = 0;
        let mut ranges = CachedRanges::default();
        for (at, data) in self.pieces() {
            ranges.insert(at, data);
        }
        self.ranges = ranges;
    }
}

#[cfg(test)]
mod tests;
