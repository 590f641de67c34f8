//! Packing records.

use super::attributes::{NOTHING, put_attributes};
use super::number::put_number;
use super::{FindDirectory, has_contents, record_bits, shared_prefix};
use crate::limits::FIND_PATH_BYTES_MAX;
use crate::path::is_name;
use crate::stat::Stat;
use bytes::Bytes;

/// Packs records until the next would pass a limit.
#[derive(Debug)]
pub struct FindWriter {
    bytes: Vec<u8>,
    bytes_max: usize,
    /// The attributes of the last record.
    stat: Stat,
    /// The path of the last directory, and the name of the last entry in it.
    path: Vec<u8>,
    name: Vec<u8>,
    /// Where the record of the directory begins whose entries may be added.
    directory_at: Option<usize>,
    /// Bytes of all paths, spelled out.
    path_bytes: usize,
}

impl FindWriter {
    /// Starts data of at most `bytes_max` bytes.
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

    /// Begins a directory; the entries added next are its own. False, and nothing added, when it does not fit any more.
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

    /// Adds an entry to the directory. False, and nothing added, when it does not fit any more, or no directory was begun.
    ///
    /// Contents that are not as long as the attributes say have changed meanwhile and are left out, as are those of
    /// anything but a file or a link. What does not fit into a message of its own may fit without its contents.
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

    /// Says that the directory is complete with the entries added so far. No more can be added to it.
    pub fn end_directory(&mut self) {
        if let Some(bits) = self.directory_at.take().and_then(|at| self.bytes.get_mut(at)) {
            *bits |= record_bits::END;
        }
    }

    /// Bytes packed so far.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether it holds no record.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The packed records.
    pub fn finish(self) -> Bytes {
        Bytes::from(self.bytes)
    }

    /// Takes back what was added from `at` on if it is too much.
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

/// How much of the name before is shared, how much follows, and that.
fn put_name(bytes: &mut Vec<u8>, before: &[u8], name: &[u8]) {
    let (shared, rest) = name.split_at(shared_prefix(before, name));
    put_number(bytes, shared.len() as u64);
    put_number(bytes, rest.len() as u64);
    bytes.extend_from_slice(rest);
}
