//! A journal that can take no more: for good, or until there is room.

use crate::core::Client;
use crate::output::Output;
use crate::output::Outputs;
use crate::requests::Requests;
use crate::view::View;
use wirefs_op::Time;

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

impl Client {
    /// Notes that the journal has failed: from now on no change is answered before the server has it.
    pub fn journal_failed(&mut self, now: Time) {
        self.view.mount.now = now;
        (self.view.mount.config.journal, self.view.exclusive.unconfirmed.awaits_room) = (false, false);
    }

    /// The same for as long as there is no room for it on the local disk: now and then, when the server's disk has everything, what
    /// [`Output::JournalAnew`] says is tried.
    pub fn journal_full(&mut self, now: Time) {
        self.view.mount.now = now;
        if self.view.mount.config.journal {
            (self.view.mount.config.journal, self.view.exclusive.unconfirmed.awaits_room) = (false, true);
        }
    }

    /// The journal was begun anew, with nothing in it.
    pub fn journal_begun(&mut self, now: Time) {
        self.view.mount.now = now;
        (self.view.mount.config.journal, self.view.exclusive.unconfirmed.awaits_room) = (true, false);
        self.view.note_alone(&self.requests, &mut self.outputs, self.view.exclusive.unconfirmed.is_alone());
    }
}
