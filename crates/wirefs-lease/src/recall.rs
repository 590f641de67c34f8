//! The contents of a recall.

use crate::limits::ITEM_BYTES;
use bytes::Bytes;
use wirefs_op::FileId;

/// The number of a recall; its answer repeats it. Serials start at 1 for each holder and are not reused while
/// the server has state of that holder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Serial(pub u64);

/// One recalled item.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LeaseItem {
    /// The object.
    pub id: FileId,
    /// With a name: the entry of that name in this directory, and the directory's attributes and listing;
    /// other names stay leased. Without: the whole object.
    pub name: Option<Bytes>,
}

impl LeaseItem {
    /// The whole object.
    pub fn whole(id: FileId) -> LeaseItem {
        LeaseItem { id, name: None }
    }

    /// One name in a directory.
    pub fn named(id: FileId, name: impl Into<Bytes>) -> LeaseItem {
        LeaseItem { id, name: Some(name.into()) }
    }

    /// Returns the maximal size of the item on the wire, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        ITEM_BYTES + self.name.as_ref().map_or(0, Bytes::len)
    }
}
