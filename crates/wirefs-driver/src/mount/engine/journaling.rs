//! What the core wants of the journal.

use super::{Engine, State};
use crate::mount::journal::Journal;
use wirefs_client::{Client, Output};

impl Engine {
    /// Does something with the journal, where there is one. When it fails, the core answers nothing early any more.
    pub(super) fn journal(&self, state: &mut State, act: impl FnOnce(&Journal, &Client) -> bool) {
        if let Some(journal) = &self.journal
            && !act(journal, &state.client)
        {
            self.journal_stops(state);
        }
    }

    /// The journal can take no more, for good or until there is room.
    pub(in crate::mount) fn journal_stops(&self, state: &mut State) {
        let now = self.now();
        match &self.journal {
            // There was no room, and is by now.
            Some(journal) if journal.is_whole() => {}
            Some(journal) if journal.is_full() => state.client.journal_full(now),
            Some(_) | None => state.client.journal_failed(now),
        }
    }

    /// Carries out what concerns the journal; other outputs do not.
    pub(super) fn follow_journal(&self, state: &mut State, output: Output) {
        match output {
            Output::Journal(number, frame) => self.journal(state, |it, _| it.record(number, frame)),
            Output::Refused(id, frame, why) => self.journal(state, |it, _| it.refuse(id, &frame, why)),
            Output::JournalNote(note) => self.journal(state, |it, _| it.note(note)),
            Output::JournalForget(below) => self.journal(state, |it, _| it.forget(below)),
            Output::JournalAnew(below) => {
                let boot = state.client.boot();
                self.journal(state, |it, _| it.begin_anew(below, boot));
                if self.journal.as_ref().is_some_and(|journal| journal.is_whole()) {
                    let now = self.now();
                    state.client.journal_begun(now);
                }
            }
            _ => {}
        }
    }
}
