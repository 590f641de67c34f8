//! Seals packets: hides the blocks, and makes packets of other senders recognizable.
//!
//! A packet is sealed again for each transmission, with its new sequence number. So the bytes on the wire
//! differ each time, an observer cannot follow a block, and each packet is unique.
//!
//! # Packets that are recognized, by `--keep` mode
//!
//! | packet | `--keep=index` | `--keep=root` |
//! |---|---|---|
//! | forged, changed, cut, from another key | always: the tag | always: the tag |
//! | of another run or another store with this key | always: its origin | always: its origin |
//! | sealed for one host, returned by another | always: its number is part of the nonce | always |
//! | received twice (replayed, duplicated) | always: the index has the number in flight | always: one bit per packet in flight |
//! | of an earlier cycle of a live block | always: as above | always: its bit is cleared, or it is outside the window |
//! | of a dropped block | always: it is not in the index | by its tombstone, and after that by its sealed send time |
//! | delayed in the network | accepted, unless its block was repaired meanwhile | accepted within the age limit, else lost |
//!
//! An attacker who holds back a packet in flight can deliver it early, late or never. No state can tell that
//! from the network, and the packet is genuine.

use ring::aead::{AES_128_GCM, AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, Tag, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Salt};
use wirefs_op::Time;

use crate::host::HostId;
use crate::packet::{
    CLEAR_BYTES, ClearHeader, OVERHEAD_BYTES, Origin, PacketPayload, PacketSequence, SealedHeader, TAG_BYTES,
};

/// The version of the layout, which is authenticated.
const VERSION: [u8; 1] = [1];
/// The HKDF salt.
const PURPOSE: &[u8] = b"wirefs-echo 1";

/// The secret of a store. It must be new for each store and come from a good random source.
#[derive(Clone)]
pub struct EchoKey(pub [u8; EchoKey::BYTES]);

impl EchoKey {
    /// Size of a key in bytes.
    pub const BYTES: usize = 32;
}

impl std::fmt::Debug for EchoKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(secret)")
    }
}

/// The AEAD that seals packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cipher {
    /// AES-128-GCM: the fastest with AES instructions.
    #[default]
    Aes128Gcm,
    /// AES-256-GCM: a third slower.
    Aes256Gcm,
    /// ChaCha20-Poly1305: three times as fast as AES without such instructions.
    ChaCha20Poly1305,
}

/// The reason why a received packet is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PacketFault {
    /// Shorter than the overhead.
    TooShort,
    /// Of another store, or of an earlier run.
    Foreign,
    /// Sealed for another host than the one that returned it.
    Misplaced,
    /// The tag does not match: forged or damaged.
    Forged,
    /// Authentic, but the header is invalid.
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
    /// Derives the key of this cipher and origin. Returns `None` if the library rejects it, which does not
    /// happen.
    pub(crate) fn new(cipher: Cipher, key: &EchoKey, origin: Origin) -> Option<Sealer> {
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

    /// Opens a packet from `host` in place and returns its number and header. The piece is then readable.
    ///
    /// # Errors
    /// A [`PacketFault`]; the packet's bytes are then undefined.
    pub(crate) fn open(
        &self,
        host: HostId,
        packet: &mut [u8],
    ) -> Result<(PacketSequence, SealedHeader), PacketFault> {
        if packet.len() < OVERHEAD_BYTES {
            return Err(PacketFault::TooShort);
        }
        let clear = ClearHeader::decode(packet).ok_or(PacketFault::TooShort)?;
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
        let head = SealedHeader::decode(sealed).ok_or(PacketFault::Malformed)?;
        Ok((clear.sequence, head))
    }

    /// Seals a packet in place. The piece is already behind the header, and the packet ends with room for the
    /// tag. Returns whether that succeeded, which holds for each allowed size.
    pub(crate) fn seal(
        &self,
        host: HostId,
        sequence: PacketSequence,
        sent: Time,
        payload: PacketPayload,
        packet: &mut [u8],
    ) -> bool {
        let clear = ClearHeader { origin: self.origin, host, sequence }.encode();
        let Some((sealed, tag_field)) = packet.split_last_chunk_mut::<TAG_BYTES>() else {
            return false;
        };
        let Some((clear_field, sealed)) = sealed.split_first_chunk_mut::<CLEAR_BYTES>() else {
            return false;
        };
        let head = SealedHeader { sent, payload }.encode();
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
