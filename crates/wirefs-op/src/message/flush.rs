//! Tflush: gives up on an earlier request.

#[cfg(test)]
mod tests;

use crate::message::Tag;
use crate::wire::{Malformed, Reader, Wire, Writer, wire_struct};

impl Wire for Tag {
    fn put(&self, writer: &mut Writer) {
        self.0.put(writer);
    }
    fn take(reader: &mut Reader) -> Result<Self, Malformed> {
        u16::take(reader).map(Tag)
    }
}

wire_struct! {
    /// `Tflush tag[2] oldtag[2]`
    ///
    /// A waiting lock is withdrawn and a stream stopped; what is already being done is done. After Rflush no further
    /// reply to `oldtag` comes, so its tag is free.
    pub struct Tflush {
        /// The request to give up on.
        oldtag: Tag,
    }
}

wire_struct! {
    /// `Rflush tag[2]`
    pub struct Rflush {}
}
