//! The reasons why an invitation admits nobody.

/// The reason why a conversation about an invitation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The other side did not know the code. This cost a try.
    WrongCode,
    /// The invitation was used, has expired, or had too many wrong tries.
    Over,
    /// The message is not one of this protocol or version.
    Malformed,
    /// The inviter could not store the joiner's key.
    NotStored,
}

impl Refusal {
    /// Returns the number that stands for it in messages.
    pub(super) fn code(self) -> u8 {
        match self {
            Refusal::WrongCode => 1,
            Refusal::Over => 2,
            Refusal::Malformed => 3,
            Refusal::NotStored => 4,
        }
    }

    pub(super) fn from_code(code: u8) -> Refusal {
        match code {
            1 => Refusal::WrongCode,
            2 => Refusal::Over,
            4 => Refusal::NotStored,
            _ => Refusal::Malformed,
        }
    }

    /// Returns the message for the joiner.
    pub fn message(self) -> Vec<u8> {
        super::message::refusal(self)
    }
}
