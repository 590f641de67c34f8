//! A journal that cannot take more changes: for good, or until the disk has room.

use crate::output::{Output, Outputs};
use crate::requests::Requests;
use crate::view::View;

impl View {
    /// Whether there is a journal, with or without room.
    pub(crate) fn has_journal(&self) -> bool {
        self.mount.config.journal || self.exclusive.unconfirmed.awaits_room
    }

    /// The server's disk has all changes below a number: if there are no others, a journal without room may begin anew.
    pub(crate) fn look_for_room(&mut self, requests: &Requests, outputs: &mut Outputs, below: u64) {
        if self.exclusive.unconfirmed.awaits_room && below >= requests.next_number() && !requests.any_change()
        {
            outputs.push(Output::JournalAnew(below));
        }
    }
}
