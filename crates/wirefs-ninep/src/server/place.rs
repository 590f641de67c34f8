//! A file that fids stand for: a node that the file system was asked for, and the name that led to it.

use super::{Files, answers};
use crate::limits::DEPTH_MAX;
use bytes::Bytes;
use std::sync::Arc;
use wirefs_client::call::{Call, Caller, Entry, ROOT, TreeNodeId};
use wirefs_op::path::is_name;
use wirefs_op::{Errno, Kind, Stat};

/// A node, held until this is dropped.
pub(super) struct Place {
    files: Arc<dyn Files>,
    pub(super) node: TreeNodeId,
    /// The directory, and the name there; `None` for the root.
    pub(super) parent: Option<(Arc<Place>, Bytes)>,
    is_directory: bool,
    depth: usize,
}

impl Place {
    pub(super) fn root(files: &Arc<dyn Files>) -> Arc<Place> {
        Arc::new(Place { files: Arc::clone(files), node: ROOT, parent: None, is_directory: true, depth: 0 })
    }

    /// Takes over an entry that the file system answered with, which counts as one lookup of its node.
    pub(super) fn of(dir: &Arc<Place>, name: &[u8], entry: &Entry) -> Arc<Place> {
        Arc::new(Place {
            files: Arc::clone(&dir.files),
            node: entry.node,
            parent: Some((Arc::clone(dir), Bytes::copy_from_slice(name))),
            is_directory: entry.stat.kind == Kind::Directory,
            depth: dir.depth + 1,
        })
    }

    /// Finds a name in a directory; `.` is the directory itself, `..` the one above, and the root above the root.
    ///
    /// # Errors
    /// As a lookup.
    pub(super) fn find(dir: &Arc<Place>, caller: Caller, name: &[u8]) -> Result<(Arc<Place>, Stat), Errno> {
        if !dir.is_directory {
            return Err(Errno::NotDirectory);
        }
        let known = match (name, &dir.parent) {
            (b"..", Some((above, _))) => Some(above),
            (b".." | b".", _) => Some(dir),
            _ => None,
        };
        if let Some(known) = known {
            return Ok((Arc::clone(known), known.stat(caller)?));
        }
        checked(name)?;
        if dir.depth >= DEPTH_MAX {
            return Err(Errno::NameTooLong);
        }
        let entry = answers::entry(dir.files.call(caller, Call::Lookup { parent: dir.node, name }))?;
        Ok((Place::of(dir, name, &entry), entry.stat))
    }

    pub(super) fn stat(&self, caller: Caller) -> Result<Stat, Errno> {
        answers::stat(self.files.call(caller, Call::Getattr { node: self.node, handle: None }))
    }

    /// The name that it was found by; `/` for the root.
    pub(super) fn name(&self) -> &[u8] {
        self.parent.as_ref().map_or(b"/", |(_, name)| name)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.parent.is_some() {
            self.files.call(Caller::default(), Call::Forget { node: self.node, count: 1 });
        }
    }
}

/// Returns a name that an entry may have.
///
/// # Errors
/// `ENAMETOOLONG`, or `EINVAL` for one that no entry can have.
pub(super) fn checked(name: &[u8]) -> Result<&[u8], Errno> {
    match is_name(name) {
        true => Ok(name),
        false if name.len() > wirefs_op::limits::NAME_BYTES_MAX => Err(Errno::NameTooLong),
        false => Err(Errno::Invalid),
    }
}
