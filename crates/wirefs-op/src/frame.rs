//! An encoded message: `size[4] type[1] tag[2] …`, with its trailing data in a buffer of its own, so that
//! data is never copied.

use bytes::Bytes;

/// One encoded message. `head` starts with `size[4]`, which counts `head` and `data` together; `data` is the
/// message's trailing bytes (file contents, listings), shared and not copied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// The size word and all fields before the data.
    pub head: Vec<u8>,
    /// The trailing data, often empty.
    pub data: Bytes,
}

impl Frame {
    /// Returns the size on the wire in bytes, including the size word.
    pub fn wire_len(&self) -> usize {
        self.head.len() + self.data.len()
    }

    /// Returns the whole message in one buffer without the size word, as a carrier passes it to the decoder
    /// on the other side.
    pub fn to_body(&self) -> Bytes {
        let mut body = Vec::with_capacity(self.wire_len());
        body.extend_from_slice(self.head.get(4..).unwrap_or_default());
        body.extend_from_slice(&self.data);
        Bytes::from(body)
    }
}
