//! What the core wants of the journal.

use super::{Engine, State};
use crate::journal::Journal;
use wirefs_client::call::Call;
use wirefs_client::{Client, Output};
use wirefs_fuse::Reading;

impl Engine {
    /// Does something with the journal, where there is one. When it fails, the core answers nothing early any more.
    pub(super) fn journal(&self, state: &mut State, act: impl FnOnce(&Journal, &Client) -> bool) {
        if let Some(journal) = &self.journal
            && !act(journal, &state.client)
        {
            self.journal_stops(state);
        }
    }

    /// Waits, where a call is about to change something, while the local disk is far behind with what is journaled. Nobody else waits: the
    /// core is free meanwhile.
    pub(crate) fn keep_pace(&self, reading: &Reading<'_>, call: &Call<'_>) {
        let journal = self.journal.as_ref().filter(|journal| is_change(call) && journal.is_behind());
        if let Some(journal) = journal {
            reading.hand_over();
            journal.keep_pace();
        }
    }

    /// The journal can take no more, for good or until there is room.
    pub(crate) fn journal_stops(&self, state: &mut State) {
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

/// Whether a call makes the journal longer by what it says itself.
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
