//! Packets: a header, a message, and any number of updates for dissemination. The sender signs all of it.
//!
//! ```text
//! "WFN1" 4 · sender's key 32 · number 8 · kind 1 · message · updates … · signature 64
//!   announce 0 · ping 1: nonce 8 · ack 2: nonce 8 · ping request 3: nonce 8, key 32 · indirect ack 4: nonce 8
//!   pull 5: after key 32 · table 6: more 1
//! updates
//!   record 1: state 1, length 2, record · claim 2: state 1, key 32, incarnation 8 · name conflict 3: settled 1, length 2, record
//! ```

use crate::key::NodeKey;
use crate::limits::PACKET_BYTES_MAX;
use crate::member::Liveness;
use crate::record::SignedRecord;
use crate::signature::{SIGNATURE_BYTES, Signer, is_signed};
use crate::wire::Reader;

const PURPOSE: &[u8] = b"wirefs node packet\0";
const MAGIC: &[u8; 4] = b"WFN1";

/// The message of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// No message, only updates.
    Announce,
    /// Asks for an ack.
    Ping { nonce: u64 },
    /// Answers a ping.
    Ack { nonce: u64 },
    /// Asks for a ping to `target` on behalf of the sender (SWIM `ping-req`).
    PingRequest { nonce: u64, target: NodeKey },
    /// The target of a ping request has answered.
    IndirectAck { nonce: u64 },
    /// Requests the records of nodes whose keys come after this one.
    Pull { after: NodeKey },
    /// A page of the sender's table; `more`: there are records after the last one.
    TablePage { more: bool },
}

/// A membership update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Update {
    /// A node's record, and its state.
    Record { state: Liveness, signed: SignedRecord },
    /// The state of a node whose record is known.
    Claim { state: Liveness, key: NodeKey, incarnation: u64 },
    /// The receiver's name belongs to this node. `settled`: the node held it well before the receiver started.
    NameConflict { settled: bool, signed: SignedRecord },
}

/// A received packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    pub(crate) sender: NodeKey,
    pub(crate) number: u64,
    pub(crate) message: Message,
    pub(crate) updates: Vec<Update>,
}

impl Packet {
    /// Parses a packet, without verifying its signature; `None` if it is malformed.
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
        let message = read_message(&mut reader)?;
        let mut updates = Vec::new();
        while !reader.is_empty() {
            updates.push(read_update(&mut reader)?);
        }
        Some(Packet { sender, number, message, updates })
    }

    /// Returns the key of the last node in a page of a table.
    pub(crate) fn page_end(&self) -> Option<NodeKey> {
        let keys = self.updates.iter().filter_map(|update| match update {
            Update::Record { signed, .. } => Some(signed.record.key),
            Update::Claim { .. } | Update::NameConflict { .. } => None,
        });
        keys.filter(|key| *key != self.sender).max()
    }

    /// Returns whether the sender signed the packet.
    ///
    /// # Cost
    /// One ed25519 verification.
    pub(crate) fn is_genuine(&self, bytes: &[u8]) -> bool {
        is_signed(PURPOSE, &self.sender, bytes)
    }
}

fn read_message(reader: &mut Reader<'_>) -> Option<Message> {
    Some(match reader.u8()? {
        0 => Message::Announce,
        1 => Message::Ping { nonce: reader.u64()? },
        2 => Message::Ack { nonce: reader.u64()? },
        3 => Message::PingRequest { nonce: reader.u64()?, target: NodeKey(reader.array()?) },
        4 => Message::IndirectAck { nonce: reader.u64()? },
        5 => Message::Pull { after: NodeKey(reader.array()?) },
        6 => Message::TablePage { more: reader.u8()? != 0 },
        _ => return None,
    })
}

fn read_update(reader: &mut Reader<'_>) -> Option<Update> {
    match reader.u8()? {
        1 => {
            let state = Liveness::from_code(reader.u8()?)?;
            Some(Update::Record { state, signed: read_record(reader)? })
        }
        2 => {
            let state = Liveness::from_code(reader.u8()?)?;
            Some(Update::Claim { state, key: NodeKey(reader.array()?), incarnation: reader.u64()? })
        }
        3 => {
            let settled = reader.u8()? != 0;
            Some(Update::NameConflict { settled, signed: read_record(reader)? })
        }
        _ => None,
    }
}

fn read_record(reader: &mut Reader<'_>) -> Option<SignedRecord> {
    let length = reader.u16()?;
    SignedRecord::read(reader.bytes(usize::from(length))?)
}

/// A packet that is being composed.
#[derive(Debug)]
pub(crate) struct Draft(Vec<u8>);

impl Draft {
    pub(crate) fn new(sender: NodeKey, number: u64, message: Message) -> Draft {
        let mut out = Vec::with_capacity(PACKET_BYTES_MAX);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&sender.0);
        out.extend_from_slice(&number.to_le_bytes());
        let nonce = |out: &mut Vec<u8>, kind: u8, nonce: u64| {
            out.push(kind);
            out.extend_from_slice(&nonce.to_le_bytes());
        };
        match message {
            Message::Announce => out.push(0),
            Message::Ping { nonce: number } => nonce(&mut out, 1, number),
            Message::Ack { nonce: number } => nonce(&mut out, 2, number),
            Message::PingRequest { nonce: number, target } => {
                nonce(&mut out, 3, number);
                out.extend_from_slice(&target.0);
            }
            Message::IndirectAck { nonce: number } => nonce(&mut out, 4, number),
            Message::Pull { after } => {
                out.push(5);
                out.extend_from_slice(&after.0);
            }
            Message::TablePage { more } => out.extend_from_slice(&[6, u8::from(more)]),
        }
        Draft(out)
    }

    /// Appends an update. Returns `false` and appends nothing if it does not fit.
    pub(crate) fn put(&mut self, update: &UpdateRef<'_>) -> bool {
        let start = self.0.len();
        match update {
            UpdateRef::Record(state, signed) => {
                self.0.extend_from_slice(&[1, state.code()]);
                self.put_record(signed);
            }
            UpdateRef::Claim(state, key, incarnation) => {
                self.0.extend_from_slice(&[2, state.code()]);
                self.0.extend_from_slice(&key.0);
                self.0.extend_from_slice(&incarnation.to_le_bytes());
            }
            UpdateRef::NameConflict(settled, signed) => {
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

    /// Signs the packet.
    pub(crate) fn finish(mut self, signer: &Signer) -> Option<Vec<u8>> {
        let signature = signer.sign(PURPOSE, &self.0)?;
        self.0.extend_from_slice(&signature);
        Some(self.0)
    }
}

/// An update to encode.
#[derive(Clone, Copy, Debug)]
pub(crate) enum UpdateRef<'a> {
    Record(Liveness, &'a SignedRecord),
    Claim(Liveness, NodeKey, u64),
    NameConflict(bool, &'a SignedRecord),
}

#[cfg(test)]
mod tests;
