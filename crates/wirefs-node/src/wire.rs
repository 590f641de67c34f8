//! Encoding of packets and records: integers are little-endian, strings have a length of one byte.

use core::net::IpAddr;

/// A cursor over untrusted bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader(bytes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(head)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn text(&mut self) -> Option<&'a str> {
        let length = self.u8()?;
        std::str::from_utf8(self.bytes(usize::from(length))?).ok()
    }

    /// Reads a family, 4 or 6, and an address.
    pub(crate) fn address(&mut self) -> Option<IpAddr> {
        match self.u8()? {
            4 => self.array::<4>().map(IpAddr::from),
            6 => self.array::<16>().map(IpAddr::from),
            _ => None,
        }
    }
}

/// Appends a string of at most 255 bytes; longer ones do not occur.
pub(crate) fn put_text(out: &mut Vec<u8>, text: &str) {
    let length = u8::try_from(text.len()).unwrap_or(u8::MAX);
    out.push(length);
    out.extend(text.bytes().take(usize::from(length)));
}

/// Appends a family and an address.
pub(crate) fn put_address(out: &mut Vec<u8>, address: &IpAddr) {
    match address {
        IpAddr::V4(address) => {
            out.push(4);
            out.extend_from_slice(&address.octets());
        }
        IpAddr::V6(address) => {
            out.push(6);
            out.extend_from_slice(&address.octets());
        }
    }
}
