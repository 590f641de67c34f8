//! Clients that break the protocol lose their connection, and nobody else notices.

use crate::client::{Client, ROOT, text};
use crate::gate::{Gate, Place, is_closed};
use std::io::Write;
use wirefs_ninep::message::{Fid, NOFID};
use wirefs_ninep::text::{Few, Tail};
use wirefs_ninep::{Rmessage, Tmessage};
use wirefs_op::{NOTAG, Tag};

// S-80
#[test]
fn a_malformed_message_ends_its_own_connection_alone() {
    let place = Place::new();
    std::fs::write(place.tree("f"), "contents").unwrap();
    let gate = Gate::serve(&place, &[]);
    let mut other = Client::linux(&gate);
    let version = Tmessage::Version { msize: 8192, version: text("9P2000.L") }.encode(NOTAG).head;
    let clunk = Tmessage::Clunk { fid: Fid(1) }.encode(Tag(1)).head;
    let bad: [&[u8]; 7] = [
        b"\xff\xff\xff\xff\x64",
        b"\x03\x00\x00\x00",
        b"\x07\x00\x00\x00\x01\x01\x00",
        b"\x0c\x00\x00\x00\x78\x01\x00\x01\x00\x00\x00\x00",
        b"\x0b\x00\x00\x00\x6e\x01\x00\x00\x00\xff\xff",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x0a\x00\x00\x00\x78\x01\x00\x01\x00\x00",
    ];
    for bytes in bad {
        let mut stranger = gate.connect();
        let _gone = stranger.write_all(&[&version[..], bytes].concat());
        stranger.shutdown(std::net::Shutdown::Write).unwrap();
        let mut reply = [0; 21];
        std::io::Read::read_exact(&mut stranger, &mut reply).unwrap();
        assert!(is_closed(&mut stranger), "{bytes:?}");
    }
    let mut hasty = gate.connect();
    hasty.write_all(&clunk).unwrap();
    assert!(is_closed(&mut hasty), "a request before Tversion");
    let fid = other.lopen("f", 0);
    assert_eq!(other.read(fid, 0, 8), b"contents");
}

#[test]
fn wrong_fids_and_names_are_errors() {
    let place = Place::new();
    std::fs::write(place.tree("f"), "contents").unwrap();
    let gate = Gate::serve(&place, &[]);
    let mut client = Client::linux(&gate);
    let (ebadf, einval) = (9, 22);
    client.fails(Tmessage::Getattr { fid: Fid(77), mask: 0 }, ebadf);
    client.fails(Tmessage::Read { fid: ROOT, offset: 0, count: 1 }, ebadf);
    client.fails(Tmessage::Readdir { fid: ROOT, offset: 0, count: 1000 }, ebadf);
    client.fails(Tmessage::Walk { fid: ROOT, newfid: NOFID, names: Few(Vec::new()) }, ebadf);
    for name in ["", ".", "..", "a/b", "a\0b"] {
        client.fails(Tmessage::Mkdir { dir: ROOT, name: text(name), mode: 0o755, gid: 0 }, einval);
    }
    let long = "x".repeat(256);
    client.fails(Tmessage::Mkdir { dir: ROOT, name: text(&long), mode: 0o755, gid: 0 }, 36);
    let up = Tmessage::Attach {
        fid: Fid(5),
        afid: NOFID,
        uname: text(""),
        aname: text("/../.."),
        uid: Tail(Some(0)),
    };
    client.fails(up, einval);
    let fid = client.lopen("f", 0);
    client.fails(Tmessage::Lopen { fid, flags: 0 }, ebadf);
    client.fails(
        Tmessage::Lock { fid, kind: 9, flags: 0, start: 0, length: 0, process: 1, client: text("") },
        einval,
    );
}

#[test]
fn a_flush_is_answered_behind_its_request_and_each_request_once() {
    let place = Place::new();
    std::fs::write(place.tree("f"), vec![7; 100_000]).unwrap();
    let gate = Gate::serve(&place, &[]);
    let mut client = Client::linux(&gate);
    let fid = client.lopen("f", 0);
    for round in 0..100_u16 {
        let (read, flush) = (Tag(round * 2 + 10), Tag(round * 2 + 11));
        client.send(read, &Tmessage::Read { fid, offset: u64::from(round) * 100, count: 100 });
        client.send(flush, &Tmessage::Flush { old: read.0 });
        let (first, second) = (client.receive(), client.receive());
        assert_eq!((first.0, second), (read, (flush, Rmessage::Flush {})));
        assert!(matches!(first.1, Rmessage::Read { .. }));
    }
    // Of a tag that is not in use.
    client.send(Tag(1), &Tmessage::Flush { old: 999 });
    assert_eq!(client.receive(), (Tag(1), Rmessage::Flush {}));
}

#[test]
fn a_version_in_mid_conversation_begins_anew() {
    let place = Place::new();
    let gate = Gate::serve(&place, &[]);
    let mut client = Client::linux(&gate);
    client.send(NOTAG, &Tmessage::Version { msize: 4096, version: text("9P2000.L") });
    assert_eq!(client.receive(), (NOTAG, Rmessage::Version { msize: 4096, version: text("9P2000.L") }));
    client.fails(Tmessage::Getattr { fid: ROOT, mask: 0 }, 9);
}
