//! A directory entry.

use crate::codec::{Corrupt, Reader, Writer};
use crate::key::Ino;
use bytes::Bytes;
use wirefs_op::Kind;
use wirefs_op::path::is_name;

/// A name and the object that it refers to. Names belong to directories, so an object may have several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) ino: Ino,
    pub(crate) generation: u32,
    pub(crate) kind: Kind,
    pub(crate) name: Bytes,
}

impl Entry {
    pub(crate) fn encode(&self) -> Bytes {
        let mut writer = Writer::new();
        writer.number(self.ino.0);
        writer.number(u64::from(self.generation));
        writer.byte(self.kind as u8);
        writer.raw(&self.name);
        writer.finish()
    }

    pub(crate) fn decode(bytes: Bytes) -> Result<Entry, Corrupt> {
        let mut reader = Reader::new(bytes);
        let entry = Entry {
            ino: Ino(reader.number()?),
            generation: reader.fitting()?,
            kind: reader.kind()?,
            name: reader.rest(),
        };
        if is_name(&entry.name) { Ok(entry) } else { Err(reader.corrupt("an invalid name")) }
    }
}
