//! Directory entries, packed into the data of Rget: a sequence of `name[s] next[8] stat`.

#[cfg(test)]
mod tests;

use crate::limits::NAME_BYTES_MAX;
use crate::path::is_name;
use crate::stat::{DirEntry, Stat};
use crate::wire::{Malformed, Reader, Wire, Writer};
use bytes::Bytes;

impl Wire for DirEntry {
    fn put(&self, writer: &mut Writer) {
        debug_assert!(is_name(&self.name) && self.next != 0);
        writer.string(&self.name);
        self.next.put(writer);
        self.stat.put(writer);
    }
    fn take(reader: &mut Reader) -> Result<Self, Malformed> {
        let name = reader.string(NAME_BYTES_MAX)?;
        if !is_name(&name) {
            return Err(reader.malformed("an entry's name that is not clean"));
        }
        let next = u64::take(reader)?;
        if next == 0 {
            return Err(reader.malformed("an entry that leads back to the start"));
        }
        Ok(DirEntry { name: name.to_vec(), next, stat: Stat::take(reader)? })
    }
}

/// Packs entries until the next one would exceed a limit.
#[derive(Debug)]
pub struct ListingWriter {
    writer: Writer,
    bytes_max: usize,
}

impl ListingWriter {
    /// Creates a listing of at most `bytes_max` bytes.
    pub fn new(bytes_max: usize) -> ListingWriter {
        ListingWriter { writer: Writer::bare(), bytes_max }
    }

    /// Adds an entry. Returns false and adds nothing if it does not fit.
    pub fn push(&mut self, entry: &DirEntry) -> bool {
        let before = self.writer.len();
        entry.put(&mut self.writer);
        let fits = self.writer.len() <= self.bytes_max;
        if !fits {
            self.writer.truncate(before);
        }
        fits
    }

    /// Returns true if no entry was added.
    pub fn is_empty(&self) -> bool {
        self.writer.is_empty()
    }

    /// Returns the packed entries.
    pub fn finish(self) -> Bytes {
        Bytes::from(self.writer.into_bytes())
    }
}

/// Unpacks entries.
///
/// # Errors
/// Fails if the bytes are not complete entries with clean names.
pub fn entries(data: Bytes) -> Result<Vec<DirEntry>, Malformed> {
    let mut reader = Reader::new(data);
    let mut entries = Vec::new();
    while reader.remaining() > 0 {
        entries.push(DirEntry::take(&mut reader)?);
    }
    Ok(entries)
}
