//! The handshake: mutual authentication and key agreement in three packets.
//!
//! ```text
//! hello    header 4 | public key 32 | cookie 16 | zeros up to 160
//! cookie   header 4 | cookie 16
//! reply    header 4 | responder's group 3 | hello's public key, first 8 | public key 32 | sealed: identity 32, signature 64 | tag 16
//! finish   header 4 | sealed: identity 32, signature 64, path 1 | tag 16
//! ```
//!
//! The public keys are ephemeral X25519 keys. The shared secret, bound to the transcript, encrypts the
//! identities. Each Ed25519 signature covers the transcript up to it, including both public keys; so do the
//! traffic secrets. Identities are encrypted under a key that only the two parties have, so a third party
//! cannot claim a handshake as its own (identity misbinding). A hello is at least as large as its reply, so
//! the responder cannot be used for amplification.
//!
//! # Source
//! Krawczyk, "SIGMA: the SIGn-and-MAc approach to authenticated Diffie-Hellman" (2003), the variant SIGMA-I,
//! which protects identities; the key schedule is a small version of that of TLS 1.3 (RFC 8446, section 7.1).

use ring::aead::{Aad, NONCE_LEN, Nonce, Tag};
use ring::agreement::{EphemeralPrivateKey, UnparsedPublicKey, X25519, agree_ephemeral};
use ring::digest::{Context, SHA256};
use ring::hkdf::{HKDF_SHA256, Prk, Salt};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey as UnparsedIdentity};

use crate::address::{GroupId, PeerKey};
use crate::cookie::{COOKIE_BYTES, NO_COOKIE};
use crate::seal::{TAG_BYTES, TrafficSecret, expand_key};
use crate::wire::header::{self, HANDSHAKE_HEADER_BYTES, Kind};

const PUBLIC_BYTES: usize = 32;
const SIGNATURE_BYTES: usize = 64;
const PROOF_BYTES: usize = PeerKey::BYTES + SIGNATURE_BYTES;
const HASH_BYTES: usize = 32;
/// The size of a hello, in bytes.
pub(crate) const HELLO_BYTES: usize = 160;
/// The part of the hello that a reply repeats, in bytes. An off-path attacker cannot use up the initiator's
/// key with forged replies.
const ECHO_BYTES: usize = 8;
const REPLY_CLEAR_BYTES: usize = HANDSHAKE_HEADER_BYTES + GroupId::BYTES + ECHO_BYTES + PUBLIC_BYTES;
const REPLY_BYTES: usize = REPLY_CLEAR_BYTES + PROOF_BYTES + TAG_BYTES;
const FINISH_BYTES: usize = HANDSHAKE_HEADER_BYTES + PROOF_BYTES + 1 + TAG_BYTES;
const PROTOCOL: &[u8] = b"wirefs-circuit 1";

const _: () = assert!(HELLO_BYTES >= REPLY_BYTES, "the responder sends no more than it received");

type Hash = [u8; HASH_BYTES];

/// An ephemeral key pair. The driver creates it, since this crate has no source of randomness.
#[derive(Debug)]
pub struct HandshakeKey {
    private: EphemeralPrivateKey,
    public: [u8; PUBLIC_BYTES],
}

impl HandshakeKey {
    /// Wraps an X25519 key; `None` for another algorithm.
    pub fn new(private: EphemeralPrivateKey) -> Option<HandshakeKey> {
        if private.algorithm() != &X25519 {
            return None;
        }
        let public = private.compute_public_key().ok()?.as_ref().try_into().ok()?;
        Some(HandshakeKey { private, public })
    }

    pub(crate) fn public(&self) -> &[u8; PUBLIC_BYTES] {
        &self.public
    }

    /// Derives the shared secret, bound to the transcript.
    fn agree(self, other: &[u8; PUBLIC_BYTES], transcript: &Hash) -> Option<Prk> {
        let other = UnparsedPublicKey::new(&X25519, other);
        agree_ephemeral(self.private, &other, |state| Salt::new(HKDF_SHA256, transcript).extract(state)).ok()
    }
}

/// The first packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    /// The group id of the initiator.
    pub(crate) group: GroupId,
    pub(crate) public: [u8; PUBLIC_BYTES],
    pub(crate) cookie: [u8; COOKIE_BYTES],
}

impl Hello {
    /// The part that a reply repeats.
    fn echo(&self) -> &[u8] {
        self.public.get(..ECHO_BYTES).unwrap_or_default()
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let header = header::encode(Kind::Hello, self.group);
        let mut packet = [&header[..], &self.public, &self.cookie].concat();
        packet.resize(HELLO_BYTES, 0);
        packet
    }

    pub(crate) fn decode(group: GroupId, packet: &[u8]) -> Option<Hello> {
        let (public, rest) = packet.get(HANDSHAKE_HEADER_BYTES..HELLO_BYTES)?.split_first_chunk()?;
        Some(Hello { group, public: *public, cookie: *rest.first_chunk()? })
    }
}

/// Encodes the packet that asks an initiator to repeat its hello with a cookie.
pub(crate) fn encode_cookie(group: GroupId, cookie: &[u8; COOKIE_BYTES]) -> Vec<u8> {
    [&header::encode(Kind::Cookie, group)[..], cookie].concat()
}

/// Decodes the cookie in such a packet.
pub(crate) fn decode_cookie(packet: &[u8]) -> Option<[u8; COOKIE_BYTES]> {
    packet.get(HANDSHAKE_HEADER_BYTES..)?.first_chunk().copied()
}

fn hash(parts: &[&[u8]]) -> Hash {
    let mut context = Context::new(&SHA256);
    parts.iter().for_each(|part| context.update(part));
    let mut hash = [0; HASH_BYTES];
    hash.iter_mut().zip(context.finish().as_ref()).for_each(|(to, from)| *to = *from);
    hash
}

/// Returns the hash of the transcript up to the public key of the reply, without the cookie.
fn hello_transcript(hello: &Hello, reply_clear: &[u8]) -> Hash {
    let hello = Hello { cookie: NO_COOKIE, ..*hello }.encode();
    hash(&[PROTOCOL, &hello, reply_clear])
}

/// The state of either side after the reply.
#[derive(Debug)]
pub(crate) struct HandshakeState {
    secret: Prk,
    transcript: Hash,
}

/// The traffic secrets of a group, one for each direction.
#[derive(Debug)]
pub(crate) struct TrafficSecrets {
    pub(crate) initiator: TrafficSecret,
    pub(crate) responder: TrafficSecret,
}

fn nonce() -> Nonce {
    // Each of these keys seals one packet.
    Nonce::assume_unique_for_key([0; NONCE_LEN])
}

fn signed(role: &[u8], transcript: &Hash, identity: &PeerKey) -> Vec<u8> {
    [PROTOCOL, role, transcript, &identity.0].concat()
}

/// Returns our identity key and the signature of the transcript.
fn prove(identity: &Ed25519KeyPair, role: &[u8], transcript: &Hash) -> Option<[u8; PROOF_BYTES]> {
    let key = PeerKey(identity.public_key().as_ref().try_into().ok()?);
    let signature = identity.sign(&signed(role, transcript, &key));
    [&key.0[..], signature.as_ref()].concat().try_into().ok()
}

/// Verifies a proof and returns the identity key; `None` if it is invalid.
fn verify_proof(proof: &[u8], role: &[u8], transcript: &Hash) -> Option<PeerKey> {
    let (key, signature) = proof.split_first_chunk()?;
    let key = PeerKey(*key);
    let identity = UnparsedIdentity::new(&ED25519, key.0);
    identity.verify(&signed(role, transcript, &key), signature).ok().map(|()| key)
}

/// Encrypts the rest of a packet; its cleartext so far is authenticated.
fn seal_rest(packet: &mut Vec<u8>, secret: &Prk, name: &[u8], content: &[u8]) -> Option<()> {
    let key = expand_key(secret, &[name])?;
    let mut content = content.to_vec();
    let tag = key.seal_in_place_separate_tag(nonce(), Aad::from(&packet), &mut content).ok()?;
    packet.extend_from_slice(&content);
    packet.extend_from_slice(tag.as_ref());
    Some(())
}

fn open_sealed(packet: &[u8], clear_bytes: usize, secret: &Prk, name: &[u8]) -> Option<Vec<u8>> {
    let (clear, sealed) = packet.split_at_checked(clear_bytes)?;
    let (content, tag) = sealed.split_last_chunk::<TAG_BYTES>()?;
    let mut content = content.to_vec();
    let key = expand_key(secret, &[name])?;
    key.open_in_place_separate_tag(nonce(), Aad::from(clear), Tag::from(*tag), &mut content, 0..).ok()?;
    Some(content)
}

/// Answers a hello. `own` is our group.
pub(crate) fn reply(
    identity: &Ed25519KeyPair,
    hello: &Hello,
    own: GroupId,
    key: HandshakeKey,
) -> Option<(Vec<u8>, HandshakeState)> {
    let mut packet = header::encode(Kind::Reply, hello.group).to_vec();
    packet.extend_from_slice(&own.encode());
    packet.extend_from_slice(hello.echo());
    packet.extend_from_slice(&key.public);
    let transcript = hello_transcript(hello, &packet);
    let secret = key.agree(&hello.public, &transcript)?;
    let proof = prove(identity, b" reply", &transcript)?;
    seal_rest(&mut packet, &secret, b"reply", &proof)?;
    let transcript = hash(&[&transcript, packet.get(REPLY_CLEAR_BYTES..)?]);
    Some((packet, HandshakeState { secret, transcript }))
}

/// The contents of a verified reply.
#[derive(Debug)]
pub(crate) struct VerifiedReply {
    pub(crate) peer: PeerKey,
    /// The group id of the responder.
    pub(crate) group: GroupId,
    pub(crate) state: HandshakeState,
}

/// Returns whether a packet claims to be the reply to this hello.
pub(crate) fn is_reply_to(hello: &Hello, packet: &[u8]) -> bool {
    packet.get(HANDSHAKE_HEADER_BYTES + GroupId::BYTES..).is_some_and(|rest| rest.starts_with(hello.echo()))
        && packet.len() >= REPLY_BYTES
}

/// Verifies the reply to our hello; `None` if it is invalid. Consumes the key in any case.
pub(crate) fn take_reply(hello: &Hello, key: HandshakeKey, packet: &[u8]) -> Option<VerifiedReply> {
    let packet = packet.get(..REPLY_BYTES)?;
    let clear = packet.get(..REPLY_CLEAR_BYTES)?;
    let group = clear.get(HANDSHAKE_HEADER_BYTES..)?.first_chunk()?;
    let transcript = hello_transcript(hello, clear);
    let secret = key.agree(clear.last_chunk()?, &transcript)?;
    let proof = open_sealed(packet, REPLY_CLEAR_BYTES, &secret, b"reply")?;
    let peer = verify_proof(&proof, b" reply", &transcript)?;
    let transcript = hash(&[&transcript, packet.get(REPLY_CLEAR_BYTES..)?]);
    Some(VerifiedReply { peer, group: GroupId::decode(*group), state: HandshakeState { secret, transcript } })
}

fn secrets(state: &HandshakeState, finish: &[u8]) -> Option<TrafficSecrets> {
    let transcript = hash(&[&state.transcript, finish.get(HANDSHAKE_HEADER_BYTES..)?]);
    let traffic = state.secret.expand(&[b"traffic ", &transcript], HKDF_SHA256).ok().map(Prk::from)?;
    Some(TrafficSecrets {
        initiator: TrafficSecret::derive(&traffic, b"dialler")?,
        responder: TrafficSecret::derive(&traffic, b"dialled")?,
    })
}

/// Creates the last packet, for the responder's group over this path, and the traffic secrets.
pub(crate) fn finish(
    identity: &Ed25519KeyPair,
    state: &HandshakeState,
    group: GroupId,
    path: u8,
) -> Option<(Vec<u8>, TrafficSecrets)> {
    let mut packet = header::encode(Kind::Finish, group).to_vec();
    let proof = prove(identity, b" finish", &state.transcript)?;
    seal_rest(&mut packet, &state.secret, b"finish", &[&proof[..], &[path]].concat())?;
    let secrets = secrets(state, &packet)?;
    Some((packet, secrets))
}

/// Verifies the last packet; returns the peer's key, the path and the traffic secrets.
pub(crate) fn take_finish(state: &HandshakeState, packet: &[u8]) -> Option<(PeerKey, u8, TrafficSecrets)> {
    let packet = packet.get(..FINISH_BYTES)?;
    let content = open_sealed(packet, HANDSHAKE_HEADER_BYTES, &state.secret, b"finish")?;
    let (proof, path) = content.split_at_checked(PROOF_BYTES)?;
    let peer = verify_proof(proof, b" finish", &state.transcript)?;
    Some((peer, *path.first()?, secrets(state, packet)?))
}

#[cfg(test)]
mod tests;
