//! Decoding of records.

use super::attributes::{NOTHING, take_attributes};
use super::number::take_number;
use super::{FindDirectory, FindEntry, FindRecord, has_contents, record_bits};
use crate::limits::{FIND_PATH_BYTES_MAX, NAME_BYTES_MAX, PATH_BYTES_MAX};
use crate::path::{TreePath, is_name};
use crate::stat::Stat;
use crate::wire::{Malformed, Reader, Wire};
use bytes::Bytes;

/// Decodes records in sequence; stops after an error. Contents are shared with the data.
///
/// # Cost
/// Holds one path and one name besides the returned records. The total length of the paths in a message is
/// limited by `FIND_PATH_BYTES_MAX`.
#[derive(Debug)]
pub struct FindReader {
    reader: Reader,
    failed: bool,
    stat: Stat,
    /// The path of the last directory, `None` before the first, and the name of its last entry.
    path: Option<TreePath>,
    name: Vec<u8>,
    path_bytes: usize,
}

impl FindReader {
    /// Decodes the data of one Rfind.
    pub fn new(data: Bytes) -> FindReader {
        FindReader {
            reader: Reader::new(data),
            failed: false,
            stat: NOTHING,
            path: None,
            name: Vec::new(),
            path_bytes: 0,
        }
    }

    fn record(&mut self) -> Result<FindRecord, Malformed> {
        use record_bits::*;
        let bits = u8::take(&mut self.reader)?;
        let of_its_kind = if bits & DIRECTORY != 0 { OF_DIRECTORY } else { OF_ENTRY };
        if bits & !of_its_kind != 0 {
            return Err(self.reader.malformed("unknown bits in a record"));
        }
        if bits & DIRECTORY != 0 {
            self.directory(bits).map(FindRecord::Directory)
        } else {
            self.entry(bits).map(FindRecord::Entry)
        }
    }

    fn directory(&mut self, bits: u8) -> Result<FindDirectory, Malformed> {
        use record_bits::*;
        let before = self.path.as_ref().map(TreePath::as_bytes).unwrap_or_default();
        let bytes = take_name(&mut self.reader, before, PATH_BYTES_MAX)?;
        self.path_bytes += bytes.len();
        if self.path_bytes > FIND_PATH_BYTES_MAX {
            return Err(self.reader.malformed("paths over their limit"));
        }
        let path = TreePath::from_bytes(Bytes::from(bytes))
            .ok_or(self.reader.malformed("a directory's path that is not clean"))?;
        let stat = self.attributes(bits)?;
        self.path = Some(path.clone());
        self.name.clear();
        Ok(FindDirectory { path, stat, begins: bits & BEGIN != 0, ends: bits & END != 0 })
    }

    fn entry(&mut self, bits: u8) -> Result<FindEntry, Malformed> {
        if self.path.is_none() {
            return Err(self.reader.malformed("an entry without a directory"));
        }
        let name = take_name(&mut self.reader, &self.name, NAME_BYTES_MAX)?;
        if !is_name(&name) {
            return Err(self.reader.malformed("an entry's name that is not clean"));
        }
        let stat = self.attributes(bits)?;
        let contents = match bits & record_bits::CONTENTS {
            0 => None,
            _ if !has_contents(stat.kind) => {
                return Err(self.reader.malformed("contents of an object without any"));
            }
            _ => Some(self.reader.bytes(usize::try_from(stat.size).unwrap_or(usize::MAX))?),
        };
        self.name.clone_from(&name);
        Ok(FindEntry { name, stat, contents })
    }

    fn attributes(&mut self, bits: u8) -> Result<Stat, Malformed> {
        use record_bits::*;
        let mut stat = take_attributes(&mut self.reader, &self.stat)?;
        stat.without_xattrs = bits & WITHOUT_XATTRS != 0;
        stat.leased = bits & LEASED != 0;
        self.stat = stat;
        Ok(stat)
    }
}

impl Iterator for FindReader {
    type Item = Result<FindRecord, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed || self.reader.remaining() == 0 {
            return None;
        }
        let record = self.record();
        self.failed = record.is_err();
        Some(record)
    }
}

/// Reads a name that shares a prefix with the previous one.
///
/// # Errors
/// Fails if the name is longer than `bytes_max`, or if the shared prefix is not the longest possible one.
fn take_name(reader: &mut Reader, before: &[u8], bytes_max: usize) -> Result<Vec<u8>, Malformed> {
    let shared = usize::try_from(take_number(reader)?).unwrap_or(usize::MAX);
    let rest_len = usize::try_from(take_number(reader)?).unwrap_or(usize::MAX);
    let shared_bytes =
        before.get(..shared).ok_or(reader.malformed("a shared prefix longer than the previous name"))?;
    if shared.saturating_add(rest_len) > bytes_max {
        return Err(reader.malformed("a name over its limit"));
    }
    let rest = reader.bytes(rest_len)?;
    if rest.first().is_some_and(|first| before.get(shared) == Some(first)) {
        return Err(reader.malformed("a shared prefix that could be longer"));
    }
    Ok([shared_bytes, &rest].concat())
}
