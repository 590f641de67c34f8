//! Byte strings: short ones for names and texts, long ones for contents.

use crate::limits::DATA_BYTES_MAX;
use crate::wire::{Malformed, Reader, Wire, Writer};
use bytes::Bytes;

/// A short string: user names, versions, error texts, attribute names. At most 255 bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Text(Bytes);

impl Text {
    /// Creates a text, truncated to 255 bytes.
    pub fn new(bytes: &[u8]) -> Text {
        Text(Bytes::copy_from_slice(bytes.get(..255).unwrap_or(bytes)))
    }

    /// Returns the bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl std::fmt::Display for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", String::from_utf8_lossy(&self.0).escape_debug())
    }
}

impl Wire for Text {
    fn put(&self, writer: &mut Writer) {
        writer.string(&self.0);
    }
    fn take(reader: &mut Reader) -> Result<Self, Malformed> {
        // Copied: a text may live long, and must not keep a whole message in memory.
        Ok(Text::new(&reader.string(255)?))
    }
}

/// The trailing `count[4] data[count]` of a message, always its last field. Never copied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Data(pub Bytes);

impl Wire for Data {
    fn put(&self, writer: &mut Writer) {
        debug_assert!(self.0.len() <= DATA_BYTES_MAX);
        (self.0.len() as u32).put(writer);
        writer.trail(self.0.clone());
    }
    fn take(reader: &mut Reader) -> Result<Self, Malformed> {
        let count = u32::take(reader)? as usize;
        if count > DATA_BYTES_MAX {
            return Err(reader.malformed("data over its limit"));
        }
        reader.bytes(count).map(Data)
    }
}
