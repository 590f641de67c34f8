//! An extended attribute.

use crate::codec::{Corrupt, Reader, Writer};
use crate::id::BlockId;
use bytes::Bytes;
use wirefs_op::limits::{NAME_BYTES_MAX, XATTR_BYTES_MAX};

const INLINE: u8 = 0;
const SPILLED: u8 = 1;

/// The name and value of an extended attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Xattr {
    pub(crate) name: Bytes,
    pub(crate) value: Value,
}

/// The place of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// Inline in the item.
    Inline(Bytes),
    /// In contents blocks, in order.
    Spilled { bytes: usize, ids: Vec<BlockId> },
}

impl Xattr {
    pub(crate) fn encode(&self) -> Bytes {
        let mut writer = Writer::new();
        writer.string(&self.name);
        match &self.value {
            Value::Inline(bytes) => {
                writer.byte(INLINE);
                writer.raw(bytes);
            }
            Value::Spilled { bytes, ids } => {
                writer.byte(SPILLED);
                writer.number(*bytes as u64);
                writer.number(ids.len() as u64);
                let mut before = 0;
                for id in ids {
                    writer.id(*id, &mut before);
                }
            }
        }
        writer.finish()
    }

    pub(crate) fn decode(bytes: Bytes) -> Result<Xattr, Corrupt> {
        let mut reader = Reader::new(bytes);
        let name = reader.string(NAME_BYTES_MAX)?;
        let value = match reader.byte()? {
            INLINE => Value::Inline(reader.rest()),
            SPILLED => {
                let bytes = reader.fitting::<usize>()?;
                let count = reader.fitting::<usize>()?;
                if bytes > XATTR_BYTES_MAX || count > reader.remaining() {
                    return Err(reader.corrupt("an attribute longer than its limit"));
                }
                let mut before = 0;
                let ids = (0..count).map(|_| reader.id(&mut before)).collect::<Result<_, _>>()?;
                Value::Spilled { bytes, ids }
            }
            _ => return Err(reader.corrupt("an unknown kind of value")),
        };
        reader.end()?;
        Ok(Xattr { name, value })
    }
}
