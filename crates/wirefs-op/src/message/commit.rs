//! Tcommit: waits until changes are on stable storage.

#[cfg(test)]
mod tests;

use crate::message::target::Target;
use crate::message::version::BootId;
use crate::wire::{wire_codes, wire_struct};

/// The scope of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum CommitScope {
    /// The file's contents (`fdatasync`).
    Data = 0,
    /// The file or directory with its attributes (`fsync`).
    File = 1,
    /// The whole file system (`syncfs`).
    Filesystem = 2,
}

wire_codes!(CommitScope: u8, "no such commit scope", [Data, File, Filesystem]);

wire_struct! {
    /// `Tcommit tag[2] target scope[1]`: covers everything that the session sent before it.
    pub struct Tcommit {
        /// The object.
        target: Target,
        /// The scope.
        scope: CommitScope,
    }
}

wire_struct! {
    /// `Rcommit tag[2] boot[8]`
    pub struct Rcommit {
        /// The boot id of the server that committed.
        boot: BootId,
    }
}
