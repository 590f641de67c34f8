//! Recovery: replays the journals of earlier mounts, before anything else.
//!
//! Each journal's session is resumed over a connection of its own. When the server has all changes on stable storage,
//! the journal is removed. Rejected changes, and those that must not be sent, are quarantined first. A broken
//! connection is made again a few times; after that the journal stays for the next mount.

use super::pending::{JournalError, SurveyedJournal, journals_of};
use super::place::Claim;
use super::quarantine::Quarantine;
use super::sender::JournalSender;
use super::{JournalPlan, kernel_run, log_line, reboot_replay};
use crate::MountPlan;
use crate::handshake::{Attached, ConnectError, shake_hands_as};
use crate::slow_step::{MountStep, SlowStep};
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use wirefs_carrier::{Carrier, CarrierLost, PeerInfo};
use wirefs_journal::{
    Damage, Delivery, DeliveryCounts, DeliveryFault, DeliveryPlan, Header, SessionTerms, SuspendedReplay,
    Undeliverable,
};
use wirefs_op::Errno;
use wirefs_op::message::version::{FEATURE_ALONE, FEATURE_LEASES, FEATURE_LEDGER, SessionId};
use wirefs_op::wire::Malformed;

/// The requested features: numbered changes, and references to objects by the number of the change that created them.
/// Leases, to release those of the ended mount: otherwise other clients wait until they expire.
const FEATURES: u64 = FEATURE_LEDGER | FEATURE_ALONE | FEATURE_LEASES;
/// The maximum number of connections for one journal.
const ATTEMPTS: u32 = 3;

/// The progress of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayProgress {
    /// Changes that are answered or skipped.
    pub done: u64,
    /// All changes.
    pub of: u64,
    /// The time since the start.
    pub since: Duration,
}

/// The recovery of one journal.
#[derive(Debug)]
pub struct JournalRecovery {
    /// The journal's directory.
    pub dir: PathBuf,
    /// Its result.
    pub result: Result<ReplayedJournal, RecoveryError>,
}

/// A replayed journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayedJournal {
    /// The outcome of its changes.
    pub outcome: DeliveryCounts,
    /// The number of quarantined changes: rejected ones, and those after a damage.
    pub aside: u64,
    /// Their directory.
    pub quarantine: PathBuf,
    /// The damage within the journal, if any.
    pub damage: Option<Damage>,
    /// The reason why all changes were quarantined unsent, if so.
    pub unfit: Option<Undeliverable>,
}

/// The reason why a journal stays.
#[derive(Debug, thiserror::Error)]
pub enum RecoveryError {
    /// It cannot be read.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    /// The server cannot be reached.
    #[error("{0}")]
    Connect(#[from] ConnectError),
    /// The connection broke repeatedly.
    #[error("the connection breaks: {0}")]
    Lost(#[from] CarrierLost),
    /// The server breaks the protocol.
    #[error("the server does not keep to the protocol: {0}")]
    Protocol(#[from] Malformed),
    /// The server has another tree.
    #[error("the server shows another directory there now")]
    OtherTree,
    /// The export is read-only.
    #[error("the server takes no changes now")]
    ReadOnly,
    /// The changes cannot be delivered.
    #[error("{0}")]
    Unfit(Undeliverable),
    /// The server's disk fails.
    #[error("the server cannot bring them to its disk: {0}")]
    Unsafe(Errno),
    /// The server cannot report its state.
    #[error("what the server has cannot be looked at: {0}")]
    Unseen(Errno),
    /// The local disk fails.
    #[error("{0}")]
    System(#[from] io::Error),
}

impl RecoveryError {
    /// Returns whether another connection may succeed.
    fn is_passing(&self) -> bool {
        match self {
            RecoveryError::Lost(_) | RecoveryError::Protocol(_) => true,
            RecoveryError::Connect(error) => matches!(error, ConnectError::Lost(_)),
            RecoveryError::Unreadable(_)
            | RecoveryError::OtherTree
            | RecoveryError::ReadOnly
            | RecoveryError::Unfit(_)
            | RecoveryError::Unsafe(_)
            | RecoveryError::Unseen(_)
            | RecoveryError::System(_) => false,
        }
    }
}

impl RecoveryError {
    /// Returns whether a running mount tries again: its journaled changes are not on the server's stable storage.
    pub(crate) fn may_pass(&self) -> bool {
        self.is_passing() || matches!(self, RecoveryError::Unsafe(_))
    }
}

impl From<DeliveryFault> for RecoveryError {
    fn from(fault: DeliveryFault) -> RecoveryError {
        match fault {
            DeliveryFault::Malformed(malformed) => RecoveryError::Protocol(malformed),
            DeliveryFault::Undeliverable(unfit) => RecoveryError::Unfit(unfit),
            DeliveryFault::LookupFailed(errno) => RecoveryError::Unseen(errno),
        }
    }
}

impl From<JournalError> for RecoveryError {
    fn from(error: JournalError) -> RecoveryError {
        match error {
            JournalError::System(error) => RecoveryError::System(error),
            JournalError::Place(_) | JournalError::Fault(_) => RecoveryError::Unreadable(error.to_string()),
        }
    }
}

/// The recovery of all journals, and a connection that was not needed.
pub(crate) struct RecoveredAll {
    pub(crate) journals: Vec<JournalRecovery>,
    pub(crate) carrier: Option<Carrier>,
    /// Sessions with undelivered changes, which must not be resumed.
    pub(crate) stay: Vec<SessionId>,
}

/// Replays all journals of this source, over this connection and further ones as needed.
pub(crate) fn recover_all(plan: &MountPlan, journal: &JournalPlan, carrier: Carrier) -> RecoveredAll {
    let peer = carrier.peer.clone();
    let mut all = RecoveredAll { journals: Vec::new(), carrier: Some(carrier), stay: Vec::new() };
    for dir in journals_of(&journal.source_dir(&peer)) {
        let left = match SurveyedJournal::open(&dir, plan.tell) {
            Ok(Some(left)) => left,
            // Another mount of the same source.
            Ok(None) => continue,
            Err(error) => {
                all.journals.push(JournalRecovery { dir, result: Err(error.into()) });
                continue;
            }
        };
        let session = left.header().map(|header| header.session);
        let result =
            Recovery { plan, journal, peer: &peer, left, decided: None, used: None }.run(&mut all.carrier);
        if result.is_err() {
            all.stay.extend(session);
        }
        all.journals.push(JournalRecovery { dir, result });
    }
    all.journals.iter().for_each(report);
    all
}

/// Reports a recovery in the log.
fn report(recovered: &JournalRecovery) {
    let dir = recovered.dir.display();
    match &recovered.result {
        Ok(brought) => {
            let DeliveryCounts { sent, skipped, .. } = brought.outcome;
            log_line(&format!(
                "an earlier mount of this source ended unexpectedly. {sent} of its changes have now been sent; the server had \
                 {skipped} already"
            ));
            if let Some(Damage { segment, at }) = brought.damage {
                log_line(&format!(
                    "its journal is DAMAGED in segment {segment} at byte {at}; later changes were not sent"
                ));
            }
            if let Some(unfit) = brought.unfit {
                log_line(&format!("NOTHING of it was carried out: {unfit}"));
            }
            if brought.aside > 0 {
                let quarantine = brought.quarantine.display();
                log_line(&format!(
                    "{} changes were NOT carried out; they are kept in {quarantine}",
                    brought.aside
                ));
            }
        }
        Err(stays) => {
            log_line(&format!("the changes of an earlier mount STAY in the journal {dir}: {stays}"))
        }
    }
}

struct Recovery<'a> {
    plan: &'a MountPlan,
    journal: &'a JournalPlan,
    peer: &'a PeerInfo,
    left: SurveyedJournal,
    /// The replay in progress, after a reboot of the server's machine.
    decided: Option<SuspendedReplay>,
    /// The connection over which the replay ended.
    used: Option<JournalSender>,
}

impl Recovery<'_> {
    /// Recovers the journal, over `carrier` first, if any.
    fn run(mut self, carrier: &mut Option<Carrier>) -> Result<ReplayedJournal, RecoveryError> {
        let Some(header) = self.left.header().cloned() else {
            return self.without_header();
        };
        let name = self.journal.name(self.peer);
        let dir = self.journal.quarantine_of(&name, header.session);
        let mut quarantine = Quarantine::new(dir, header.source.clone());
        let mut attempt = 1;
        let ended = loop {
            let used = match carrier.take() {
                Some(carrier) => carrier,
                None => self.plan.dial().map_err(ConnectError::from)?,
            };
            match self.attempt(used, &header, &mut quarantine, attempt == 1) {
                Err(stays) if stays.is_passing() && attempt < ATTEMPTS => attempt += 1,
                ended => break ended,
            }
        };
        let used = self.used.take();
        let settled = self.settle(ended, quarantine);
        match (used, &settled) {
            // After the journal is removed: a replay of it would need the server's state of the session.
            (Some(used), Ok(_)) => used.end_session(),
            // The session does not need its leases any more; other clients need not wait for them.
            (Some(used), Err(_)) => used.release_leases(),
            (None, _) => {}
        }
        settled
    }

    /// Quarantines what must not be sent, and removes the journal.
    fn settle(
        self,
        ended: Result<DeliveryCounts, RecoveryError>,
        mut quarantine: Quarantine,
    ) -> Result<ReplayedJournal, RecoveryError> {
        let mut unfit = None;
        let outcome = match ended {
            Err(RecoveryError::Unfit(why @ (Undeliverable::Unknown | Undeliverable::Replay(_)))) => {
                unfit = Some(why);
                DeliveryCounts::default()
            }
            ended => ended?,
        };
        quarantine_undeliverable(&self.left, &mut quarantine, unfit)?;
        quarantine.settle()?;
        let Recovery { left: SurveyedJournal { claim, survey, .. }, .. } = self;
        let aside = quarantine.count();
        let brought = ReplayedJournal {
            outcome,
            aside,
            quarantine: quarantine.dir().to_path_buf(),
            damage: survey.damage,
            unfit,
        };
        claim.map_or(Ok(()), Claim::remove)?;
        Ok(brought)
    }

    /// Handles a journal without a readable header.
    fn without_header(self) -> Result<ReplayedJournal, RecoveryError> {
        if self.left.survey.damage.is_some() {
            return Err(RecoveryError::Unreadable("its first segment is damaged".to_owned()));
        }
        // It was created and never written to.
        self.left.claim.map_or(Ok(()), Claim::remove)?;
        let (outcome, quarantine) = (DeliveryCounts::default(), PathBuf::new());
        Ok(ReplayedJournal { outcome, aside: 0, quarantine, damage: None, unfit: None })
    }

    fn attempt(
        &mut self,
        carrier: Carrier,
        header: &Header,
        quarantine: &mut Quarantine,
        is_first: bool,
    ) -> Result<DeliveryCounts, RecoveryError> {
        let attached = shake_hands_as(carrier, header.session, self.plan, FEATURES)?;
        let attachment = &attached.attachment;
        if attachment.root.id != header.root {
            attached.carrier.closer.close();
            return Err(RecoveryError::OtherTree);
        }
        if attachment.read_only {
            attached.carrier.closer.close();
            return Err(RecoveryError::ReadOnly);
        }
        let terms = SessionTerms { ledger: attachment.ledger, boot: attachment.boot };
        let is_certain = is_first && header.run == kernel_run();
        let decided = self.decided.take().filter(|decided| decided.is_at(terms.boot));
        let decided = decided.or_else(|| reboot_replay::noted(&self.left, header.root, terms));
        let at = decided.as_ref().map(|_| terms.boot);
        let begun = match (DeliveryPlan::of(&self.left.survey, header, terms, is_certain, at), decided) {
            (DeliveryPlan::Resume(replay), _) => {
                Ok(Delivery::resume(terms, replay, self.left.survey.rejected()))
            }
            (DeliveryPlan::Nothing(unfit), _) => Err(RecoveryError::Unfit(unfit)),
            (DeliveryPlan::ReplayAll, Some(decided)) => {
                Delivery::continue_replay(decided, terms).map_err(RecoveryError::from)
            }
            (DeliveryPlan::ReplayAll, None) => {
                reboot_replay::learned(&self.left, header.root, self.left.survey.end()).and_then(|redo| {
                    Ok(Delivery::replay_all(redo, self.left.survey.latest_time, terms, None)?)
                })
            }
        };
        let mut sender = self.sender(attached)?;
        let _slow = SlowStep::begin(self.plan.tell, MountStep::Journal);
        let ended = begun.and_then(|mut bring| {
            let ended = sender.run(&mut bring, quarantine);
            self.decided = bring.suspend();
            ended
        });
        match &ended {
            Ok(_) | Err(RecoveryError::Unfit(_)) => self.used = Some(sender),
            Err(_) => sender.close(),
        }
        ended
    }

    fn sender(&self, attached: Attached) -> Result<JournalSender, RecoveryError> {
        Ok(JournalSender::for_ended_mount(attached, &self.left, self.journal.tell)?)
    }
}

/// Quarantines the changes that must not be sent.
pub(super) fn quarantine_undeliverable(
    left: &SurveyedJournal,
    quarantine: &mut Quarantine,
    unfit: Option<Undeliverable>,
) -> Result<(), RecoveryError> {
    if left.survey.after_damage == 0 && unfit.is_none() {
        return Ok(());
    }
    let mut segments = left.segments()?;
    while let Some(taken) = segments.next()? {
        if let Some(unfit) = unfit {
            let survey = &left.survey;
            let is_needed = |number: u64| number >= survey.durable && !survey.outcome(number).is_rejected;
            for record in taken.records.iter().filter(|record| is_needed(record.number)) {
                quarantine.keep(record, &unfit.to_string())?;
            }
        }
        // None after a power loss: no program was promised anything of them.
        for record in taken.after_damage.iter().filter(|_| left.survey.after_damage > 0) {
            quarantine.keep(record, "it stands behind a damaged place of the journal")?;
        }
    }
    Ok(())
}
