//! Who may enter over TLS, and what people are told.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use wirefs_carrier::tls::{Identity, KnownHosts, PublicKey, TlsDial};
use wirefs_carrier::{AcceptError, Carrier, CarrierLost, Dial, DialError, HostPort, Listener};

use crate::scratch::Scratch;
use crate::traffic::{PATIENCE, frame, outbox, receive};
use crate::worlds::{Tls, World, host_of};

/// What both sides say when a client dials.
fn try_meet(
    dial: &dyn Dial,
    listener: &Listener,
) -> (Result<Carrier, DialError>, Result<Carrier, AcceptError>) {
    std::thread::scope(|scope| {
        let dialled = scope.spawn(|| dial.dial());
        let accepted = listener.accept().unwrap().finish(PATIENCE);
        (dialled.join().unwrap(), accepted)
    })
}

#[test]
fn an_unknown_client_is_told_which_line_to_add_where() {
    let world = Tls::strangers();
    std::fs::write(world.authorized(), "not a key\n").unwrap();
    let (dialled, accepted) = try_meet(&world.dial(), &world.listener);
    let refused = dialled.unwrap_err();
    assert!(matches!(&refused, DialError::Refused { line } if *line == world.client.line()), "{refused}");
    assert!(refused.to_string().contains("the server does not know this key"), "{refused}");
    let refusal = accepted.unwrap_err().to_string();
    assert!(refusal.contains(&world.client.public_key().to_string()), "{refusal}");
    assert!(refusal.contains("authorized_keys:1: this line is no key"), "{refusal}");

    // The line that was shown lets it in, without a restart.
    std::fs::write(world.authorized(), world.client.line()).unwrap();
    let (dialled, accepted) = try_meet(&world.dial(), &world.listener);
    dialled.unwrap();
    assert_eq!(accepted.unwrap().peer.identity, Some(world.client.public_key()));
}

#[test]
fn a_refusal_after_a_background_dial_shows_at_the_first_receive() {
    let world = Tls::strangers();
    let dial = world.dial();
    std::thread::scope(|scope| {
        let server = scope.spawn(|| world.listener.accept().unwrap().finish(PATIENCE));
        let mut client = dial.dial_again().unwrap();
        // Sending before the answer must not hide it.
        let mut queue = [frame(0, 0, 50_000)].into();
        let _sent = client.sink.send(&mut queue);
        let lost = client.source.receive().unwrap_err();
        assert!(matches!(lost, CarrierLost::Refused { .. }), "{lost}");
        client.closer.close();
        assert!(server.join().unwrap().is_err());
    });
}

/// Carries a connection to `server`, and holds back what its client sends behind the first message until `sent` is told; then all of
/// that goes on in one piece.
fn relay_in_one_piece(listener: &TcpListener, server: &str, sent: &mpsc::Receiver<()>) {
    let (mut client, _) = listener.accept().unwrap();
    let mut server = TcpStream::connect(server).unwrap();
    let mut buffer = vec![0; 64 * 1024];
    let hello = client.read(&mut buffer).unwrap();
    server.write_all(&buffer[..hello]).unwrap();
    let (mut to_client, mut from_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    std::thread::scope(|scope| {
        scope.spawn(move || std::io::copy(&mut from_server, &mut to_client));
        sent.recv().unwrap();
        // All of it is here: the client's sends have returned, and this is the loopback.
        let held = client.read(&mut buffer).unwrap();
        server.write_all(&buffer[..held]).unwrap();
        let _end = std::io::copy(&mut client, &mut server);
        let _gone = server.shutdown(std::net::Shutdown::Both);
    });
}

#[test]
fn a_frame_that_comes_in_one_piece_with_the_end_of_the_handshake_is_received() {
    let world = Tls::new();
    let relay = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = HostPort { host: "127.0.0.1".into(), port: relay.local_addr().unwrap().port() };
    let known_hosts = KnownHosts::new(world.known_hosts());
    let dial = TlsDial::new(host, Arc::clone(&world.client), known_hosts, PATIENCE);
    let (tell, sent) = mpsc::channel();
    let server = host_of(&world.listener).to_string();
    std::thread::scope(|scope| {
        scope.spawn(move || relay_in_one_piece(&relay, &server, &sent));
        let accepted = scope.spawn(|| world.listener.accept().unwrap().finish(PATIENCE));
        // Does not wait for the server's word, as after a lost connection.
        let mut client = dial.dial_again().unwrap();
        let mut queue = [frame(0, 7, 100)].into();
        client.sink.send(&mut queue).unwrap();
        tell.send(()).unwrap();
        let mut server = accepted.join().unwrap().unwrap();
        // Were the frame lost, the end would be what is received.
        client.closer.close();
        assert_eq!(receive(&mut server.source), (0, 7));
        server.closer.close();
    });
}

#[test]
fn without_an_authorized_keys_file_nobody_enters_and_the_server_says_so() {
    let world = Tls::strangers();
    let warning = world.listener.warnings().join("\n");
    assert!(warning.contains("no client may connect"), "{warning}");
    let (dialled, accepted) = try_meet(&world.dial(), &world.listener);
    assert!(matches!(dialled, Err(DialError::Refused { .. })));
    let refusal = accepted.unwrap_err().to_string();
    assert!(
        refusal.contains("there is no file") && refusal.contains(&world.client.public_key().to_string()),
        "{refusal}"
    );
}

#[test]
fn a_first_meeting_pins_the_server_and_a_second_does_not_mention_it() {
    let world = Tls::new();
    let (first, server) = world.connect();
    assert_eq!(first.peer.pinned_in, Some(world.known_hosts()));
    assert_eq!(server.peer.pinned_in, None);
    let (second, _server) = world.connect();
    assert_eq!(second.peer.pinned_in, None);
    assert_eq!(second.peer.identity, first.peer.identity);
    let known = std::fs::read_to_string(world.known_hosts()).unwrap();
    assert_eq!(known, format!("{} {}\n", host_of(&world.listener), first.peer.identity.unwrap()));
}

#[test]
fn a_changed_host_key_is_refused_with_both_fingerprints_and_the_line() {
    let world = Tls::new();
    let stranger = PublicKey::from_raw([5; 32]);
    let host = host_of(&world.listener);
    std::fs::write(world.known_hosts(), format!("# pinned\nother:1 {stranger}\n{host} {stranger}\n"))
        .unwrap();
    let (dialled, accepted) = try_meet(&world.dial(), &world.listener);
    let shown = Identity::open(&world.scratch.join("server")).unwrap().public_key().fingerprint();
    match dialled.unwrap_err() {
        DialError::HostKeyChanged { known, shown: seen, file, line, .. } => {
            assert_eq!((known, seen), (stranger.fingerprint(), shown));
            assert_eq!((file, line), (world.known_hosts(), 3));
        }
        other => panic!("{other}"),
    }
    assert!(matches!(accepted, Err(AcceptError::NotTrusted { .. })), "{accepted:?}");
}

#[test]
fn a_server_that_is_expected_by_its_key_is_not_pinned_and_another_is_refused() {
    let world = Tls::new();
    let identity = Arc::new(Identity::open(&world.scratch.join("client")).unwrap());
    let key = Identity::open(&world.scratch.join("server")).unwrap().public_key();
    let host = host_of(&world.listener);
    let dial = |key| TlsDial::expecting(host.clone(), Arc::clone(&identity), key, PATIENCE);
    let (met, _accepted) = try_meet(&dial(key), &world.listener);
    assert_eq!(met.unwrap().peer.identity, Some(key));
    assert!(!world.known_hosts().exists());
    let (dialled, accepted) = try_meet(&dial(PublicKey::from_raw([5; 32])), &world.listener);
    assert!(dialled.unwrap_err().to_string().contains("not that of the node"));
    assert!(matches!(accepted, Err(AcceptError::NotTrusted { .. })), "{accepted:?}");
}

#[test]
fn a_key_pair_whose_halves_do_not_match_is_not_used() {
    let world = Tls::new();
    let pem = world.scratch.join("server/identity.pem");
    let other = Identity::open(&world.scratch.join("impostor")).unwrap();
    assert_ne!(other.public_key(), Identity::open(&world.scratch.join("server")).unwrap().public_key());
    // Take the public half from the server and the private half from the impostor: PKCS#8 carries both.
    let (ours, theirs) = (raw_pem(&pem), raw_pem(&world.scratch.join("impostor/identity.pem")));
    let mixed = [&theirs[..theirs.len() - 32], &ours[ours.len() - 32..]].concat();
    std::fs::write(&pem, to_pem(&mixed)).unwrap();
    let error = Identity::open(&world.scratch.join("server")).unwrap_err().to_string();
    assert!(error.contains("is not an ed25519 private key"), "{error}");
}

fn raw_pem(path: &std::path::Path) -> Vec<u8> {
    use rustls::pki_types::PrivatePkcs8KeyDer;
    use rustls::pki_types::pem::PemObject;
    let text = std::fs::read(path).unwrap();
    PrivatePkcs8KeyDer::from_pem_slice(&text).unwrap().secret_pkcs8_der().to_vec()
}

fn to_pem(der: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bits = String::new();
    for byte in der {
        bits.push_str(&format!("{byte:08b}"));
    }
    while !bits.len().is_multiple_of(6) {
        bits.push('0');
    }
    let digits: String = bits
        .as_bytes()
        .chunks(6)
        .map(|six| ALPHABET[usize::from_str_radix(std::str::from_utf8(six).unwrap(), 2).unwrap()] as char)
        .collect();
    let padding = "=".repeat((4 - digits.len() % 4) % 4);
    format!("-----BEGIN PRIVATE KEY-----\n{digits}{padding}\n-----END PRIVATE KEY-----\n")
}

#[test]
fn a_private_key_that_others_can_read_is_not_used() {
    let scratch = Scratch::new();
    let made = Identity::open(scratch.path()).unwrap();
    let pem = scratch.join("identity.pem");
    assert_eq!(std::fs::metadata(&pem).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::read_to_string(scratch.join("identity.pub")).unwrap(), format!("{}\n", made.line()));
    std::fs::set_permissions(&pem, std::fs::Permissions::from_mode(0o644)).unwrap();
    let error = Identity::open(scratch.path()).unwrap_err().to_string();
    assert!(error.contains("can be read by other users (mode 0644)"), "{error}");
    assert!(error.contains(&format!("chmod 600 {}", pem.display())), "{error}");
}

#[test]
fn two_first_starts_at_once_agree_on_one_identity() {
    let scratch = Scratch::new();
    let directory = scratch.join("config");
    let keys: Vec<_> = std::thread::scope(|scope| {
        let openers: Vec<_> =
            (0..8).map(|_| scope.spawn(|| Identity::open(&directory).unwrap().public_key())).collect();
        openers.into_iter().map(|opener| opener.join().unwrap()).collect()
    });
    assert!(keys.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn lists_of_keys_that_others_can_change_are_not_used() {
    let world = Tls::new();
    std::fs::set_permissions(world.authorized(), std::fs::Permissions::from_mode(0o666)).unwrap();
    let (dialled, accepted) = try_meet(&world.dial(), &world.listener);
    assert!(matches!(dialled, Err(DialError::Refused { .. })));
    let refusal = accepted.unwrap_err().to_string();
    assert!(refusal.contains("can be changed by other users"), "{refusal}");

    std::fs::write(world.known_hosts(), "").unwrap();
    std::fs::set_permissions(world.known_hosts(), std::fs::Permissions::from_mode(0o666)).unwrap();
    let error = world.dial().dial().unwrap_err();
    assert!(matches!(error, DialError::KnownHosts(_)), "{error}");
}

#[test]
fn what_is_not_tls_is_refused_and_delays_nobody() {
    let world = Tls::new();
    let host = host_of(&world.listener);
    // Two peers that say nothing, or nonsense, come first; both handshakes are still pending when the third is served.
    let silent = TcpStream::connect((host.host.as_str(), host.port)).unwrap();
    let silent_pending = world.listener.accept().unwrap();
    let mut babbler = TcpStream::connect((host.host.as_str(), host.port)).unwrap();
    babbler.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let babbler_pending = world.listener.accept().unwrap();

    let (client, mut server) = world.connect();
    let (outbox, _lost) = outbox(client.sink, client.closer);
    outbox.push(frame(1, 1, 1), wirefs_carrier::Class::Urgent);
    outbox.flush();
    assert_eq!(receive(&mut server.source), (1, 1));

    let error = silent_pending.finish(Duration::from_millis(1)).unwrap_err();
    assert!(matches!(error, AcceptError::Silent { .. }), "{error}");
    babbler.set_read_timeout(Some(PATIENCE)).unwrap();
    std::thread::scope(|scope| {
        let refused = scope.spawn(|| babbler_pending.finish(PATIENCE));
        let mut answer = Vec::new();
        babbler.read_to_end(&mut answer).unwrap();
        drop(babbler);
        assert!(matches!(refused.join().unwrap(), Err(AcceptError::Handshake { .. })));
    });
    drop(silent);
}

#[test]
fn a_server_that_speaks_something_else_is_named() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let world = Tls::new();
    let port = listener.local_addr().unwrap().port();
    let known = wirefs_carrier::tls::KnownHosts::new(world.known_hosts());
    let host = wirefs_carrier::HostPort { host: "127.0.0.1".into(), port };
    let dial = wirefs_carrier::tls::TlsDial::new(host, Arc::clone(&world.client), known, PATIENCE);
    std::thread::scope(|scope| {
        let dialled = scope.spawn(|| dial.dial());
        let (mut other, _) = listener.accept().unwrap();
        other.write_all(b"220 mail.example.org ESMTP\r\n").unwrap();
        let error = dialled.join().unwrap().unwrap_err().to_string();
        assert!(error.contains("is a wirefs server behind that port?"), "{error}");
    });
}

#[test]
fn a_tcp_stream_that_ends_without_a_farewell_is_a_cut() {
    // A relay stands between the peers and ends the stream where it likes.
    let world = Tls::new();
    let relay = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let target = host_of(&world.listener);
    let mut through = host_of(&world.listener);
    through.port = relay.local_addr().unwrap().port();
    let known = wirefs_carrier::tls::KnownHosts::new(world.known_hosts());
    let dial = wirefs_carrier::tls::TlsDial::new(through, Arc::clone(&world.client), known, PATIENCE);
    std::thread::scope(|scope| {
        let dialled = scope.spawn(|| dial.dial().unwrap());
        let near = relay.accept().unwrap().0;
        let far = TcpStream::connect((target.host.as_str(), target.port)).unwrap();
        let (mut near_in, mut far_out) = (near.try_clone().unwrap(), far.try_clone().unwrap());
        let (mut far_in, mut near_out) = (far.try_clone().unwrap(), near.try_clone().unwrap());
        scope.spawn(move || std::io::copy(&mut near_in, &mut far_out));
        scope.spawn(move || std::io::copy(&mut far_in, &mut near_out));
        let mut server = world.listener.accept().unwrap().finish(PATIENCE).unwrap();
        let mut client = dialled.join().unwrap();
        for end in [&near, &far] {
            end.shutdown(std::net::Shutdown::Both).unwrap();
        }
        for source in [&mut client.source, &mut server.source] {
            let lost = source.receive().unwrap_err();
            assert!(matches!(lost, CarrierLost::Cut { received_bytes: 0 } | CarrierLost::Io(_)), "{lost}");
        }
    });
}
