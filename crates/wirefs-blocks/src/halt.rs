//! Why an operation on the tree stops before its end.

use crate::codec::Corrupt;
use crate::id::BlockId;
use crate::store::Wanted;
use wirefs_op::Errno;

/// Operations are plain functions over the blocks at hand. One that lacks blocks stops, says which, and is called again
/// from its beginning when they are there; it has changed nothing meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Halt {
    /// These blocks are wanted, all at once.
    Need(Wanted),
    /// This block was wanted and cannot be had.
    Lost(BlockId),
    /// It cannot be done.
    Failed(Errno),
}

impl Halt {
    /// One block is wanted.
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
    /// What cannot be understood is as good as lost.
    fn from(_: Corrupt) -> Halt {
        Halt::Failed(Errno::Io)
    }
}

/// Collects what several parts of an operation want, so that they wait together.
#[derive(Debug, Default)]
pub(crate) struct Wants(Wanted);

impl Wants {
    /// Takes the outcome of one part: its value, or nothing while it wants blocks.
    ///
    /// # Errors
    /// The part cannot be done.
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

    /// How many blocks are wanted so far.
    pub(crate) fn len(&self) -> usize {
        self.0.ids.len()
    }

    /// Goes on only when nothing is wanted.
    ///
    /// # Errors
    /// All that is wanted.
    pub(crate) fn settle(self) -> Result<(), Halt> {
        if self.0.ids.is_empty() { Ok(()) } else { Err(Halt::Need(self.0)) }
    }
}

/// Both outcomes, or all that either of them wants. The first one's error counts before the other's.
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
