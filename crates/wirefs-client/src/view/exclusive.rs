//! The state of an exclusive session, whose changes are answered before the server has them.

use crate::view::contended::Contended;
use crate::view::rollback::Rollback;
use crate::view::synced::Synced;
use crate::view::unconfirmed::Ahead;
use wirefs_op::Time;

/// The state of an exclusive session.
#[derive(Debug, Default)]
pub(crate) struct ExclusiveState {
    pub(crate) unconfirmed: Ahead,
    pub(crate) contended: Contended,
    /// The last time that a program got a lock by creating a name exclusively at the server.
    pub(crate) acquired: Option<Time>,
    pub(crate) synced: Synced,
    pub(crate) rollback: Rollback,
    /// A replay has restored the changes that the server's machine lost, and no connection was made since.
    pub(crate) is_replayed: bool,
}
