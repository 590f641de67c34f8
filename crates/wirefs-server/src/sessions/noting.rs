//! What is noted of numbered changes, so that the next process knows of them ([`notes`](crate::notes)).

use super::{JobKey, Output, Sessions};
use crate::notes::{Begun, Found, Note, Noted, without_promises};
use wirefs_op::message::version::SessionId;
use wirefs_op::{FileId, Reply};

impl Sessions {
    /// Says what a running change has found, right before it changes anything ([`Replies::begins`](crate::Replies::begins)).
    pub fn begins(&mut self, job: JobKey, found: &Found) {
        let Some(pending) = self.jobs.get(&job) else { return };
        // What it found first tells whether it was done; now it may find itself.
        if pending.undecided.is_some() {
            return;
        }
        let begun = Begun { about: pending.about, found: *found };
        let owner = self.sessions.get_mut(&pending.session);
        if let (true, Some(number), Some(owner)) = (self.keeps_notes, pending.number, owner) {
            owner.ledger.begun(number, begun);
            self.outputs.push_back(Output::Note(owner.id, Note::Begun { number, begun }));
        }
    }

    /// A running change lets those behind it go on, so its number will be below theirs in the notes: it is in them from now on. Of one
    /// that is the same when it is done twice nothing was noted yet.
    pub(super) fn is_overtaken(&mut self, job: JobKey) {
        let Some(pending) = self.jobs.get(&job) else { return };
        let owner = self.sessions.get(&pending.session);
        let is_noted =
            pending.number.zip(owner).is_some_and(|(number, owner)| owner.ledger.has_begun(number));
        if !is_noted {
            self.begins(job, &Found::default());
        }
    }

    /// Enters the reply to a change.
    pub(super) fn settle(&mut self, key: JobKey, reply: &Reply) {
        let Some(pending) = self.jobs.get(&key) else { return };
        let owner = self.sessions.get_mut(&pending.session);
        let (Some(number), Some(owner)) = (pending.number, owner) else { return };
        // Locks end with the process that holds them: the next one takes it anew.
        let begun = Begun { about: pending.about, found: Found::default() };
        let instead = pending.is_lock.then_some(begun);
        owner.ledger.done(number, reply, instead);
        if pending.is_creation {
            owner.note_creation(number, reply);
        }
        if !self.keeps_notes {
            return;
        }
        let created = if pending.is_creation { created_by(reply) } else { None };
        let note = match instead {
            Some(begun) => Note::Begun { number, begun },
            None => Note::Done { number, created, reply: Box::new(without_promises(reply)) },
        };
        self.outputs.push_back(Output::Note(owner.id, note));
    }

    /// All that another process would have to know of a session; `None`: there is no such session.
    pub fn noted(&self, session: SessionId) -> Option<Noted> {
        let owner = self.by_id.get(&session).and_then(|key| self.sessions.get(key))?;
        Some(Noted { created: owner.creations.clone(), ..owner.ledger.noted() })
    }
}

/// What a change has created, as its reply tells.
fn created_by(reply: &Reply) -> Option<FileId> {
    match reply {
        Reply::Put(put) => put.stat.map(|stat| stat.id),
        _ => None,
    }
}
