//! How two nodes agree on keys and prove who they are: three packets.
//!
//! ```text
//! hello    header 4 | public key 32 | cookie 16 | zeros up to 160
//! cookie   header 4 | cookie 16
//! reply    header 4 | replier's group 3 | the hello's public key, first 8 | public key 32 | sealed: identity 32, signature 64 | tag 16
//! finish   header 4 | sealed: identity 32, signature 64, path 1 | tag 16
//! ```
//!
//! The public keys are X25519, made for this handshake alone. What both agree on, bound to all bytes before, seals the
//! identities; each signature (ed25519) covers all bytes before it, both public keys among them, and so does the secret
//! that everything afterwards is sealed with. Since an identity stands under a seal that only the two who agreed can
//! make, nobody can put his name to another's handshake. A hello is not smaller than the reply that it brings, so nobody
//! can be flooded through us.
//!
//! # Source
//! Krawczyk, "SIGMA: the SIGn-and-MAc approach to authenticated Diffie-Hellman" (2003), the variant that protects
//! identities; the order of hashes and keys is that of TLS 1.3 (RFC 8446, section 7.1) in the small.

use ring::aead::{Aad, NONCE_LEN, Nonce, Tag};
use ring::agreement::{EphemeralPrivateKey, UnparsedPublicKey, X25519, agree_ephemeral};
use ring::digest::{Context, SHA256};
use ring::hkdf::{HKDF_SHA256, Prk, Salt};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey as UnparsedIdentity};

use crate::address::{GroupId, NodeKey};
use crate::cookie::{COOKIE_BYTES, NO_COOKIE};
use crate::seal::{Secret, TAG_BYTES, expand_key};
use crate::wire::header::{self, HANDSHAKE_HEADER_BYTES, Kind};

const PUBLIC_BYTES: usize = 32;
const SIGNATURE_BYTES: usize = 64;
const PROOF_BYTES: usize = NodeKey::BYTES + SIGNATURE_BYTES;
const HASH_BYTES: usize = 32;
/// A hello, in bytes.
pub(crate) const HELLO_BYTES: usize = 160;
/// What a reply repeats of the hello, in bytes: who did not see the hello cannot have the dialler use up its key.
const ECHO_BYTES: usize = 8;
const REPLY_CLEAR_BYTES: usize = HANDSHAKE_HEADER_BYTES + GroupId::BYTES + ECHO_BYTES + PUBLIC_BYTES;
const REPLY_BYTES: usize = REPLY_CLEAR_BYTES + PROOF_BYTES + TAG_BYTES;
const FINISH_BYTES: usize = HANDSHAKE_HEADER_BYTES + PROOF_BYTES + 1 + TAG_BYTES;
const PROTOCOL: &[u8] = b"wirefs-circuit 1";

const _: () = assert!(HELLO_BYTES >= REPLY_BYTES, "a stranger gets no more than it sends");

type Hash = [u8; HASH_BYTES];

/// A key pair for one handshake. The driver makes it, since here is no chance.
#[derive(Debug)]
pub struct HandshakeKey {
    private: EphemeralPrivateKey,
    public: [u8; PUBLIC_BYTES],
}

impl HandshakeKey {
    /// Takes an X25519 key; none if it is of another kind.
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

    /// What both sides agree on, bound to what was said so far.
    fn agree(self, other: &[u8; PUBLIC_BYTES], said: &Hash) -> Option<Prk> {
        let other = UnparsedPublicKey::new(&X25519, other);
        agree_ephemeral(self.private, &other, |agreed| Salt::new(HKDF_SHA256, said).extract(agreed)).ok()
    }
}

/// The first packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    /// The sender's group.
    pub(crate) group: GroupId,
    pub(crate) public: [u8; PUBLIC_BYTES],
    pub(crate) cookie: [u8; COOKIE_BYTES],
}

impl Hello {
    /// What a reply repeats of it.
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

/// The packet that asks a stranger to come again.
pub(crate) fn encode_cookie(group: GroupId, cookie: &[u8; COOKIE_BYTES]) -> Vec<u8> {
    [&header::encode(Kind::Cookie, group)[..], cookie].concat()
}

/// The cookie in such a packet.
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

/// All that was said up to the reply's public key. The cookie does not count: it says nothing about the two.
fn said_by_hello(hello: &Hello, reply_clear: &[u8]) -> Hash {
    let hello = Hello { cookie: NO_COOKIE, ..*hello }.encode();
    hash(&[PROTOCOL, &hello, reply_clear])
}

/// What a side has after the reply.
#[derive(Debug)]
pub(crate) struct Agreed {
    secret: Prk,
    said: Hash,
}

/// The secrets of a group, ours and the peer's direction.
#[derive(Debug)]
pub(crate) struct Secrets {
    pub(crate) by_dialler: Secret,
    pub(crate) by_dialled: Secret,
}

fn nonce() -> Nonce {
    // Each of these keys seals one packet.
    Nonce::assume_unique_for_key([0; NONCE_LEN])
}

fn signed(role: &[u8], said: &Hash, identity: &NodeKey) -> Vec<u8> {
    [PROTOCOL, role, said, &identity.0].concat()
}

/// Our key, and our signature over what was said.
fn prove(identity: &Ed25519KeyPair, role: &[u8], said: &Hash) -> Option<[u8; PROOF_BYTES]> {
    let key = NodeKey(identity.public_key().as_ref().try_into().ok()?);
    let signature = identity.sign(&signed(role, said, &key));
    [&key.0[..], signature.as_ref()].concat().try_into().ok()
}

/// The key that a proof proves; none if it proves nothing.
fn proved(proof: &[u8], role: &[u8], said: &Hash) -> Option<NodeKey> {
    let (key, signature) = proof.split_first_chunk()?;
    let key = NodeKey(*key);
    let identity = UnparsedIdentity::new(&ED25519, key.0);
    identity.verify(&signed(role, said, &key), signature).ok().map(|()| key)
}

/// Seals the rest of a packet behind its clear bytes.
fn close(packet: &mut Vec<u8>, secret: &Prk, name: &[u8], content: &[u8]) -> Option<()> {
    let key = expand_key(secret, &[name])?;
    let mut content = content.to_vec();
    let tag = key.seal_in_place_separate_tag(nonce(), Aad::from(&packet), &mut content).ok()?;
    packet.extend_from_slice(&content);
    packet.extend_from_slice(tag.as_ref());
    Some(())
}

fn open(packet: &[u8], clear_bytes: usize, secret: &Prk, name: &[u8]) -> Option<Vec<u8>> {
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
) -> Option<(Vec<u8>, Agreed)> {
    let mut packet = header::encode(Kind::Reply, hello.group).to_vec();
    packet.extend_from_slice(&own.encode());
    packet.extend_from_slice(hello.echo());
    packet.extend_from_slice(&key.public);
    let said = said_by_hello(hello, &packet);
    let secret = key.agree(&hello.public, &said)?;
    let proof = prove(identity, b" reply", &said)?;
    close(&mut packet, &secret, b"reply", &proof)?;
    let said = hash(&[&said, packet.get(REPLY_CLEAR_BYTES..)?]);
    Some((packet, Agreed { secret, said }))
}

/// What a reply says.
#[derive(Debug)]
pub(crate) struct Replied {
    pub(crate) peer: NodeKey,
    /// The peer's group.
    pub(crate) group: GroupId,
    pub(crate) agreed: Agreed,
}

/// Whether a packet says that it is the reply to this hello.
pub(crate) fn is_reply_to(hello: &Hello, packet: &[u8]) -> bool {
    packet.get(HANDSHAKE_HEADER_BYTES + GroupId::BYTES..).is_some_and(|rest| rest.starts_with(hello.echo()))
        && packet.len() >= REPLY_BYTES
}

/// Takes the reply to our hello. None: it is none; the key is used up all the same.
pub(crate) fn take_reply(hello: &Hello, key: HandshakeKey, packet: &[u8]) -> Option<Replied> {
    let packet = packet.get(..REPLY_BYTES)?;
    let clear = packet.get(..REPLY_CLEAR_BYTES)?;
    let group = clear.get(HANDSHAKE_HEADER_BYTES..)?.first_chunk()?;
    let said = said_by_hello(hello, clear);
    let secret = key.agree(clear.last_chunk()?, &said)?;
    let proof = open(packet, REPLY_CLEAR_BYTES, &secret, b"reply")?;
    let peer = proved(&proof, b" reply", &said)?;
    let said = hash(&[&said, packet.get(REPLY_CLEAR_BYTES..)?]);
    Some(Replied { peer, group: GroupId::decode(*group), agreed: Agreed { secret, said } })
}

fn secrets(agreed: &Agreed, finish: &[u8]) -> Option<Secrets> {
    let said = hash(&[&agreed.said, finish.get(HANDSHAKE_HEADER_BYTES..)?]);
    let traffic = agreed.secret.expand(&[b"traffic ", &said], HKDF_SHA256).ok().map(Prk::from)?;
    Some(Secrets {
        by_dialler: Secret::of(&traffic, b"dialler")?,
        by_dialled: Secret::of(&traffic, b"dialled")?,
    })
}

/// The last packet, over this path, to the peer's group; and the secrets of the group.
pub(crate) fn finish(
    identity: &Ed25519KeyPair,
    agreed: &Agreed,
    group: GroupId,
    path: u8,
) -> Option<(Vec<u8>, Secrets)> {
    let mut packet = header::encode(Kind::Finish, group).to_vec();
    let proof = prove(identity, b" finish", &agreed.said)?;
    close(&mut packet, &agreed.secret, b"finish", &[&proof[..], &[path]].concat())?;
    let secrets = secrets(agreed, &packet)?;
    Some((packet, secrets))
}

/// Takes the last packet: who the peer is, the path, the secrets. None: it is none.
pub(crate) fn take_finish(agreed: &Agreed, packet: &[u8]) -> Option<(NodeKey, u8, Secrets)> {
    let packet = packet.get(..FINISH_BYTES)?;
    let content = open(packet, HANDSHAKE_HEADER_BYTES, &agreed.secret, b"finish")?;
    let (proof, path) = content.split_at_checked(PROOF_BYTES)?;
    let peer = proved(proof, b" finish", &agreed.said)?;
    Some((peer, *path.first()?, secrets(agreed, packet)?))
}

#[cfg(test)]
mod tests;
