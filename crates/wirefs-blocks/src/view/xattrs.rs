//! Reading extended attributes.

use super::View;
use super::names::positions;
use crate::halt::{Halt, Wants};
use crate::item::{Value, Xattr};
use crate::key::{Ino, Key, Part};
use crate::limits::{HASH_COLLISIONS_MAX, XATTRS_MAX};
use bytes::Bytes;

impl View<'_> {
    /// Returns an attribute and its key.
    pub(crate) fn find_xattr(&self, ino: Ino, name: &[u8]) -> Result<Option<(Key, Xattr)>, Halt> {
        for item in self.scan(positions(ino, Part::Xattr, name), HASH_COLLISIONS_MAX as usize)? {
            let xattr = Xattr::decode(item.value)?;
            if xattr.name == name {
                return Ok(Some((item.key, xattr)));
            }
        }
        Ok(None)
    }

    /// Returns all attributes of an object.
    pub(crate) fn xattrs(&self, ino: Ino) -> Result<Vec<Xattr>, Halt> {
        let range = Key::new(ino, Part::Xattr, 0)..=Key::new(ino, Part::Xattr, u64::MAX);
        let items = self.scan(range, XATTRS_MAX as usize)?.into_iter();
        items.map(|item| Ok(Xattr::decode(item.value)?)).collect()
    }

    /// Returns the bytes of a value.
    pub(crate) fn value(&self, value: &Value) -> Result<Bytes, Halt> {
        match value {
            Value::Inline(bytes) => Ok(bytes.clone()),
            Value::Spilled { bytes, ids } => {
                let mut wants = Wants::default();
                let mut whole = Vec::with_capacity(*bytes);
                for id in ids {
                    whole.extend(wants.of(self.contents(*id))?.into_iter().flatten());
                }
                wants.settle()?;
                Ok(Bytes::from(whole))
            }
        }
    }
}
