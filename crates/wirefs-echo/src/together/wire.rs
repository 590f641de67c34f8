//! The bytes of messages, before they are sealed. Numbers with the low byte first.
//!
//! ```text
//! kind[1] flags[1] view[10] promised[10] holder[2] turn[8] settled[16] room[8] members: count[1] node[2]* body
//! view: number[8] by[2]      an id of zeros: none       flags: 1 holds, 2 joins, 4 leaves
//!
//! 0 Alive
//! 1 Want
//! 2 Pass      root[16] asked: members
//! 3 Root      root[16] latest: count[1] (node[2] id[16])*  is_listed[1] made: ids  freed: ids
//! 4 Have      root[16]
//! 5 Lack      ids
//! 6 Propose   view[10] members
//! 7 Agree     view[10] stand_view[10] root[16]
//!                                                                                       ids: count[2] id[16]*
//! ```
//! What has more ids than a message may have says less, and means the same: a root without a list has all that it reaches
//! looked for, what is left of those that are let go of is swept up, and what is left of those that are lacking is asked for later.

use std::collections::BTreeSet;

use super::message::{Body, Header, Latest, Message, Stand, View};
use super::{NODES_MAX, NodeId};
use crate::block::BlockId;

/// The longest message, in bytes. It is cut into as many packets as it needs.
pub const MESSAGE_BYTES_MAX: usize = 36_000;
/// Ids in one message at most: what a change of a mebibyte makes and lets go of.
pub const IDS_MAX: usize = 2_048;

/// Header, the root, what led to it, and two counts, at most, in bytes.
const ROOT_BYTES_MAX: usize = 57 + 2 * NODES_MAX + 16 + 1 + 18 * NODES_MAX + 5;
const _: () = assert!(ROOT_BYTES_MAX + 16 * IDS_MAX <= MESSAGE_BYTES_MAX, "each message fits");
const _: () = assert!(NODES_MAX < 256 && IDS_MAX < 65_536, "a count fits its field");

/// Encodes a message.
pub fn encode(message: &Message) -> Vec<u8> {
    let Message { header, body } = message;
    let mut to = Vec::new();
    let (code, flags) =
        (code(body), u8::from(header.holds) | u8::from(header.joins) << 1 | u8::from(header.leaves) << 2);
    to.extend([code, flags]);
    put_view(&mut to, header.view);
    put_view(&mut to, header.promised);
    to.extend(header.holder.0.to_le_bytes());
    to.extend(header.turn.to_le_bytes());
    put_root(&mut to, header.settled);
    to.extend(header.room.to_le_bytes());
    put_members(&mut to, &header.members);
    match body {
        Body::Alive | Body::Want => {}
        Body::Pass { root, asked } => {
            put_root(&mut to, *root);
            put_members(&mut to, asked);
        }
        Body::Root { root, made, freed, latest } => {
            put_root(&mut to, Some(*root));
            put_latest(&mut to, latest);
            let listed = made.as_deref().filter(|made| made.len() <= IDS_MAX);
            to.push(u8::from(listed.is_some()));
            put_ids(&mut to, listed.unwrap_or_default());
            let left = IDS_MAX - listed.map_or(0, <[BlockId]>::len);
            put_ids(&mut to, freed.get(..left).unwrap_or(freed));
        }
        Body::Have { root } => put_root(&mut to, Some(*root)),
        Body::Lack { ids } => put_ids(&mut to, ids.get(..IDS_MAX).unwrap_or(ids)),
        Body::Propose { view, members } => {
            put_view(&mut to, *view);
            put_members(&mut to, members);
        }
        Body::Agree { view, stand } => {
            put_view(&mut to, *view);
            put_view(&mut to, stand.view);
            put_root(&mut to, stand.root);
        }
    }
    to
}

/// Decodes a message; `None` where the bytes are none.
pub fn decode(bytes: &[u8]) -> Option<Message> {
    let mut from = Reader(bytes);
    let (code, flags) = (from.byte()?, from.byte()?);
    let header = Header {
        view: from.view()?,
        promised: from.view()?,
        holder: from.node()?,
        turn: from.number()?,
        settled: from.root()?,
        room: from.number()?,
        members: from.members()?,
        holds: flags & 1 != 0,
        joins: flags & 2 != 0,
        leaves: flags & 4 != 0,
    };
    let body = match code {
        0 => Body::Alive,
        1 => Body::Want,
        2 => Body::Pass { root: from.root()?, asked: from.members()? },
        3 => {
            let (root, latest, is_listed) = (from.id()?, from.latest()?, from.byte()?);
            let made = from.ids()?;
            Body::Root { root, made: (is_listed == 1).then_some(made), freed: from.ids()?, latest }
        }
        4 => Body::Have { root: from.id()? },
        5 => Body::Lack { ids: from.ids()? },
        6 => Body::Propose { view: from.view()?, members: from.members()? },
        7 => Body::Agree { view: from.view()?, stand: Stand { view: from.view()?, root: from.root()? } },
        _ => return None,
    };
    (flags < 8 && from.0.is_empty()).then_some(Message { header, body })
}

fn code(body: &Body) -> u8 {
    match body {
        Body::Alive => 0,
        Body::Want => 1,
        Body::Pass { .. } => 2,
        Body::Root { .. } => 3,
        Body::Have { .. } => 4,
        Body::Lack { .. } => 5,
        Body::Propose { .. } => 6,
        Body::Agree { .. } => 7,
    }
}

fn put_view(to: &mut Vec<u8>, view: View) {
    to.extend(view.number.to_le_bytes());
    to.extend(view.by.0.to_le_bytes());
}

fn put_root(to: &mut Vec<u8>, root: Option<BlockId>) {
    to.extend(root.map_or([0; BlockId::BYTES], |id| id.0));
}

fn put_members(to: &mut Vec<u8>, members: &BTreeSet<NodeId>) {
    to.push(members.len().min(NODES_MAX) as u8);
    members.iter().take(NODES_MAX).for_each(|id| to.extend(id.0.to_le_bytes()));
}

fn put_latest(to: &mut Vec<u8>, latest: &Latest) {
    to.push(latest.len().min(NODES_MAX) as u8);
    for (node, id) in latest.iter().take(NODES_MAX) {
        to.extend(node.0.to_le_bytes());
        to.extend(id.0);
    }
}

fn put_ids(to: &mut Vec<u8>, ids: &[BlockId]) {
    to.extend((ids.len().min(IDS_MAX) as u16).to_le_bytes());
    ids.iter().take(IDS_MAX).for_each(|id| to.extend(id.0));
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }

    fn byte(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn node(&mut self) -> Option<NodeId> {
        self.array().map(u16::from_le_bytes).map(NodeId)
    }

    fn number(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn view(&mut self) -> Option<View> {
        Some(View { number: self.number()?, by: self.node()? })
    }

    fn root(&mut self) -> Option<Option<BlockId>> {
        let bytes = self.array()?;
        Some((bytes != [0; BlockId::BYTES]).then_some(BlockId(bytes)))
    }

    /// One that is there.
    fn id(&mut self) -> Option<BlockId> {
        self.root()?
    }

    /// A count that is within its limit.
    fn count(&mut self, most: usize) -> Option<usize> {
        self.byte().map(usize::from).filter(|count| *count <= most)
    }

    /// Nodes in their order, each once.
    fn members(&mut self) -> Option<BTreeSet<NodeId>> {
        let count = self.count(NODES_MAX)?;
        let members = (0..count).map(|_| self.node()).collect::<Option<BTreeSet<_>>>()?;
        (members.len() == count).then_some(members)
    }

    fn latest(&mut self) -> Option<Latest> {
        let count = self.count(NODES_MAX)?;
        let latest = (0..count).map(|_| Some((self.node()?, self.id()?))).collect::<Option<Latest>>()?;
        (latest.len() == count).then_some(latest)
    }

    fn ids(&mut self) -> Option<Vec<BlockId>> {
        let count =
            self.array().map(u16::from_le_bytes).map(usize::from).filter(|count| *count <= IDS_MAX)?;
        (0..count).map(|_| self.id()).collect()
    }
}

#[cfg(test)]
mod tests;
