//! Tflush: cancels an earlier request.

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
    /// Withdraws a waiting lock and stops a stream; an operation in execution completes. No reply to `oldtag`
    /// follows Rflush, so its tag may be reused.
    pub struct Tflush {
        /// The tag of the request to cancel.
        oldtag: Tag,
    }
}

wire_struct! {
    /// `Rflush tag[2]`
    pub struct Rflush {}
}
