//! The reasons for which an operation on the tree stops early.

use crate::codec::Corrupt;
use crate::id::BlockId;
use crate::store::Wanted;
use wirefs_op::Errno;

/// The reason for which an operation stopped. Operations are plain functions over the blocks in memory. An
/// operation that lacks blocks returns their ids and is run again from its beginning when they have been
/// retrieved. It has no side effects until it completes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Halt {
    /// These blocks must be retrieved.
    Need(Wanted),
    /// This block is required and cannot be retrieved.
    Lost(BlockId),
    /// The operation failed.
    Failed(Errno),
}

impl Halt {
    /// Requests one block.
    pub(crate) fn need(id: BlockId) -> Halt {
        Halt::Need(Wanted::of([id]))
    }
}

impl From<Errno> for Halt {
    fn from(errno: Errno) -> Halt {
        Halt::Failed(errno)
    }
}

impl From<Corrupt> for Halt {
    /// A corrupt value fails the operation with EIO.
    fn from(_: Corrupt) -> Halt {
        Halt::Failed(Errno::Io)
    }
}

/// Collects the blocks that several parts of an operation lack, so that they are retrieved together.
#[derive(Debug, Default)]
pub(crate) struct Wants(Wanted);

impl Wants {
    /// Records the outcome of one part. Returns its value, or `None` while it lacks blocks.
    ///
    /// # Errors
    /// The part failed or lost a block.
    pub(crate) fn of<T>(&mut self, outcome: Result<T, Halt>) -> Result<Option<T>, Halt> {
        match outcome {
            Ok(value) => Ok(Some(value)),
            Err(Halt::Need(wanted)) => {
                self.0.extend(wanted);
                Ok(None)
            }
            Err(halt) => Err(halt),
        }
    }

    /// Adds a block that is likely to be required next. It is requested only together with required blocks.
    pub(crate) fn hint(&mut self, id: BlockId) {
        self.0.hints.insert(id);
    }

    /// The number of blocks requested so far.
    pub(crate) fn len(&self) -> usize {
        self.0.ids.len()
    }

    /// Succeeds if no blocks were requested.
    ///
    /// # Errors
    /// `Need` with all requested blocks.
    pub(crate) fn settle(self) -> Result<(), Halt> {
        if self.0.ids.is_empty() { Ok(()) } else { Err(Halt::Need(self.0)) }
    }
}

/// Returns both results, or the union of the blocks that they need. An error of `one` takes precedence.
pub(crate) fn both<A, B>(one: Result<A, Halt>, other: Result<B, Halt>) -> Result<(A, B), Halt> {
    match (one, other) {
        (Ok(one), Ok(other)) => Ok((one, other)),
        (Err(Halt::Need(mut wanted)), Err(Halt::Need(more))) => {
            wanted.extend(more);
            Err(Halt::Need(wanted))
        }
        (Err(halt), _) | (Ok(_), Err(halt)) => Err(halt),
    }
}
