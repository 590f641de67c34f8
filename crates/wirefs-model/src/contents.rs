//! The bytes of a file, with holes.

use std::collections::BTreeMap;

/// Bytes are kept in pages of this size; a page that is not there is a hole.
pub(crate) const PAGE_BYTES: u64 = 4096;

/// A file's bytes. What was never written, or was punched out, reads as zeros.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contents {
    size: u64,
    pages: BTreeMap<u64, Vec<u8>>,
}

/// The part of one page that a range of bytes covers.
struct Part {
    page: u64,
    /// First byte within the page.
    start: usize,
    len: usize,
}

/// Cuts a range at the borders of pages.
fn parts(offset: u64, len: u64) -> impl Iterator<Item = Part> {
    let end = offset.saturating_add(len);
    let mut at = offset;
    std::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let start = at % PAGE_BYTES;
        let len = (PAGE_BYTES - start).min(end - at);
        let part = Part { page: at / PAGE_BYTES, start: start as usize, len: len as usize };
        at += len;
        Some(part)
    })
}

impl Contents {
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Bytes that take up room.
    pub(crate) fn allocated(&self) -> u64 {
        self.pages.len() as u64 * PAGE_BYTES
    }

    /// The first bytes of the pages that are there.
    pub(crate) fn page_offsets(&self) -> impl Iterator<Item = u64> {
        self.pages.keys().map(|page| page * PAGE_BYTES)
    }

    /// Up to `count` bytes from `offset`; fewer at the end.
    pub(crate) fn read(&self, offset: u64, count: u64) -> Vec<u8> {
        let count = count.min(self.size.saturating_sub(offset));
        let mut bytes = Vec::new();
        for part in parts(offset, count) {
            let page = self.pages.get(&part.page);
            match page.and_then(|page| page.get(part.start..part.start + part.len)) {
                Some(data) => bytes.extend_from_slice(data),
                None => bytes.resize(bytes.len() + part.len, 0),
            }
        }
        bytes
    }

    pub(crate) fn write(&mut self, offset: u64, data: &[u8]) {
        let mut rest = data;
        for part in parts(offset, data.len() as u64) {
            let (now, later) = rest.split_at(part.len);
            rest = later;
            let page = self.pages.entry(part.page).or_insert_with(|| vec![0; PAGE_BYTES as usize]);
            if let Some(place) = page.get_mut(part.start..part.start + part.len) {
                place.copy_from_slice(now);
            }
        }
        if !data.is_empty() {
            self.size = self.size.max(offset + data.len() as u64);
        }
    }

    /// Makes a range read as zeros; whole pages of it become holes. The size stays.
    pub(crate) fn punch(&mut self, offset: u64, len: u64) {
        let end = offset.saturating_add(len);
        let within: Vec<u64> =
            self.pages.range(offset / PAGE_BYTES..=end / PAGE_BYTES).map(|(page, _)| *page).collect();
        for number in within {
            let first = number * PAGE_BYTES;
            let start = offset.max(first) - first;
            let stop = end.min(first + PAGE_BYTES).saturating_sub(first);
            if stop - start.min(stop) == PAGE_BYTES {
                self.pages.remove(&number);
            } else if let Some(page) = self.pages.get_mut(&number)
                && let Some(zeroed) = page.get_mut(start as usize..stop as usize)
            {
                zeroed.fill(0);
            }
        }
    }

    pub(crate) fn resize(&mut self, size: u64) {
        if size < self.size {
            self.punch(size, u64::MAX - size);
        }
        self.size = size;
    }

    /// Whether all bytes of a range (as far as the file goes) are zero.
    pub(crate) fn is_zero(&self, offset: u64, end: u64) -> bool {
        let pages = self.pages.range(offset / PAGE_BYTES..=end / PAGE_BYTES);
        pages.into_iter().all(|(number, page)| {
            let first = number * PAGE_BYTES;
            let start = offset.max(first) - first;
            let stop = end.min(first + PAGE_BYTES).saturating_sub(first);
            page.get(start as usize..stop as usize).is_none_or(|bytes| bytes.iter().all(|byte| *byte == 0))
        })
    }

    /// The next page at or after `offset`; `None` when only a hole follows.
    pub(crate) fn next_data(&self, offset: u64) -> Option<u64> {
        let page = self.pages.range(offset / PAGE_BYTES..).next().map(|(page, _)| page * PAGE_BYTES)?;
        let data = page.max(offset);
        (data < self.size).then_some(data)
    }

    /// The next hole at or after `offset`; the end of the file counts as one.
    pub(crate) fn next_hole(&self, offset: u64) -> u64 {
        let mut page = offset / PAGE_BYTES;
        while self.pages.contains_key(&page) {
            page += 1;
        }
        (page * PAGE_BYTES).max(offset).min(self.size)
    }
}

#[cfg(test)]
mod tests;
