//! A 9P client of a few lines: one request at a time.

use crate::gate::Gate;
use bytes::Bytes;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use wirefs_ninep::message::{Fid, NOFID};
use wirefs_ninep::text::{Few, NineEntry, NineString, Tail};
use wirefs_ninep::{Rmessage, Tmessage};
use wirefs_op::wire::{Data, Reader, Wire};
use wirefs_op::{NOTAG, Tag};

pub(crate) const ROOT: Fid = Fid(0);

pub(crate) fn text(text: &str) -> NineString {
    NineString::new(text.as_bytes())
}

pub(crate) fn data(bytes: &[u8]) -> Data {
    Data(Bytes::copy_from_slice(bytes))
}

pub(crate) struct Client {
    stream: UnixStream,
    next: u32,
}

impl Client {
    /// Speaks 9P2000.L; the root is fid 0.
    pub(crate) fn linux(gate: &Gate) -> Client {
        Client::begin(gate, "9P2000.L", Tail(Some(u32::MAX)))
    }

    /// Speaks 9P2000.
    pub(crate) fn plan(gate: &Gate) -> Client {
        Client::begin(gate, "9P2000", Tail(None))
    }

    fn begin(gate: &Gate, version: &str, uid: Tail) -> Client {
        let mut client = Client { stream: gate.connect(), next: 1 };
        client.send(NOTAG, &Tmessage::Version { msize: 8192, version: text(version) });
        let agreed = Rmessage::Version { msize: 8192, version: text(version) };
        assert_eq!(client.receive(), (NOTAG, agreed));
        client.does(Tmessage::Attach { fid: ROOT, afid: NOFID, uname: text(""), aname: text(""), uid });
        client
    }

    pub(crate) fn send(&mut self, tag: Tag, request: &Tmessage) {
        let frame = request.encode(tag);
        self.stream.write_all(&[&frame.head[..], &frame.data].concat()).unwrap();
    }

    pub(crate) fn receive(&mut self) -> (Tag, Rmessage) {
        let mut size = [0; 4];
        self.stream.read_exact(&mut size).unwrap();
        let mut body = vec![0; u32::from_le_bytes(size) as usize - 4];
        self.stream.read_exact(&mut body).unwrap();
        Rmessage::decode(Bytes::from(body)).unwrap()
    }

    pub(crate) fn ask(&mut self, request: Tmessage) -> Rmessage {
        self.send(Tag(1), &request);
        let (tag, reply) = self.receive();
        assert_eq!(tag, Tag(1));
        reply
    }

    /// Asks for something that succeeds.
    pub(crate) fn does(&mut self, request: Tmessage) -> Rmessage {
        let reply = self.ask(request.clone());
        let failed = matches!(reply, Rmessage::Lerror { .. } | Rmessage::Error { .. });
        assert!(!failed, "{request:?}: {reply:?}");
        reply
    }

    /// Asks for something that fails with this number of Linux.
    pub(crate) fn fails(&mut self, request: Tmessage, errno: u32) {
        let what = format!("{request:?}");
        assert_eq!(self.ask(request), Rmessage::Lerror { errno }, "{what}");
    }

    pub(crate) fn new_fid(&mut self) -> Fid {
        self.next += 1;
        Fid(self.next)
    }

    /// A new fid of this path from the root.
    pub(crate) fn walk(&mut self, path: &str) -> Fid {
        let newfid = self.new_fid();
        let names = path.split('/').filter(|name| !name.is_empty()).map(text).collect();
        self.does(Tmessage::Walk { fid: ROOT, newfid, names: Few(names) });
        newfid
    }

    pub(crate) fn clunk(&mut self, fid: Fid) {
        self.does(Tmessage::Clunk { fid });
    }

    /// An open fid of this path.
    pub(crate) fn lopen(&mut self, path: &str, flags: u32) -> Fid {
        let fid = self.walk(path);
        self.does(Tmessage::Lopen { fid, flags });
        fid
    }

    pub(crate) fn read(&mut self, fid: Fid, offset: u64, count: u32) -> Vec<u8> {
        match self.does(Tmessage::Read { fid, offset, count }) {
            Rmessage::Read { data } => data.0.to_vec(),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn write(&mut self, fid: Fid, offset: u64, bytes: &[u8]) {
        let reply = self.does(Tmessage::Write { fid, offset, data: data(bytes) });
        assert_eq!(reply, Rmessage::Write { count: bytes.len() as u32 });
    }

    /// The names of a directory, in the order of the listing, asked for in small pieces.
    pub(crate) fn names(&mut self, path: &str, count: u32) -> Vec<String> {
        let (fid, mut offset, mut names) = (self.lopen(path, 0o200_000), 0, Vec::new());
        loop {
            let Rmessage::Readdir { data } = self.does(Tmessage::Readdir { fid, offset, count }) else {
                panic!("no listing");
            };
            assert!(data.0.len() <= count as usize);
            if data.0.is_empty() {
                self.clunk(fid);
                return names;
            }
            let mut reader = Reader::new(data.0);
            while reader.remaining() > 0 {
                let entry = NineEntry::take(&mut reader).unwrap();
                offset = entry.next;
                names.push(String::from_utf8(entry.name.0.to_vec()).unwrap());
            }
        }
    }
}
