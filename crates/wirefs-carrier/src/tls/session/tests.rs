use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use rustls::ConnectionTrafficSecrets;
use rustls::pki_types::ServerName;
use wirefs_op::Frame;

use super::*;
use crate::tls::authorized::AuthorizedKeys;
use crate::tls::config;
use crate::tls::identity::Identity;
use crate::tls::seal::Frames;
use crate::tls::verify::{AuthorizedVerifier, PinVerifier};

const HANDSHAKE: u8 = 22;

/// A client that can send arbitrary records, and a server that has accepted it.
struct Pair {
    client: Option<Session>,
    server: Session,
    directory: PathBuf,
}

fn scratch(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("wirefs-carrier-session-{}-{name}", std::process::id()))
}

impl Drop for Pair {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.directory);
    }
}

impl Pair {
    fn new(name: &str) -> Self {
        let directory = scratch(name);
        let identity = Identity::open(&directory).unwrap();
        let mut pair = Self::of(directory, &identity, &identity, identity.public_key());
        pair.handshake();
        pair
    }

    /// The server authorizes, and the client expects, only the owner of `known`.
    fn of(directory: PathBuf, client: &Identity, server: &Identity, known: PublicKey) -> Self {
        let list = directory.join("authorized_keys");
        std::fs::write(&list, known.line("")).unwrap();
        let mut client = config::client(client, Arc::new(PinVerifier::new(Some(known)))).unwrap();
        client.enable_secret_extraction = true;
        let verifier = AuthorizedVerifier::new(AuthorizedKeys::read(&list), "127.0.0.1:1".to_owned());
        let server = config::server(server, Arc::new(verifier)).unwrap();
        let host = ServerName::try_from("wirefs").unwrap();
        let client = UnbufferedClientConnection::new(Arc::new(client), host).unwrap();
        Self {
            client: Some(Session::client(client)),
            server: Session::server(UnbufferedServerConnection::new(Arc::new(server)).unwrap()),
            directory,
        }
    }

    fn handshake(&mut self) {
        let (mut to_client, mut to_server) = (Incoming::default(), Incoming::default());
        for _ in 0..10 {
            let client = advance(self.client.as_mut().unwrap(), &mut to_client, &mut to_server);
            let server = advance(&mut self.server, &mut to_server, &mut to_client);
            if (client, server) == (Step::Ready, Step::Ready) {
                return;
            }
        }
        panic!("the handshake does not end");
    }

    /// Returns the client's record encryption, for records of any type.
    fn forger(&mut self) -> Forger {
        let Side::Client(client) = self.client.take().unwrap().side else { panic!("no client") };
        let (secrets, _kernel) = client.dangerous_into_kernel_connection().unwrap();
        let (sequence, secrets) = secrets.tx;
        let ConnectionTrafficSecrets::Aes128Gcm { key, iv } = secrets else { panic!("another cipher") };
        let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, key.as_ref()).unwrap());
        Forger { key, iv: iv.as_ref().try_into().unwrap(), sequence }
    }
}

fn advance(session: &mut Session, incoming: &mut Incoming, peer: &mut Incoming) -> Step {
    let mut outgoing = Outgoing::default();
    loop {
        let step = session.step(incoming, &mut outgoing, &mut |_| {}).unwrap();
        if step != Step::Progress {
            deliver(peer, outgoing.rest());
            return step;
        }
    }
}

fn deliver(incoming: &mut Incoming, bytes: &[u8]) {
    incoming.room()[..bytes.len()].copy_from_slice(bytes);
    incoming.took(bytes.len());
}

struct Forger {
    key: LessSafeKey,
    iv: [u8; 12],
    sequence: u64,
}

impl Forger {
    fn record(&mut self, kind: u8, content: &[u8]) -> Vec<u8> {
        let mut nonce = self.iv;
        for (byte, count) in nonce[4..].iter_mut().zip(self.sequence.to_be_bytes()) {
            *byte ^= count;
        }
        self.sequence += 1;
        let mut inner = [content, &[kind]].concat();
        let length = u16::try_from(inner.len() + AES_128_GCM.tag_len()).unwrap().to_be_bytes();
        let header = [23, 3, 3, length[0], length[1]];
        let nonce = Nonce::assume_unique_for_key(nonce);
        self.key.seal_in_place_append_tag(nonce, Aad::from(header), &mut inner).unwrap();
        [header.as_slice(), &inner].concat()
    }
}

/// Encrypts one frame, as the sink does while the reader waits.
fn seal_one(server: &mut Session, leftover: &mut [u8]) -> Result<usize, rustls::Error> {
    let mut queue = VecDeque::from([Frame { head: vec![7, 0, 0, 0, 1, 2, 3], data: Default::default() }]);
    let mut outgoing = Outgoing::default();
    let mut frames = Frames { queue: &mut queue, record: &mut Vec::new() };
    server.seal(&mut frames, leftover, &mut outgoing).map(|_| outgoing.len())
}

fn step_all(server: &mut Session, incoming: &mut Incoming) -> Result<(Step, Vec<u8>), rustls::Error> {
    let mut plain = Vec::new();
    let mut outgoing = Outgoing::default();
    loop {
        match server.step(incoming, &mut outgoing, &mut |bytes| plain.extend_from_slice(bytes))? {
            Step::Progress => {}
            step => return Ok((step, plain)),
        }
    }
}

/// Continues the handshake until one side fails.
fn fail(mut pair: Pair) -> rustls::Error {
    let (mut to_client, mut to_server) = (Incoming::default(), Incoming::default());
    let mut client = pair.client.take().unwrap();
    for poll_cards in 0..20 {
        let (session, incoming, peer) = if poll_cards % 2 == 0 {
            (&mut client, &mut to_client, &mut to_server)
        } else {
            (&mut pair.server, &mut to_server, &mut to_client)
        };
        let mut outgoing = Outgoing::default();
        let failure = loop {
            match session.step(incoming, &mut outgoing, &mut |_| {}) {
                Ok(Step::Progress) => {}
                Ok(_) => break None,
                Err(error) => break Some(error),
            }
        };
        if let Some(error) = failure {
            assert!(!outgoing.is_empty(), "the peer is notified");
            return error;
        }
        deliver(peer, outgoing.rest());
    }
    panic!("the handshake did not fail");
}

#[test]
fn known_key_without_its_private_key_is_refused_on_either_side() {
    let directory = scratch("claims");
    let honest = Identity::open(&directory).unwrap();
    let thief = Identity::open(&directory.join("thief")).unwrap().claiming(honest.public_key());
    let known = honest.public_key();
    let bad_signature = rustls::Error::InvalidCertificate(rustls::CertificateError::BadSignature);
    for (client, server) in [(&honest, &thief), (&thief, &honest)] {
        std::fs::create_dir_all(&directory).unwrap();
        assert_eq!(fail(Pair::of(directory.clone(), client, server, known)), bad_signature);
    }
}

#[test]
fn fragmented_handshake_message_does_not_disturb_sending() {
    let mut pair = Pair::new("pieces");
    let mut forger = pair.forger();
    let key_update = [24, 0, 0, 1, 0];
    let mut incoming = Incoming::default();
    deliver(&mut incoming, &forger.record(HANDSHAKE, &key_update[..3]));
    assert_eq!(step_all(&mut pair.server, &mut incoming).unwrap().0, Step::Ready);

    let mut leftover = incoming.filled().to_vec();
    for _ in 0..3 {
        assert!(seal_one(&mut pair.server, &mut leftover).unwrap() > 7);
    }
    deliver(&mut incoming, &forger.record(HANDSHAKE, &key_update[3..]));
    assert_eq!(step_all(&mut pair.server, &mut incoming).unwrap().0, Step::Ready);
    assert!(seal_one(&mut pair.server, incoming.filled()).unwrap() > 7);
}

#[test]
fn key_update_request_is_answered_with_the_next_frame() {
    let mut pair = Pair::new("update");
    let mut forger = pair.forger();
    let mut incoming = Incoming::default();
    let plain_bytes = seal_one(&mut pair.server, &mut []).unwrap();
    deliver(&mut incoming, &forger.record(HANDSHAKE, &[24, 0, 0, 1, 1]));
    assert_eq!(step_all(&mut pair.server, &mut incoming).unwrap().0, Step::Ready);
    assert!(
        seal_one(&mut pair.server, incoming.filled()).unwrap() > plain_bytes,
        "the key update goes first"
    );
}

#[test]
fn damaged_record_ends_both_directions_without_a_panic() {
    let mut pair = Pair::new("damage");
    let mut forger = pair.forger();
    let mut incoming = Incoming::default();
    let mut record = forger.record(23, b"data");
    *record.last_mut().unwrap() ^= 1;
    deliver(&mut incoming, &record);
    for _ in 0..3 {
        assert_eq!(step_all(&mut pair.server, &mut incoming), Err(rustls::Error::DecryptError));
        let mut leftover = incoming.filled().to_vec();
        assert_eq!(seal_one(&mut pair.server, &mut leftover), Err(rustls::Error::DecryptError));
    }
}

#[test]
fn data_after_close_notify_is_ignored() {
    let mut pair = Pair::new("farewell");
    let mut forger = pair.forger();
    let mut incoming = Incoming::default();
    let bytes = [forger.record(23, b"last"), forger.record(21, &[1, 0]), forger.record(23, b"more")].concat();
    deliver(&mut incoming, &bytes);
    let (step, plain) = step_all(&mut pair.server, &mut incoming).unwrap();
    assert_eq!((step, plain.as_slice()), (Step::PeerClosed, &b"last"[..]));
    // Our direction stays open until we close it too.
    assert!(seal_one(&mut pair.server, incoming.filled()).unwrap() > 7);
}
