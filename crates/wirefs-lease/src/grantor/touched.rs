//! The kinds of change, in short.

use super::Touched;
use bytes::Bytes;
use wirefs_op::FileId;

impl Touched {
    /// An object that the request names, or that its reply tells of.
    pub fn object(id: FileId) -> Touched {
        Touched { id, name: None, exclusive: false, recall_own: false }
    }

    /// An object that loses a name, or gets another, because of what stood at a name. It has other names besides, by which
    /// whoever makes the change may know it.
    pub fn with_other_names(id: FileId) -> Touched {
        Touched { recall_own: true, ..Touched::object(id) }
    }

    /// A name in a directory that will mean something else.
    pub fn name(dir: FileId, name: &[u8]) -> Touched {
        Touched { id: dir, name: Some(Bytes::copy_from_slice(name)), exclusive: true, recall_own: false }
    }
}
