//! Tlock: acquires, tests and releases locks that all clients and server programs see.

#[cfg(test)]
mod tests;

use crate::message::target::Target;
use crate::stat::{LockFamily, LockRange, Stat};
use crate::wire::{wire_codes, wire_struct};

/// The action on a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum LockAction {
    /// Returns a conflicting lock.
    Test = 0,
    /// Acquires the lock now or fails with EAGAIN; releases.
    Set = 1,
    /// Acquires the lock when it is available; Tflush cancels.
    Wait = 2,
}

wire_codes!(LockAction: u8, "no such lock action", [Test, Set, Wait]);

wire_struct! {
    /// `Tlock tag[2] target action[1] family[1] owner[8] range`
    pub struct Tlock {
        /// The file.
        target: Target,
        /// The action.
        action: LockAction,
        /// The family of locks.
        family: LockFamily,
        /// The owner of the lock, unique within the session.
        owner: u64,
        /// The bytes, and the kind of lock.
        range: LockRange,
    }
}

wire_struct! {
    /// `Rlock tag[2] range[opt] stat[opt]`
    pub struct Rlock {
        /// For Test: the conflicting lock, if any.
        conflict: Option<LockRange>,
        /// For Set and Wait: the file's attributes after the lock was granted, so that cached data is
        /// validated without another round trip.
        stat: Option<Stat>,
    }
}
