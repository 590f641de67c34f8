//! Letters: what nodes send each other, sealed with a key that they share and cut to the size of packets.
//!
//! ```text
//!  0      1      9        17     19              end - 16
//!  | kind | life | number | from | …             | tag 16 |        numbers with the low byte first
//!  |--------- in the clear ------|---- sealed ---|
//!
//!  0 hello    answers[8] address[4]
//!  1 message  message[4] part[2] count[2] bytes…                   the bytes of `wire`, cut
//!  2 block    id[16] part[1] count[1] bytes…
//! ```
//!
//! *Life* is chosen at random when a node starts, and gives it a key of its own, so that its *numbers*, which it uses once, make
//! nonces. All but a hello is bound to the life of the receiver, and each is taken once, so nothing that was recorded counts
//! again. A hello with zeros asks whoever is at an address to say hello too; one that *answers* the receiver's life is fresh.

mod parts;
mod seal;

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;

use super::message::Message;
use super::{NODES_MAX, NodeId, wire};
use crate::block::BlockId;
use crate::packet::OVERHEAD_BYTES;
use crate::seal::Key;
use parts::Parts;
use seal::{Seal, Seen};

/// The clear bytes and the tag, in bytes.
const ENVELOPE_BYTES: usize = seal::CLEAR_BYTES + seal::TAG_BYTES;
/// What stands before a part of a message, in bytes.
const MESSAGE_HEAD_BYTES: usize = 8;
/// What stands before a part of a block, in bytes.
const BLOCK_HEAD_BYTES: usize = BlockId::BYTES + 2;
/// Messages of one node that are put together at once.
const MESSAGES_MAX: usize = 8;
/// Blocks of one node that are put together at once.
const BLOCKS_MAX: usize = 256;
/// Lives of one node that are over and not believed again.
const LIVES_MAX: usize = 64;
/// The smallest packet that letters are cut to, in bytes.
const PACKET_BYTES_MIN: usize = 256;

const _: () = assert!(
    ENVELOPE_BYTES + BLOCK_HEAD_BYTES <= OVERHEAD_BYTES,
    "a block that fits a packet of its own fits a letter"
);

/// A time from a node's start to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Life(pub u64);

/// What came.
#[derive(Clone, Debug, PartialEq)]
pub enum Letter {
    /// A node says that it is there.
    Hello {
        /// Which one.
        from: NodeId,
        /// Its address.
        address: [u8; 4],
        /// What to send it, if anything.
        reply: Option<Vec<u8>>,
        /// It is known to live now, and can be written to.
        is_met: bool,
        /// It is known to live now, and another life of it was known before.
        is_reborn: bool,
    },
    /// A message.
    Message {
        /// From whom.
        from: NodeId,
        /// It.
        message: Message,
    },
    /// A copy of a block.
    Block {
        /// Its id.
        id: BlockId,
        /// Its bytes.
        block: Bytes,
    },
}

/// Another node, by its letters.
#[derive(Debug)]
struct Pal {
    address: [u8; 4],
    life: Life,
    seal: Seal,
    seen: Seen,
    messages: Parts,
    blocks: Parts,
    ended: VecDeque<Life>,
}

/// Writes and reads the letters of one node.
#[derive(Debug)]
pub struct Post {
    key: Key,
    me: NodeId,
    life: Life,
    address: [u8; 4],
    packet_bytes: usize,
    seal: Seal,
    /// Letters written.
    number: u64,
    message: u32,
    pals: BTreeMap<NodeId, Pal>,
}

impl Post {
    /// Makes it for a node with this address, for packets of at most so many bytes. The life must be a new one, by chance. None if the
    /// library refuses the key, which it never does.
    pub fn new(key: Key, me: NodeId, life: Life, address: [u8; 4], packet_bytes: usize) -> Option<Post> {
        let seal = Seal::new(&key, life)?;
        let packet_bytes = packet_bytes.max(PACKET_BYTES_MIN);
        Some(Post {
            key,
            me,
            life,
            address,
            packet_bytes,
            seal,
            number: 0,
            message: 0,
            pals: BTreeMap::new(),
        })
    }

    /// Where a node is whose life is known.
    pub fn address(&self, node: NodeId) -> Option<[u8; 4]> {
        self.pals.get(&node).map(|pal| pal.address)
    }

    /// The nodes whose life is known.
    pub fn pals(&self) -> impl Iterator<Item = (NodeId, [u8; 4])> + '_ {
        self.pals.iter().map(|(id, pal)| (*id, pal.address))
    }

    /// A hello for an address, whoever is there.
    pub fn hello(&mut self) -> Option<Vec<u8>> {
        self.hello_to(Life::default())
    }

    fn hello_to(&mut self, answers: Life) -> Option<Vec<u8>> {
        let mut body = answers.0.to_le_bytes().to_vec();
        body.extend(self.address);
        self.write(seal::HELLO, Life::default(), &body)
    }

    /// A message, in one packet or several; none where the node's life is not known.
    pub fn message(&mut self, to: NodeId, message: &Message) -> Vec<Vec<u8>> {
        let bytes = wire::encode(message);
        self.message = self.message.wrapping_add(1);
        let number = self.message;
        let room = self.packet_bytes - ENVELOPE_BYTES - MESSAGE_HEAD_BYTES;
        let count = bytes.len().div_ceil(room).max(1) as u16;
        let head = |part: usize| {
            let mut head = number.to_le_bytes().to_vec();
            head.extend((part as u16).to_le_bytes());
            head.extend(count.to_le_bytes());
            head
        };
        self.parts(to, seal::MESSAGE, &bytes, room, head)
    }

    /// A copy of a block, in one packet or several; none where the node's life is not known.
    pub fn block(&mut self, to: NodeId, id: BlockId, block: &Bytes) -> Vec<Vec<u8>> {
        let room = self.packet_bytes - ENVELOPE_BYTES - BLOCK_HEAD_BYTES;
        let count = block.len().div_ceil(room).max(1) as u8;
        let head = |part: usize| [&id.0[..], &[part as u8, count]].concat();
        self.parts(to, seal::BLOCK, block, room, head)
    }

    fn parts(
        &mut self,
        to: NodeId,
        kind: u8,
        bytes: &[u8],
        room: usize,
        head: impl Fn(usize) -> Vec<u8>,
    ) -> Vec<Vec<u8>> {
        let Some(life) = self.pals.get(&to).map(|pal| pal.life) else { return Vec::new() };
        let chunks: Vec<&[u8]> = if bytes.is_empty() { vec![bytes] } else { bytes.chunks(room).collect() };
        let letters = chunks.into_iter().enumerate();
        letters.filter_map(|(part, chunk)| self.write(kind, life, &[&head(part), chunk].concat())).collect()
    }

    fn write(&mut self, kind: u8, to: Life, body: &[u8]) -> Option<Vec<u8>> {
        self.number += 1;
        let clear = seal::Clear { kind, life: self.life, number: self.number, from: self.me };
        self.seal.close(clear, to, body)
    }

    /// Opens a packet in place; none of what is no letter to this node, or came before.
    pub fn open(&mut self, packet: &mut [u8]) -> Option<Letter> {
        let clear = seal::Clear::decode(packet)?;
        if clear.from == self.me || clear.life == self.life {
            return None;
        }
        if clear.kind == seal::HELLO {
            return self.open_hello(clear, packet);
        }
        let me = self.life;
        let pal = self.pals.get_mut(&clear.from).filter(|pal| pal.life == clear.life)?;
        let body = pal.seal.open(clear, me, packet)?;
        if !pal.seen.take(clear.number) {
            return None;
        }
        if clear.kind == seal::MESSAGE {
            let (number, rest) = body.split_first_chunk()?;
            let (part, rest) = rest.split_first_chunk()?;
            let (count, bytes) = rest.split_first_chunk()?;
            let [part, count] = [part, count].map(|bytes| usize::from(u16::from_le_bytes(*bytes)));
            let number = u128::from(u32::from_le_bytes(*number));
            let whole = pal.messages.add(number, part, count, bytes)?;
            Some(Letter::Message { from: clear.from, message: wire::decode(&whole)? })
        } else {
            let (id, rest) = body.split_first_chunk()?;
            let ([part, count], bytes) = rest.split_first_chunk()?;
            let number = u128::from_be_bytes(*id);
            let block = pal.blocks.add(number, usize::from(*part), usize::from(*count), bytes)?;
            Some(Letter::Block { id: BlockId(*id), block: block.into() })
        }
    }

    fn open_hello(&mut self, clear: seal::Clear, packet: &mut [u8]) -> Option<Letter> {
        let known = self.pals.get(&clear.from);
        if known.is_none() && self.pals.len() + 1 >= NODES_MAX {
            return None;
        }
        if known.is_some_and(|pal| pal.ended.contains(&clear.life)) {
            return None;
        }
        let seal = Seal::new(&self.key, clear.life)?;
        let body = seal.open(clear, Life::default(), packet)?;
        let (answers, rest) = body.split_first_chunk()?;
        let address = *rest.first_chunk()?;
        let is_fresh = Life(u64::from_le_bytes(*answers)) == self.life;
        let is_known = known.is_some_and(|pal| pal.life == clear.life);
        let mut is_reborn = false;
        if is_fresh && !is_known {
            let before = self.pals.remove(&clear.from);
            is_reborn = before.is_some();
            let mut ended =
                before.map(|pal| (pal.life, pal.ended)).map_or(VecDeque::new(), |(life, mut ended)| {
                    ended.push_back(life);
                    ended
                });
            if ended.len() > LIVES_MAX {
                ended.pop_front();
            }
            let pal = Pal {
                address,
                life: clear.life,
                seal,
                seen: Seen::default(),
                messages: Parts::new(MESSAGES_MAX),
                blocks: Parts::new(BLOCKS_MAX),
                ended,
            };
            self.pals.insert(clear.from, pal);
        }
        // Who knows this life already and is known needs no answer.
        let reply = (!is_fresh || !is_known).then(|| self.hello_to(clear.life)).flatten();
        Some(Letter::Hello { from: clear.from, address, reply, is_met: is_fresh || is_known, is_reborn })
    }
}

#[cfg(test)]
mod tests;
