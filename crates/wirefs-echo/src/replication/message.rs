//! Messages of the replication protocol, sent over the control channel.

use std::collections::{BTreeMap, BTreeSet};

use super::ReplicaId;
use crate::block::EchoBlockId;

/// A numbered configuration of the members. Larger is newer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ViewId {
    /// Larger than the numbers of all former views.
    pub number: u64,
    /// The node that proposed it.
    pub proposer: ReplicaId,
}

/// The newest root of each node among those that led to the current one.
pub type Latest = BTreeMap<ReplicaId, EchoBlockId>;

/// A root, and the view in which it was accepted. Larger is newer: the first root of a later view is newer
/// than any of an earlier one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct AcceptedState {
    /// The view in which the node accepted the root.
    pub view: ViewId,
    /// The root; `None` if the node has no tree yet.
    pub root: Option<EchoBlockId>,
}

/// The sender's state, in each message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageHeader {
    /// The current view.
    pub view: ViewId,
    /// The highest view that the sender prepared for. It takes part in no lower view.
    pub prepared_view: ViewId,
    /// The members of the current view.
    pub members: BTreeSet<ReplicaId>,
    /// The token holder, as far as the sender knows.
    pub holder: ReplicaId,
    /// The sender itself holds the token. Other nodes may only know that it is in transit.
    pub holds_token: bool,
    /// Number of token transfers in this view.
    pub token_epoch: u64,
    /// The newest root of this view that all members accepted, as far as the sender knows.
    pub committed_root: Option<EchoBlockId>,
    /// Blocks that the sender can still store; `u64::MAX` without a limit.
    pub free_blocks: u64,
    /// The sender wants to become a member.
    pub wants_to_join: bool,
    /// The sender wants to leave.
    pub wants_to_leave: bool,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicationMessage {
    /// The sender's state.
    pub header: MessageHeader,
    /// The content.
    pub body: MessageBody,
}

/// The content of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageBody {
    /// The sender is alive.
    Heartbeat,
    /// The sender requests the write token.
    RequestToken,
    /// Transfers the write token.
    TransferToken {
        /// The root that all members accepted.
        root: Option<EchoBlockId>,
        /// The other nodes that requested the token.
        requests: BTreeSet<ReplicaId>,
    },
    /// The holder asks to accept a root.
    PrepareRoot {
        /// The root.
        root: EchoBlockId,
        /// Its new blocks; `None`: check all blocks that it reaches.
        new_blocks: Option<Vec<EchoBlockId>>,
        /// Blocks that it no longer reaches.
        freed: Vec<EchoBlockId>,
        /// The roots that led to it.
        latest: Latest,
    },
    /// The sender accepted a root and has all its blocks.
    AcceptRoot {
        /// The root.
        root: EchoBlockId,
    },
    /// The sender requests copies of missing blocks.
    RequestBlocks {
        /// Blocks of the holder's root.
        ids: Vec<EchoBlockId>,
    },
    /// The sender proposes a new view.
    ProposeView {
        /// The view.
        view: ViewId,
        /// The members of the view.
        members: BTreeSet<ReplicaId>,
    },
    /// The sender accepts a view, and takes part in no lower one.
    AcceptView {
        /// The view.
        view: ViewId,
        /// The root that the sender has.
        accepted: AcceptedState,
    },
}
