//! Encoding of replication messages, before they are sealed. Numbers are little-endian.
//!
//! ```text
//! kind[1] flags[1] view[10] prepared_view[10] holder[2] token_epoch[8] committed_root[16] free_blocks[8]
//!         members: count[1] node[2]* body
//! view: number[8] proposer[2]      an id of zeros: none       flags: 1 holds_token, 2 wants_to_join, 4 wants_to_leave
//!
//! 0 Heartbeat
//! 1 RequestToken
//! 2 TransferToken  root[16] requests: members
//! 3 PrepareRoot    root[16] latest: count[1] (node[2] id[16])*  is_listed[1] new_blocks: ids  freed: ids
//! 4 AcceptRoot     root[16]
//! 5 RequestBlocks  ids
//! 6 ProposeView    view[10] members
//! 7 AcceptView     view[10] accepted_view[10] root[16]
//!                                                                                       ids: count[2] id[16]*
//! ```
//! Ids beyond the limit of a message are omitted without changing its meaning. A root without a list makes
//! the receiver check all blocks that it reaches, omitted freed blocks are collected later, and omitted
//! missing blocks are requested later.

use std::collections::BTreeSet;

use super::message::{AcceptedState, Latest, MessageBody, MessageHeader, ReplicationMessage, ViewId};
use super::{REPLICAS_MAX, ReplicaId};
use crate::block::EchoBlockId;

/// The longest message in bytes. It is split into as many packets as it needs.
pub const MESSAGE_BYTES_MAX: usize = 36_000;
/// Maximum number of ids in one message: those of a change of 1 MiB.
pub const IDS_MAX: usize = 2_048;

/// Maximum size in bytes of the header, the root, its predecessors, and two counts.
const ROOT_BYTES_MAX: usize = 57 + 2 * REPLICAS_MAX + 16 + 1 + 18 * REPLICAS_MAX + 5;
const _: () = assert!(ROOT_BYTES_MAX + 16 * IDS_MAX <= MESSAGE_BYTES_MAX, "each message fits");
const _: () = assert!(REPLICAS_MAX < 256 && IDS_MAX < 65_536, "a count fits its field");

/// Encodes a message.
pub fn encode(message: &ReplicationMessage) -> Vec<u8> {
    let ReplicationMessage { header, body } = message;
    let mut to = Vec::new();
    let (code, flags) = (
        code(body),
        u8::from(header.holds_token)
            | u8::from(header.wants_to_join) << 1
            | u8::from(header.wants_to_leave) << 2,
    );
    to.extend([code, flags]);
    put_view(&mut to, header.view);
    put_view(&mut to, header.prepared_view);
    to.extend(header.holder.0.to_le_bytes());
    to.extend(header.token_epoch.to_le_bytes());
    put_root(&mut to, header.committed_root);
    to.extend(header.free_blocks.to_le_bytes());
    put_members(&mut to, &header.members);
    match body {
        MessageBody::Heartbeat | MessageBody::RequestToken => {}
        MessageBody::TransferToken { root, requests } => {
            put_root(&mut to, *root);
            put_members(&mut to, requests);
        }
        MessageBody::PrepareRoot { root, new_blocks, freed, latest } => {
            put_root(&mut to, Some(*root));
            put_latest(&mut to, latest);
            let listed = new_blocks.as_deref().filter(|new_blocks| new_blocks.len() <= IDS_MAX);
            to.push(u8::from(listed.is_some()));
            put_ids(&mut to, listed.unwrap_or_default());
            let left = IDS_MAX - listed.map_or(0, <[EchoBlockId]>::len);
            put_ids(&mut to, freed.get(..left).unwrap_or(freed));
        }
        MessageBody::AcceptRoot { root } => put_root(&mut to, Some(*root)),
        MessageBody::RequestBlocks { ids } => put_ids(&mut to, ids.get(..IDS_MAX).unwrap_or(ids)),
        MessageBody::ProposeView { view, members } => {
            put_view(&mut to, *view);
            put_members(&mut to, members);
        }
        MessageBody::AcceptView { view, accepted } => {
            put_view(&mut to, *view);
            put_view(&mut to, accepted.view);
            put_root(&mut to, accepted.root);
        }
    }
    to
}

/// Decodes a message; `None` if the bytes are invalid.
pub fn decode(bytes: &[u8]) -> Option<ReplicationMessage> {
    let mut from = Reader(bytes);
    let (code, flags) = (from.byte()?, from.byte()?);
    let header = MessageHeader {
        view: from.view()?,
        prepared_view: from.view()?,
        holder: from.node()?,
        token_epoch: from.number()?,
        committed_root: from.root()?,
        free_blocks: from.number()?,
        members: from.members()?,
        holds_token: flags & 1 != 0,
        wants_to_join: flags & 2 != 0,
        wants_to_leave: flags & 4 != 0,
    };
    let body = match code {
        0 => MessageBody::Heartbeat,
        1 => MessageBody::RequestToken,
        2 => MessageBody::TransferToken { root: from.root()?, requests: from.members()? },
        3 => {
            let (root, latest, is_listed) = (from.id()?, from.latest()?, from.byte()?);
            let new_blocks = from.ids()?;
            MessageBody::PrepareRoot {
                root,
                new_blocks: (is_listed == 1).then_some(new_blocks),
                freed: from.ids()?,
                latest,
            }
        }
        4 => MessageBody::AcceptRoot { root: from.id()? },
        5 => MessageBody::RequestBlocks { ids: from.ids()? },
        6 => MessageBody::ProposeView { view: from.view()?, members: from.members()? },
        7 => MessageBody::AcceptView {
            view: from.view()?,
            accepted: AcceptedState { view: from.view()?, root: from.root()? },
        },
        _ => return None,
    };
    (flags < 8 && from.0.is_empty()).then_some(ReplicationMessage { header, body })
}

fn code(body: &MessageBody) -> u8 {
    match body {
        MessageBody::Heartbeat => 0,
        MessageBody::RequestToken => 1,
        MessageBody::TransferToken { .. } => 2,
        MessageBody::PrepareRoot { .. } => 3,
        MessageBody::AcceptRoot { .. } => 4,
        MessageBody::RequestBlocks { .. } => 5,
        MessageBody::ProposeView { .. } => 6,
        MessageBody::AcceptView { .. } => 7,
    }
}

fn put_view(to: &mut Vec<u8>, view: ViewId) {
    to.extend(view.number.to_le_bytes());
    to.extend(view.proposer.0.to_le_bytes());
}

fn put_root(to: &mut Vec<u8>, root: Option<EchoBlockId>) {
    to.extend(root.map_or([0; EchoBlockId::BYTES], |id| id.0));
}

fn put_members(to: &mut Vec<u8>, members: &BTreeSet<ReplicaId>) {
    to.push(members.len().min(REPLICAS_MAX) as u8);
    members.iter().take(REPLICAS_MAX).for_each(|id| to.extend(id.0.to_le_bytes()));
}

fn put_latest(to: &mut Vec<u8>, latest: &Latest) {
    to.push(latest.len().min(REPLICAS_MAX) as u8);
    for (node, id) in latest.iter().take(REPLICAS_MAX) {
        to.extend(node.0.to_le_bytes());
        to.extend(id.0);
    }
}

fn put_ids(to: &mut Vec<u8>, ids: &[EchoBlockId]) {
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

    fn node(&mut self) -> Option<ReplicaId> {
        self.array().map(u16::from_le_bytes).map(ReplicaId)
    }

    fn number(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn view(&mut self) -> Option<ViewId> {
        Some(ViewId { number: self.number()?, proposer: self.node()? })
    }

    fn root(&mut self) -> Option<Option<EchoBlockId>> {
        let bytes = self.array()?;
        Some((bytes != [0; EchoBlockId::BYTES]).then_some(EchoBlockId(bytes)))
    }

    /// Reads an id that must not be zero.
    fn id(&mut self) -> Option<EchoBlockId> {
        self.root()?
    }

    /// Reads a count of at most `max`.
    fn count(&mut self, max: usize) -> Option<usize> {
        self.byte().map(usize::from).filter(|count| *count <= max)
    }

    /// Reads a set of nodes without duplicates.
    fn members(&mut self) -> Option<BTreeSet<ReplicaId>> {
        let count = self.count(REPLICAS_MAX)?;
        let members = (0..count).map(|_| self.node()).collect::<Option<BTreeSet<_>>>()?;
        (members.len() == count).then_some(members)
    }

    fn latest(&mut self) -> Option<Latest> {
        let count = self.count(REPLICAS_MAX)?;
        let latest = (0..count).map(|_| Some((self.node()?, self.id()?))).collect::<Option<Latest>>()?;
        (latest.len() == count).then_some(latest)
    }

    fn ids(&mut self) -> Option<Vec<EchoBlockId>> {
        let count =
            self.array().map(u16::from_le_bytes).map(usize::from).filter(|count| *count <= IDS_MAX)?;
        (0..count).map(|_| self.id()).collect()
    }
}

#[cfg(test)]
mod tests;
