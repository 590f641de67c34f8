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
//! | `Held(Idle)` | `Held(Running)` | somebody here waits with a change, and the pen has just come or nobody asked |
//! | | `Passing` | others asked: to the next one in the ring of their numbers |
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
pub mod post;
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
    /// There is a node that lives.
    Met(NodeId),
    /// A node was started anew: the one that was known is dead for certain. Said before anything is heard of the new one.
    Reborn(NodeId),
    /// Blocks of the present root are lost here: the others have them.
    Miss(Vec<BlockId>),
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
#[derive(Clone, Copy, Debug, Default)]
struct Peer {
    heard: Time,
    joins: bool,
    leaves: bool,
    /// Blocks that it could still take, as it told.
    room: u64,
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
    /// The newest view that anybody has promised, and since when.
    newest: (View, Time),
    proposal: Option<Proposal>,
    peers: BTreeMap<NodeId, Peer>,
    /// Members whose life has ended, until a view begins without them.
    ended: BTreeSet<NodeId>,
    /// There is a tree, of which it is no member yet.
    has_heard_of_members: bool,
    turn: u64,
    pen: Pen,
    /// The pen has just come: the own change is first.
    is_own_turn: bool,
    /// Others who would like to have the pen. Where it is they go with it.
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
    /// Blocks that it could still take.
    room: u64,
    /// How often others were asked for what is lost.
    asked_for: usize,
    /// When time was told of last.
    ticked: Time,
    beat_at: Time,
    retry_at: Time,
    outputs: VecDeque<Output>,
}

impl Together {
    /// The first of the nodes, with its own tree.
    pub fn found(me: NodeId, peers: &[NodeId], pulse: Pulse, root: Option<BlockId>) -> Together {
        let mut node = Together::join(me, peers, pulse);
        node.begin(root);
        node
    }

    /// A node without a tree, which becomes a member as soon as it has all of the others'.
    pub fn join(me: NodeId, peers: &[NodeId], pulse: Pulse) -> Together {
        let peer = Peer::default();
        let others = peers.iter().filter(|peer| **peer != me).take(NODES_MAX - 1);
        Together {
            me,
            pulse,
            now: Time::default(),
            view: View::default(),
            members: BTreeSet::new(),
            promised: View::default(),
            newest: (View::default(), Time::default()),
            proposal: None,
            peers: others.map(|id| (*id, peer)).collect(),
            ended: BTreeSet::new(),
            has_heard_of_members: false,
            turn: 0,
            pen: Pen::Elsewhere { holder: me },
            is_own_turn: false,
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
            room: u64::MAX,
            asked_for: 0,
            ticked: Time::default(),
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
            Input::Met(id) => self.met(id),
            Input::Reborn(id) => self.reborn(id),
            Input::Miss(ids) => self.miss(&ids),
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

    /// Which node it is.
    pub fn me(&self) -> NodeId {
        self.me
    }

    /// Who holds the pen, as far as it knows.
    pub fn holder(&self) -> NodeId {
        match self.pen {
            Pen::Held(_) => self.me,
            Pen::Passing { to, .. } => to,
            Pen::Elsewhere { holder } => holder,
        }
    }

    /// The number of the view that it is in.
    pub fn view(&self) -> u64 {
        self.view.number
    }

    /// Whether anybody of a tree that is there already was heard of.
    pub fn has_heard_of_a_tree(&self) -> bool {
        self.has_heard_of_members || !self.members.is_empty()
    }

    /// The others that were heard of within this time, and whether they still wait to become members.
    pub fn heard_within(&self, span: Duration) -> impl Iterator<Item = (NodeId, bool)> + '_ {
        let lately = self.peers.iter().filter(move |(_, peer)| self.now.since(peer.heard) <= span);
        lately.filter(|(_, peer)| peer.heard > Time::default()).map(|(id, peer)| (*id, peer.joins))
    }

    /// A node that has heard of nobody with a tree begins one with this root, or with none yet.
    pub fn begin(&mut self, root: Option<BlockId>) {
        if self.view == View::default() && !self.leaves {
            self.view = View { number: 1, by: self.me };
            self.promised = self.view;
            self.members = BTreeSet::from([self.me]);
            self.stand = Stand { view: self.view, root };
            self.pen = Pen::Held(Work::Idle);
            self.go_on();
        }
    }

    /// Says how many more blocks it could take.
    pub fn say_room(&mut self, blocks: u64) {
        self.room = blocks;
    }

    /// How many more blocks all members could take.
    pub fn room(&self) -> u64 {
        let others = self.others().into_iter().filter_map(|id| self.peers.get(&id));
        // One that was only heard of by others has not said yet.
        let others = others.filter(|peer| peer.heard > Time::default());
        others.map(|peer| peer.room).fold(self.room, u64::min)
    }

    fn header(&self) -> Header {
        Header {
            view: self.view,
            promised: self.promised,
            members: self.members.clone(),
            holder: self.holder(),
            holds: matches!(self.pen, Pen::Held(_)),
            turn: self.turn,
            settled: self.settled,
            room: self.room,
            joins: !self.is_member() && !self.leaves,
            leaves: self.leaves && self.is_member(),
        }
    }

    fn send(&mut self, to: NodeId, body: Body) {
        // What is said of a view that it was in means the one that is dead.
        if self.ended.contains(&to) {
            return;
        }
        let message = Message { header: self.header(), body };
        self.outputs.push_back(Output::Send { to, message });
    }

    /// One after the other, so that each block is asked of each once in a while.
    fn miss(&mut self, ids: &[BlockId]) {
        let others = self.others();
        self.asked_for = self.asked_for.wrapping_add(1);
        let next = self.asked_for.checked_rem(others.len()).and_then(|number| others.get(number));
        if let Some(to) = next {
            self.send(*to, Body::Lack { ids: ids.to_vec() });
        }
    }

    fn others(&self) -> Vec<NodeId> {
        self.members.iter().copied().filter(|id| *id != self.me).collect()
    }

    /// Whether it takes part in the present view: it has promised no newer one.
    fn is_active(&self) -> bool {
        self.is_member() && self.promised == self.view
    }
}
