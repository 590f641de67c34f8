//! The core's outputs for the journal.

use super::{Engine, State};
use crate::journal::Journal;
use wirefs_client::call::Call;
use wirefs_client::{Client, Output};
use wirefs_fuse::ReaderRole;

impl Engine {
    /// Uses the journal, if there is one. If it fails, the core waits for the server with each answer from then on.
    pub(super) fn journal(&self, state: &mut State, act: impl FnOnce(&Journal, &Client) -> bool) {
        if let Some(journal) = &self.journal
            && !act(journal, &state.client)
        {
            self.journal_stops(state);
        }
    }

    /// Waits before a change while the local disk is far behind with the journal. The core is not locked meanwhile. Returns
    /// whether it was.
    pub(crate) fn keep_pace(&self, reading: &ReaderRole<'_>, call: &Call<'_>) -> bool {
        let journal = self.journal.as_ref().filter(|journal| is_change(call) && journal.is_behind());
        if let Some(journal) = journal {
            reading.hand_over();
            journal.keep_pace();
        }
        journal.is_some()
    }

    /// Tells the core that the journal takes no changes, for good or until there is space.
    pub(crate) fn journal_stops(&self, state: &mut State) {
        let now = self.now();
        match &self.journal {
            // There is space again.
            Some(journal) if journal.is_whole() => {}
            Some(journal) if journal.is_full() => state.client.journal_full(now),
            Some(_) | None => state.client.journal_failed(now),
        }
    }

    /// Executes an output for the journal; other outputs are ignored.
    pub(super) fn execute_journal_output(&self, state: &mut State, output: Output) {
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

/// Returns whether a call adds its arguments to the journal.
fn is_change(call: &Call<'_>) -> bool {
    matches!(
        call,
        Call::Setattr { .. }
            | Call::Mknod { .. }
            | Call::Mkdir { .. }
            | Call::Symlink { .. }
            | Call::Unlink { .. }
            | Call::Rmdir { .. }
            | Call::Rename { .. }
            | Call::Link { .. }
            | Call::Create { .. }
            | Call::Tmpfile { .. }
            | Call::Write { .. }
            | Call::Setxattr { .. }
            | Call::Removexattr { .. }
            | Call::Fallocate { .. }
            | Call::CopyRange { .. }
    )
}
