//! Encoding of records.

use super::attributes::{NOTHING, put_attributes};
use super::number::put_number;
use super::{FindDirectory, has_contents, record_bits, shared_prefix};
use crate::limits::FIND_PATH_BYTES_MAX;
use crate::path::is_name;
use crate::stat::Stat;
use bytes::Bytes;

/// Packs records until the next one would exceed a limit.
#[derive(Debug)]
pub struct FindWriter {
    bytes: Vec<u8>,
    bytes_max: usize,
    /// The attributes of the last record.
    stat: Stat,
    /// The path of the last directory, and the name of its last entry.
    path: Vec<u8>,
    name: Vec<u8>,
    /// The offset of the current directory's record, while entries may be added.
    directory_at: Option<usize>,
    /// The total length of the paths, uncompressed, in bytes.
    path_bytes: usize,
}

impl FindWriter {
    /// Creates a writer for at most `bytes_max` bytes.
    pub fn new(bytes_max: usize) -> FindWriter {
        FindWriter {
            bytes: Vec::new(),
            bytes_max,
            stat: NOTHING,
            path: Vec::new(),
            name: Vec::new(),
            directory_at: None,
            path_bytes: 0,
        }
    }

    /// Begins a directory, to which the next entries belong. Returns false and adds nothing if it does not
    /// fit.
    pub fn directory(&mut self, directory: &FindDirectory) -> bool {
        use record_bits::*;
        let path = directory.path.as_bytes();
        if self.path_bytes + path.len() > FIND_PATH_BYTES_MAX {
            return false;
        }
        let at = self.bytes.len();
        let bits = DIRECTORY | bit(directory.begins, BEGIN) | bit(directory.ends, END);
        self.bytes.push(bits | flags(&directory.stat));
        put_name(&mut self.bytes, &self.path, path);
        put_attributes(&mut self.bytes, &self.stat, &directory.stat);
        if !self.fits(at) {
            return false;
        }
        self.stat = directory.stat;
        self.path = path.to_vec();
        self.path_bytes += path.len();
        self.name.clear();
        self.directory_at = Some(at);
        true
    }

    /// Adds an entry to the directory. Returns false and adds nothing if it does not fit or no directory has
    /// begun.
    ///
    /// Contents whose length differs from `stat.size` have changed meanwhile and are left out, as are those
    /// of other kinds than files and symbolic links. An entry that does not fit into a message of its own may
    /// fit without its contents.
    pub fn entry(&mut self, name: &[u8], stat: &Stat, contents: Option<&[u8]>) -> bool {
        use record_bits::*;
        debug_assert!(is_name(name));
        if self.directory_at.is_none() {
            return false;
        }
        let contents = contents.filter(|bytes| has_contents(stat.kind) && bytes.len() as u64 == stat.size);
        let at = self.bytes.len();
        self.bytes.push(flags(stat) | bit(contents.is_some(), CONTENTS));
        put_name(&mut self.bytes, &self.name, name);
        put_attributes(&mut self.bytes, &self.stat, stat);
        self.bytes.extend_from_slice(contents.unwrap_or_default());
        if !self.fits(at) {
            return false;
        }
        self.stat = *stat;
        self.name = name.to_vec();
        true
    }

    /// Marks the directory as complete. No more entries can be added to it.
    pub fn end_directory(&mut self) {
        if let Some(bits) = self.directory_at.take().and_then(|at| self.bytes.get_mut(at)) {
            *bits |= record_bits::END;
        }
    }

    /// Returns the number of bytes packed so far.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns true if no record was added.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the packed records.
    pub fn finish(self) -> Bytes {
        Bytes::from(self.bytes)
    }

    /// Removes the bytes added from `at` on if the limit is exceeded; returns whether they fit.
    fn fits(&mut self, at: usize) -> bool {
        let fits = self.bytes.len() <= self.bytes_max;
        if !fits {
            self.bytes.truncate(at);
        }
        fits
    }
}

fn bit(is_set: bool, bit: u8) -> u8 {
    if is_set { bit } else { 0 }
}

fn flags(stat: &Stat) -> u8 {
    bit(stat.without_xattrs, record_bits::WITHOUT_XATTRS) | bit(stat.leased, record_bits::LEASED)
}

/// Appends the length of the prefix shared with the previous name, the length of the rest, and the rest.
fn put_name(bytes: &mut Vec<u8>, before: &[u8], name: &[u8]) {
    let (shared, rest) = name.split_at(shared_prefix(before, name));
    put_number(bytes, shared.len() as u64);
    put_number(bytes, rest.len() as u64);
    bytes.extend_from_slice(rest);
}
