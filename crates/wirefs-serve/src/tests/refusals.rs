//! Refusals over real sockets: each peer reads its own, even if it has sent more meanwhile.

use super::super::{ExportRouter, PeerRights};
use super::client::*;
use bytes::Bytes;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use wirefs_carrier::{ListenOptions, Listener};
use wirefs_op::message::error::Rerror;
use wirefs_op::message::version::{SessionId, Tversion};
use wirefs_op::{Errno, NOTAG, Reply, Request, Tag};
use wirefs_server::limits::CONNECTIONS_MAX;

fn listener() -> (Listener, SocketAddr) {
    let listener = Listener::bind(&"tcp+plain://127.0.0.1:0".parse().unwrap(), &ListenOptions::default());
    let listener = listener.unwrap();
    let address = listener.socket_address().unwrap();
    (listener, address)
}

/// Sends all of this at once, and returns the last reply before the connection ends in order.
fn last_reply(address: SocketAddr, requests: &[u8]) -> Rerror {
    let mut socket = TcpStream::connect(address).unwrap();
    // In parts, so that the server closes before the last ones are sent.
    for part in requests.chunks(1024) {
        socket.write_all(part).expect("the connection broke");
    }
    let mut received = Vec::new();
    socket.read_to_end(&mut received).expect("the connection broke");
    let mut rest = Bytes::from(received);
    let mut last = None;
    while !rest.is_empty() {
        let size = u32::from_le_bytes(rest[..4].try_into().unwrap()) as usize;
        last = Some(Reply::decode(rest.split_to(size).split_off(4)).unwrap().1);
    }
    match last {
        Some(Reply::Error(error)) => error,
        other => panic!("{other:?}"),
    }
}

fn bytes(requests: &[(Tag, Request)]) -> Vec<u8> {
    let frames = requests.iter().map(|(tag, request)| request.encode(*tag));
    frames.flat_map(|frame| [frame.head, frame.data.to_vec()].concat()).collect()
}

/// Requests that the server does not read any more.
fn more() -> Vec<u8> {
    bytes(&[(Tag(1), ping())]).repeat(30_000)
}

// S-168
#[test]
fn peer_without_an_export_reads_the_reason() {
    let router = ExportRouter::new(Arc::new(|_, _| Some(PeerRights::default())));
    router.add("here", server().0);
    let (listener, address) = listener();
    router.listen(listener).unwrap();
    let requests = [bytes(&[(NOTAG, version(1)), (Tag(0), attach(b"elsewhere"))]), more()].concat();
    for _ in 0..100 {
        let reason = last_reply(address, &requests);
        assert_eq!(reason.errno, Errno::AccessDenied);
        assert!(reason.ename.to_string().contains("/here"), "{reason:?}");
    }
}

// S-168
#[test]
fn peer_that_breaks_the_protocol_reads_the_reason() {
    let (server, _script) = server();
    let (listener, address) = listener();
    server.listen(listener).unwrap();
    let requests = [bytes(&[(Tag(1), stat(b"f"))]), more()].concat();
    for _ in 0..100 {
        assert_eq!(last_reply(address, &requests).errno, Errno::Protocol);
    }
}

/// Attaches a session of this number.
fn attached(address: SocketAddr, number: usize) -> TcpStream {
    let Request::Version(hello) = version(0) else { unreachable!("version() is a Tversion") };
    let session = SessionId((number as u128 + 1).to_le_bytes());
    let hello = Request::Version(Tversion { session, ..hello });
    let mut socket = TcpStream::connect(address).unwrap();
    socket.write_all(&bytes(&[(NOTAG, hello), (Tag(0), attach(b""))])).unwrap();
    for _ in 0..2 {
        let mut size = [0; 4];
        socket.read_exact(&mut size).unwrap();
        let mut rest = vec![0; u32::from_le_bytes(size) as usize - size.len()];
        socket.read_exact(&mut rest).unwrap();
    }
    socket
}

// S-168
#[test]
fn peer_beyond_the_share_of_its_host_reads_the_reason() {
    // Both ends of all connections are in this process.
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
    let (server, _script) = server();
    let (listener, address) = listener();
    server.listen(listener).unwrap();
    // Half of all connections are for one host.
    let held: Vec<TcpStream> = (0..CONNECTIONS_MAX / 2).map(|number| attached(address, number)).collect();
    let requests = [bytes(&[(NOTAG, version(0)), (Tag(0), attach(b""))]), more()].concat();
    for _ in 0..100 {
        let reason = last_reply(address, &requests);
        assert_eq!(reason.errno, Errno::TooManyOpen);
        assert_eq!(reason.ename.to_string(), "this client has too many connections");
    }
    drop(held);
}
