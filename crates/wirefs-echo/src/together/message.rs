//! What nodes tell each other, in control pings that are sealed like blocks.

use std::collections::{BTreeMap, BTreeSet};

use super::NodeId;
use crate::block::BlockId;

/// A time in which the same nodes are together. Larger is newer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct View {
    /// How many there were before it, at least.
    pub number: u64,
    /// Who proposed it.
    pub by: NodeId,
}

/// The newest root of each node among those that led to the present one.
pub type Latest = BTreeMap<NodeId, BlockId>;

/// A root, and when it was agreed on. Larger is newer: what a later view begins with counts before what an earlier one made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stand {
    /// The view in which the node took it.
    pub view: View,
    /// The root; none of a node that has no tree yet.
    pub root: Option<BlockId>,
}

/// What each message says of its sender.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The view that it is in.
    pub view: View,
    /// It takes part in no view before this one.
    pub promised: View,
    /// Who is in that view.
    pub members: BTreeSet<NodeId>,
    /// Who holds the pen, as far as it knows.
    pub holder: NodeId,
    /// The sender itself holds it: others may only have heard that it is on its way.
    pub holds: bool,
    /// How often the pen was passed in this view.
    pub turn: u64,
    /// The newest root of this view that all members have, as far as it knows.
    pub settled: Option<BlockId>,
    /// Blocks that it could still take; the largest number where it takes all.
    pub room: u64,
    /// It wants to be a member.
    pub joins: bool,
    /// It wants to be none.
    pub leaves: bool,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// What it says of its sender.
    pub header: Header,
    /// What it is for.
    pub body: Body,
}

/// What a message is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// The sender lives.
    Alive,
    /// The sender would like to have the pen.
    Want,
    /// The pen, with the root that all have.
    Pass {
        /// The root.
        root: Option<BlockId>,
        /// Who else would like to have it.
        asked: BTreeSet<NodeId>,
    },
    /// The holder's root.
    Root {
        /// It.
        root: BlockId,
        /// The blocks that are new with it; none: all that it reaches are to be looked for.
        made: Option<Vec<BlockId>>,
        /// Blocks that it does not reach any more.
        freed: Vec<BlockId>,
        /// What led to it.
        latest: Latest,
    },
    /// The sender has all that a root reaches.
    Have {
        /// The root.
        root: BlockId,
    },
    /// The sender lacks these.
    Lack {
        /// Blocks of the holder's root.
        ids: Vec<BlockId>,
    },
    /// The sender would like a new view.
    Propose {
        /// It.
        view: View,
        /// Who is to be in it.
        members: BTreeSet<NodeId>,
    },
    /// The sender takes part in no older view any more.
    Agree {
        /// The new one.
        view: View,
        /// What it has.
        stand: Stand,
    },
}
