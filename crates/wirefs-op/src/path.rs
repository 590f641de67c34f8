//! Paths within a tree: clean by construction, so that nothing past the decoder has to ask again.

#[cfg(test)]
mod tests;

use crate::limits::{NAME_BYTES_MAX, PATH_BYTES_MAX};
use crate::wire::{Malformed, Reader, Wire, Writer};
use bytes::Bytes;

/// A path below the root of a tree: names joined by `/`, no leading or trailing `/`; empty for the root itself.
///
/// INVARIANT: each name is 1 to 255 bytes, without NUL, and neither `.` nor `..`; the whole is within `PATH_BYTES_MAX`.
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TreePath(Bytes);

/// Whether a directory may have an entry of this name.
pub fn is_name(name: &[u8]) -> bool {
    !name.is_empty()
        && name.len() <= NAME_BYTES_MAX
        && name != b"."
        && name != b".."
        && !name.iter().any(|byte| matches!(byte, 0 | b'/'))
}

impl TreePath {
    /// The root of the tree.
    pub fn root() -> TreePath {
        TreePath(Bytes::new())
    }

    /// Takes clean bytes; `None` when they are not.
    pub fn from_bytes(bytes: Bytes) -> Option<TreePath> {
        let clean = bytes.is_empty() || bytes.split(|byte| *byte == b'/').all(is_name);
        (clean && bytes.len() <= PATH_BYTES_MAX).then_some(TreePath(bytes))
    }

    /// The path from these names, the root's first; `None` when one is not clean or the whole is too long.
    pub fn from_names<'a>(names: impl IntoIterator<Item = &'a [u8]>) -> Option<TreePath> {
        let mut bytes = Vec::new();
        for name in names {
            if !bytes.is_empty() {
                bytes.push(b'/');
            }
            bytes.extend_from_slice(name);
        }
        TreePath::from_bytes(Bytes::from(bytes))
    }

    /// The entry of this name in the directory that `self` is.
    pub fn join(&self, name: &[u8]) -> Option<TreePath> {
        is_name(name).then_some(())?;
        TreePath::from_names(self.names().chain([name]))
    }

    /// The names, the root's entry first.
    pub fn names(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.0.split(|byte| *byte == b'/').filter(|name| !name.is_empty())
    }

    /// The directory and the name in it; `None` for the root.
    pub fn split_last(&self) -> Option<(TreePath, &[u8])> {
        if self.0.is_empty() {
            return None;
        }
        match self.0.iter().rposition(|byte| *byte == b'/') {
            Some(slash) => Some((TreePath(self.0.slice(..slash)), &self.0[slash + 1..])),
            None => Some((TreePath::root(), &self.0)),
        }
    }

    /// The bytes, as they travel.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether this is the root.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }
}

impl std::fmt::Debug for TreePath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "/{}", String::from_utf8_lossy(&self.0).escape_debug())
    }
}

impl Wire for TreePath {
    fn put(&self, writer: &mut Writer) {
        writer.string(&self.0);
    }
    fn take(reader: &mut Reader) -> Result<Self, Malformed> {
        let bytes = reader.string(PATH_BYTES_MAX)?;
        // Copied: paths stay in tables for as long as a file is open, and must not keep a whole message with them.
        TreePath::from_bytes(Bytes::copy_from_slice(&bytes))
            .ok_or(reader.malformed("a path that is not clean"))
    }
}
