//! Changes of extended attributes.

use super::Change;
use crate::halt::Halt;
use crate::item::{Value, Xattr};
use crate::key::{Ino, Key, Part};
use crate::limits::{HASH_COLLISIONS_MAX, XATTR_INLINE_BYTES_MAX, XATTRS_MAX};
use crate::view::names::positions;
use bytes::Bytes;
use std::collections::BTreeSet;
use wirefs_op::{Errno, Kind};

/// `XATTR_CREATE`.
const XATTR_CREATE: u32 = 1;
/// `XATTR_REPLACE`.
const XATTR_REPLACE: u32 = 2;

/// Fails with `refused` unless the attribute is a `user.` attribute of a file or directory; no others are
/// supported.
pub(crate) fn check_name(kind: Kind, name: &[u8], refused: Errno) -> Result<(), Errno> {
    match (kind, name.strip_prefix(b"user.")) {
        (_, None | Some(b"")) => Err(Errno::NotSupported),
        (Kind::File | Kind::Directory, Some(_)) => Ok(()),
        (Kind::Symlink | Kind::Fifo | Kind::Socket | Kind::CharDevice | Kind::BlockDevice, Some(_)) => {
            Err(refused)
        }
    }
}

impl Change<'_> {
    /// `setxattr`.
    pub(crate) fn set_xattr(&mut self, ino: Ino, name: &[u8], value: &Bytes, flags: u32) -> Result<(), Halt> {
        let mut head = self.view.head(ino)?;
        check_name(head.kind, name, Errno::NotPermitted)?;
        let found = self.view.find_xattr(ino, name)?;
        match (flags, found.is_some()) {
            (XATTR_CREATE, true) => return Err(Halt::Failed(Errno::Exists)),
            (XATTR_REPLACE, false) => return Err(Halt::Failed(Errno::NoData)),
            (0, _) | (XATTR_CREATE, false) | (XATTR_REPLACE, true) => {}
            (_, _) => return Err(Halt::Failed(Errno::Invalid)),
        }
        let key = match found {
            Some((key, xattr)) => {
                self.drop_value(key, &xattr.value);
                key
            }
            None => {
                if head.xattrs >= XATTRS_MAX {
                    return Err(Halt::Failed(Errno::NoSpace));
                }
                head.xattrs += 1;
                self.free_position(ino, name)?
            }
        };
        let value = if value.len() <= XATTR_INLINE_BYTES_MAX {
            Value::Inline(value.clone())
        } else {
            self.spill(key, value)?
        };
        self.put(key, Some(Xattr { name: Bytes::copy_from_slice(name), value }.encode()));
        self.touch(&mut head);
        self.put_head(ino, &head);
        Ok(())
    }

    fn free_position(&self, ino: Ino, name: &[u8]) -> Result<Key, Halt> {
        let places = positions(ino, Part::Xattr, name);
        let taken = self.view.scan(places.clone(), HASH_COLLISIONS_MAX as usize)?;
        let taken: BTreeSet<u64> = taken.into_iter().map(|item| item.key.sub).collect();
        let free = (places.start().sub..=places.end().sub).find(|place| !taken.contains(place));
        free.map(|place| Key::new(ino, Part::Xattr, place)).ok_or(Halt::Failed(Errno::NoSpace))
    }

    /// Writes a value to contents blocks.
    fn spill(&mut self, key: Key, value: &Bytes) -> Result<Value, Halt> {
        let piece_bytes = self.view.geometry.piece_bytes() as usize;
        let mut ids = Vec::new();
        for at in (0..value.len()).step_by(piece_bytes) {
            let end = (at + piece_bytes).min(value.len());
            ids.push(self.add_contents(key, value.slice(at..end))?);
        }
        Ok(Value::Spilled { bytes: value.len(), ids })
    }

    pub(super) fn drop_value(&mut self, key: Key, value: &Value) {
        match value {
            Value::Inline(_) => {}
            Value::Spilled { ids, .. } => {
                for id in ids {
                    self.drop_contents(key, *id);
                }
            }
        }
    }

    /// `removexattr`.
    pub(crate) fn remove_xattr(&mut self, ino: Ino, name: &[u8]) -> Result<(), Halt> {
        let mut head = self.view.head(ino)?;
        check_name(head.kind, name, Errno::NotPermitted)?;
        let (key, xattr) = self.view.find_xattr(ino, name)?.ok_or(Errno::NoData)?;
        self.drop_value(key, &xattr.value);
        self.put(key, None);
        head.xattrs = head.xattrs.saturating_sub(1);
        self.touch(&mut head);
        self.put_head(ino, &head);
        Ok(())
    }
}
