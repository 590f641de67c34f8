//! The control channel: sealed packets between nodes, with a shared key.
//!
//! ```text
//!  0      1          9        17     19              end - 16
//!  | kind | instance | number | from | …             | tag 16 |        numbers little-endian
//!  |----------- in the clear --------|---- sealed ---|
//!
//!  0 hello    answered[8] address[4]
//!  1 message  message[4] part[2] count[2] bytes…                   a part of the bytes of `wire`
//!  2 block    id[16] part[1] count[1] bytes…
//! ```
//!
//! *Instance* is chosen at random when a node starts. It yields a separate key, so the packet *number*, which
//! is used once, is a nonce. All packets except hello are bound to the instance of the receiver, and each is
//! accepted once, so a replay has no effect. A hello with zeros in *answered* asks the node at an address to
//! reply with a hello. A hello that carries the receiver's instance there is fresh.

mod reassembly;
mod seal;

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;

use super::message::ReplicationMessage;
use super::{REPLICAS_MAX, ReplicaId, wire};
use crate::block::EchoBlockId;
use crate::packet::OVERHEAD_BYTES;
use crate::seal::EchoKey;
use reassembly::Reassembly;
use seal::{ControlSeal, ReplayWindow};

/// Size of the clear header and the tag in bytes.
const ENVELOPE_BYTES: usize = seal::CLEAR_BYTES + seal::TAG_BYTES;
/// Size of the header of a message part in bytes.
const MESSAGE_HEAD_BYTES: usize = 8;
/// Size of the header of a block part in bytes.
const BLOCK_HEAD_BYTES: usize = EchoBlockId::BYTES + 2;
/// Messages of one node that are reassembled at once.
const MESSAGES_MAX: usize = 8;
/// Blocks of one node that are reassembled at once.
const BLOCKS_MAX: usize = 256;
/// Former instances of one node that are remembered and rejected.
const INSTANCES_MAX: usize = 64;
/// The smallest packet size in bytes.
const PACKET_BYTES_MIN: usize = 256;

const _: () = assert!(
    ENVELOPE_BYTES + BLOCK_HEAD_BYTES <= OVERHEAD_BYTES,
    "a block that fits an echo packet fits a control packet"
);

/// One run of a node's process, chosen at random at its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct InstanceId(pub u64);

/// A control message.
#[derive(Clone, Debug, PartialEq)]
pub enum ControlMessage {
    /// A node announces itself.
    Hello {
        /// The node.
        from: ReplicaId,
        /// Its IPv4 address.
        address: [u8; 4],
        /// The packet to send back, if any.
        reply: Option<Vec<u8>>,
        /// The instance is known to be alive, and can be sent to.
        is_live: bool,
        /// The instance is known to be alive, and replaces a former one.
        is_restarted: bool,
    },
    /// A message of the replication protocol.
    Replication {
        /// The sender.
        from: ReplicaId,
        /// The message.
        message: ReplicationMessage,
    },
    /// A copy of a block.
    Block {
        /// The block.
        id: EchoBlockId,
        /// Its contents.
        block: Bytes,
    },
}

/// State of another node on the channel.
#[derive(Debug)]
struct ChannelPeer {
    address: [u8; 4],
    instance: InstanceId,
    seal: ControlSeal,
    seen: ReplayWindow,
    messages: Reassembly,
    blocks: Reassembly,
    former: VecDeque<InstanceId>,
}

/// Encodes and decodes the control packets of one node.
#[derive(Debug)]
pub struct ControlChannel {
    key: EchoKey,
    id: ReplicaId,
    instance: InstanceId,
    address: [u8; 4],
    packet_bytes: usize,
    seal: ControlSeal,
    /// Number of packets sealed.
    number: u64,
    message: u32,
    peers: BTreeMap<ReplicaId, ChannelPeer>,
}

impl ControlChannel {
    /// Creates the channel of a node with this address, for packets of at most `packet_bytes` bytes. The
    /// instance must be random and new. Returns `None` if the library rejects the key, which does not happen.
    pub fn new(
        key: EchoKey,
        me: ReplicaId,
        instance: InstanceId,
        address: [u8; 4],
        packet_bytes: usize,
    ) -> Option<ControlChannel> {
        let seal = ControlSeal::new(&key, instance)?;
        let packet_bytes = packet_bytes.max(PACKET_BYTES_MIN);
        Some(ControlChannel {
            key,
            id: me,
            instance,
            address,
            packet_bytes,
            seal,
            number: 0,
            message: 0,
            peers: BTreeMap::new(),
        })
    }

    /// Returns the address of a node whose instance is known.
    pub fn address(&self, node: ReplicaId) -> Option<[u8; 4]> {
        self.peers.get(&node).map(|peer| peer.address)
    }

    /// Returns the nodes whose instance is known.
    pub fn peers(&self) -> impl Iterator<Item = (ReplicaId, [u8; 4])> + '_ {
        self.peers.iter().map(|(id, peer)| (*id, peer.address))
    }

    /// Returns a hello packet for an address with an unknown node.
    pub fn hello(&mut self) -> Option<Vec<u8>> {
        self.hello_to(InstanceId::default())
    }

    fn hello_to(&mut self, answers: InstanceId) -> Option<Vec<u8>> {
        let mut body = answers.0.to_le_bytes().to_vec();
        body.extend(self.address);
        self.write(seal::HELLO, InstanceId::default(), &body)
    }

    /// Returns a message in one packet or several; empty if the node's instance is unknown.
    pub fn message(&mut self, to: ReplicaId, message: &ReplicationMessage) -> Vec<Vec<u8>> {
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

    /// Returns a copy of a block in one packet or several; empty if the node's instance is unknown.
    pub fn block(&mut self, to: ReplicaId, id: EchoBlockId, block: &Bytes) -> Vec<Vec<u8>> {
        let room = self.packet_bytes - ENVELOPE_BYTES - BLOCK_HEAD_BYTES;
        let count = block.len().div_ceil(room).max(1) as u8;
        let head = |part: usize| [&id.0[..], &[part as u8, count]].concat();
        self.parts(to, seal::BLOCK, block, room, head)
    }

    fn parts(
        &mut self,
        to: ReplicaId,
        kind: u8,
        bytes: &[u8],
        room: usize,
        head: impl Fn(usize) -> Vec<u8>,
    ) -> Vec<Vec<u8>> {
        let Some(instance) = self.peers.get(&to).map(|peer| peer.instance) else { return Vec::new() };
        let chunks: Vec<&[u8]> = if bytes.is_empty() { vec![bytes] } else { bytes.chunks(room).collect() };
        let packets = chunks.into_iter().enumerate();
        packets
            .filter_map(|(part, chunk)| self.write(kind, instance, &[&head(part), chunk].concat()))
            .collect()
    }

    fn write(&mut self, kind: u8, to: InstanceId, body: &[u8]) -> Option<Vec<u8>> {
        self.number += 1;
        let clear = seal::Clear { kind, instance: self.instance, number: self.number, from: self.id };
        self.seal.close(clear, to, body)
    }

    /// Opens a packet in place. Returns `None` for a packet that is invalid, replayed, addressed to another
    /// node, or an incomplete part.
    pub fn open(&mut self, packet: &mut [u8]) -> Option<ControlMessage> {
        let clear = seal::Clear::decode(packet)?;
        if clear.from == self.id || clear.instance == self.instance {
            return None;
        }
        if clear.kind == seal::HELLO {
            return self.open_hello(clear, packet);
        }
        let me = self.instance;
        let peer = self.peers.get_mut(&clear.from).filter(|peer| peer.instance == clear.instance)?;
        let body = peer.seal.open(clear, me, packet)?;
        if !peer.seen.take(clear.number) {
            return None;
        }
        if clear.kind == seal::MESSAGE {
            let (number, rest) = body.split_first_chunk()?;
            let (part, rest) = rest.split_first_chunk()?;
            let (count, bytes) = rest.split_first_chunk()?;
            let [part, count] = [part, count].map(|bytes| usize::from(u16::from_le_bytes(*bytes)));
            let number = u128::from(u32::from_le_bytes(*number));
            let whole = peer.messages.add(number, part, count, bytes)?;
            Some(ControlMessage::Replication { from: clear.from, message: wire::decode(&whole)? })
        } else {
            let (id, rest) = body.split_first_chunk()?;
            let ([part, count], bytes) = rest.split_first_chunk()?;
            let number = u128::from_be_bytes(*id);
            let block = peer.blocks.add(number, usize::from(*part), usize::from(*count), bytes)?;
            Some(ControlMessage::Block { id: EchoBlockId(*id), block: block.into() })
        }
    }

    fn open_hello(&mut self, clear: seal::Clear, packet: &mut [u8]) -> Option<ControlMessage> {
        let known = self.peers.get(&clear.from);
        if known.is_none() && self.peers.len() + 1 >= REPLICAS_MAX {
            return None;
        }
        if known.is_some_and(|peer| peer.former.contains(&clear.instance)) {
            return None;
        }
        let seal = ControlSeal::new(&self.key, clear.instance)?;
        let body = seal.open(clear, InstanceId::default(), packet)?;
        let (answers, rest) = body.split_first_chunk()?;
        let address = *rest.first_chunk()?;
        let is_fresh = InstanceId(u64::from_le_bytes(*answers)) == self.instance;
        let is_known = known.is_some_and(|peer| peer.instance == clear.instance);
        let mut is_restarted = false;
        if is_fresh && !is_known {
            let before = self.peers.remove(&clear.from);
            is_restarted = before.is_some();
            let mut former = before.map(|peer| (peer.instance, peer.former)).map_or(
                VecDeque::new(),
                |(instance, mut former)| {
                    former.push_back(instance);
                    former
                },
            );
            if former.len() > INSTANCES_MAX {
                former.pop_front();
            }
            let peer = ChannelPeer {
                address,
                instance: clear.instance,
                seal,
                seen: ReplayWindow::default(),
                messages: Reassembly::new(MESSAGES_MAX),
                blocks: Reassembly::new(BLOCKS_MAX),
                former,
            };
            self.peers.insert(clear.from, peer);
        }
        // A peer that knows this instance, and whose instance is known, needs no reply.
        let reply = (!is_fresh || !is_known).then(|| self.hello_to(clear.instance)).flatten();
        Some(ControlMessage::Hello {
            from: clear.from,
            address,
            reply,
            is_live: is_fresh || is_known,
            is_restarted,
        })
    }
}

#[cfg(test)]
mod tests;
