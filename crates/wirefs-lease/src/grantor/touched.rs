//! Constructors for the kinds of touched objects.

use super::Touched;
use bytes::Bytes;
use wirefs_op::FileId;

impl Touched {
    /// An object that the request names or that its reply describes.
    pub fn object(id: FileId) -> Touched {
        Touched { id, name: None, exclusive: false, recall_own: false }
    }

    /// An object that loses or gains a name because of the entry that the request found. It has other names,
    /// under which the requester may have cached it.
    pub fn with_other_names(id: FileId) -> Touched {
        Touched { recall_own: true, ..Touched::object(id) }
    }

    /// A name in a directory whose entry will change.
    pub fn name(dir: FileId, name: &[u8]) -> Touched {
        Touched { id: dir, name: Some(Bytes::copy_from_slice(name)), exclusive: true, recall_own: false }
    }
}
