//! `/net`: a directory with one mount point per node. A node's mount point connects on its first use.
//!
//! ```text
//!  /net            a small tree in memory that lists the nodes
//!  /net/SELF       the directory that this node shares: a bind mount, or a symbolic link for an ordinary user
//!  /net/linus1     this node's own name: a symbolic link to SELF
//!  /net/linus2     an automount trigger on a directory of that tree; for an ordinary user, a symbolic link to one
//! ```
//!
//! A mount below a mount takes root, so an ordinary user's automount triggers are in a private directory.
//!
//! *Holds*: `/net` follows the table of nodes. The number of automount triggers is bounded.
//!
//! *Never*: a wait for a server in the thread that follows the table.
//!
//! *Drive it*: [`Net::start`] with a running [`NodeHost`](wirefs_nodehost::NodeHost).
//!
//! *Proved by*: unit tests beside each part, and several nodes in `wirefs-lab` (`nodes`).

mod difference;
mod net;
mod root;
mod updater;

pub use net::{Net, NetPlan, Reach, clear};
