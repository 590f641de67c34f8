//! Paths within a tree. They are clean by construction, so that only the decoder validates them.

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

/// Returns true if a directory may have an entry of this name.
pub fn is_name(name: &[u8]) -> bool {
    !name.is_empty()
        && name.len() <= NAME_BYTES_MAX
        && name != b"."
        && name != b".."
        && !name.iter().any(|byte| matches!(byte, 0 | b'/'))
}

impl TreePath {
    /// Returns the root of the tree.
    pub fn root() -> TreePath {
        TreePath(Bytes::new())
    }

    /// Creates a path from bytes; `None` if they are not clean.
    pub fn from_bytes(bytes: Bytes) -> Option<TreePath> {
        let clean = bytes.is_empty() || bytes.split(|byte| *byte == b'/').all(is_name);
        (clean && bytes.len() <= PATH_BYTES_MAX).then_some(TreePath(bytes))
    }

    /// Creates a path from names, outermost first; `None` if one is not clean or the path is too long.
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

    /// Returns the path of an entry in the directory at this path; `None` if the name is not clean or the
    /// path is too long.
    pub fn join(&self, name: &[u8]) -> Option<TreePath> {
        is_name(name).then_some(())?;
        TreePath::from_names(self.names().chain([name]))
    }

    /// Returns the names, outermost first.
    pub fn names(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.0.split(|byte| *byte == b'/').filter(|name| !name.is_empty())
    }

    /// Returns the parent directory and the name in it; `None` for the root.
    pub fn split_last(&self) -> Option<(TreePath, &[u8])> {
        if self.0.is_empty() {
            return None;
        }
        match self.0.iter().rposition(|byte| *byte == b'/') {
            Some(slash) => Some((TreePath(self.0.slice(..slash)), &self.0[slash + 1..])),
            None => Some((TreePath::root(), &self.0)),
        }
    }

    /// Returns the bytes of the encoded path.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns true if the path is the root.
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
        // Copied: paths stay in tables while files are open, and must not keep whole messages in memory.
        TreePath::from_bytes(Bytes::copy_from_slice(&bytes))
            .ok_or(reader.malformed("a path that is not clean"))
    }
}
