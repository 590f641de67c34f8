//! Packets: a head, what it is about, and behind that any number of parts that are passed on. All of it is signed.
//!
//! ```text
//! "WFN1" 4 · sender's key 32 · number 8 · kind 1 · what it is about · parts … · signature 64
//!   announce 0 · ping 1: nonce 8 · ack 2: nonce 8 · favour 3: nonce 8, key 32 · vouch 4: nonce 8
//!   pull 5: after key 32 · table 6: more 1
//! parts
//!   record 1: state 1, length 2, record · claim 2: state 1, key 32, incarnation 8 · taken 3: settled 1, length 2, record
//! ```

use crate::key::NodeKey;
use crate::limits::PACKET_BYTES_MAX;
use crate::member::Liveness;
use crate::record::SignedRecord;
use crate::seal::{SIGNATURE_BYTES, Signer, is_signed};
use crate::wire::Reader;

const PURPOSE: &[u8] = b"wirefs node packet\0";
const MAGIC: &[u8; 4] = b"WFN1";

/// What a packet is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum About {
    /// Nothing but its parts.
    Announce,
    /// Answer this.
    Ping { nonce: u64 },
    /// The answer.
    Ack { nonce: u64 },
    /// Ping another for me, and vouch for it.
    Favour { nonce: u64, target: NodeKey },
    /// It has answered.
    Vouch { nonce: u64 },
    /// Tell what you know of nodes whose keys come after this one.
    Pull { after: NodeKey },
    /// What I know; there may be more behind the last one.
    Table { more: bool },
}

/// One piece of news.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// A node's word, and how it is.
    Record { state: Liveness, signed: SignedRecord },
    /// How a node is whose word is known.
    Claim { state: Liveness, key: NodeKey, incarnation: u64 },
    /// Your name is this node's. `settled`: it had it long before you came.
    Taken { settled: bool, signed: SignedRecord },
}

/// A packet as it was received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    pub(crate) sender: NodeKey,
    pub(crate) number: u64,
    pub(crate) about: About,
    pub(crate) parts: Vec<Part>,
}

impl Packet {
    /// Reads a packet, without a look at its signature; `None` where it is none.
    pub(crate) fn read(bytes: &[u8]) -> Option<Packet> {
        if bytes.len() > PACKET_BYTES_MAX {
            return None;
        }
        let (text, _) = bytes.split_at_checked(bytes.len().checked_sub(SIGNATURE_BYTES)?)?;
        let mut reader = Reader::new(text);
        if reader.array::<4>()? != *MAGIC {
            return None;
        }
        let (sender, number) = (NodeKey(reader.array()?), reader.u64()?);
        let about = read_about(&mut reader)?;
        let mut parts = Vec::new();
        while !reader.is_empty() {
            parts.push(read_part(&mut reader)?);
        }
        Some(Packet { sender, number, about, parts })
    }

    /// The last node that a page of a table tells of.
    pub(crate) fn page_end(&self) -> Option<NodeKey> {
        let told = self.parts.iter().filter_map(|part| match part {
            Part::Record { signed, .. } => Some(signed.record.key),
            Part::Claim { .. } | Part::Taken { .. } => None,
        });
        told.filter(|key| *key != self.sender).max()
    }

    /// Whether its sender signed it.
    ///
    /// # Cost
    /// One ed25519 verification.
    pub(crate) fn is_genuine(&self, bytes: &[u8]) -> bool {
        is_signed(PURPOSE, &self.sender, bytes)
    }
}

fn read_about(reader: &mut Reader<'_>) -> Option<About> {
    Some(match reader.u8()? {
        0 => About::Announce,
        1 => About::Ping { nonce: reader.u64()? },
        2 => About::Ack { nonce: reader.u64()? },
        3 => About::Favour { nonce: reader.u64()?, target: NodeKey(reader.array()?) },
        4 => About::Vouch { nonce: reader.u64()? },
        5 => About::Pull { after: NodeKey(reader.array()?) },
        6 => About::Table { more: reader.u8()? != 0 },
        _ => return None,
    })
}

fn read_part(reader: &mut Reader<'_>) -> Option<Part> {
    match reader.u8()? {
        1 => {
            let state = Liveness::from_code(reader.u8()?)?;
            Some(Part::Record { state, signed: read_record(reader)? })
        }
        2 => {
            let state = Liveness::from_code(reader.u8()?)?;
            Some(Part::Claim { state, key: NodeKey(reader.array()?), incarnation: reader.u64()? })
        }
        3 => {
            let settled = reader.u8()? != 0;
            Some(Part::Taken { settled, signed: read_record(reader)? })
        }
        _ => None,
    }
}

fn read_record(reader: &mut Reader<'_>) -> Option<SignedRecord> {
    let length = reader.u16()?;
    SignedRecord::read(reader.bytes(usize::from(length))?)
}

/// A packet that is being put together.
#[derive(Debug)]
pub(crate) struct Draft(Vec<u8>);

impl Draft {
    pub(crate) fn new(sender: NodeKey, number: u64, about: About) -> Draft {
        let mut out = Vec::with_capacity(PACKET_BYTES_MAX);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&sender.0);
        out.extend_from_slice(&number.to_le_bytes());
        let nonce = |out: &mut Vec<u8>, kind: u8, nonce: u64| {
            out.push(kind);
            out.extend_from_slice(&nonce.to_le_bytes());
        };
        match about {
            About::Announce => out.push(0),
            About::Ping { nonce: number } => nonce(&mut out, 1, number),
            About::Ack { nonce: number } => nonce(&mut out, 2, number),
            About::Favour { nonce: number, target } => {
                nonce(&mut out, 3, number);
                out.extend_from_slice(&target.0);
            }
            About::Vouch { nonce: number } => nonce(&mut out, 4, number),
            About::Pull { after } => {
                out.push(5);
                out.extend_from_slice(&after.0);
            }
            About::Table { more } => out.extend_from_slice(&[6, u8::from(more)]),
        }
        Draft(out)
    }

    /// Appends a part if there is room for it.
    pub(crate) fn put(&mut self, part: &PartOf<'_>) -> bool {
        let start = self.0.len();
        match part {
            PartOf::Record(state, signed) => {
                self.0.extend_from_slice(&[1, state.code()]);
                self.put_record(signed);
            }
            PartOf::Claim(state, key, incarnation) => {
                self.0.extend_from_slice(&[2, state.code()]);
                self.0.extend_from_slice(&key.0);
                self.0.extend_from_slice(&incarnation.to_le_bytes());
            }
            PartOf::Taken(settled, signed) => {
                self.0.extend_from_slice(&[3, u8::from(*settled)]);
                self.put_record(signed);
            }
        }
        let fits = self.0.len() + SIGNATURE_BYTES <= PACKET_BYTES_MAX;
        if !fits {
            self.0.truncate(start);
        }
        fits
    }

    fn put_record(&mut self, signed: &SignedRecord) {
        self.0.extend_from_slice(&u16::try_from(signed.bytes.len()).unwrap_or(u16::MAX).to_le_bytes());
        self.0.extend_from_slice(&signed.bytes);
    }

    /// Signs it.
    pub(crate) fn finish(mut self, signer: &Signer) -> Option<Vec<u8>> {
        let signature = signer.sign(PURPOSE, &self.0)?;
        self.0.extend_from_slice(&signature);
        Some(self.0)
    }
}

/// A part that is to be written.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PartOf<'a> {
    Record(Liveness, &'a SignedRecord),
    Claim(Liveness, NodeKey, u64),
    Taken(bool, &'a SignedRecord),
}

#[cfg(test)]
mod tests;
