//! Several nodes with one tree: who may make the next root, and when all have it.
//!
//! Each node has all blocks in packets of its own. One of them holds the *pen*: the right to make roots. It makes a change on the
//! root that all have, sends each new block to each node, tells the new root, and answers the program when all have it. The pen is
//! passed to who asks for it. Whoever is silent for too long is left out: those who are left agree on a new *view*, which begins with
//! the newest root that one of them has, and all that was answered is in it, since all had it.
//!
//! ```text
//!   Change ──> Run ──(driver)──> Made ──> Root to all ──> Have of all ──> Settled          at the holder
//!                                           └─> Check ──(driver)──> Checked ──> Adopt, Have    at the others
//!   silence, joining, leaving ──> Propose to all of the new view ──> Agree of all ──> its header begins it
//! ```
//!
//! | pen | becomes | when |
//! |---|---|---|
//! | `Held(Idle)` | `Held(Running)` | somebody here waits with a change |
//! | | `Passing` | another asked |
//! | `Held(Running)` | `Held(Settling)` | the driver has made the change |
//! | `Held(Settling)` | `Held(Idle)` | all members have the root |
//! | `Passing` | `Elsewhere` | the other one says that it holds it |
//! | `Elsewhere` | `Held(Idle)` | it is passed here |
//! | any | `Held(Settling)` or `Elsewhere` | a new view begins |
//!
//! # Source
//! PingFS, "Distributed filesystem" (blocks to all nodes, ids by counter and node, the newest root wins). Views after Oki and
//! Liskov, "Viewstamped Replication"; here all members take part in each change, so that each can go on alone.

mod chorus;
pub mod message;
mod pen;
mod views;
pub mod wire;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use wirefs_op::Time;

use crate::block::BlockId;
use message::{Body, Header, Latest, Message, Stand, View};
use pen::{Checking, Pen, Work};
use views::Proposal;

/// One of the machines that have a tree together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeId(pub u16);

/// Nodes that may be together.
pub const NODES_MAX: usize = 16;

/// How long things take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pulse {
    /// Between two signs of life.
    pub beat: Duration,
    /// What was not answered is sent again after so long: more than a round trip.
    pub retry: Duration,
    /// Whoever is silent for so long is left out: many beats.
    pub dead: Duration,
}

/// What happens to a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Time has passed.
    Tick,
    /// A program waits with a change.
    Change,
    /// The change that was asked for with [`Output::Run`] is made, and its blocks are registered here and sent to all; none: it came
    /// to nothing.
    Made(Option<Made>),
    /// A message came.
    Heard {
        /// From whom.
        from: NodeId,
        /// It.
        message: Message,
    },
    /// What was asked for with [`Output::Check`].
    Checked {
        /// The root.
        root: BlockId,
        /// Blocks that are not here.
        lacking: Vec<BlockId>,
    },
    /// The node is to go.
    Leave,
}

/// A change that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// Its root: larger than each id that was seen here.
    pub root: BlockId,
    /// Its new blocks, the root among them.
    pub made: Vec<BlockId>,
    /// Blocks that it does not reach any more.
    pub freed: Vec<BlockId>,
}

/// What a node's driver is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send a message.
    Send {
        /// To whom.
        to: NodeId,
        /// It.
        message: Message,
    },
    /// Send these blocks to a node, each in a packet with its address as the source.
    Copy {
        /// To whom.
        to: NodeId,
        /// The blocks.
        ids: Vec<BlockId>,
    },
    /// Carry out the changes that wait, on this root, then say [`Input::Made`].
    Run {
        /// The root to begin with; none where there is no tree yet.
        on: Option<BlockId>,
    },
    /// Look which blocks of a root are not here, and say [`Input::Checked`] now, and again when the last one has come.
    Check {
        /// The root.
        root: BlockId,
        /// Those that are new with it; none: all that it reaches.
        made: Option<Vec<BlockId>>,
    },
    /// Go over to this root.
    Adopt {
        /// It.
        root: BlockId,
    },
    /// Deregister these blocks; copies of them that come later too. No root that may still count reaches them.
    Free {
        /// The blocks.
        ids: Vec<BlockId>,
    },
    /// All have the root of this change: answer it.
    Settled {
        /// The root.
        root: BlockId,
    },
    /// The root of this change is none: deregister its blocks, and carry the changes out again with the next [`Output::Run`].
    Undone {
        /// The root.
        root: BlockId,
    },
    /// The node is no member any more, as it wanted.
    Left,
}

/// What is known of another node.
#[derive(Clone, Copy, Debug)]
struct Peer {
    heard: Time,
    joins: bool,
    leaves: bool,
    /// The root that it has, as it told.
    has: Option<BlockId>,
}

/// One node's part.
#[derive(Debug)]
pub struct Together {
    me: NodeId,
    pulse: Pulse,
    now: Time,
    view: View,
    members: BTreeSet<NodeId>,
    /// It takes part in no view before this one.
    promised: View,
    promised_at: Time,
    /// The highest number of a view that anybody has promised.
    number: u64,
    proposal: Option<Proposal>,
    peers: BTreeMap<NodeId, Peer>,
    turn: u64,
    pen: Pen,
    asked: BTreeSet<NodeId>,
    /// When the holder was asked last: in which view, at which turn.
    asked_in: (View, u64),
    stand: Stand,
    latest: Latest,
    checking: Option<Checking>,
    /// The newest root of this view that all members have, as far as it knows.
    settled: Option<BlockId>,
    /// What each of these roots let go of, until all members have it.
    unfreed: Vec<(BlockId, Vec<BlockId>)>,
    /// A change waits here.
    wants: bool,
    /// The driver makes a change on this root.
    running: Option<Option<BlockId>>,
    /// The own root of which it is not known yet whether it counts.
    pending: Option<BlockId>,
    leaves: bool,
    beat_at: Time,
    retry_at: Time,
    outputs: VecDeque<Output>,
}

impl Together {
    /// The first of the nodes, with its own tree.
    pub fn found(me: NodeId, peers: &[NodeId], pulse: Pulse, root: Option<BlockId>) -> Together {
        let mut node = Together::join(me, peers, pulse);
        node.view = View { number: 1, by: me };
        node.promised = node.view;
        node.members = BTreeSet::from([me]);
        node.stand = Stand { view: node.view, root };
        node.pen = Pen::Held(Work::Idle);
        node
    }

    /// A node without a tree, which becomes a member as soon as it has all of the others'.
    pub fn join(me: NodeId, peers: &[NodeId], pulse: Pulse) -> Together {
        let peer = Peer { heard: Time::default(), joins: false, leaves: false, has: None };
        let others = peers.iter().filter(|peer| **peer != me).take(NODES_MAX - 1);
        Together {
            me,
            pulse,
            now: Time::default(),
            view: View::default(),
            members: BTreeSet::new(),
            promised: View::default(),
            promised_at: Time::default(),
            number: 1,
            proposal: None,
            peers: others.map(|id| (*id, peer)).collect(),
            turn: 0,
            pen: Pen::Elsewhere { holder: me },
            asked: BTreeSet::new(),
            asked_in: (View::default(), 0),
            stand: Stand::default(),
            latest: Latest::new(),
            checking: None,
            settled: None,
            unfreed: Vec::new(),
            wants: false,
            running: None,
            pending: None,
            leaves: false,
            beat_at: Time::default(),
            retry_at: Time::default(),
            outputs: VecDeque::new(),
        }
    }

    /// Takes in what happens.
    pub fn handle(&mut self, now: Time, input: Input) {
        self.now = self.now.max(now);
        match input {
            Input::Tick => self.tick(),
            Input::Change => self.wants = true,
            Input::Made(made) => self.made(made),
            Input::Heard { from, message } => self.heard(from, message),
            Input::Checked { root, lacking } => self.checked(root, lacking),
            Input::Leave => self.leaves = true,
        }
        self.go_on();
    }

    /// What is to be done next.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to say [`Input::Tick`] at the latest.
    pub fn deadline(&self) -> Time {
        self.beat_at.min(self.retry_at)
    }

    /// Whether it is one of those who are together now.
    pub fn is_member(&self) -> bool {
        self.members.contains(&self.me)
    }

    /// The root that it has.
    pub fn root(&self) -> Option<BlockId> {
        self.stand.root
    }

    /// Who is together, as far as it knows.
    pub fn members(&self) -> &BTreeSet<NodeId> {
        &self.members
    }

    fn header(&self) -> Header {
        Header {
            view: self.view,
            promised: self.promised,
            members: self.members.clone(),
            holder: match self.pen {
                Pen::Held(_) => self.me,
                Pen::Passing { to } => to,
                Pen::Elsewhere { holder } => holder,
            },
            holds: matches!(self.pen, Pen::Held(_)),
            turn: self.turn,
            settled: self.settled,
            joins: !self.is_member() && !self.leaves,
            leaves: self.leaves && self.is_member(),
        }
    }

    fn send(&mut self, to: NodeId, body: Body) {
        let message = Message { header: self.header(), body };
        self.outputs.push_back(Output::Send { to, message });
    }

    fn others(&self) -> Vec<NodeId> {
        self.members.iter().copied().filter(|id| *id != self.me).collect()
    }

    /// Whether it takes part in the present view: it has promised no newer one.
    fn is_active(&self) -> bool {
        self.is_member() && self.promised == self.view
    }
}
