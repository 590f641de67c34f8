//! The outcome of a change, as far as a replay needs it.
//!
//! ```text
//!  flags[1]  fs[4] ino[8] generation[4]  offset[8]      flags: 1 rejected, 2 created this object, 4 appended at this offset,
//!                                                        8 not answered, and 4 is the expected offset
//! ```

use bytes::Buf;
use wirefs_op::FileId;

const REJECTED: u8 = 1;
const MADE: u8 = 2;
const OFFSET: u8 = 4;
const EXPECTED: u8 = 8;
/// The length of an encoded outcome, in bytes.
pub(crate) const OUTCOME_BYTES: usize = 25;

/// The part of a reply that a replay needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChangeOutcome {
    /// Whether the server has answered the change.
    pub is_answered: bool,
    /// Whether the server rejected the change.
    pub is_rejected: bool,
    /// The object that the change created or opened.
    pub made: Option<FileId>,
    /// The offset of an append; if unanswered, the expected one. An exclusive client knows the size of the file.
    pub offset: Option<u64>,
}

impl ChangeOutcome {
    /// Encodes the outcome.
    pub fn encode(&self) -> [u8; OUTCOME_BYTES] {
        let made = self.made.unwrap_or_default();
        let bit = |condition: bool, bit: u8| if condition { bit } else { 0 };
        let flags = bit(self.is_rejected, REJECTED)
            | bit(self.made.is_some(), MADE)
            | bit(self.offset.is_some(), OFFSET)
            | bit(!self.is_answered, EXPECTED);
        let fields = [flags].into_iter().chain(made.to_bytes());
        let fields = fields.chain(self.offset.unwrap_or_default().to_le_bytes());
        let mut bytes = [0; OUTCOME_BYTES];
        bytes.iter_mut().zip(fields).for_each(|(to, from)| *to = from);
        bytes
    }

    /// Decodes an outcome; `None` for other bytes.
    pub(crate) fn decode(mut bytes: &[u8]) -> Option<ChangeOutcome> {
        if bytes.len() != OUTCOME_BYTES {
            return None;
        }
        let flags = bytes.get_u8();
        let made = FileId::take_bytes(&mut bytes)?;
        let offset = bytes.get_u64_le();
        let is_known = flags & !(REJECTED | MADE | OFFSET | EXPECTED) == 0;
        is_known.then_some(ChangeOutcome {
            is_answered: flags & EXPECTED == 0,
            is_rejected: flags & REJECTED != 0,
            made: (flags & MADE != 0).then_some(made),
            offset: (flags & OFFSET != 0).then_some(offset),
        })
    }
}

#[cfg(test)]
mod tests;
