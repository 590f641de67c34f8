//! Rrecall and Trecalled: the server recalls leases, and the client confirms that it no longer uses them.

#[cfg(test)]
mod tests;

use crate::limits::{NAME_BYTES_MAX, RECALL_ITEMS_MAX};
use crate::path::is_name;
use crate::stat::FileId;
use crate::wire::{Malformed, Reader, Wire, Writer, wire_struct};

/// A recalled object or name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecallItem {
    /// The object.
    pub id: FileId,
    /// For a directory: only the entry of this name and the directory's attributes are recalled. `None`: the
    /// whole object.
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

/// `Rrecall tag[2] serial[8] count[2] items`, unsolicited, with the tag NOTAG.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rrecall {
    /// Identifies this recall; the Trecalled that answers it repeats the serial.
    pub serial: u64,
    /// The recalled items, at most `RECALL_ITEMS_MAX`. Empty: all leases of the session.
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

/// A special serial: the client uses no lease before the reply to a request that it sends later. Sent when
/// the mount ends.
pub const RELEASE_ALL: u64 = 0;

/// A special serial: ends the session, with its open files and locks. Sent on behalf of a client that has
/// died and that no other will resume. The server closes the connection afterwards.
pub const END_SESSION: u64 = OWN_CHANGE - 1;

/// A flag in the serial of a recall: all items are objects that the session itself changed, and that have
/// other names. A Trecalled may contain the flag too, where it has no meaning.
pub const OWN_CHANGE: u64 = 1 << 63;

wire_struct! {
    /// `Trecalled tag[2] serial[8]`, with the tag NOTAG; has no reply.
    pub struct Trecalled {
        /// The serial of the recall. Neither the client nor its kernel uses the recalled leases any more.
        serial: u64,
    }
}
