//! Packet protection after the handshake.
//!
//! AES-256-GCM. Each direction of a group has a secret. Each path, and each 2²⁴ packets on it, have a key of
//! their own (key update). That is well below the limit of the cipher: RFC 9001, appendix B, allows 2²⁸
//! packets of 2 KiB. The nonce is the packet number. The clear header and both hardware addresses are
//! associated data, so a packet from or to another card than its sender intended fails authentication.

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, Tag, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Prk};

use crate::address::CardAddress;
use crate::wire::header::SEALED_HEADER_BYTES;

/// The size of the authentication tag, in bytes.
pub(crate) const TAG_BYTES: usize = 16;
/// The overhead of a sealed packet beside its parts, in bytes.
pub(crate) const OVERHEAD_BYTES: usize = SEALED_HEADER_BYTES + TAG_BYTES;
/// The low bits of the packet number that share a key.
const KEY_PHASE_BITS: u32 = 24;
/// The associated data: clear header, source, destination. In bytes.
const ASSOCIATED_DATA_BYTES: usize = SEALED_HEADER_BYTES + 2 * CardAddress::BYTES;

/// The secret of one direction.
#[derive(Clone)]
pub(crate) struct TrafficSecret(Prk);

impl std::fmt::Debug for TrafficSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TrafficSecret")
    }
}

/// Derives an AES-256-GCM key; `None` if the library fails, which does not occur.
pub(crate) fn expand_key(secret: &Prk, info: &[&[u8]]) -> Option<LessSafeKey> {
    let key = secret.expand(info, &AES_256_GCM).ok()?;
    Some(LessSafeKey::new(UnboundKey::from(key)))
}

impl TrafficSecret {
    /// Derives the secret of a direction from the secret of the handshake.
    pub(crate) fn derive(agreed: &Prk, direction: &[u8]) -> Option<TrafficSecret> {
        agreed
            .expand(&[b"direction ", direction], HKDF_SHA256)
            .ok()
            .map(|secret| TrafficSecret(Prk::from(secret)))
    }

    /// Returns the keys of one path.
    pub(crate) fn path(&self, path: u8) -> PathKeys {
        PathKeys { secret: self.clone(), path, held: Vec::with_capacity(2) }
    }
}

/// The keys of one path in one direction; the newest two are cached.
#[derive(Debug)]
pub(crate) struct PathKeys {
    secret: TrafficSecret,
    path: u8,
    held: Vec<(u64, LessSafeKey)>,
}

/// Builds the associated data of a packet.
fn associated_data(
    header: &[u8],
    source: CardAddress,
    destination: CardAddress,
) -> Option<Aad<[u8; ASSOCIATED_DATA_BYTES]>> {
    let mut bytes = [0; ASSOCIATED_DATA_BYTES];
    let (head, addresses) = bytes.split_first_chunk_mut::<SEALED_HEADER_BYTES>()?;
    *head = *header.first_chunk()?;
    let (from, to) = addresses.split_first_chunk_mut()?;
    *from = source.0;
    to.copy_from_slice(&destination.0);
    Some(Aad::from(bytes))
}

fn nonce(packet_number: u64) -> Nonce {
    let mut bytes = [0; NONCE_LEN];
    if let Some(tail) = bytes.last_chunk_mut() {
        *tail = packet_number.to_be_bytes();
    }
    Nonce::assume_unique_for_key(bytes)
}

impl PathKeys {
    fn derive(&self, key_phase: u64) -> Option<LessSafeKey> {
        expand_key(&self.secret.0, &[b"path ", &[self.path], &key_phase.to_be_bytes()])
    }

    fn hold(&mut self, key_phase: u64, key: LessSafeKey) {
        self.held.insert(0, (key_phase, key));
        self.held.sort_by_key(|(key_phase, _)| std::cmp::Reverse(*key_phase));
        self.held.truncate(2);
    }

    /// Seals a packet in place (clear header, content, space for the tag). Returns `false` if the library
    /// fails.
    pub(crate) fn seal(
        &mut self,
        packet_number: u64,
        source: CardAddress,
        destination: CardAddress,
        packet: &mut [u8],
    ) -> bool {
        let key_phase = packet_number >> KEY_PHASE_BITS;
        if !self.held.iter().any(|(held, _)| *held == key_phase) {
            let Some(key) = self.derive(key_phase) else {
                return false;
            };
            self.hold(key_phase, key);
        }
        let Some((_, key)) = self.held.iter().find(|(held, _)| *held == key_phase) else {
            return false;
        };
        let Some((clear, tag_field)) = packet.split_last_chunk_mut::<TAG_BYTES>() else {
            return false;
        };
        let Some(associated_data) = associated_data(clear, source, destination) else {
            return false;
        };
        let Some(content) = clear.get_mut(SEALED_HEADER_BYTES..) else {
            return false;
        };
        let Ok(tag) = key.seal_in_place_separate_tag(nonce(packet_number), associated_data, content) else {
            return false;
        };
        tag_field.copy_from_slice(tag.as_ref());
        true
    }

    /// Opens a packet in place and returns its content; `None` if authentication fails.
    pub(crate) fn open<'a>(
        &mut self,
        packet_number: u64,
        source: CardAddress,
        destination: CardAddress,
        packet: &'a mut [u8],
    ) -> Option<&'a [u8]> {
        let key_phase = packet_number >> KEY_PHASE_BITS;
        // A key for a new key phase is cached only after a packet was authenticated with it.
        let derived = match self.held.iter().any(|(held, _)| *held == key_phase) {
            true => None,
            false => Some(self.derive(key_phase)?),
        };
        let held = self.held.iter().find(|(held, _)| *held == key_phase).map(|(_, key)| key);
        let key = derived.as_ref().or(held)?;
        let (clear, tag) = packet.split_last_chunk_mut::<TAG_BYTES>()?;
        let tag = Tag::from(*tag);
        let associated_data = associated_data(clear, source, destination)?;
        let content = clear.get_mut(SEALED_HEADER_BYTES..)?;
        let content =
            key.open_in_place_separate_tag(nonce(packet_number), associated_data, tag, content, 0..).ok()?;
        if let Some(key) = derived {
            self.hold(key_phase, key);
        }
        Some(content)
    }
}

#[cfg(test)]
mod tests;
