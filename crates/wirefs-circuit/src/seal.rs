//! How packets are sealed once both sides know each other.
//!
//! AES-256-GCM. Each direction of a group has a secret; each path in it, and each 2²⁴ packets of that, have a key of
//! their own, so that no key seals more than it may (RFC 9001, appendix B, counts 2²⁸ packets of 2 KiB). The nonce is the
//! packet's counter. Sealed along, but not inside, are the clear header and both hardware addresses: a packet that
//! comes from, or to, another card than its sender meant is as bad as a forged one.

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, Tag, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Prk};

use crate::address::Address;
use crate::wire::header::SEALED_HEADER_BYTES;

/// The seal's tag behind each packet, in bytes.
pub(crate) const TAG_BYTES: usize = 16;
/// All that a sealed packet has beside its parts, in bytes.
pub(crate) const OVERHEAD_BYTES: usize = SEALED_HEADER_BYTES + TAG_BYTES;
/// Bits of the counter within one key.
const EPOCH_BITS: u32 = 24;
/// What is sealed along: clear header, source, destination.
const ALONG_BYTES: usize = SEALED_HEADER_BYTES + 2 * Address::BYTES;

/// The secret of one direction.
#[derive(Clone)]
pub(crate) struct Secret(Prk);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

/// A key of AES-256-GCM from a secret that was agreed on; none if the library refuses, which it never does.
pub(crate) fn expand_key(secret: &Prk, info: &[&[u8]]) -> Option<LessSafeKey> {
    let key = secret.expand(info, &AES_256_GCM).ok()?;
    Some(LessSafeKey::new(UnboundKey::from(key)))
}

impl Secret {
    /// The secret of a direction, by its name, from what was agreed on.
    pub(crate) fn of(agreed: &Prk, direction: &[u8]) -> Option<Secret> {
        agreed.expand(&[b"direction ", direction], HKDF_SHA256).ok().map(|secret| Secret(Prk::from(secret)))
    }

    /// The key chain of one path.
    pub(crate) fn path(&self, path: u8) -> PathKeys {
        PathKeys { secret: self.clone(), path, held: Vec::with_capacity(2) }
    }
}

/// The keys of one path in one direction: the newest two are held.
#[derive(Debug)]
pub(crate) struct PathKeys {
    secret: Secret,
    path: u8,
    held: Vec<(u64, LessSafeKey)>,
}

/// The clear header and the addresses of a packet.
fn along(header: &[u8], source: Address, destination: Address) -> Option<Aad<[u8; ALONG_BYTES]>> {
    let mut bytes = [0; ALONG_BYTES];
    let (head, addresses) = bytes.split_first_chunk_mut::<SEALED_HEADER_BYTES>()?;
    *head = *header.first_chunk()?;
    let (from, to) = addresses.split_first_chunk_mut()?;
    *from = source.0;
    to.copy_from_slice(&destination.0);
    Some(Aad::from(bytes))
}

fn nonce(counter: u64) -> Nonce {
    let mut bytes = [0; NONCE_LEN];
    if let Some(tail) = bytes.last_chunk_mut() {
        *tail = counter.to_be_bytes();
    }
    Nonce::assume_unique_for_key(bytes)
}

impl PathKeys {
    fn derive(&self, epoch: u64) -> Option<LessSafeKey> {
        expand_key(&self.secret.0, &[b"path ", &[self.path], &epoch.to_be_bytes()])
    }

    fn hold(&mut self, epoch: u64, key: LessSafeKey) {
        self.held.insert(0, (epoch, key));
        self.held.sort_by_key(|(epoch, _)| std::cmp::Reverse(*epoch));
        self.held.truncate(2);
    }

    /// Seals a packet in place: clear header, content, room for the tag. Returns whether it could, which it always can.
    pub(crate) fn seal(
        &mut self,
        counter: u64,
        source: Address,
        destination: Address,
        packet: &mut [u8],
    ) -> bool {
        let epoch = counter >> EPOCH_BITS;
        if !self.held.iter().any(|(held, _)| *held == epoch) {
            let Some(key) = self.derive(epoch) else {
                return false;
            };
            self.hold(epoch, key);
        }
        let Some((_, key)) = self.held.iter().find(|(held, _)| *held == epoch) else {
            return false;
        };
        let Some((clear, tag_field)) = packet.split_last_chunk_mut::<TAG_BYTES>() else {
            return false;
        };
        let Some(along) = along(clear, source, destination) else {
            return false;
        };
        let Some(content) = clear.get_mut(SEALED_HEADER_BYTES..) else {
            return false;
        };
        let Ok(tag) = key.seal_in_place_separate_tag(nonce(counter), along, content) else {
            return false;
        };
        tag_field.copy_from_slice(tag.as_ref());
        true
    }

    /// Opens a packet in place and gives its content; none if it is forged, damaged, or was meant for another place.
    pub(crate) fn open<'a>(
        &mut self,
        counter: u64,
        source: Address,
        destination: Address,
        packet: &'a mut [u8],
    ) -> Option<&'a [u8]> {
        let epoch = counter >> EPOCH_BITS;
        // A key that a stranger's counter asks for is kept only when its packet turns out to be genuine.
        let derived = match self.held.iter().any(|(held, _)| *held == epoch) {
            true => None,
            false => Some(self.derive(epoch)?),
        };
        let held = self.held.iter().find(|(held, _)| *held == epoch).map(|(_, key)| key);
        let key = derived.as_ref().or(held)?;
        let (clear, tag) = packet.split_last_chunk_mut::<TAG_BYTES>()?;
        let tag = Tag::from(*tag);
        let along = along(clear, source, destination)?;
        let content = clear.get_mut(SEALED_HEADER_BYTES..)?;
        let content = key.open_in_place_separate_tag(nonce(counter), along, tag, content, 0..).ok()?;
        if let Some(key) = derived {
            self.hold(epoch, key);
        }
        Some(content)
    }
}

#[cfg(test)]
mod tests;
