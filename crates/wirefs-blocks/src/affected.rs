//! The objects that a change affects, reported before the change is applied so that leases can be recalled.

use bytes::Bytes;
use wirefs_op::FileId;

/// An existing object or name that a change will modify.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AffectedObject {
    /// The object. If `name` is set, the directory that contains the name.
    pub id: FileId,
    /// The directory entry that changes; the attributes of the directory change with it. `None`: the whole
    /// object may change.
    pub name: Option<Bytes>,
    /// Whether the lease of the requester must be recalled, too. Either it did not ask for this part of the
    /// change, or the object gains or loses one of several names: the requester may have cached it under
    /// another one.
    pub affects_requester: bool,
}

/// A modification that no request announced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnrequestedChange {
    /// One object or name.
    Object(AffectedObject),
    /// Everything: another tree has become the live tree.
    Everything,
}

/// The change must wait for lease recalls. Nothing was modified; the request must be made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Postponed;
