//! What a program sees of an operation, and when two worlds have shown the same.

use crate::fs::COUNTED_SECS;
use std::collections::BTreeSet;
use wirefs_op::{Errno, Kind, Stat, Timestamp};

/// Attributes as far as all worlds must agree on them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// What it is.
    pub kind: Kind,
    /// Permission bits.
    pub mode: u32,
    /// Hard links.
    pub nlink: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Bytes; of a directory each world has its own idea.
    pub size: u64,
    /// Last access.
    pub atime: Timestamp,
    /// Last change of contents.
    pub mtime: Timestamp,
}

/// What came of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was left out: its slot is empty, or the world cannot do it.
    LeftOut,
    /// It failed.
    Failed(Errno),
    /// It was done.
    Done,
    /// How many bytes were written or copied.
    Count(u64),
    /// Bytes read, a link's target, an attribute's value.
    Data(Vec<u8>),
    /// Where data or a hole is.
    Place(u64),
    /// Attributes.
    Seen(Seen),
    /// The names in a directory or of attributes.
    Names(BTreeSet<Vec<u8>>),
}

impl From<Result<Outcome, Errno>> for Outcome {
    fn from(result: Result<Outcome, Errno>) -> Outcome {
        result.unwrap_or_else(Outcome::Failed)
    }
}

impl Outcome {
    /// Whether a world may show `other` where the model shows `self`.
    pub(crate) fn allows(&self, other: &Outcome, counts_subdirectories: bool) -> bool {
        match (self, other) {
            // POSIX leaves open which of the two it is.
            (Outcome::Failed(Errno::NotEmpty), Outcome::Failed(Errno::Exists)) => true,
            (Outcome::Seen(model), Outcome::Seen(world)) => model.allows(world, counts_subdirectories),
            (
                Outcome::LeftOut
                | Outcome::Failed(_)
                | Outcome::Done
                | Outcome::Count(_)
                | Outcome::Data(_)
                | Outcome::Place(_)
                | Outcome::Seen(_)
                | Outcome::Names(_),
                _,
            ) => self == other,
        }
    }
}

impl Seen {
    pub(crate) fn of(stat: &Stat) -> Seen {
        Seen {
            kind: stat.kind,
            mode: stat.mode,
            nlink: stat.nlink,
            uid: stat.uid,
            gid: stat.gid,
            size: stat.size,
            atime: stat.atime,
            mtime: stat.mtime,
        }
    }

    fn allows(&self, other: &Seen, counts_subdirectories: bool) -> bool {
        let is_directory = self.kind == Kind::Directory;
        // The model has no clock: only times that were set, and not overtaken since, can be compared.
        let same_time = |model: Timestamp, world: Timestamp| model.secs >= COUNTED_SECS || model == world;
        self.kind == other.kind
            && (self.mode == other.mode || self.kind == Kind::Symlink)
            && (self.nlink == other.nlink || is_directory && !counts_subdirectories)
            && (self.uid, self.gid) == (other.uid, other.gid)
            && (self.size == other.size || is_directory)
            // Each walk through a link reads it.
            && (same_time(self.atime, other.atime) || self.kind == Kind::Symlink)
            && same_time(self.mtime, other.mtime)
    }
}
