//! The node runtime: a thread with a socket keeps the table of nodes, and other nodes are dialed by their keys.
//!
//! ```text
//!  segments ── UDP ── node thread ── table (one lock) ── callers of NodeHost
//! ```
//!
//! *Holds*: packets are sent after the lock on the table is released. A registry only adds addresses; the records of
//! nodes come from the nodes. Each connection to a node proves the node's key.
//!
//! *Never*: decisions about which node is alive, which belong to `wirefs-node`; mounts or exports.
//!
//! *Drive it*: [`NodeHost::start`] joins, [`NodeHost::nodes`] lists the table, and [`NodeDial`] dials one node.
//! [`Inviter::run`] and [`join`] are the two sides of an invitation.
//!
//! *Proved by*: unit tests beside each part, and several nodes in `wirefs-lab` (`nodes`).

mod dial;
mod ether;
mod figures;
mod host;
mod invite;
mod join;
mod paths;
mod registry;
mod segment;
mod servers;
mod sys;

pub use dial::{NodeDial, Route};
pub use ether::{CardNetwork, NodeEther, Via, card_networks};
pub use host::{NodeHost, NodeInfo, NodePlan};
pub use invite::{INVITATION_PORT_DEFAULT, InviteEnd, Inviter, random_code};
pub use join::{InviterPlace, JoinFailure, join};
pub use paths::TlsPath;
pub use registry::EtcdPlace;
pub use segment::SegmentError;
pub use servers::{FoundServer, announce_server, find_servers};
