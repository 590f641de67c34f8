use ring::rand::SystemRandom;

use super::*;

fn identity(seed: u8) -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap()
}

fn public(seed: u8) -> PeerKey {
    PeerKey(identity(seed).public_key().as_ref().try_into().unwrap())
}

fn key() -> HandshakeKey {
    HandshakeKey::new(EphemeralPrivateKey::generate(&X25519, &SystemRandom::new()).unwrap()).unwrap()
}

const INITIATOR: GroupId = GroupId { slot: 1, generation: 2 };
const RESPONDER: GroupId = GroupId { slot: 3, generation: 4 };

fn hello(key: &HandshakeKey) -> Hello {
    Hello { group: INITIATOR, public: *key.public(), cookie: NO_COOKIE }
}

fn probe(secret: &TrafficSecret) -> Vec<u8> {
    use crate::address::CardAddress;
    let mut packet = vec![7; 40];
    assert!(secret.path(0).seal(0, CardAddress([0; 6]), CardAddress([0; 6]), &mut packet));
    packet
}

#[test]
fn both_sides_derive_the_same_secrets_and_authenticate_each_other() {
    let mine = key();
    let mut hello = hello(&mine);
    let (reply, theirs) = reply(&identity(2), &hello, RESPONDER, key()).unwrap();
    // The cookie is not part of the transcript.
    hello.cookie = [9; 16];
    let replied = take_reply(&hello, mine, &reply).unwrap();
    assert_eq!((replied.peer, replied.group), (public(2), RESPONDER));
    let (packet, ours) = finish(&identity(1), &replied.state, RESPONDER, 5).unwrap();
    let (peer, path, secrets) = take_finish(&theirs, &packet).unwrap();
    assert_eq!((peer, path), (public(1), 5));
    assert_eq!(probe(&ours.initiator), probe(&secrets.initiator));
    assert_eq!(probe(&ours.responder), probe(&secrets.responder));
    assert_ne!(probe(&ours.initiator), probe(&ours.responder));
    assert_eq!((reply.len(), packet.len()), (REPLY_BYTES, FINISH_BYTES));
    assert!(!reply.windows(32).any(|window| window == public(2).0), "identities are encrypted");
    assert!(!packet.windows(32).any(|window| window == public(1).0));
}

#[test]
fn every_modified_byte_of_reply_and_finish_is_rejected() {
    for at in 0..REPLY_BYTES {
        let mine = key();
        let hello = hello(&mine);
        let (mut reply, _) = reply(&identity(2), &hello, RESPONDER, key()).unwrap();
        reply[at] ^= 1;
        assert!(take_reply(&hello, mine, &reply).is_none(), "{at}");
    }
    let mine = key();
    let hello = hello(&mine);
    let (reply, theirs) = reply(&identity(2), &hello, RESPONDER, key()).unwrap();
    let replied = take_reply(&hello, mine, &reply).unwrap();
    let (packet, _) = finish(&identity(1), &replied.state, RESPONDER, 0).unwrap();
    for at in 0..packet.len() {
        let mut changed = packet.clone();
        changed[at] ^= 1;
        assert!(take_finish(&theirs, &changed).is_none(), "{at}");
        assert!(take_finish(&theirs, &packet[..at]).is_none(), "{at}");
    }
}

#[test]
fn reply_and_finish_of_another_handshake_are_rejected() {
    let (first, second) = (key(), key());
    let (old, new) = (hello(&first), hello(&second));
    let (reply_to_old, state_of_old) = reply(&identity(2), &old, RESPONDER, key()).unwrap();
    let (_, state_of_new) = reply(&identity(2), &new, RESPONDER, key()).unwrap();
    assert!(is_reply_to(&old, &reply_to_old));
    assert!(!is_reply_to(&new, &reply_to_old), "detected without the key");
    assert!(take_reply(&new, second, &reply_to_old).is_none());
    let replied = take_reply(&old, first, &reply_to_old).unwrap();
    let (packet, _) = finish(&identity(1), &replied.state, RESPONDER, 0).unwrap();
    assert!(take_finish(&state_of_new, &packet).is_none());
    assert!(take_finish(&state_of_old, &packet).is_some());
}

#[test]
fn zero_public_key_is_rejected() {
    let hello = Hello { group: INITIATOR, public: [0; 32], cookie: NO_COOKIE };
    assert!(reply(&identity(2), &hello, RESPONDER, key()).is_none());
}

#[test]
fn hello_and_cookie_have_golden_bytes() {
    let hello = Hello { group: INITIATOR, public: [7; 32], cookie: [8; 16] };
    let packet = hello.encode();
    let golden = [&[0x11, 1, 2, 0][..], &[7; 32], &[8; 16], &[0; 108]].concat();
    assert_eq!(packet, golden);
    assert_eq!(Hello::decode(INITIATOR, &packet), Some(hello));
    assert_eq!(Hello::decode(INITIATOR, &packet[..HELLO_BYTES - 1]), None);
    let cookie = encode_cookie(INITIATOR, &[8; 16]);
    assert_eq!(cookie, [&[0x21, 1, 2, 0][..], &[8; 16]].concat());
    assert_eq!(decode_cookie(&cookie), Some([8; 16]));
    assert_eq!(decode_cookie(&cookie[..19]), None);
}
