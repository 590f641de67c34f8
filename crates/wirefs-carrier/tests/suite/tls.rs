//! Authentication over TLS, and its messages.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use wirefs_carrier::limits::PENDING_MAX;
use wirefs_carrier::tls::{Identity, KnownHosts, PublicKey, TlsDial};
use wirefs_carrier::{AcceptError, Carrier, CarrierLost, Dial, DialError, HostPort, Listener};

use crate::scratch::Scratch;
use crate::testbeds::{Testbed, Tls, host_of};
use crate::traffic::{PATIENCE, frame, receive, send_queue};

/// Returns the results of both sides when a client dials.
fn try_connect(
    dial: &dyn Dial,
    listener: &Listener,
) -> (Result<Carrier, DialError>, Result<Carrier, AcceptError>) {
    std::thread::scope(|scope| {
        let dialed = scope.spawn(|| dial.dial());
        let accepted = listener.accept().unwrap().finish(PATIENCE);
        (dialed.join().unwrap(), accepted)
    })
}

#[test]
fn unauthorized_client_gets_the_line_and_the_file() {
    let testbed = Tls::without_keys();
    std::fs::write(testbed.authorized(), "not a key\n").unwrap();
    let (dialed, accepted) = try_connect(&testbed.dial(), &testbed.listener);
    let refused = dialed.unwrap_err();
    assert!(matches!(&refused, DialError::Refused { line } if *line == testbed.client.line()), "{refused}");
    assert!(refused.to_string().contains("the server does not accept this key"), "{refused}");
    let refusal = accepted.unwrap_err().to_string();
    assert!(refusal.contains(&testbed.client.public_key().to_string()), "{refusal}");
    assert!(refusal.contains("authorized_keys:1: this line is no key"), "{refusal}");

    // The reported line authorizes it, without a restart.
    std::fs::write(testbed.authorized(), testbed.client.line()).unwrap();
    let (dialed, accepted) = try_connect(&testbed.dial(), &testbed.listener);
    dialed.unwrap();
    assert_eq!(accepted.unwrap().peer.identity, Some(testbed.client.public_key()));
}

#[test]
fn refusal_after_a_background_dial_is_reported_by_the_first_receive() {
    let testbed = Tls::without_keys();
    let dial = testbed.dial();
    std::thread::scope(|scope| {
        let server = scope.spawn(|| testbed.listener.accept().unwrap().finish(PATIENCE));
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

/// Relays a connection to `server`. The client's bytes after the first message are held until `sent` is signaled, and
/// then forwarded in one piece.
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
        // All bytes have arrived: the client's sends have returned, and this is the loopback.
        let held = client.read(&mut buffer).unwrap();
        server.write_all(&buffer[..held]).unwrap();
        let _end = std::io::copy(&mut client, &mut server);
        let _gone = server.shutdown(std::net::Shutdown::Both);
    });
}

#[test]
fn frame_in_one_piece_with_the_end_of_the_handshake_is_received() {
    let testbed = Tls::new();
    let relay = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = HostPort { host: "127.0.0.1".into(), port: relay.local_addr().unwrap().port() };
    let known_hosts = KnownHosts::new(testbed.known_hosts());
    let dial = TlsDial::new(host, Arc::clone(&testbed.client), known_hosts, PATIENCE);
    let (notify, sent) = mpsc::channel();
    let server = host_of(&testbed.listener).to_string();
    std::thread::scope(|scope| {
        scope.spawn(move || relay_in_one_piece(&relay, &server, &sent));
        let accepted = scope.spawn(|| testbed.listener.accept().unwrap().finish(PATIENCE));
        // Does not wait for the server's greeting, as after a lost connection.
        let mut client = dial.dial_again().unwrap();
        let mut queue = [frame(0, 7, 100)].into();
        client.sink.send(&mut queue).unwrap();
        notify.send(()).unwrap();
        let mut server = accepted.join().unwrap().unwrap();
        // If the frame were lost, the end would be received.
        client.closer.close();
        assert_eq!(receive(&mut server.source), (0, 7));
        server.closer.close();
    });
}

#[test]
fn without_an_authorized_keys_file_every_client_is_refused_with_a_warning() {
    let testbed = Tls::without_keys();
    let warning = testbed.listener.warnings().join("\n");
    assert!(warning.contains("no client may connect"), "{warning}");
    let (dialed, accepted) = try_connect(&testbed.dial(), &testbed.listener);
    assert!(matches!(dialed, Err(DialError::Refused { .. })));
    let refusal = accepted.unwrap_err().to_string();
    assert!(
        refusal.contains("there is no file") && refusal.contains(&testbed.client.public_key().to_string()),
        "{refusal}"
    );
}

#[test]
fn first_connection_pins_the_server_and_the_second_does_not_report_it() {
    let testbed = Tls::new();
    let (first, server) = testbed.connect();
    assert_eq!(first.peer.pinned_in, Some(testbed.known_hosts()));
    assert_eq!(server.peer.pinned_in, None);
    let (second, _server) = testbed.connect();
    assert_eq!(second.peer.pinned_in, None);
    assert_eq!(second.peer.identity, first.peer.identity);
    let known = std::fs::read_to_string(testbed.known_hosts()).unwrap();
    assert_eq!(known, format!("{} {}\n", host_of(&testbed.listener), first.peer.identity.unwrap()));
}

#[test]
fn a_changed_host_key_is_refused_with_both_fingerprints_and_the_line() {
    let testbed = Tls::new();
    let unknown = PublicKey::from_raw([5; 32]);
    let host = host_of(&testbed.listener);
    std::fs::write(testbed.known_hosts(), format!("# pinned\nother:1 {unknown}\n{host} {unknown}\n"))
        .unwrap();
    let (dialed, accepted) = try_connect(&testbed.dial(), &testbed.listener);
    let shown = Identity::open(&testbed.scratch.join("server")).unwrap().public_key().fingerprint();
    match dialed.unwrap_err() {
        DialError::HostKeyChanged { known, shown: seen, file, line, .. } => {
            assert_eq!((known, seen), (unknown.fingerprint(), shown));
            assert_eq!((file, line), (testbed.known_hosts(), 3));
        }
        other => panic!("{other}"),
    }
    assert!(matches!(accepted, Err(AcceptError::NotTrusted { .. })), "{accepted:?}");
}

#[test]
fn server_expected_by_key_is_not_pinned_and_another_is_refused() {
    let testbed = Tls::new();
    let identity = Arc::new(Identity::open(&testbed.scratch.join("client")).unwrap());
    let key = Identity::open(&testbed.scratch.join("server")).unwrap().public_key();
    let host = host_of(&testbed.listener);
    let dial = |key| TlsDial::expecting(host.clone(), Arc::clone(&identity), key, PATIENCE);
    let (dialed, _accepted) = try_connect(&dial(key), &testbed.listener);
    assert_eq!(dialed.unwrap().peer.identity, Some(key));
    assert!(!testbed.known_hosts().exists());
    let (dialed, accepted) = try_connect(&dial(PublicKey::from_raw([5; 32])), &testbed.listener);
    assert!(dialed.unwrap_err().to_string().contains("not that of the node"));
    assert!(matches!(accepted, Err(AcceptError::NotTrusted { .. })), "{accepted:?}");
}

#[test]
fn mismatched_key_pair_is_not_used() {
    let testbed = Tls::new();
    let pem = testbed.scratch.join("server/identity.pem");
    let other = Identity::open(&testbed.scratch.join("impostor")).unwrap();
    assert_ne!(other.public_key(), Identity::open(&testbed.scratch.join("server")).unwrap().public_key());
    // Takes the public key of the server and the private key of the impostor: PKCS#8 has both.
    let (ours, theirs) = (raw_pem(&pem), raw_pem(&testbed.scratch.join("impostor/identity.pem")));
    let mixed = [&theirs[..theirs.len() - 32], &ours[ours.len() - 32..]].concat();
    std::fs::write(&pem, to_pem(&mixed)).unwrap();
    let error = Identity::open(&testbed.scratch.join("server")).unwrap_err().to_string();
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
fn private_key_readable_by_others_is_not_used() {
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
fn concurrent_first_starts_agree_on_one_identity() {
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
fn key_lists_writable_by_others_are_not_used() {
    let testbed = Tls::new();
    std::fs::set_permissions(testbed.authorized(), std::fs::Permissions::from_mode(0o666)).unwrap();
    let (dialed, accepted) = try_connect(&testbed.dial(), &testbed.listener);
    assert!(matches!(dialed, Err(DialError::Refused { .. })));
    let refusal = accepted.unwrap_err().to_string();
    assert!(refusal.contains("can be changed by other users"), "{refusal}");

    std::fs::write(testbed.known_hosts(), "").unwrap();
    std::fs::set_permissions(testbed.known_hosts(), std::fs::Permissions::from_mode(0o666)).unwrap();
    let error = testbed.dial().dial().unwrap_err();
    assert!(matches!(error, DialError::KnownHosts(_)), "{error}");
}

#[test]
fn other_protocols_are_refused_without_delaying_clients() {
    let testbed = Tls::new();
    let host = host_of(&testbed.listener);
    // A silent peer and one that sends garbage come first; both handshakes are still pending when the third is served.
    let silent = TcpStream::connect((host.host.as_str(), host.port)).unwrap();
    let silent_pending = testbed.listener.accept().unwrap();
    let mut babbler = TcpStream::connect((host.host.as_str(), host.port)).unwrap();
    babbler.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let babbler_pending = testbed.listener.accept().unwrap();

    let (client, mut server) = testbed.connect();
    let (send_queue, _lost) = send_queue(client.sink, client.closer);
    send_queue.push(frame(1, 1, 1), wirefs_carrier::Class::Urgent);
    send_queue.flush();
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
fn server_with_another_protocol_is_reported() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let testbed = Tls::new();
    let port = listener.local_addr().unwrap().port();
    let known = wirefs_carrier::tls::KnownHosts::new(testbed.known_hosts());
    let host = wirefs_carrier::HostPort { host: "127.0.0.1".into(), port };
    let dial = wirefs_carrier::tls::TlsDial::new(host, Arc::clone(&testbed.client), known, PATIENCE);
    std::thread::scope(|scope| {
        let dialed = scope.spawn(|| dial.dial());
        let (mut other, _) = listener.accept().unwrap();
        other.write_all(b"220 mail.example.org ESMTP\r\n").unwrap();
        let error = dialed.join().unwrap().unwrap_err().to_string();
        assert!(error.contains("is a wirefs server behind that port?"), "{error}");
    });
}

#[test]
fn tcp_stream_without_close_notify_is_truncated() {
    // A relay between the peers ends the stream at will.
    let testbed = Tls::new();
    let relay = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let target = host_of(&testbed.listener);
    let mut through = host_of(&testbed.listener);
    through.port = relay.local_addr().unwrap().port();
    let known = wirefs_carrier::tls::KnownHosts::new(testbed.known_hosts());
    let dial = wirefs_carrier::tls::TlsDial::new(through, Arc::clone(&testbed.client), known, PATIENCE);
    std::thread::scope(|scope| {
        let dialed = scope.spawn(|| dial.dial().unwrap());
        let near = relay.accept().unwrap().0;
        let far = TcpStream::connect((target.host.as_str(), target.port)).unwrap();
        let (mut near_in, mut far_out) = (near.try_clone().unwrap(), far.try_clone().unwrap());
        let (mut far_in, mut near_out) = (far.try_clone().unwrap(), near.try_clone().unwrap());
        scope.spawn(move || std::io::copy(&mut near_in, &mut far_out));
        scope.spawn(move || std::io::copy(&mut far_in, &mut near_out));
        let mut server = testbed.listener.accept().unwrap().finish(PATIENCE).unwrap();
        let mut client = dialed.join().unwrap();
        for end in [&near, &far] {
            end.shutdown(std::net::Shutdown::Both).unwrap();
        }
        for source in [&mut client.source, &mut server.source] {
            let lost = source.receive().unwrap_err();
            assert!(matches!(lost, CarrierLost::Cut { received_bytes: 0 } | CarrierLost::Io(_)), "{lost}");
        }
    });
}

// S-180
#[test]
fn flood_of_silent_connections_does_not_keep_an_honest_client_out() {
    const FLOOD: usize = PENDING_MAX + 20;
    let testbed = Tls::new();
    let host = host_of(&testbed.listener);
    let connect = || {
        let near = TcpStream::connect((host.host.as_str(), host.port)).unwrap();
        (near, testbed.listener.accept().unwrap())
    };
    let flood: Vec<_> = std::iter::repeat_with(connect).take(FLOOD).collect();
    assert_eq!(testbed.listener.evicted(), 20);
    let (dialed, accepted) = try_connect(&testbed.dial(), &testbed.listener);
    dialed.unwrap();
    accepted.unwrap();
    // The oldest ones had to go, at once.
    for (number, (mut near, pending)) in flood.into_iter().enumerate() {
        if number < 21 {
            assert_eq!(near.read(&mut [0]).unwrap(), 0, "connection {number}");
            assert!(pending.finish(PATIENCE).is_err());
        }
    }
}
