//! Replication of one tree on several nodes: the state machine of one replica.
//!
//! Each node has all blocks in packets of its own. One node holds the *write token*, the right to create
//! roots. The holder applies a change to the committed root, sends each new block to each node, and then the
//! new root. It answers the program when all members accepted the root. Requests for the token are granted in
//! turn. A member that stays silent is removed: the others change to a new *view*. The new view begins with
//! the newest root that any of them accepted. That root contains every answered change, because all members
//! had accepted it.
//!
//! ```text
//!   RequestWrite ──> RunChange ──(driver)──> ChangeDone ──> PrepareRoot to all ──> AcceptRoot of all ──> Committed   holder
//!                                              └─> Check ──(driver)──> Checked ──> Adopt, AcceptRoot                 others
//!   timeout, join, leave ──> ProposeView to the new members ──> AcceptView of all ──> the proposer's header starts it
//! ```
//!
//! | token | becomes | when |
//! |---|---|---|
//! | `Held(Idle)` | `Held(Running)` | a local change waits, and the token has just arrived or no other node requested it |
//! | | `InTransit` | other nodes requested it: to the next one in the ring of their numbers |
//! | `Held(Running)` | `Held(Committing)` | the driver has applied the change |
//! | `Held(Committing)` | `Held(Idle)` | all members accepted the root |
//! | `InTransit` | `Elsewhere` | the receiver reports that it holds the token |
//! | `Elsewhere` | `Held(Idle)` | the token arrives |
//! | any | `Held(Committing)` or `Elsewhere` | a new view begins |
//!
//! # Source
//! PingFS, "Distributed filesystem" (blocks to all nodes, ids by counter and node, the newest root wins).
//! Views after Oki and Liskov, "Viewstamped Replication" (1988); here all members take part in each change,
//! so that each can continue alone.

pub mod control_channel;
mod heartbeat;
pub mod message;
mod view_change;
pub mod wire;
mod write_token;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use wirefs_op::Time;

use crate::block::EchoBlockId;
use message::{AcceptedState, Latest, MessageBody, MessageHeader, ReplicationMessage, ViewId};
use view_change::Proposal;
use write_token::{Checking, HolderWork, WriteToken};

/// The number of a node that replicates a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReplicaId(pub u16);

/// Maximum number of replicas.
pub const REPLICAS_MAX: usize = 16;

/// Timers of a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicationTimers {
    /// Interval of heartbeats.
    pub heartbeat: Duration,
    /// Interval of retransmissions; longer than a round trip.
    pub retry: Duration,
    /// Silence after which a member is removed; many heartbeats.
    pub dead_after: Duration,
}

/// An input of the state machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplicaInput {
    /// Time has passed.
    Tick,
    /// A local program waits with a change.
    RequestWrite,
    /// The change requested with [`ReplicaOutput::RunChange`] is applied: its blocks are registered here and
    /// sent to all nodes. `None`: it had no effect.
    ChangeDone(Option<NewRoot>),
    /// A message arrived.
    Received {
        /// The sender.
        from: ReplicaId,
        /// The message.
        message: ReplicationMessage,
    },
    /// The result of [`ReplicaOutput::Check`].
    Checked {
        /// The root.
        root: EchoBlockId,
        /// Blocks that are not here.
        missing: Vec<EchoBlockId>,
    },
    /// A node is alive.
    PeerFound(ReplicaId),
    /// A node was restarted, so its former instance is dead. Comes before any message of the new instance.
    PeerRestarted(ReplicaId),
    /// Blocks of the current root were lost here. The other replicas have them.
    BlocksLost(Vec<EchoBlockId>),
    /// The node is to leave.
    Leave,
}

/// The result of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRoot {
    /// The new root. Its id is larger than each id seen here.
    pub root: EchoBlockId,
    /// The new blocks, the root included.
    pub new_blocks: Vec<EchoBlockId>,
    /// Blocks that the new root does not reach.
    pub freed: Vec<EchoBlockId>,
}

/// A command to the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplicaOutput {
    /// Send a message.
    Send {
        /// The receiver.
        to: ReplicaId,
        /// The message.
        message: ReplicationMessage,
    },
    /// Send blocks to a node, each in an echo request with that node's address as the source.
    CopyBlocks {
        /// The receiver.
        to: ReplicaId,
        /// The blocks.
        ids: Vec<EchoBlockId>,
    },
    /// Apply the pending changes to this root, then report [`ReplicaInput::ChangeDone`].
    RunChange {
        /// The root to start from; `None` if there is no tree yet.
        base: Option<EchoBlockId>,
    },
    /// Find the blocks of a root that are not here. Report [`ReplicaInput::Checked`] now, and again when the
    /// last one has arrived.
    Check {
        /// The root.
        root: EchoBlockId,
        /// Its new blocks; `None`: all blocks that it reaches.
        new_blocks: Option<Vec<EchoBlockId>>,
    },
    /// Switch to this root.
    Adopt {
        /// The root.
        root: EchoBlockId,
    },
    /// Delete these blocks, and copies of them that arrive later. No root that may still become current
    /// reaches them.
    Free {
        /// The blocks.
        ids: Vec<EchoBlockId>,
    },
    /// All members accepted the root of this change: answer it.
    Committed {
        /// The root.
        root: EchoBlockId,
    },
    /// The root was discarded: delete its blocks, and apply the changes again with the next
    /// [`ReplicaOutput::RunChange`].
    Aborted {
        /// The root.
        root: EchoBlockId,
    },
    /// The node left the replicas as requested.
    Left,
}

/// State of another node.
#[derive(Clone, Copy, Debug, Default)]
struct Peer {
    last_received: Time,
    wants_to_join: bool,
    wants_to_leave: bool,
    /// Blocks that it can still store, as reported.
    free_blocks: u64,
    /// The root that it accepted, as reported.
    accepted_root: Option<EchoBlockId>,
}

/// The state machine of one replica.
#[derive(Debug)]
pub struct Replica {
    id: ReplicaId,
    timers: ReplicationTimers,
    now: Time,
    view: ViewId,
    members: BTreeSet<ReplicaId>,
    /// The highest view it has prepared for. It takes part in no lower view.
    prepared_view: ViewId,
    /// The highest view that any node prepared for, and when it was first reported.
    newest: (ViewId, Time),
    proposal: Option<Proposal>,
    peers: BTreeMap<ReplicaId, Peer>,
    /// Members that were restarted, until a view without their former instance begins.
    restarted: BTreeSet<ReplicaId>,
    /// A tree exists, of which this node is not a member yet.
    knows_members: bool,
    token_epoch: u64,
    token: WriteToken,
    /// The token has just arrived: a local change goes first.
    own_change_first: bool,
    /// Nodes that requested the token. The set travels with the token.
    requests: BTreeSet<ReplicaId>,
    /// The view and token epoch of the last token request.
    requested_in: (ViewId, u64),
    accepted: AcceptedState,
    latest: Latest,
    checking: Option<Checking>,
    /// The newest root of this view that all members accepted, as far as this node knows.
    committed_root: Option<EchoBlockId>,
    /// The blocks freed by each of these roots, until all members accepted it.
    pending_frees: Vec<(EchoBlockId, Vec<EchoBlockId>)>,
    /// A local change waits.
    wants_write: bool,
    /// The driver applies a change to this root.
    running: Option<Option<EchoBlockId>>,
    /// The local root that is not committed yet.
    uncommitted_root: Option<EchoBlockId>,
    is_leaving: bool,
    /// Blocks that this node can still store.
    free_blocks: u64,
    /// Number of requests for lost blocks.
    lost_requests: usize,
    /// When the last tick arrived.
    last_tick: Time,
    heartbeat_at: Time,
    retry_at: Time,
    outputs: VecDeque<ReplicaOutput>,
}

impl Replica {
    /// Creates the first replica, with its own tree.
    pub fn create(
        me: ReplicaId,
        peers: &[ReplicaId],
        timers: ReplicationTimers,
        root: Option<EchoBlockId>,
    ) -> Replica {
        let mut node = Replica::join(me, peers, timers);
        node.begin(root);
        node
    }

    /// Creates a node without a tree. It becomes a member once it has all blocks.
    pub fn join(me: ReplicaId, peers: &[ReplicaId], timers: ReplicationTimers) -> Replica {
        let peer = Peer::default();
        let others = peers.iter().filter(|peer| **peer != me).take(REPLICAS_MAX - 1);
        Replica {
            id: me,
            timers,
            now: Time::default(),
            view: ViewId::default(),
            members: BTreeSet::new(),
            prepared_view: ViewId::default(),
            newest: (ViewId::default(), Time::default()),
            proposal: None,
            peers: others.map(|id| (*id, peer)).collect(),
            restarted: BTreeSet::new(),
            knows_members: false,
            token_epoch: 0,
            token: WriteToken::Elsewhere { holder: me },
            own_change_first: false,
            requests: BTreeSet::new(),
            requested_in: (ViewId::default(), 0),
            accepted: AcceptedState::default(),
            latest: Latest::new(),
            checking: None,
            committed_root: None,
            pending_frees: Vec::new(),
            wants_write: false,
            running: None,
            uncommitted_root: None,
            is_leaving: false,
            free_blocks: u64::MAX,
            lost_requests: 0,
            last_tick: Time::default(),
            heartbeat_at: Time::default(),
            retry_at: Time::default(),
            outputs: VecDeque::new(),
        }
    }

    /// Processes an input.
    pub fn handle(&mut self, now: Time, input: ReplicaInput) {
        self.now = self.now.max(now);
        match input {
            ReplicaInput::Tick => self.tick(),
            ReplicaInput::RequestWrite => self.wants_write = true,
            ReplicaInput::ChangeDone(new_blocks) => self.change_done(new_blocks),
            ReplicaInput::Received { from, message } => self.receive(from, message),
            ReplicaInput::Checked { root, missing } => self.root_checked(root, missing),
            ReplicaInput::PeerFound(id) => self.add_peer(id),
            ReplicaInput::PeerRestarted(id) => self.peer_restarted(id),
            ReplicaInput::BlocksLost(ids) => self.request_lost_blocks(&ids),
            ReplicaInput::Leave => self.is_leaving = true,
        }
        self.advance();
    }

    /// Returns the next command.
    pub fn poll(&mut self) -> Option<ReplicaOutput> {
        self.outputs.pop_front()
    }

    /// Returns when the next [`ReplicaInput::Tick`] is due.
    pub fn deadline(&self) -> Time {
        self.heartbeat_at.min(self.retry_at)
    }

    /// Returns whether this node is a member of the current view.
    pub fn is_member(&self) -> bool {
        self.members.contains(&self.id)
    }

    /// Returns the accepted root.
    pub fn root(&self) -> Option<EchoBlockId> {
        self.accepted.root
    }

    /// Returns the members of the current view.
    pub fn members(&self) -> &BTreeSet<ReplicaId> {
        &self.members
    }

    /// Returns the number of this node.
    pub fn id(&self) -> ReplicaId {
        self.id
    }

    /// Returns the node that holds the token, as far as this node knows.
    pub fn holder(&self) -> ReplicaId {
        match self.token {
            WriteToken::Held(_) => self.id,
            WriteToken::InTransit { to, .. } => to,
            WriteToken::Elsewhere { holder } => holder,
        }
    }

    /// Returns the number of the current view.
    pub fn view(&self) -> u64 {
        self.view.number
    }

    /// Returns whether an existing tree is known.
    pub fn knows_of_tree(&self) -> bool {
        self.knows_members || !self.members.is_empty()
    }

    /// Returns the nodes that sent a message within `span`, and whether they wait to join.
    pub fn peers_within(&self, span: Duration) -> impl Iterator<Item = (ReplicaId, bool)> + '_ {
        let lately = self.peers.iter().filter(move |(_, peer)| self.now.since(peer.last_received) <= span);
        lately
            .filter(|(_, peer)| peer.last_received > Time::default())
            .map(|(id, peer)| (*id, peer.wants_to_join))
    }

    /// Starts a tree with this root, or without one yet, if no tree is known.
    pub fn begin(&mut self, root: Option<EchoBlockId>) {
        if self.view == ViewId::default() && !self.is_leaving {
            self.view = ViewId { number: 1, proposer: self.id };
            self.prepared_view = self.view;
            self.members = BTreeSet::from([self.id]);
            self.accepted = AcceptedState { view: self.view, root };
            self.token = WriteToken::Held(HolderWork::Idle);
            self.advance();
        }
    }

    /// Sets how many more blocks this node can store.
    pub fn set_free_blocks(&mut self, blocks: u64) {
        self.free_blocks = blocks;
    }

    /// Returns how many more blocks all members can store.
    pub fn free_blocks(&self) -> u64 {
        let others = self.other_members().into_iter().filter_map(|id| self.peers.get(&id));
        // A node known only from other nodes has not reported yet.
        let others = others.filter(|peer| peer.last_received > Time::default());
        others.map(|peer| peer.free_blocks).fold(self.free_blocks, u64::min)
    }

    fn header(&self) -> MessageHeader {
        MessageHeader {
            view: self.view,
            prepared_view: self.prepared_view,
            members: self.members.clone(),
            holder: self.holder(),
            holds_token: matches!(self.token, WriteToken::Held(_)),
            token_epoch: self.token_epoch,
            committed_root: self.committed_root,
            free_blocks: self.free_blocks,
            wants_to_join: !self.is_member() && !self.is_leaving,
            wants_to_leave: self.is_leaving && self.is_member(),
        }
    }

    fn send(&mut self, to: ReplicaId, body: MessageBody) {
        // A message of the current view would be meant for the former instance.
        if self.restarted.contains(&to) {
            return;
        }
        let message = ReplicationMessage { header: self.header(), body };
        self.outputs.push_back(ReplicaOutput::Send { to, message });
    }

    /// Members are asked in turn, so each is asked for each block eventually.
    fn request_lost_blocks(&mut self, ids: &[EchoBlockId]) {
        let others = self.other_members();
        self.lost_requests = self.lost_requests.wrapping_add(1);
        let next = self.lost_requests.checked_rem(others.len()).and_then(|number| others.get(number));
        if let Some(to) = next {
            self.send(*to, MessageBody::RequestBlocks { ids: ids.to_vec() });
        }
    }

    fn other_members(&self) -> Vec<ReplicaId> {
        self.members.iter().copied().filter(|id| *id != self.id).collect()
    }

    /// Returns whether the node takes part in the current view: it prepared for no higher one.
    fn is_active(&self) -> bool {
        self.is_member() && self.prepared_view == self.view
    }
}
