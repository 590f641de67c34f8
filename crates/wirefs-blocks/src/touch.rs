//! What a change is about to change, for those who must hear of it first.

use bytes::Bytes;
use wirefs_op::FileId;

/// Something that is there and will be another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touch {
    /// The object; of a name, the directory that it is in.
    pub id: FileId,
    /// The one name whose meaning changes; the directory's own attributes change with it. Without it, everything of the
    /// object may.
    pub name: Option<Bytes>,
    /// The object loses or gets a name and has others besides, by which whoever makes the change may know it; or the change
    /// comes with another one, and whoever makes that does not know.
    pub is_surprise: bool,
}

/// What changed although no request said so before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unasked {
    /// This.
    Changed(Touch),
    /// Everything: another tree has become the present one.
    Everything,
}

/// Others must first be told of the change: nothing was changed, and the request is to be made anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parked;
