//! What a recall says.

use crate::limits::ITEM_BYTES;
use bytes::Bytes;
use wirefs_op::FileId;

/// The number of a recall; its answer repeats it. Counted from 1 for each holder, and never used twice while the
/// server knows that holder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Serial(pub u64);

/// One thing that is recalled.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LeaseItem {
    /// The object.
    pub id: FileId,
    /// With a name: what that name means in this directory, the directory's attributes and its listing; its other
    /// names stay leased. Without: everything of the object.
    pub name: Option<Bytes>,
}

impl LeaseItem {
    /// Everything of an object.
    pub fn whole(id: FileId) -> LeaseItem {
        LeaseItem { id, name: None }
    }

    /// One name of a directory.
    pub fn named(id: FileId, name: impl Into<Bytes>) -> LeaseItem {
        LeaseItem { id, name: Some(name.into()) }
    }

    /// How many bytes it takes on the wire, at most.
    pub(crate) fn bytes(&self) -> usize {
        ITEM_BYTES + self.name.as_ref().map_or(0, Bytes::len)
    }
}
