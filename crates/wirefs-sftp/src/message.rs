//! Packets of SFTP version 3, and OpenSSH's extensions of it.

#[cfg(test)]
mod tests;

use bytes::Bytes;

use crate::attributes::Attributes;

/// Flags of OPEN.
pub(crate) mod open {
    pub(crate) const READ: u32 = 1;
    pub(crate) const WRITE: u32 = 2;
    pub(crate) const APPEND: u32 = 4;
    pub(crate) const CREATE: u32 = 8;
    pub(crate) const EXCLUSIVE: u32 = 32;
}

const INIT: u8 = 1;
const VERSION: u8 = 2;
const STATUS: u8 = 101;
const HANDLE: u8 = 102;
const DATA: u8 = 103;
const NAME: u8 = 104;
const ATTRIBUTES: u8 = 105;
const EXTENDED: u8 = 200;
const EXTENDED_REPLY: u8 = 201;
/// The version of the protocol.
const VERSION_NUMBER: u32 = 3;

/// A packet that breaks the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// A request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Request<'a> {
    Open {
        path: &'a [u8],
        flags: u32,
        attributes: Attributes,
    },
    Close {
        handle: &'a [u8],
    },
    Read {
        handle: &'a [u8],
        offset: u64,
        length: u32,
    },
    Write {
        handle: &'a [u8],
        offset: u64,
        data: &'a [u8],
    },
    Lstat {
        path: &'a [u8],
    },
    Fstat {
        handle: &'a [u8],
    },
    Setstat {
        path: &'a [u8],
        attributes: Attributes,
    },
    Fsetstat {
        handle: &'a [u8],
        attributes: Attributes,
    },
    Opendir {
        path: &'a [u8],
    },
    Readdir {
        handle: &'a [u8],
    },
    Remove {
        path: &'a [u8],
    },
    Mkdir {
        path: &'a [u8],
        attributes: Attributes,
    },
    Rmdir {
        path: &'a [u8],
    },
    Realpath {
        path: &'a [u8],
    },
    /// Fails if the new name exists.
    Rename {
        from: &'a [u8],
        to: &'a [u8],
    },
    Readlink {
        path: &'a [u8],
    },
    Symlink {
        target: &'a [u8],
        path: &'a [u8],
    },
    /// `posix-rename@openssh.com`: replaces an object at the new name.
    PosixRename {
        from: &'a [u8],
        to: &'a [u8],
    },
    /// `hardlink@openssh.com`.
    Hardlink {
        from: &'a [u8],
        to: &'a [u8],
    },
    /// `lsetstat@openssh.com`: follows no link.
    Lsetstat {
        path: &'a [u8],
        attributes: Attributes,
    },
    /// `fsync@openssh.com`.
    Fsync {
        handle: &'a [u8],
    },
    /// `statvfs@openssh.com`.
    Statvfs {
        path: &'a [u8],
    },
    /// `limits@openssh.com`.
    Limits,
    /// `copy-data`.
    CopyData {
        from: &'a [u8],
        offset: u64,
        length: u64,
        to: &'a [u8],
        to_offset: u64,
    },
}

/// Encodes the first packet of a connection.
pub(crate) fn init() -> Vec<u8> {
    let mut packet = Packet(vec![0; 4]);
    packet.0.push(INIT);
    packet.number(VERSION_NUMBER);
    packet.finish()
}

/// Decodes the server's first packet. Returns the names of its extensions.
pub(crate) fn version(body: Bytes) -> Result<Vec<Bytes>, Malformed> {
    let mut reader = PacketReader(body);
    if reader.byte()? != VERSION || reader.number()? < VERSION_NUMBER {
        return Err(Malformed);
    }
    let mut names = Vec::new();
    while !reader.0.is_empty() {
        names.push(reader.string()?);
        let _version = reader.string()?;
    }
    Ok(names)
}

impl Request<'_> {
    /// Encodes the request.
    pub(crate) fn encode(&self, id: u32) -> Vec<u8> {
        let plain = |code, strings: &[&[u8]]| {
            let mut packet = Packet::new(code, id);
            strings.iter().for_each(|string| packet.string(string));
            packet
        };
        let with = |mut packet: Packet, attributes: &Attributes| {
            attributes.put(&mut packet);
            packet
        };
        let packet = match self {
            Request::Open { path, flags, attributes } => {
                let mut packet = plain(3, &[path]);
                packet.number(*flags);
                with(packet, attributes)
            }
            Request::Close { handle } => plain(4, &[handle]),
            Request::Read { handle, offset, length } => {
                let mut packet = plain(5, &[handle]);
                packet.long(*offset);
                packet.number(*length);
                packet
            }
            Request::Write { handle, offset, data } => {
                let mut packet = plain(6, &[handle]);
                packet.long(*offset);
                packet.string(data);
                packet
            }
            Request::Lstat { path } => plain(7, &[path]),
            Request::Fstat { handle } => plain(8, &[handle]),
            Request::Setstat { path, attributes } => with(plain(9, &[path]), attributes),
            Request::Fsetstat { handle, attributes } => with(plain(10, &[handle]), attributes),
            Request::Opendir { path } => plain(11, &[path]),
            Request::Readdir { handle } => plain(12, &[handle]),
            Request::Remove { path } => plain(13, &[path]),
            Request::Mkdir { path, attributes } => with(plain(14, &[path]), attributes),
            Request::Rmdir { path } => plain(15, &[path]),
            Request::Realpath { path } => plain(16, &[path]),
            Request::Rename { from, to } => plain(18, &[from, to]),
            Request::Readlink { path } => plain(19, &[path]),
            // In the order of OpenSSH, which all servers have taken over; the draft's is the reverse.
            Request::Symlink { target, path } => plain(20, &[target, path]),
            Request::PosixRename { from, to } => plain(EXTENDED, &[b"posix-rename@openssh.com", from, to]),
            Request::Hardlink { from, to } => plain(EXTENDED, &[b"hardlink@openssh.com", from, to]),
            Request::Lsetstat { path, attributes } => {
                with(plain(EXTENDED, &[b"lsetstat@openssh.com", path]), attributes)
            }
            Request::Fsync { handle } => plain(EXTENDED, &[b"fsync@openssh.com", handle]),
            Request::Statvfs { path } => plain(EXTENDED, &[b"statvfs@openssh.com", path]),
            Request::Limits => plain(EXTENDED, &[b"limits@openssh.com"]),
            Request::CopyData { from, offset, length, to, to_offset } => {
                let mut packet = plain(EXTENDED, &[b"copy-data", from]);
                packet.long(*offset);
                packet.long(*length);
                packet.string(to);
                packet.long(*to_offset);
                packet
            }
        };
        packet.finish()
    }
}

/// The outcome of a request without other results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Ok,
    /// The end of a file or listing.
    End,
    /// Also a name below an object that is no directory, or a loop of links.
    NoSuchFile,
    Denied,
    /// Any other error of the system.
    Failure,
    /// Also an invalid argument, or a name that is too long.
    BadMessage,
    Unsupported,
}

impl Status {
    fn of(code: u32) -> Status {
        match code {
            0 => Status::Ok,
            1 => Status::End,
            2 => Status::NoSuchFile,
            3 => Status::Denied,
            5 => Status::BadMessage,
            8 => Status::Unsupported,
            _ => Status::Failure,
        }
    }
}

/// An entry of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NameEntry {
    pub(crate) name: Bytes,
    pub(crate) attributes: Attributes,
}

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Status(Status),
    Handle(Bytes),
    Data(Bytes),
    Names(Vec<NameEntry>),
    Attributes(Attributes),
    /// The reply to an extension, whose request knows its form.
    Extended(Bytes),
}

impl Reply {
    /// Decodes a packet without its length.
    pub(crate) fn decode(body: Bytes) -> Result<(u32, Reply), Malformed> {
        let mut reader = PacketReader(body);
        let (code, id) = (reader.byte()?, reader.number()?);
        let reply = match code {
            STATUS => Reply::Status(Status::of(reader.number()?)),
            HANDLE => Reply::Handle(reader.string()?),
            DATA => Reply::Data(reader.string()?),
            NAME => {
                let count = reader.number()?;
                let mut names = Vec::new();
                for _ in 0..count {
                    let (name, _long) = (reader.string()?, reader.string()?);
                    names.push(NameEntry { name, attributes: Attributes::take(&mut reader)? });
                }
                Reply::Names(names)
            }
            ATTRIBUTES => Reply::Attributes(Attributes::take(&mut reader)?),
            EXTENDED_REPLY => Reply::Extended(reader.0),
            _ => return Err(Malformed),
        };
        Ok((id, reply))
    }
}

/// A packet that is being written: big endian, its length first.
pub(crate) struct Packet(Vec<u8>);

impl Packet {
    fn new(code: u8, id: u32) -> Packet {
        let mut packet = Packet(vec![0; 4]);
        packet.0.push(code);
        packet.number(id);
        packet
    }

    pub(crate) fn number(&mut self, number: u32) {
        self.0.extend(number.to_be_bytes());
    }

    pub(crate) fn long(&mut self, number: u64) {
        self.0.extend(number.to_be_bytes());
    }

    fn string(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u32);
        self.0.extend_from_slice(bytes);
    }

    fn finish(mut self) -> Vec<u8> {
        let length = (self.0.len() as u32).saturating_sub(4).to_be_bytes();
        if let Some(head) = self.0.first_chunk_mut() {
            *head = length;
        }
        self.0
    }
}

/// A packet that is being read.
pub(crate) struct PacketReader(pub(crate) Bytes);

impl PacketReader {
    fn bytes(&mut self, count: usize) -> Result<Bytes, Malformed> {
        if self.0.len() < count { Err(Malformed) } else { Ok(self.0.split_to(count)) }
    }

    fn byte(&mut self) -> Result<u8, Malformed> {
        self.bytes(1)?.first().copied().ok_or(Malformed)
    }

    pub(crate) fn number(&mut self) -> Result<u32, Malformed> {
        let bytes = self.bytes(4)?;
        bytes.first_chunk().map(|bytes| u32::from_be_bytes(*bytes)).ok_or(Malformed)
    }

    pub(crate) fn long(&mut self) -> Result<u64, Malformed> {
        let bytes = self.bytes(8)?;
        bytes.first_chunk().map(|bytes| u64::from_be_bytes(*bytes)).ok_or(Malformed)
    }

    pub(crate) fn string(&mut self) -> Result<Bytes, Malformed> {
        let length = self.number()?;
        self.bytes(length as usize)
    }
}
