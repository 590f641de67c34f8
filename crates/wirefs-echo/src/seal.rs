//! The seal: what makes a block unreadable, and a packet that we did not send recognisable.
//!
//! A packet is sealed anew for each lap, with the sequence number that it then has. So what passes by is different
//! bytes each time, nobody can follow a block from lap to lap, and each packet can be told from all others.
//!
//! # What is recognised, and at which honesty
//!
//! | packet | `--keep=index` | `--keep=root` |
//! |---|---|---|
//! | forged, changed, cut short, from another key | always: the tag | always: the tag |
//! | of another run or another store with this key | always: its origin | always: its origin |
//! | sealed for one host, coming from another | always: its number is part of the nonce | always |
//! | a second time (replayed, doubled by the network) | always: the index knows which sequence number is out | always: one bit a packet under way |
//! | of an earlier lap of a living block | always: as above | always: its bit is cleared, or it is beyond the bits |
//! | of a block that was dropped | always: it is not in the index | while the list of dropped blocks has it, and afterwards since its age, sealed inside, is over the limit |
//! | one that is late because the network held it | comes through, and goes on living, unless its block was repaired meanwhile | comes through within the age limit, else it is lost |
//!
//! One that was sent and did not come back yet may be delivered early or late or never by whoever holds it: no memory
//! can tell that from the network, and it is the genuine packet.

use ring::aead::{AES_128_GCM, AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, Tag, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Salt};
use wirefs_op::Time;

use crate::host::HostId;
use crate::packet::{CLEAR_BYTES, Cargo, Clear, Head, OVERHEAD_BYTES, Origin, Sequence, TAG_BYTES};

/// The version of the layout, which is sealed along.
const VERSION: [u8; 1] = [1];
/// What the keys that are derived from a secret are for.
const PURPOSE: &[u8] = b"wirefs-echo 1";

/// The secret of a store. It should be new for each store and come from a good source; the machine does not make it.
#[derive(Clone)]
pub struct Key(pub [u8; Key::BYTES]);

impl Key {
    /// Its size in bytes.
    pub const BYTES: usize = 32;
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(secret)")
    }
}

/// How packets are sealed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cipher {
    /// AES-128-GCM: the fastest where the processor has instructions for it.
    #[default]
    Aes128Gcm,
    /// AES-256-GCM: a third slower.
    Aes256Gcm,
    /// ChaCha20-Poly1305: three times as fast as AES without such instructions.
    ChaCha20Poly1305,
}

/// What is wrong with a packet that was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PacketFault {
    /// Too short to be one of ours.
    TooShort,
    /// From another store, or an earlier run of this one.
    Foreign,
    /// Sealed for another host than the one it came from.
    Misplaced,
    /// Its seal is broken: forged or damaged.
    Forged,
    /// Its seal is good and its content is nonsense.
    Malformed,
}

/// Seals and opens packets.
pub(crate) struct Sealer {
    key: LessSafeKey,
    origin: Origin,
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sealer").field("origin", &self.origin).finish_non_exhaustive()
    }
}

impl Sealer {
    /// Makes one, with a key of its own for this cipher and origin; none if the library refuses it, which it never does.
    pub(crate) fn new(cipher: Cipher, key: &Key, origin: Origin) -> Option<Sealer> {
        let (algorithm, name) = match cipher {
            Cipher::Aes128Gcm => (&AES_128_GCM, &b"aes-128-gcm"[..]),
            Cipher::Aes256Gcm => (&AES_256_GCM, &b"aes-256-gcm"[..]),
            Cipher::ChaCha20Poly1305 => (&CHACHA20_POLY1305, &b"chacha20-poly1305"[..]),
        };
        let secret = Salt::new(HKDF_SHA256, PURPOSE).extract(&key.0);
        let origin_bytes = origin.0.to_be_bytes();
        let key = LessSafeKey::new(UnboundKey::from(secret.expand(&[name, &origin_bytes], algorithm).ok()?));
        Some(Sealer { key, origin })
    }

    /// Opens a packet from `host` in place: its number and its head. Its piece is readable from then on.
    ///
    /// # Errors
    /// What is wrong with it; the packet's bytes are of no use then.
    pub(crate) fn open(&self, host: HostId, packet: &mut [u8]) -> Result<(Sequence, Head), PacketFault> {
        if packet.len() < OVERHEAD_BYTES {
            return Err(PacketFault::TooShort);
        }
        let clear = Clear::decode(packet).ok_or(PacketFault::TooShort)?;
        if clear.origin != self.origin {
            return Err(PacketFault::Foreign);
        }
        if clear.host != host {
            return Err(PacketFault::Misplaced);
        }
        let (sealed, tag) = packet.split_last_chunk_mut::<TAG_BYTES>().ok_or(PacketFault::TooShort)?;
        let sealed = sealed.get_mut(CLEAR_BYTES..).ok_or(PacketFault::TooShort)?;
        let nonce = Nonce::assume_unique_for_key(clear.encode());
        self.key
            .open_in_place_separate_tag(nonce, Aad::from(VERSION), Tag::from(*tag), sealed, 0..)
            .map_err(|_| PacketFault::Forged)?;
        let head = Head::decode(sealed).ok_or(PacketFault::Malformed)?;
        Ok((clear.sequence, head))
    }

    /// Seals a packet in place, behind whose head the piece already stands; it ends with room for the tag. Returns
    /// whether it could, which a packet of allowed size always can.
    pub(crate) fn seal(
        &self,
        host: HostId,
        sequence: Sequence,
        sent: Time,
        cargo: Cargo,
        packet: &mut [u8],
    ) -> bool {
        let clear = Clear { origin: self.origin, host, sequence }.encode();
        let Some((sealed, tag_field)) = packet.split_last_chunk_mut::<TAG_BYTES>() else {
            return false;
        };
        let Some((clear_field, sealed)) = sealed.split_first_chunk_mut::<CLEAR_BYTES>() else {
            return false;
        };
        let head = Head { sent, cargo }.encode();
        let Some(head_field) = sealed.first_chunk_mut() else {
            return false;
        };
        *head_field = head;
        *clear_field = clear;
        let nonce = Nonce::assume_unique_for_key(clear);
        let Ok(tag) = self.key.seal_in_place_separate_tag(nonce, Aad::from(VERSION), sealed) else {
            return false;
        };
        tag_field.copy_from_slice(tag.as_ref());
        true
    }
}

#[cfg(test)]
mod tests;
