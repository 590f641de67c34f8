//! What a node says of itself, signed, so that others can pass it on.
//!
//! ```text
//! version 1 · key 32 · born 8 · incarnation 8 · edition 8 · flags 1 · name text · port 2
//! · addresses 1 + n × (family 1, 4 or 16) · exports 1 + n × (name text, flags 1) · load 2 · free 8 · all 8 · signature 64
//! ```

use crate::key::{Name, NodeKey};
use crate::limits::{ADDRESSES_MAX, EXPORTS_MAX, RECORD_BYTES_MAX};
use crate::seal::{SIGNATURE_BYTES, Signer, is_signed};
use crate::wire::{Reader, put_address, put_text};
use core::net::{IpAddr, SocketAddr};

/// What every signature of a record begins with.
const PURPOSE: &[u8] = b"wirefs node record\0";
const VERSION: u8 = 1;
const LEAVING: u8 = 1;
const READ_ONLY: u8 = 1;
const ACTS_FOR_CALLERS: u8 = 2;

/// A tree that a node serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// What it is called.
    pub name: Name,
    /// It refuses all changes.
    pub read_only: bool,
    /// Its server checks rights as each caller, so that all users of a machine may be let in.
    pub acts_for_callers: bool,
}

/// What a node says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Who says it.
    pub key: NodeKey,
    /// What it is called.
    pub name: Name,
    /// When it was started, in milliseconds since 1970 by its clock: of two that claim a name at once, the earlier has it.
    pub born: u64,
    /// Grows with each start, and whenever the node refutes that it is dead.
    pub incarnation: u64,
    /// Grows with each change within an incarnation.
    pub edition: u64,
    /// It goes by its own will.
    pub leaving: bool,
    /// Where it listens, over UDP for packets of this kind and over TCP for its export.
    pub port: u16,
    /// Where it can be reached, the best first.
    pub addresses: Vec<IpAddr>,
    /// What it serves.
    pub exports: Vec<Export>,
    /// Processes that ran or wanted to, on average over a minute, in hundredths.
    pub load_percent: u16,
    /// Room that is left where its export is, in bytes.
    pub free_bytes: u64,
    /// All room there, in bytes.
    pub all_bytes: u64,
}

impl Record {
    /// Which of two records of one node is the later one.
    pub(crate) fn order(&self) -> (u64, u64) {
        (self.incarnation, self.edition)
    }

    /// Where it can be reached, the best first.
    pub fn sockets(&self) -> impl Iterator<Item = SocketAddr> {
        self.addresses.iter().map(|address| SocketAddr::new(*address, self.port))
    }

    /// Signs it; `None` where the signer refuses.
    pub(crate) fn sign(self, signer: &Signer) -> Option<SignedRecord> {
        let mut bytes = Vec::with_capacity(RECORD_BYTES_MAX);
        self.put(&mut bytes);
        let signature = signer.sign(PURPOSE, &bytes)?;
        bytes.extend_from_slice(&signature);
        Some(SignedRecord { record: self, bytes })
    }

    fn put(&self, out: &mut Vec<u8>) {
        out.push(VERSION);
        out.extend_from_slice(&self.key.0);
        for number in [self.born, self.incarnation, self.edition] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.push(if self.leaving { LEAVING } else { 0 });
        put_text(out, self.name.as_str());
        out.extend_from_slice(&self.port.to_le_bytes());
        out.push(u8::try_from(self.addresses.len().min(ADDRESSES_MAX)).unwrap_or(0));
        self.addresses.iter().take(ADDRESSES_MAX).for_each(|address| put_address(out, address));
        out.push(u8::try_from(self.exports.len().min(EXPORTS_MAX)).unwrap_or(0));
        for export in self.exports.iter().take(EXPORTS_MAX) {
            put_text(out, export.name.as_str());
            let read_only = if export.read_only { READ_ONLY } else { 0 };
            out.push(read_only | if export.acts_for_callers { ACTS_FOR_CALLERS } else { 0 });
        }
        out.extend_from_slice(&self.load_percent.to_le_bytes());
        out.extend_from_slice(&self.free_bytes.to_le_bytes());
        out.extend_from_slice(&self.all_bytes.to_le_bytes());
    }

    fn read(reader: &mut Reader<'_>) -> Option<Record> {
        if reader.u8()? != VERSION {
            return None;
        }
        let key = NodeKey(reader.array()?);
        let (born, incarnation, edition) = (reader.u64()?, reader.u64()?, reader.u64()?);
        let leaving = reader.u8()? & LEAVING != 0;
        let name = Name::new(reader.text()?)?;
        let port = reader.u16()?;
        let count = usize::from(reader.u8()?);
        if count > ADDRESSES_MAX {
            return None;
        }
        let addresses = (0..count).map(|_| reader.address()).collect::<Option<Vec<IpAddr>>>()?;
        let count = usize::from(reader.u8()?);
        if count > EXPORTS_MAX {
            return None;
        }
        let exports = (0..count).map(|_| read_export(reader)).collect::<Option<Vec<Export>>>()?;
        let (load_percent, free_bytes, all_bytes) = (reader.u16()?, reader.u64()?, reader.u64()?);
        Some(Record {
            key,
            name,
            born,
            incarnation,
            edition,
            leaving,
            port,
            addresses,
            exports,
            load_percent,
            free_bytes,
            all_bytes,
        })
    }
}

fn read_export(reader: &mut Reader<'_>) -> Option<Export> {
    let name = Name::new(reader.text()?)?;
    let flags = reader.u8()?;
    Some(Export { name, read_only: flags & READ_ONLY != 0, acts_for_callers: flags & ACTS_FOR_CALLERS != 0 })
}

/// A record with its signature, as it travels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SignedRecord {
    pub(crate) record: Record,
    pub(crate) bytes: Vec<u8>,
}

impl SignedRecord {
    /// Reads a record, without a look at its signature; `None` where it is none.
    pub(crate) fn read(bytes: &[u8]) -> Option<SignedRecord> {
        if bytes.len() > RECORD_BYTES_MAX {
            return None;
        }
        let (text, _) = bytes.split_at_checked(bytes.len().checked_sub(SIGNATURE_BYTES)?)?;
        let mut reader = Reader::new(text);
        let record = Record::read(&mut reader)?;
        reader.is_empty().then(|| SignedRecord { record, bytes: bytes.to_vec() })
    }

    /// Whether its node signed it.
    ///
    /// # Cost
    /// One ed25519 verification.
    pub(crate) fn is_genuine(&self) -> bool {
        is_signed(PURPOSE, &self.record.key, &self.bytes)
    }
}

#[cfg(test)]
pub(crate) mod tests;
