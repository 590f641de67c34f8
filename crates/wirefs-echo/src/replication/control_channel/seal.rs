//! Seals control packets: authenticates the sender, binds the receiver, and rejects replays.

use ring::aead::{AES_128_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, Tag, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Salt};

use super::InstanceId;
use crate::replication::ReplicaId;
use crate::seal::EchoKey;

pub(super) const HELLO: u8 = 0;
pub(super) const MESSAGE: u8 = 1;
pub(super) const BLOCK: u8 = 2;
/// Size of the clear header in bytes.
pub(super) const CLEAR_BYTES: usize = 19;
/// Size of the AEAD tag in bytes.
pub(super) const TAG_BYTES: usize = 16;
/// The HKDF salt, with the version of the layout.
const PURPOSE: &[u8] = b"wirefs-echo together 1";
/// Size of the replay window in packets.
const WINDOW_PACKETS: u64 = 8_192;

/// The clear header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Clear {
    pub(super) kind: u8,
    pub(super) instance: InstanceId,
    pub(super) number: u64,
    pub(super) from: ReplicaId,
}

impl Clear {
    /// Decodes the clear header; `None` if the packet is no control packet.
    pub(super) fn decode(packet: &[u8]) -> Option<Clear> {
        let ([kind], rest) = packet.split_first_chunk()?;
        let (instance, rest) = rest.split_first_chunk()?;
        let (number, rest) = rest.split_first_chunk()?;
        let clear = Clear {
            kind: *kind,
            instance: InstanceId(u64::from_le_bytes(*instance)),
            number: u64::from_le_bytes(*number),
            from: ReplicaId(u16::from_le_bytes(*rest.first_chunk()?)),
        };
        (*kind <= BLOCK).then_some(clear)
    }

    fn encode(self) -> [u8; CLEAR_BYTES] {
        let mut bytes = [0; CLEAR_BYTES];
        let (kind, rest) = bytes.split_at_mut(1);
        let (instance, rest) = rest.split_at_mut(8);
        let (number, from) = rest.split_at_mut(8);
        kind.fill(self.kind);
        instance.copy_from_slice(&self.instance.0.to_le_bytes());
        number.copy_from_slice(&self.number.to_le_bytes());
        from.copy_from_slice(&self.from.0.to_le_bytes());
        bytes
    }

    fn nonce(self) -> Nonce {
        let mut bytes = [0; NONCE_LEN];
        bytes.iter_mut().zip(self.number.to_le_bytes()).for_each(|(to, from)| *to = from);
        Nonce::assume_unique_for_key(bytes)
    }

    /// Returns the associated data: the clear header and the receiver's instance.
    fn along(self, to: InstanceId) -> Aad<Vec<u8>> {
        Aad::from([&self.encode()[..], &to.0.to_le_bytes()].concat())
    }
}

/// Seals or opens the packets of one instance.
pub(super) struct ControlSeal(LessSafeKey);

impl std::fmt::Debug for ControlSeal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seal(secret)")
    }
}

impl ControlSeal {
    /// Derives the key of an instance. Returns `None` if the library rejects it, which does not happen.
    pub(super) fn new(key: &EchoKey, instance: InstanceId) -> Option<ControlSeal> {
        let secret = Salt::new(HKDF_SHA256, PURPOSE).extract(&key.0);
        let unbound = UnboundKey::from(secret.expand(&[&instance.0.to_le_bytes()], &AES_128_GCM).ok()?);
        Some(ControlSeal(LessSafeKey::new(unbound)))
    }

    /// Returns a sealed packet.
    pub(super) fn close(&self, clear: Clear, to: InstanceId, body: &[u8]) -> Option<Vec<u8>> {
        let mut packet = Vec::with_capacity(CLEAR_BYTES + body.len() + TAG_BYTES);
        packet.extend(clear.encode());
        packet.extend_from_slice(body);
        let sealed = packet.get_mut(CLEAR_BYTES..)?;
        let tag = self.0.seal_in_place_separate_tag(clear.nonce(), clear.along(to), sealed).ok()?;
        packet.extend_from_slice(tag.as_ref());
        Some(packet)
    }

    /// Opens a packet in place and returns its contents; `None` if it is not authentic.
    pub(super) fn open<'packet>(
        &self,
        clear: Clear,
        to: InstanceId,
        packet: &'packet mut [u8],
    ) -> Option<&'packet [u8]> {
        let (sealed, tag) = packet.split_last_chunk_mut::<TAG_BYTES>()?;
        let sealed = sealed.get_mut(CLEAR_BYTES..)?;
        let opened =
            self.0.open_in_place_separate_tag(clear.nonce(), clear.along(to), Tag::from(*tag), sealed, 0..);
        opened.ok().map(|body| &*body)
    }
}

/// The packets of one instance that were received (the anti-replay window of RFC 4303, 3.4.3).
#[derive(Debug)]
pub(super) struct ReplayWindow {
    words: Vec<u64>,
    /// The number after the highest received.
    next: u64,
}

impl Default for ReplayWindow {
    fn default() -> ReplayWindow {
        ReplayWindow { words: vec![0; (WINDOW_PACKETS / 64) as usize], next: 0 }
    }
}

impl ReplayWindow {
    /// Records a packet. Returns whether it is new; a packet older than the window counts as received.
    pub(super) fn take(&mut self, number: u64) -> bool {
        if number >= self.next {
            if number - self.next >= WINDOW_PACKETS {
                self.words.fill(0);
            } else {
                (self.next..number).for_each(|skipped| self.set(skipped, false));
            }
            self.next = number.saturating_add(1);
            self.set(number, true);
            return true;
        }
        if self.next - number > WINDOW_PACKETS {
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
    let number = number % WINDOW_PACKETS;
    ((number / 64) as usize, 1 << (number % 64))
}
