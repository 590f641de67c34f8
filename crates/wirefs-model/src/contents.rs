//! File contents with holes.

use std::collections::BTreeMap;

/// The page size. A missing page is a hole.
pub(crate) const PAGE_BYTES: u64 = 4096;

/// The bytes of a file. Unwritten and punched ranges read as zeros.
#[derive(Clone, Debug, Default)]
pub(crate) struct FileContents {
    size: u64,
    pages: BTreeMap<u64, Vec<u8>>,
}

/// The range of one page that a range covers.
struct PageRange {
    page: u64,
    /// The first byte within the page.
    start: usize,
    len: usize,
}

/// Splits a range at page boundaries.
fn page_ranges(offset: u64, len: u64) -> impl Iterator<Item = PageRange> {
    let end = offset.saturating_add(len);
    let mut at = offset;
    std::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let start = at % PAGE_BYTES;
        let len = (PAGE_BYTES - start).min(end - at);
        let range = PageRange { page: at / PAGE_BYTES, start: start as usize, len: len as usize };
        at += len;
        Some(range)
    })
}

impl FileContents {
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Returns the number of allocated bytes.
    pub(crate) fn allocated(&self) -> u64 {
        self.pages.len() as u64 * PAGE_BYTES
    }

    /// Returns the offsets of the allocated pages.
    pub(crate) fn page_offsets(&self) -> impl Iterator<Item = u64> {
        self.pages.keys().map(|page| page * PAGE_BYTES)
    }

    /// Returns up to `count` bytes from `offset`; fewer at the end of the file.
    pub(crate) fn read(&self, offset: u64, count: u64) -> Vec<u8> {
        let count = count.min(self.size.saturating_sub(offset));
        let mut bytes = Vec::new();
        for range in page_ranges(offset, count) {
            let page = self.pages.get(&range.page);
            match page.and_then(|page| page.get(range.start..range.start + range.len)) {
                Some(data) => bytes.extend_from_slice(data),
                None => bytes.resize(bytes.len() + range.len, 0),
            }
        }
        bytes
    }

    pub(crate) fn write(&mut self, offset: u64, data: &[u8]) {
        let mut rest = data;
        for range in page_ranges(offset, data.len() as u64) {
            let (now, later) = rest.split_at(range.len);
            rest = later;
            let page = self.pages.entry(range.page).or_insert_with(|| vec![0; PAGE_BYTES as usize]);
            if let Some(target) = page.get_mut(range.start..range.start + range.len) {
                target.copy_from_slice(now);
            }
        }
        if !data.is_empty() {
            self.size = self.size.max(offset + data.len() as u64);
        }
    }

    /// Zeros a range; its whole pages become holes. The size stays.
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

    /// Returns whether all bytes of a range, up to the end of the file, are zero.
    pub(crate) fn is_zero(&self, offset: u64, end: u64) -> bool {
        let pages = self.pages.range(offset / PAGE_BYTES..=end / PAGE_BYTES);
        pages.into_iter().all(|(number, page)| {
            let first = number * PAGE_BYTES;
            let start = offset.max(first) - first;
            let stop = end.min(first + PAGE_BYTES).saturating_sub(first);
            page.get(start as usize..stop as usize).is_none_or(|bytes| bytes.iter().all(|byte| *byte == 0))
        })
    }

    /// Returns the next data at or after `offset`; `None` if only a hole follows.
    pub(crate) fn next_data(&self, offset: u64) -> Option<u64> {
        let page = self.pages.range(offset / PAGE_BYTES..).next().map(|(page, _)| page * PAGE_BYTES)?;
        let data = page.max(offset);
        (data < self.size).then_some(data)
    }

    /// Returns the next hole at or after `offset`; the end of the file counts as one.
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
