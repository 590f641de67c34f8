//! Builds a [`Replay`] from a journal.

use crate::entry::Record;
use crate::replay::{Replay, ReplayFault};
use crate::survey::Survey;
use wirefs_op::FileId;

impl Replay {
    /// Starts a replay of a journal of a mount of `root`. Changes are sent under numbers above `end`, which is above all numbers of the journal.
    ///
    /// # Errors
    /// Fails if the session was not exclusive.
    pub fn of(survey: &Survey, root: FileId, end: u64) -> Result<Replay, ReplayFault> {
        // One number stays unused: the ledger then shows whether the first replayed change was applied.
        if survey.is_exclusive() {
            Ok(Replay::after(survey, root, end + 1))
        } else {
            Err(ReplayFault::OtherClients)
        }
    }

    /// Starts a replay also if the session was not exclusive. Changes are sent under numbers from `next` on.
    pub fn after(survey: &Survey, root: FileId, next: u64) -> Replay {
        Replay::new(root, next).with_synced(survey.synced.clone())
    }

    /// Learns the next change, in order.
    ///
    /// # Errors
    /// Fails if the change contradicts earlier ones.
    pub fn learn_from(&mut self, survey: &Survey, record: &Record) -> Result<(), ReplayFault> {
        if record.number < survey.durable {
            return Ok(());
        }
        self.learn(record, survey.outcome(record.number))
    }
}
