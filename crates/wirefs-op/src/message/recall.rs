//! Rrecall and Trecalled: the server takes leases back, the client has forgotten.

#[cfg(test)]
mod tests;

use crate::limits::{NAME_BYTES_MAX, RECALL_ITEMS_MAX};
use crate::path::is_name;
use crate::stat::FileId;
use crate::wire::{Malformed, Reader, Wire, Writer, wire_struct};

/// What is no longer leased.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecallItem {
    /// The object.
    pub id: FileId,
    /// In a directory: only what this name means there, and the directory's own attributes. `None`: all of the object.
    pub name: Option<Vec<u8>>,
}

/// `id[16] name[opt]`
impl Wire for RecallItem {
    fn put(&self, writer: &mut Writer) {
        debug_assert!(self.name.as_deref().is_none_or(is_name));
        self.id.put(writer);
        self.name.is_some().put(writer);
        if let Some(name) = &self.name {
            writer.string(name);
        }
    }
    fn take(reader: &mut Reader) -> Result<Self, Malformed> {
        let id = FileId::take(reader)?;
        if !bool::take(reader)? {
            return Ok(RecallItem { id, name: None });
        }
        let name = reader.string(NAME_BYTES_MAX)?;
        if !is_name(&name) {
            return Err(reader.malformed("a recalled name that is not clean"));
        }
        Ok(RecallItem { id, name: Some(name.to_vec()) })
    }
}

/// `Rrecall tag[2] serial[8] count[2] items`, with the tag NOTAG and unasked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rrecall {
    /// Names this recall in the Trecalled that answers it.
    pub serial: u64,
    /// What is recalled, at most `RECALL_ITEMS_MAX`; none of them: everything that the session has.
    pub items: Vec<RecallItem>,
}

impl Wire for Rrecall {
    fn put(&self, writer: &mut Writer) {
        debug_assert!(self.items.len() <= RECALL_ITEMS_MAX);
        self.serial.put(writer);
        (self.items.len() as u16).put(writer);
        for item in &self.items {
            item.put(writer);
        }
    }
    fn take(reader: &mut Reader) -> Result<Self, Malformed> {
        let (serial, count) = (u64::take(reader)?, usize::from(u16::take(reader)?));
        if count > RECALL_ITEMS_MAX {
            return Err(reader.malformed("a recall over its limit"));
        }
        let items = (0..count).map(|_| RecallItem::take(reader)).collect::<Result<_, _>>()?;
        Ok(Rrecall { serial, items })
    }
}

/// In place of a serial, which no recall has: the client believes nothing at all until a request that it sends after this is
/// answered. It says so when its mount ends.
pub const RELEASE_ALL: u64 = 0;

/// In place of a serial, which no recall has: the session ends, with all that it has open and locked, and its connection. Its client has died,
/// and nobody goes on with it. The connection ends when it is so.
pub const END_SESSION: u64 = OWN_CHANGE - 1;

/// Added to the serial of a recall that tells a session of nothing but what it has changed itself, of objects with other names besides.
/// It may stand in the Trecalled too, and says nothing there.
pub const OWN_CHANGE: u64 = 1 << 63;

wire_struct! {
    /// `Trecalled tag[2] serial[8]`, with the tag NOTAG; never answered.
    pub struct Trecalled {
        /// The recall after which nothing that it named is believed any more, neither by the client nor by its kernel.
        serial: u64,
    }
}
