//! Servers that answer on a segment: the messages.
//!
//! ```text
//! "WFS1" 4 · kind 1 · nonce 8 · body
//!   query 0: zeros up to 1000 bytes
//!   offer 1: TLS port 2, key 32, host name 1 + n, flags 1, count 1, then export names 1 + n each
//! ```
//!
//! Anyone can send an offer with any content: a key in it is proved only by the connection.

use crate::key::NodeKey;
use crate::limits::NAME_BYTES_MAX;
use crate::wire::{Reader, put_text};

const MAGIC: &[u8; 4] = b"WFS1";
/// Bytes of a query, and the maximum of an offer, so that a forged source address amplifies nothing.
pub const OFFER_BYTES_MAX: usize = 1_000;
/// Flag: there are exports beyond the named ones.
const HAS_MORE: u8 = 1;

/// A server of the segment, as it describes itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerOffer {
    /// The TCP port for TLS.
    pub port: u16,
    /// The server's key.
    pub key: NodeKey,
    /// The name of its machine. Any text, at most [`NAME_BYTES_MAX`] bytes.
    pub host: String,
    /// The names of its exports; empty: it has one without a name. Any texts.
    pub exports: Vec<String>,
    /// There are exports that are not named.
    pub has_more: bool,
}

/// Returns a query.
pub fn server_query(nonce: u64) -> Vec<u8> {
    let mut out = head(0, nonce);
    out.resize(OFFER_BYTES_MAX, 0);
    out
}

/// Returns the nonce of a query; `None`: the packet is none.
pub fn read_server_query(bytes: &[u8]) -> Option<u64> {
    let is_long = bytes.len() == OFFER_BYTES_MAX;
    read_head(0, bytes).filter(|_| is_long).map(|(nonce, _)| nonce)
}

impl ServerOffer {
    /// Encodes the answer to the query with this nonce. Leaves out exports that do not fit.
    pub fn encode(&self, nonce: u64) -> Vec<u8> {
        let mut out = head(1, nonce);
        out.extend_from_slice(&self.port.to_le_bytes());
        out.extend_from_slice(&self.key.0);
        let mut end = self.host.len().min(NAME_BYTES_MAX);
        while !self.host.is_char_boundary(end) {
            end -= 1;
        }
        put_text(&mut out, self.host.get(..end).unwrap_or_default());
        let mut names = Vec::new();
        let mut count = 0_u8;
        for name in &self.exports {
            let is_full = out.len() + 2 + names.len() + 1 + name.len() > OFFER_BYTES_MAX;
            if is_full || count == u8::MAX || name.len() > usize::from(u8::MAX) {
                break;
            }
            put_text(&mut names, name);
            count += 1;
        }
        let has_more = self.has_more || usize::from(count) < self.exports.len();
        out.extend_from_slice(&[if has_more { HAS_MORE } else { 0 }, count]);
        out.extend_from_slice(&names);
        out
    }

    /// Reads the answer to the query with this nonce.
    pub fn read(nonce: u64, bytes: &[u8]) -> Option<ServerOffer> {
        let (answered, mut reader) = read_head(1, bytes)?;
        let (port, key) = (reader.u16()?, NodeKey(reader.array()?));
        let host = reader.text()?.to_owned();
        let (flags, count) = (reader.u8()?, reader.u8()?);
        let exports: Option<Vec<String>> = (0..count).map(|_| reader.text().map(str::to_owned)).collect();
        let offer = ServerOffer { port, key, host, exports: exports?, has_more: flags & HAS_MORE != 0 };
        (answered == nonce && reader.is_empty() && bytes.len() <= OFFER_BYTES_MAX).then_some(offer)
    }
}

fn head(kind: u8, nonce: u64) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.push(kind);
    out.extend_from_slice(&nonce.to_le_bytes());
    out
}

fn read_head(kind: u8, bytes: &[u8]) -> Option<(u64, Reader<'_>)> {
    let mut reader = Reader::new(bytes);
    let is_it = reader.array::<4>()? == *MAGIC && reader.u8()? == kind;
    let nonce = reader.u64()?;
    is_it.then_some((nonce, reader))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(exports: &[&str]) -> ServerOffer {
        let exports = exports.iter().map(|name| (*name).to_owned()).collect();
        ServerOffer { port: 6440, key: NodeKey([7; 32]), host: "nas".into(), exports, has_more: false }
    }

    /// The bytes of PROTOCOL.md.
    #[test]
    fn offer_answers_its_query() {
        let query = server_query(258);
        assert_eq!((read_server_query(&query), query.len()), (Some(258), OFFER_BYTES_MAX));
        assert_eq!(&query[..14], b"WFS1\x00\x02\x01\0\0\0\0\0\0\0");
        assert_eq!(read_server_query(&query[..999]), None);
        let offer = offer(&["photos", "music"]);
        let bytes = offer.encode(258);
        let key = [7; 32];
        let expected =
            [b"WFS1\x01\x02\x01\0\0\0\0\0\0\x28\x19", &key[..], b"\x03nas\0\x02\x06photos\x05music"];
        assert_eq!(bytes, expected.concat());
        assert_eq!(ServerOffer::read(258, &bytes), Some(offer));
        assert_eq!((ServerOffer::read(259, &bytes), read_server_query(&bytes)), (None, None));
    }

    #[test]
    fn offer_is_never_longer_than_its_query() {
        let names: Vec<String> = (0..256).map(|number| format!("export-{number}")).collect();
        let long = ServerOffer { host: "ä".repeat(100), exports: names, ..offer(&[]) };
        let bytes = long.encode(1);
        let read = ServerOffer::read(1, &bytes).unwrap();
        assert!(bytes.len() <= OFFER_BYTES_MAX && read.has_more && read.exports.len() > 50);
        assert_eq!(read.host, "ä".repeat(31));
    }

    #[test]
    fn damaged_offer_is_no_offer() {
        let bytes = offer(&["photos"]).encode(1);
        for end in 0..bytes.len() {
            assert_eq!(ServerOffer::read(1, &bytes[..end]), None, "{end}");
        }
        assert_eq!(ServerOffer::read(1, &[&bytes[..], b"x"].concat()), None);
    }
}
