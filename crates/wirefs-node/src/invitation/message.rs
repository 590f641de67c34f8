//! Messages of invitations: datagrams to and from a segment, and messages of a stream, which there follow a byte with
//! their length.
//!
//! ```text
//! "WFI1" 4 · kind 1 · body
//!   query 0: label 2, zeros 2 · offer 1: label 2, TCP port 2
//!   joiner's hello 2, inviter's hello 3: exchange 33, key 32, name 1 + n
//!   joiner's proof 4, inviter's proof 5: 32 · refusal 6: reason 1
//! ```

use super::code::LABEL_DIGITS;
use super::secret::{EXCHANGE_BYTES, PROOF_BYTES, Side};
use super::{Introduction, Refusal};
use crate::key::{NodeKey, NodeName};
use crate::limits::NAME_BYTES_MAX;
use crate::wire::{Reader, put_text};

const MAGIC: &[u8; 4] = b"WFI1";

const _: () = assert!(
    5 + EXCHANGE_BYTES + NodeKey::BYTES + 1 + NAME_BYTES_MAX <= u8::MAX as usize,
    "the length of each message fits a byte"
);

/// The label of a code.
type Label = [u8; LABEL_DIGITS];

fn message(kind: u8, parts: &[&[u8]]) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.push(kind);
    parts.iter().for_each(|part| out.extend_from_slice(part));
    out
}

/// Checks the magic and the kind, and returns the rest.
fn body(kind: u8, bytes: &[u8]) -> Option<Reader<'_>> {
    let mut reader = Reader::new(bytes);
    (reader.array::<4>()? == *MAGIC && reader.u8()? == kind).then_some(reader)
}

/// As long as an offer, so that a forged source address amplifies nothing.
pub(super) fn query(label: Label) -> Vec<u8> {
    message(0, &[&label, &[0; 2]])
}

pub(super) fn read_query(bytes: &[u8]) -> Option<Label> {
    let mut reader = body(0, bytes)?;
    let label = reader.array()?;
    reader.bytes(2)?;
    reader.is_empty().then_some(label)
}

pub(super) fn offer(label: Label, port: u16) -> Vec<u8> {
    message(1, &[&label, &port.to_le_bytes()])
}

pub(super) fn read_offer(bytes: &[u8]) -> Option<(Label, u16)> {
    let mut reader = body(1, bytes)?;
    let offer = (reader.array()?, reader.u16()?);
    reader.is_empty().then_some(offer)
}

fn hello_kind(side: Side) -> u8 {
    match side {
        Side::Joiner => 2,
        Side::Inviter => 3,
    }
}

pub(super) fn hello(side: Side, exchange: &[u8], own: &Introduction) -> Vec<u8> {
    let mut out = message(hello_kind(side), &[exchange, &own.key.0]);
    put_text(&mut out, own.name.as_str());
    out
}

/// Reads the hello of `side`: the message of the key exchange, and the introduction.
pub(super) fn read_hello(side: Side, bytes: &[u8]) -> Result<(&[u8; EXCHANGE_BYTES], Introduction), Refusal> {
    let read = || {
        let mut reader = body(hello_kind(side), bytes)?;
        let exchange = reader.bytes(EXCHANGE_BYTES)?.first_chunk()?;
        let key = NodeKey(reader.array()?);
        let name = NodeName::new(reader.text()?)?;
        reader.is_empty().then_some((exchange, Introduction { key, name }))
    };
    read().ok_or(Refusal::Malformed)
}

fn proof_kind(side: Side) -> u8 {
    match side {
        Side::Joiner => 4,
        Side::Inviter => 5,
    }
}

pub(super) fn proof(side: Side, proof: &[u8]) -> Vec<u8> {
    message(proof_kind(side), &[proof])
}

pub(super) fn read_proof(side: Side, bytes: &[u8]) -> Result<&[u8], Refusal> {
    let read = || {
        let mut reader = body(proof_kind(side), bytes)?;
        let proof = reader.bytes(PROOF_BYTES)?;
        reader.is_empty().then_some(proof)
    };
    read().ok_or(Refusal::Malformed)
}

pub(super) fn refusal(refusal: Refusal) -> Vec<u8> {
    message(6, &[&[refusal.code()]])
}

pub(super) fn read_refusal(bytes: &[u8]) -> Option<Refusal> {
    body(6, bytes)?.u8().map(Refusal::from_code)
}
