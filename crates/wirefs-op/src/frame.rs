//! A message as it travels: `size[4] type[1] tag[2] …`, its trailing data kept apart so that it is never copied.

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
    /// The number of bytes on the wire, the size word included.
    pub fn wire_len(&self) -> usize {
        self.head.len() + self.data.len()
    }

    /// The whole message in one buffer, without the size word: what a carrier hands to the decoder on the other side.
    pub fn to_body(&self) -> Bytes {
        let mut body = Vec::with_capacity(self.wire_len());
        body.extend_from_slice(self.head.get(4..).unwrap_or_default());
        body.extend_from_slice(&self.data);
        Bytes::from(body)
    }
}
