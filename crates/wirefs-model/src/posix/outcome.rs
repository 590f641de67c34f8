//! Outcomes of operations, and their comparison.

use crate::fs::COUNTER_START_SECS;
use std::collections::BTreeSet;
use wirefs_op::{Errno, Kind, Stat, Timestamp};

/// The attributes on which all executors must agree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedStat {
    /// The file type.
    pub kind: Kind,
    /// Permission bits.
    pub mode: u32,
    /// Hard links.
    pub nlink: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Bytes; directories differ between file systems.
    pub size: u64,
    /// Last access.
    pub atime: Timestamp,
    /// Last change of contents.
    pub mtime: Timestamp,
}

/// The result of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperationOutcome {
    /// Skipped: the slot is empty, or the file system lacks the feature.
    Skipped,
    /// An error.
    Failed(Errno),
    /// Success without a value.
    Done,
    /// The number of written or copied bytes.
    Count(u64),
    /// Bytes read, a link's target, or an attribute's value.
    Data(Vec<u8>),
    /// The offset of data or a hole.
    Offset(u64),
    /// Attributes.
    Stat(ObservedStat),
    /// The names in a directory, or of extended attributes.
    Names(BTreeSet<Vec<u8>>),
}

impl From<Result<OperationOutcome, Errno>> for OperationOutcome {
    fn from(result: Result<OperationOutcome, Errno>) -> OperationOutcome {
        result.unwrap_or_else(OperationOutcome::Failed)
    }
}

impl OperationOutcome {
    /// Returns whether `other` is an allowed outcome where the model has `self`.
    pub(crate) fn allows(&self, other: &OperationOutcome, counts_subdirectories: bool) -> bool {
        match (self, other) {
            // POSIX allows both.
            (OperationOutcome::Failed(Errno::NotEmpty), OperationOutcome::Failed(Errno::Exists)) => true,
            (OperationOutcome::Stat(model), OperationOutcome::Stat(actual)) => {
                model.allows(actual, counts_subdirectories)
            }
            (
                OperationOutcome::Skipped
                | OperationOutcome::Failed(_)
                | OperationOutcome::Done
                | OperationOutcome::Count(_)
                | OperationOutcome::Data(_)
                | OperationOutcome::Offset(_)
                | OperationOutcome::Stat(_)
                | OperationOutcome::Names(_),
                _,
            ) => self == other,
        }
    }
}

impl ObservedStat {
    pub(crate) fn of(stat: &Stat) -> ObservedStat {
        ObservedStat {
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

    fn allows(&self, other: &ObservedStat, counts_subdirectories: bool) -> bool {
        let is_directory = self.kind == Kind::Directory;
        // The model has no clock: only times that were set, and not updated since, are comparable.
        let same_time =
            |model: Timestamp, actual: Timestamp| model.secs >= COUNTER_START_SECS || model == actual;
        self.kind == other.kind
            && (self.mode == other.mode || self.kind == Kind::Symlink)
            && (self.nlink == other.nlink || is_directory && !counts_subdirectories)
            && (self.uid, self.gid) == (other.uid, other.gid)
            && (self.size == other.size || is_directory)
            // Each resolution of a symlink updates its access time.
            && (same_time(self.atime, other.atime) || self.kind == Kind::Symlink)
            && same_time(self.mtime, other.mtime)
    }
}
