//! Tlock: takes, tests and releases locks that all clients, and programs at the server, see.

#[cfg(test)]
mod tests;

use crate::message::target::Target;
use crate::stat::{LockFamily, LockRange, Stat};
use crate::wire::{wire_codes, wire_struct};

/// What to do with the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum LockAction {
    /// Tells which lock would stand in the way.
    Test = 0,
    /// Takes it now or fails with EAGAIN; releases.
    Set = 1,
    /// Takes it as soon as it can be had; Tflush withdraws.
    Wait = 2,
}

wire_codes!(LockAction: u8, "no such lock action", [Test, Set, Wait]);

wire_struct! {
    /// `Tlock tag[2] target action[1] family[1] owner[8] range`
    pub struct Tlock {
        /// The file.
        target: Target,
        /// What to do.
        action: LockAction,
        /// Which family of locks.
        family: LockFamily,
        /// Who: unique within the session.
        owner: u64,
        /// Which bytes and what kind.
        range: LockRange,
    }
}

wire_struct! {
    /// `Rlock tag[2] range[opt] stat[opt]`
    pub struct Rlock {
        /// For Test: the lock in the way, if any.
        conflict: Option<LockRange>,
        /// For Set and Wait: the file's attributes once the lock is had, so that a cache is validated without another
        /// round trip.
        stat: Option<Stat>,
    }
}
