//! What doing changes again has to know of a journal.

use crate::entry::Record;
use crate::redo::{Redo, Unlike};
use crate::survey::Survey;
use wirefs_op::FileId;

impl Redo {
    /// For a journal of a mount of this directory; what is sent has numbers above `end`, which is behind all of the journal's.
    ///
    /// # Errors
    /// Others were there.
    pub fn of(survey: &Survey, root: FileId, end: u64) -> Result<Redo, Unlike> {
        // One number is left out, so that the server's ledger tells the first that was done again from the last that was not.
        if survey.is_of_one_alone() { Ok(Redo::after(survey, root, end + 1)) } else { Err(Unlike::Others) }
    }

    /// The same; what is sent has numbers from `next` on, whoever was there.
    pub fn after(survey: &Survey, root: FileId, next: u64) -> Redo {
        Redo::new(root, next).with_synced(survey.synced.clone())
    }

    /// Takes the next of its changes, in their order.
    ///
    /// # Errors
    /// It cannot be followed.
    pub fn learn_of(&mut self, survey: &Survey, record: &Record) -> Result<(), Unlike> {
        if record.number < survey.forget {
            return Ok(());
        }
        self.learn(record, survey.told(record.number))
    }
}
