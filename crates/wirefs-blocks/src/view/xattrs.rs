//! Reading extended attributes.

use super::View;
use super::names::places;
use crate::halt::{Halt, Wants};
use crate::item::{Value, Xattr};
use crate::key::{Ino, Key, Part};
use crate::limits::{TWINS_MAX, XATTRS_MAX};
use bytes::Bytes;

impl View<'_> {
    /// An attribute, and where it stands.
    pub(crate) fn find_xattr(&self, ino: Ino, name: &[u8]) -> Result<Option<(Key, Xattr)>, Halt> {
        for item in self.scan(places(ino, Part::Xattr, name), TWINS_MAX as usize)? {
            let xattr = Xattr::decode(item.value)?;
            if xattr.name == name {
                return Ok(Some((item.key, xattr)));
            }
        }
        Ok(None)
    }

    /// All attributes of an object.
    pub(crate) fn xattrs(&self, ino: Ino) -> Result<Vec<Xattr>, Halt> {
        let range = Key::new(ino, Part::Xattr, 0)..=Key::new(ino, Part::Xattr, u64::MAX);
        let items = self.scan(range, XATTRS_MAX as usize)?.into_iter();
        items.map(|item| Ok(Xattr::decode(item.value)?)).collect()
    }

    /// The bytes of a value.
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
