//! Codes that people read from one screen and type on another machine.

use std::fmt;

/// Digits of a code: no i, l, o or u, which are read as others.
const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// Digits of the label, which names the invitation on the segment and is no secret.
pub(super) const LABEL_DIGITS: usize = 2;
/// Digits of the whole code.
const CODE_DIGITS: usize = 8;

const _: () = assert!(
    (CODE_DIGITS - LABEL_DIGITS) * 5 >= 30,
    "three tries guess the secret digits with a probability below 1 to 300 million"
);

/// The code of an invitation: two digits of a label and six secret ones, as in `k7-4fm-q2x`.
#[derive(Clone, PartialEq, Eq)]
pub struct InvitationCode([u8; CODE_DIGITS]);

impl InvitationCode {
    /// Makes a code of random bytes.
    pub fn from_random(random: [u8; CODE_DIGITS]) -> InvitationCode {
        InvitationCode(random.map(|byte| digit(byte % 32)))
    }

    /// Parses a code as it was typed. Case and hyphens do not count; `o` is 0, and `i` and `l` are 1. `None`: no code.
    pub fn parse(text: &str) -> Option<InvitationCode> {
        let typed = text.bytes().filter(|byte| *byte != b'-' && !byte.is_ascii_whitespace());
        let digits: Option<Vec<u8>> = typed.map(read_digit).collect();
        digits?.try_into().ok().map(InvitationCode)
    }

    /// Returns the label, which is no secret.
    pub(super) fn label(&self) -> [u8; LABEL_DIGITS] {
        self.0.first_chunk().copied().unwrap_or_default()
    }

    /// Returns all digits: the password of the key exchange.
    pub(super) fn digits(&self) -> &[u8] {
        &self.0
    }
}

fn digit(value: u8) -> u8 {
    DIGITS.get(usize::from(value)).copied().unwrap_or_default()
}

fn read_digit(byte: u8) -> Option<u8> {
    let read = match byte.to_ascii_lowercase() {
        b'o' => b'0',
        b'i' | b'l' => b'1',
        other => other,
    };
    DIGITS.contains(&read).then_some(read)
}

impl fmt::Display for InvitationCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, byte) in self.0.iter().enumerate() {
            let gap = if matches!(index, 2 | 5) { "-" } else { "" };
            write!(f, "{gap}{}", char::from(*byte))?;
        }
        Ok(())
    }
}

impl fmt::Debug for InvitationCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InvitationCode")
    }
}
