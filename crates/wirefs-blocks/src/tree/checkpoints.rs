//! Commands on checkpoints: create, list, restore, drop.

use super::BlockTree;
use super::commit::Purpose;
use super::serve::Failure;
use crate::affected::{AffectedObject, UnrequestedChange};
use crate::change::Change;
use crate::halt::Halt;
use wirefs_op::{Errno, Timestamp};

/// A checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The name. The checkpoint is readable as `.checkpoints/NAME`.
    pub name: Vec<u8>,
    /// The time of creation.
    pub made: Timestamp,
    /// The number of changes between the creation of the tree and the checkpoint.
    pub change: u64,
}

impl BlockTree {
    /// Returns all checkpoints, the oldest first.
    pub fn checkpoints(&self) -> Vec<Checkpoint> {
        let volume = self.volume();
        let listed = volume.checkpoints.iter().map(|checkpoint| Checkpoint {
            name: checkpoint.name.to_vec(),
            made: checkpoint.made,
            change: checkpoint.change,
        });
        listed.collect()
    }

    /// Creates a checkpoint of the live tree.
    ///
    /// # Cost
    /// Two or three small blocks; no data is copied.
    ///
    /// # Errors
    /// `Exists`, `Invalid` (not a valid name), `NoSpace`, `Io`.
    pub fn create_checkpoint(&self, name: &[u8]) -> Result<(), Errno> {
        self.command(Purpose::Fill, |change| change.create_checkpoint(name).map(drop))
    }

    /// Makes the tree of a checkpoint the live tree. The checkpoint stays. Later changes are lost, unless
    /// another checkpoint has them.
    ///
    /// # Errors
    /// `NotFound`, `NoSpace`, `Io`.
    pub fn restore_checkpoint(&self, name: &[u8]) -> Result<(), Errno> {
        self.command(Purpose::Clear, |change| change.restore_checkpoint(name))
    }

    /// Drops a checkpoint. Blocks that only it references are deregistered over time.
    ///
    /// # Errors
    /// `NotFound`, `NoSpace`, `Io`.
    pub fn drop_checkpoint(&self, name: &[u8]) -> Result<(), Errno> {
        self.command(Purpose::Clear, |change| change.drop_checkpoint(name))
    }

    fn command(
        &self,
        purpose: Purpose,
        op: impl Fn(&mut Change<'_>) -> Result<(), Halt>,
    ) -> Result<(), Errno> {
        let mut changed = Vec::new();
        let mut announce = |affected: &[AffectedObject]| {
            changed = affected.to_vec();
            Ok(())
        };
        self.change(purpose, &mut announce, op, |()| ()).map_err(|failure| match failure {
            Failure::Errno(errno) => errno,
            // Impossible: these commands announce nothing.
            Failure::RequestAborted | Failure::Postponed => Errno::Io,
        })?;
        for object in changed {
            self.notify(UnrequestedChange::Object(object));
        }
        Ok(())
    }
}
