//! The seal of letters: who wrote one, to whom, and that it comes for the first time.

use ring::aead::{AES_128_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, Tag, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Salt};

use super::Life;
use crate::seal::Key;
use crate::together::NodeId;

pub(super) const HELLO: u8 = 0;
pub(super) const MESSAGE: u8 = 1;
pub(super) const BLOCK: u8 = 2;
/// The bytes in the clear.
pub(super) const CLEAR_BYTES: usize = 19;
/// The bytes of the tag.
pub(super) const TAG_BYTES: usize = 16;
/// What the keys that are derived from a secret are for, with the version of the layout.
const PURPOSE: &[u8] = b"wirefs-echo together 1";
/// Letters that may overtake one another.
const WINDOW_LETTERS: u64 = 8_192;

/// What is told in the clear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Clear {
    pub(super) kind: u8,
    pub(super) life: Life,
    pub(super) number: u64,
    pub(super) from: NodeId,
}

impl Clear {
    /// Reads it from the front of a packet; none of what is no letter.
    pub(super) fn decode(packet: &[u8]) -> Option<Clear> {
        let ([kind], rest) = packet.split_first_chunk()?;
        let (life, rest) = rest.split_first_chunk()?;
        let (number, rest) = rest.split_first_chunk()?;
        let clear = Clear {
            kind: *kind,
            life: Life(u64::from_le_bytes(*life)),
            number: u64::from_le_bytes(*number),
            from: NodeId(u16::from_le_bytes(*rest.first_chunk()?)),
        };
        (*kind <= BLOCK).then_some(clear)
    }

    fn encode(self) -> [u8; CLEAR_BYTES] {
        let mut bytes = [0; CLEAR_BYTES];
        let (kind, rest) = bytes.split_at_mut(1);
        let (life, rest) = rest.split_at_mut(8);
        let (number, from) = rest.split_at_mut(8);
        kind.fill(self.kind);
        life.copy_from_slice(&self.life.0.to_le_bytes());
        number.copy_from_slice(&self.number.to_le_bytes());
        from.copy_from_slice(&self.from.0.to_le_bytes());
        bytes
    }

    fn nonce(self) -> Nonce {
        let mut bytes = [0; NONCE_LEN];
        bytes.iter_mut().zip(self.number.to_le_bytes()).for_each(|(to, from)| *to = from);
        Nonce::assume_unique_for_key(bytes)
    }

    /// What is sealed along: all of it, and the life of the receiver.
    fn along(self, to: Life) -> Aad<Vec<u8>> {
        Aad::from([&self.encode()[..], &to.0.to_le_bytes()].concat())
    }
}

/// Seals the letters of one life, or opens them.
pub(super) struct Seal(LessSafeKey);

impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seal(secret)")
    }
}

impl Seal {
    /// None if the library refuses the key, which it never does.
    pub(super) fn new(key: &Key, life: Life) -> Option<Seal> {
        let secret = Salt::new(HKDF_SHA256, PURPOSE).extract(&key.0);
        let unbound = UnboundKey::from(secret.expand(&[&life.0.to_le_bytes()], &AES_128_GCM).ok()?);
        Some(Seal(LessSafeKey::new(unbound)))
    }

    /// A sealed letter.
    pub(super) fn close(&self, clear: Clear, to: Life, body: &[u8]) -> Option<Vec<u8>> {
        let mut packet = Vec::with_capacity(CLEAR_BYTES + body.len() + TAG_BYTES);
        packet.extend(clear.encode());
        packet.extend_from_slice(body);
        let sealed = packet.get_mut(CLEAR_BYTES..)?;
        let tag = self.0.seal_in_place_separate_tag(clear.nonce(), clear.along(to), sealed).ok()?;
        packet.extend_from_slice(tag.as_ref());
        Some(packet)
    }

    /// What is in a letter, if it was sealed so.
    pub(super) fn open<'packet>(
        &self,
        clear: Clear,
        to: Life,
        packet: &'packet mut [u8],
    ) -> Option<&'packet [u8]> {
        let (sealed, tag) = packet.split_last_chunk_mut::<TAG_BYTES>()?;
        let sealed = sealed.get_mut(CLEAR_BYTES..)?;
        let opened =
            self.0.open_in_place_separate_tag(clear.nonce(), clear.along(to), Tag::from(*tag), sealed, 0..);
        opened.ok().map(|body| &*body)
    }
}

/// Which letters of a life came already.
#[derive(Debug)]
pub(super) struct Seen {
    words: Vec<u64>,
    /// The number after the highest that came.
    next: u64,
}

impl Default for Seen {
    fn default() -> Seen {
        Seen { words: vec![0; (WINDOW_LETTERS / 64) as usize], next: 0 }
    }
}

impl Seen {
    /// Whether a letter comes for the first time. What is behind by more than a window counts as seen.
    pub(super) fn take(&mut self, number: u64) -> bool {
        if number >= self.next {
            if number - self.next >= WINDOW_LETTERS {
                self.words.fill(0);
            } else {
                (self.next..number).for_each(|skipped| self.set(skipped, false));
            }
            self.next = number.saturating_add(1);
            self.set(number, true);
            return true;
        }
        if self.next - number > WINDOW_LETTERS {
            return false;
        }
        let (word, bit) = place(number);
        let was_there = self.words.get(word).is_none_or(|word| word & bit != 0);
        self.set(number, true);
        !was_there
    }

    fn set(&mut self, number: u64, is_there: bool) {
        let (word, bit) = place(number);
        if let Some(word) = self.words.get_mut(word) {
            *word = if is_there { *word | bit } else { *word & !bit };
        }
    }
}

fn place(number: u64) -> (usize, u64) {
    let number = number % WINDOW_LETTERS;
    ((number / 64) as usize, 1 << (number % 64))
}
