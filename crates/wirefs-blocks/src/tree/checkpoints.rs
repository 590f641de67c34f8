//! Checkpoints as commands: made, listed, compared, restored, dropped.

use super::BlockTree;
use super::commit::Purpose;
use super::serve::Failure;
use crate::change::Change;
use crate::halt::Halt;
use crate::touch::{Touch, Unasked};
use wirefs_op::{Errno, Timestamp};

/// A kept tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// Its name; it is readable under `.checkpoints/NAME`.
    pub name: Vec<u8>,
    /// When it was made.
    pub made: Timestamp,
    /// How many changes there had been since the tree was made.
    pub change: u64,
}

impl BlockTree {
    /// All checkpoints, the oldest first.
    pub fn checkpoints(&self) -> Vec<Checkpoint> {
        let volume = self.volume();
        let told = volume.checkpoints.iter().map(|kept| Checkpoint {
            name: kept.name.to_vec(),
            made: kept.made,
            change: kept.change,
        });
        told.collect()
    }

    /// Keeps the present tree under a name.
    ///
    /// # Cost
    /// Two or three small blocks; nothing is copied.
    ///
    /// # Errors
    /// `Exists`, `Invalid` (it is no name), `NoSpace`, `Io`.
    pub fn create_checkpoint(&self, name: &[u8]) -> Result<(), Errno> {
        self.command(Purpose::Fill, |change| change.keep_checkpoint(name).map(drop))
    }

    /// Makes a checkpoint's tree the present one; the checkpoint stays. What was changed since is gone, unless another
    /// checkpoint has it.
    ///
    /// # Errors
    /// `NotFound`, `NoSpace`, `Io`.
    pub fn restore_checkpoint(&self, name: &[u8]) -> Result<(), Errno> {
        self.command(Purpose::Clear, |change| change.restore_checkpoint(name))
    }

    /// Forgets a checkpoint. Blocks that only it reaches are deregistered by and by.
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
        let mut told = Vec::new();
        let mut touch = |touched: &[Touch]| {
            told = touched.to_vec();
            Ok(())
        };
        self.change(purpose, &mut touch, op, |()| ()).map_err(|failure| match failure {
            Failure::Errno(errno) => errno,
            // Nobody is asked here.
            Failure::Stopped | Failure::Parked => Errno::Io,
        })?;
        for touched in told {
            self.tell(Unasked::Changed(touched));
        }
        Ok(())
    }
}
