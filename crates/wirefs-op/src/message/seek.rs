//! Tseek: finds data and holes.

#[cfg(test)]
mod tests;

use crate::errno::Errno;
use crate::message::target::Target;
use crate::wire::wire_struct;

wire_struct! {
    /// `Tseek tag[2] target offset[8] hole[1]`
    pub struct Tseek {
        /// The file.
        target: Target,
        /// The offset to search from.
        offset: u64,
        /// True: searches for the next hole (`SEEK_HOLE`). False: for the next data (`SEEK_DATA`).
        hole: bool,
    }
}

wire_struct! {
    /// `Rseek tag[2] offset[8]`
    pub struct Rseek {
        /// The offset found.
        offset: u64,
    }
}

impl Tseek {
    /// Returns the reply for a file of `size` bytes whose holes are not known: it is data to its end.
    ///
    /// # Errors
    /// `ENXIO`: the offset is at the end or behind it.
    pub fn without_holes(&self, size: u64) -> Result<Rseek, Errno> {
        if self.offset >= size {
            return Err(Errno::NoSuchDevice);
        }
        Ok(Rseek { offset: if self.hole { size } else { self.offset } })
    }
}
