//! Strings, and the parts of messages whose length the message itself tells.

use crate::limits::{STRING_BYTES_MAX, WALK_NAMES_MAX};
use crate::qid::Qid;
use bytes::Bytes;
use wirefs_op::wire::{Malformed, Reader, Wire, Writer};

/// `len[2] bytes`: a name, a user, a link's target.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct NineString(pub Bytes);

impl NineString {
    /// Creates a string, truncated to [`STRING_BYTES_MAX`].
    pub fn new(bytes: &[u8]) -> NineString {
        NineString(Bytes::copy_from_slice(bytes.get(..STRING_BYTES_MAX).unwrap_or(bytes)))
    }
}

impl std::fmt::Debug for NineString {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(&self.0))
    }
}

impl Wire for NineString {
    fn put(&self, writer: &mut Writer) {
        writer.string(&self.0);
    }
    fn take(reader: &mut Reader) -> Result<Self, Malformed> {
        // Copied: names stay with fids, and must not keep whole messages in memory.
        Ok(NineString::new(&reader.string(STRING_BYTES_MAX)?))
    }
}

/// `count[2] count*(value)`, at most [`WALK_NAMES_MAX`] values: the names of a Twalk, the qids of an Rwalk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Few<T>(pub Vec<T>);

impl<T: Wire> Wire for Few<T> {
    fn put(&self, writer: &mut Writer) {
        (self.0.len() as u16).put(writer);
        self.0.iter().for_each(|value| value.put(writer));
    }
    fn take(reader: &mut Reader) -> Result<Self, Malformed> {
        let count = usize::from(u16::take(reader)?);
        if count > WALK_NAMES_MAX {
            return Err(reader.malformed("too many elements in one walk"));
        }
        (0..count).map(|_| T::take(reader)).collect::<Result<_, _>>().map(Few)
    }
}

/// A last field that only some dialects and clients send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tail(pub Option<u32>);

impl Wire for Tail {
    fn put(&self, writer: &mut Writer) {
        if let Some(value) = self.0 {
            value.put(writer);
        }
    }
    fn take(reader: &mut Reader) -> Result<Self, Malformed> {
        Ok(Tail(if reader.remaining() == 0 { None } else { Some(u32::take(reader)?) }))
    }
}

/// One entry of an Rreaddir: `qid[13] offset[8] type[1] name[s]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NineEntry {
    /// The object; its version is 0.
    pub qid: Qid,
    /// The position after this entry.
    pub next: u64,
    /// The type as in `d_type`.
    pub kind: u8,
    /// The name.
    pub name: NineString,
}

impl Wire for NineEntry {
    fn put(&self, writer: &mut Writer) {
        self.qid.put(writer);
        self.next.put(writer);
        self.kind.put(writer);
        self.name.put(writer);
    }
    fn take(reader: &mut Reader) -> Result<Self, Malformed> {
        Ok(NineEntry {
            qid: Wire::take(reader)?,
            next: Wire::take(reader)?,
            kind: Wire::take(reader)?,
            name: Wire::take(reader)?,
        })
    }
}
