//! What the client was told of a change, where doing it again has to know.
//!
//! ```text
//!  flags[1]  fs[4] ino[8] generation[4]  offset[8]      flags: 1 it was refused, 2 it made this object, 4 it wrote there,
//!                                                        8 it is not answered, and 4 is the place that is expected
//! ```

use bytes::Buf;
use wirefs_op::FileId;

const REFUSED: u8 = 1;
const MADE: u8 = 2;
const WENT: u8 = 4;
const EXPECTED: u8 = 8;
/// Its length, in bytes.
pub(crate) const TOLD_BYTES: usize = 25;

/// What the client had been told of a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// The server has answered it.
    pub is_answered: bool,
    /// The server refused it.
    pub is_refused: bool,
    /// What it made or opened.
    pub made: Option<FileId>,
    /// Where an append went, or goes if it is not answered: its client was the only one, and knew the size of the file.
    pub offset: Option<u64>,
}

impl Told {
    /// Its bytes: those of an answer, or of the place where an append is expected to go.
    pub fn encode(&self) -> [u8; TOLD_BYTES] {
        let made = self.made.unwrap_or(FileId { fs: 0, ino: 0, generation: 0 });
        let bit = |condition: bool, bit: u8| if condition { bit } else { 0 };
        let flags = bit(self.is_refused, REFUSED)
            | bit(self.made.is_some(), MADE)
            | bit(self.offset.is_some(), WENT)
            | bit(!self.is_answered, EXPECTED);
        let fields = [flags].into_iter().chain(made.fs.to_le_bytes()).chain(made.ino.to_le_bytes());
        let fields = fields.chain(made.generation.to_le_bytes());
        let fields = fields.chain(self.offset.unwrap_or_default().to_le_bytes());
        let mut bytes = [0; TOLD_BYTES];
        bytes.iter_mut().zip(fields).for_each(|(to, from)| *to = from);
        bytes
    }

    /// `None`: these are not the bytes of any.
    pub(crate) fn decode(mut bytes: &[u8]) -> Option<Told> {
        if bytes.len() != TOLD_BYTES {
            return None;
        }
        let flags = bytes.get_u8();
        let made = FileId { fs: bytes.get_u32_le(), ino: bytes.get_u64_le(), generation: bytes.get_u32_le() };
        let offset = bytes.get_u64_le();
        let is_known = flags & !(REFUSED | MADE | WENT | EXPECTED) == 0;
        is_known.then_some(Told {
            is_answered: flags & EXPECTED == 0,
            is_refused: flags & REFUSED != 0,
            made: (flags & MADE != 0).then_some(made),
            offset: (flags & WENT != 0).then_some(offset),
        })
    }
}

#[cfg(test)]
mod tests;
