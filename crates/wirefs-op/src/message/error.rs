//! Rerror: the failure of a request.

#[cfg(test)]
mod tests;

use crate::errno::Errno;
use crate::wire::{Malformed, Reader, Text, Wire, Writer, wire_struct};

impl Wire for Errno {
    fn put(&self, writer: &mut Writer) {
        self.code().put(writer);
    }
    fn take(reader: &mut Reader) -> Result<Self, Malformed> {
        u16::take(reader).map(Errno::from_code)
    }
}

wire_struct! {
    /// `Rerror tag[2] errno[2] ename[s]`
    pub struct Rerror {
        /// The error code for the program.
        errno: Errno,
        /// A text for people.
        ename: Text,
    }
}

impl From<Errno> for Rerror {
    fn from(errno: Errno) -> Rerror {
        Rerror { errno, ename: Text::new(errno.text().as_bytes()) }
    }
}
