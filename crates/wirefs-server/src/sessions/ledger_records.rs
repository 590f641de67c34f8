//! Records of numbered changes for the next process ([`saved_ledger`](crate::saved_ledger)).

use super::{JobKey, ServerOutput, Sessions};
use crate::saved_ledger::{LedgerRecord, PriorState, SavedLedger, StartedChange, for_other_process};
use wirefs_op::message::version::SessionId;
use wirefs_op::{FileId, Reply};

impl Sessions {
    /// Records the state before a running change
    /// ([`Replies::record_prior_state`](crate::Replies::record_prior_state)).
    pub fn record_prior_state(&mut self, job: JobKey, prior: &PriorState) {
        let Some(pending) = self.jobs.get(&job) else { return };
        // The first start record counts: the change may find its own effects now.
        if pending.change.undecided.is_some() {
            return;
        }
        let started = StartedChange { fingerprint: pending.change.fingerprint, prior: *prior };
        let owner = self.sessions.get_mut(&pending.session);
        if let (true, Some(number), Some(owner)) = (self.saves_ledgers, pending.change.number, owner) {
            owner.ledger.started(number, started);
            self.outputs
                .push_back(ServerOutput::AppendLedger(owner.id, LedgerRecord::Started { number, started }));
        }
    }

    /// Records the start of a change that releases the write slot early. Later changes may be recorded before it is
    /// done, so its number must be in the saved ledger.
    pub(super) fn record_overtaken(&mut self, job: JobKey) {
        let Some(pending) = self.jobs.get(&job) else { return };
        let owner = self.sessions.get(&pending.session);
        let is_recorded =
            pending.change.number.zip(owner).is_some_and(|(number, owner)| owner.ledger.has_begun(number));
        if !is_recorded {
            self.record_prior_state(job, &PriorState::default());
        }
    }

    /// Enters the reply to a change into the ledger.
    pub(super) fn record_reply(&mut self, key: JobKey, reply: &Reply) {
        let Some(pending) = self.jobs.get(&key) else { return };
        let owner = self.sessions.get_mut(&pending.session);
        let (Some(number), Some(owner)) = (pending.change.number, owner) else { return };
        // A lock ends with the process, so the next process must take it again.
        let started = StartedChange { fingerprint: pending.change.fingerprint, prior: PriorState::default() };
        let instead = pending.change.is_lock.then_some(started);
        owner.ledger.done(number, reply, instead);
        if pending.change.is_creation {
            owner.note_creation(number, reply);
        }
        if !self.saves_ledgers {
            return;
        }
        let created = if pending.change.is_creation { created_by(reply) } else { None };
        let record = match instead {
            Some(started) => LedgerRecord::Started { number, started },
            None => LedgerRecord::Done { number, created, reply: Box::new(for_other_process(reply)) },
        };
        self.outputs.push_back(ServerOutput::AppendLedger(owner.id, record));
    }

    /// The state of a session's ledger for another process; `None` if there is no such session.
    pub fn saved_ledger(&self, session: SessionId) -> Option<SavedLedger> {
        let owner = self.by_id.get(&session).and_then(|key| self.sessions.get(key))?;
        Some(SavedLedger {
            created: owner.creations.clone(),
            owner: owner.party.key(),
            ..owner.ledger.saved()
        })
    }
}

/// The object that a change created, according to its reply.
fn created_by(reply: &Reply) -> Option<FileId> {
    match reply {
        Reply::Put(put) => put.stat.map(|stat| stat.id),
        _ => None,
    }
}
