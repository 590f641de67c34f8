//! Replay for a running mount whose server's machine has rebooted.
//!
//! As for an ended mount ([`super::recover`]), except that the journal continues. The core learns the new ids of
//! objects, and the outcomes of the changes that it waits for.

use super::pending::SurveyedJournal;
use super::quarantine::Quarantine;
use super::recover::{RecoveryError, quarantine_undeliverable};
use super::sender::JournalSender;
use super::{Journal, findings_file, log_line, reboot_replay};
use crate::handshake::Attached;
use std::path::PathBuf;
use wirefs_client::{Again, Redone};
use wirefs_journal::{
    ChangeFate, Delivery, Header, ReplayReport, SessionTerms, SuspendedReplay, Undeliverable,
};
use wirefs_op::message::version::BootId;

/// A replay over one or more connections.
pub(crate) struct ReplayState {
    /// The number after the last journaled change.
    pub(crate) end: u64,
    /// The core waits for replies to changes from this number on.
    pub(crate) answered: u64,
    decided: Option<SuspendedReplay>,
}

impl ReplayState {
    pub(crate) fn new(end: u64, answered: u64) -> ReplayState {
        ReplayState { end, answered, decided: None }
    }

    /// Returns whether some changes may have been sent, to any server.
    pub(crate) fn has_sent(&self) -> bool {
        self.decided.is_some()
    }

    /// Returns whether some changes may have been sent to the server with this boot id.
    pub(crate) fn is_at(&self, boot: BootId) -> bool {
        self.decided.as_ref().is_some_and(|decided| decided.is_at(boot))
    }
}

impl Journal {
    /// Returns whether changes can be read from the journal.
    pub(crate) fn is_whole(&self) -> bool {
        self.failure().is_none() && self.writer().is_some()
    }

    /// Replays the changes that the server's machine has lost, over this connection of the session, which ends with it.
    /// Then the server has the whole journal on stable storage.
    ///
    /// # Errors
    /// Unless it [`may_pass`](RecoveryError::may_pass), nothing was sent, or not everything could be.
    pub(crate) fn redo(&self, attached: Attached, begun: &mut ReplayState) -> Result<Redone, RecoveryError> {
        let (header, dir) = self.place()?;
        if attached.attachment.read_only {
            attached.carrier.closer.close();
            return Err(RecoveryError::ReadOnly);
        }
        // A segment that is removed during the reading would be missed.
        self.group.tidy();
        let left = SurveyedJournal::own(&dir)?;
        let terms = SessionTerms { ledger: attached.attachment.ledger, boot: attached.attachment.boot };
        let mut sender = JournalSender::for_running_mount(attached, &left)?;
        let redone = self.send_changes(&left, &header, terms, &mut sender, begun);
        match &redone {
            Ok(_) | Err(RecoveryError::Unfit(_)) => sender.release_leases(),
            Err(_) => {}
        }
        sender.close();
        redone
    }

    fn send_changes(
        &self,
        left: &SurveyedJournal,
        header: &Header,
        terms: SessionTerms,
        sender: &mut JournalSender,
        begun: &mut ReplayState,
    ) -> Result<Redone, RecoveryError> {
        let (at, elsewhere) = match begun.decided.take() {
            Some(decided) if decided.is_at(terms.boot) => (Some(decided), None),
            elsewhere => (None, elsewhere),
        };
        let mut bring = match at {
            Some(decided) => Delivery::continue_replay(decided, terms)?,
            None => {
                let mut redo = reboot_replay::learned(left, header.root, begun.end)?;
                if let Some(elsewhere) = &elsewhere {
                    elsewhere.hand_over_to(&mut redo);
                }
                Delivery::replay_all(redo, left.survey.latest_time, terms, Some(begun.answered))?
            }
        };
        let mut quarantine = self.quarantine(header);
        let outcome = match sender.run(&mut bring, &mut quarantine) {
            Ok(outcome) => outcome,
            Err(stays) => {
                begun.decided = bring.suspend().or(elsewhere);
                return Err(stays);
            }
        };
        quarantine_undeliverable(left, &mut quarantine, None)?;
        quarantine.settle()?;
        log_line(&format!(
            "the server's machine has rebooted: {} journaled changes were sent again, and it had {} already",
            outcome.sent, outcome.skipped
        ));
        if quarantine.count() > 0 {
            let (count, dir) = (quarantine.count(), quarantine.dir().display());
            log_line(&format!("{count} changes were NOT carried out again; they are kept in {dir}"));
        }
        let became =
            bring.take_report().ok_or_else(|| RecoveryError::Unreadable("nobody waits for it".to_owned()))?;
        Ok(redone(terms.boot, became))
    }

    /// Continues the journal for the server with this boot id, which has all earlier changes on stable storage; `false`
    /// if the journal fails now.
    pub(crate) fn turn(&self, boot: BootId) -> bool {
        let is_turned = self.with(|writer, group| writer.turn(boot, group));
        if let Ok((_, dir)) = self.place() {
            findings_file::forget(&dir);
        }
        is_turned
    }

    /// Quarantines all changes that the server may not have on stable storage: its losses cannot be determined.
    pub(crate) fn keep_all(&self, stays: &RecoveryError) -> Result<(), RecoveryError> {
        let (header, dir) = self.place()?;
        self.group.tidy();
        let mut quarantine = self.quarantine(&header);
        let unfit = match stays {
            RecoveryError::Unfit(unfit) => *unfit,
            _ => Undeliverable::Unknown,
        };
        quarantine_undeliverable(&SurveyedJournal::own(&dir)?, &mut quarantine, Some(unfit))?;
        quarantine.settle()?;
        findings_file::forget(&dir);
        let (count, dir) = (quarantine.count(), quarantine.dir().display());
        log_line(&format!(
            "the server's machine has rebooted, and its lost changes are NOT sent again: {stays}. {count} changes that it \
             may have lost are in {dir}"
        ));
        Ok(())
    }

    pub(super) fn place(&self) -> Result<(Header, PathBuf), RecoveryError> {
        let writer = self.writer();
        let whole = writer.as_ref().ok_or_else(|| RecoveryError::Unreadable("it has ended".to_owned()))?;
        let (header, dir) = whole.header();
        Ok((header.clone(), dir.to_path_buf()))
    }

    /// Returns the quarantine of this mount, for another thread.
    fn quarantine(&self, header: &Header) -> Quarantine {
        Quarantine::new(self.refused().dir().to_path_buf(), header.source.clone())
    }
}

fn redone(boot: BootId, became: ReplayReport) -> Redone {
    let ReplayReport { next, made, fates } = became;
    let again = |fate: ChangeFate| match fate {
        ChangeFate::Answered(reply) => Again::Answered(reply),
        ChangeFate::Done(stat) => Again::Done(stat),
    };
    Redone {
        boot,
        next,
        made,
        again: fates.into_iter().map(|(number, fate)| (number, again(fate))).collect(),
    }
}
