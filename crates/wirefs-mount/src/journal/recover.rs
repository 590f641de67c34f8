//! Bringing to the server what an earlier mount left, before anything else is done.
//!
//! Each journal's session is taken up over a connection of its own. When the server's disk has all of it the journal goes; what the
//! server refused, and what may not be sent, is kept aside first. A connection that breaks is made again a few times; past that the
//! journal stays for the next mount.

use super::left::{Left, LeftError, journals_of};
use super::place::Claim;
use super::pump::Pump;
use super::quarantine::Quarantine;
use super::{JournalPlan, again, kernel_run, tell};
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

/// What is asked for: that changes are counted, and that what they made may be named by their numbers. Leases, to give back what the
/// dead mount held: else whoever comes next waits until it has run out.
const FEATURES: u64 = FEATURE_LEDGER | FEATURE_ALONE | FEATURE_LEASES;
/// Connections tried for one journal.
const ATTEMPTS: u32 = 3;

/// How far a journal has been brought to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Changes that are answered or skipped.
    pub done: u64,
    /// Of so many.
    pub of: u64,
    /// For how long it has been going on.
    pub since: Duration,
}

/// What became of a journal.
#[derive(Debug)]
pub struct Recovered {
    /// Its directory.
    pub dir: PathBuf,
    /// That.
    pub result: Result<Brought, Stays>,
}

/// A journal that is done with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Brought {
    /// What became of its changes.
    pub outcome: DeliveryCounts,
    /// Changes that are kept aside: those that were refused, and those behind a damaged place.
    pub aside: u64,
    /// Where.
    pub quarantine: PathBuf,
    /// Where it was damaged, in its midst.
    pub damage: Option<Damage>,
    /// Why nothing of it was sent, and all of it is kept aside.
    pub unfit: Option<Undeliverable>,
}

/// Why a journal stays as it is.
#[derive(Debug, thiserror::Error)]
pub enum Stays {
    /// It cannot be read.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    /// The server could not be had.
    #[error("{0}")]
    Connect(#[from] ConnectError),
    /// The connection broke, again and again.
    #[error("the connection breaks: {0}")]
    Lost(#[from] CarrierLost),
    /// The server breaks the protocol.
    #[error("the server does not keep to the protocol: {0}")]
    Protocol(#[from] Malformed),
    /// Another tree is there now.
    #[error("the server shows another directory there now")]
    OtherTree,
    /// Changes are refused.
    #[error("the server takes no changes now")]
    ReadOnly,
    /// The server keeps no ledger.
    #[error("{0}")]
    Unfit(Undeliverable),
    /// The server's disk fails.
    #[error("the server cannot bring them to its disk: {0}")]
    Unsafe(Errno),
    /// The server cannot tell what it has.
    #[error("what the server has cannot be looked at: {0}")]
    Unseen(Errno),
    /// The local disk fails.
    #[error("{0}")]
    System(#[from] io::Error),
}

impl Stays {
    /// Whether another connection may do better.
    fn is_passing(&self) -> bool {
        match self {
            Stays::Lost(_) | Stays::Protocol(_) => true,
            Stays::Connect(error) => matches!(error, ConnectError::Lost(_)),
            Stays::Unreadable(_)
            | Stays::OtherTree
            | Stays::ReadOnly
            | Stays::Unfit(_)
            | Stays::Unsafe(_)
            | Stays::Unseen(_)
            | Stays::System(_) => false,
        }
    }
}

impl Stays {
    /// Whether a mount that lives tries again: nothing is known of what it has journaled but that it is not on the server's disk.
    pub(crate) fn may_pass(&self) -> bool {
        self.is_passing() || matches!(self, Stays::Unsafe(_))
    }
}

impl From<DeliveryFault> for Stays {
    fn from(fault: DeliveryFault) -> Stays {
        match fault {
            DeliveryFault::Malformed(malformed) => Stays::Protocol(malformed),
            DeliveryFault::Undeliverable(unfit) => Stays::Unfit(unfit),
            DeliveryFault::LookupFailed(errno) => Stays::Unseen(errno),
        }
    }
}

impl From<LeftError> for Stays {
    fn from(error: LeftError) -> Stays {
        match error {
            LeftError::System(error) => Stays::System(error),
            LeftError::Place(_) | LeftError::Fault(_) => Stays::Unreadable(error.to_string()),
        }
    }
}

/// What all of it led to, and a connection that was not needed.
pub(crate) struct RecoveredAll {
    pub(crate) journals: Vec<Recovered>,
    pub(crate) carrier: Option<Carrier>,
    /// Sessions whose changes are not at the server: nobody may go on with them.
    pub(crate) stay: Vec<SessionId>,
}

/// Brings all journals of this source to the server, over this connection and others as needed.
pub(crate) fn recover_all(plan: &MountPlan, journal: &JournalPlan, carrier: Carrier) -> RecoveredAll {
    let peer = carrier.peer.clone();
    let mut all = RecoveredAll { journals: Vec::new(), carrier: Some(carrier), stay: Vec::new() };
    for dir in journals_of(&journal.source_dir(&peer)) {
        let left = match Left::open(&dir, plan.tell) {
            Ok(Some(left)) => left,
            // Another mount of the same source.
            Ok(None) => continue,
            Err(error) => {
                all.journals.push(Recovered { dir, result: Err(error.into()) });
                continue;
            }
        };
        let session = left.header().map(|header| header.session);
        let result =
            Recovery { plan, journal, peer: &peer, left, decided: None, used: None }.run(&mut all.carrier);
        if result.is_err() {
            all.stay.extend(session);
        }
        all.journals.push(Recovered { dir, result });
    }
    all.journals.iter().for_each(say);
    all
}

/// One line for whoever reads the log.
fn say(recovered: &Recovered) {
    let dir = recovered.dir.display();
    match &recovered.result {
        Ok(brought) => {
            let DeliveryCounts { sent, skipped, .. } = brought.outcome;
            tell(&format!(
                "a mount of this source had ended without order: {sent} changes out of its journal were brought to the server, which had \
                 {skipped} already"
            ));
            if let Some(Damage { segment, at }) = brought.damage {
                tell(&format!(
                    "its journal was DAMAGED, in segment {segment} at byte {at}; what came behind was not carried out"
                ));
            }
            if let Some(unfit) = brought.unfit {
                tell(&format!("NOTHING of it was carried out: {unfit}"));
            }
            if brought.aside > 0 {
                let quarantine = brought.quarantine.display();
                tell(&format!(
                    "{} changes were NOT carried out; they are kept in {quarantine}",
                    brought.aside
                ));
            }
        }
        Err(stays) => {
            tell(&format!("the changes in the journal {dir} of an earlier mount STAY THERE: {stays}"))
        }
    }
}

struct Recovery<'a> {
    plan: &'a MountPlan,
    journal: &'a JournalPlan,
    peer: &'a PeerInfo,
    left: Left,
    /// What is being done again, where the server's machine was started again since.
    decided: Option<SuspendedReplay>,
    /// The connection over which all of it was settled.
    used: Option<Pump>,
}

impl Recovery<'_> {
    /// Over `carrier` first, where there is one.
    fn run(mut self, carrier: &mut Option<Carrier>) -> Result<Brought, Stays> {
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
            // Not before its journal is gone: who brings that needs what the server remembers of the session.
            (Some(used), Ok(_)) => used.end_session(),
            // It has no use any more for what the server has promised it: whoever comes next need not wait for that.
            (Some(used), Err(_)) => used.rest(),
            (None, _) => {}
        }
        settled
    }

    /// What is left when nothing more is sent: what may not be is kept aside, and the journal goes.
    fn settle(
        self,
        ended: Result<DeliveryCounts, Stays>,
        mut quarantine: Quarantine,
    ) -> Result<Brought, Stays> {
        let mut unfit = None;
        let outcome = match ended {
            Err(Stays::Unfit(why @ (Undeliverable::Unknown | Undeliverable::Replay(_)))) => {
                unfit = Some(why);
                DeliveryCounts::default()
            }
            ended => ended?,
        };
        keep_aside(&self.left, &mut quarantine, unfit)?;
        quarantine.settle()?;
        let Recovery { left: Left { claim, survey, .. }, .. } = self;
        let aside = quarantine.count();
        let brought = Brought {
            outcome,
            aside,
            quarantine: quarantine.dir().to_path_buf(),
            damage: survey.damage,
            unfit,
        };
        claim.map_or(Ok(()), Claim::remove)?;
        Ok(brought)
    }

    /// Nobody can tell whose changes these are.
    fn without_header(self) -> Result<Brought, Stays> {
        if self.left.survey.damage.is_some() {
            return Err(Stays::Unreadable("its first segment is damaged".to_owned()));
        }
        // It was made and never written to.
        self.left.claim.map_or(Ok(()), Claim::remove)?;
        let (outcome, quarantine) = (DeliveryCounts::default(), PathBuf::new());
        Ok(Brought { outcome, aside: 0, quarantine, damage: None, unfit: None })
    }

    fn attempt(
        &mut self,
        carrier: Carrier,
        header: &Header,
        quarantine: &mut Quarantine,
        is_first: bool,
    ) -> Result<DeliveryCounts, Stays> {
        let attached = shake_hands_as(carrier, header.session, self.plan, FEATURES)?;
        let attachment = &attached.attachment;
        if attachment.root.id != header.root {
            attached.carrier.closer.close();
            return Err(Stays::OtherTree);
        }
        if attachment.read_only {
            attached.carrier.closer.close();
            return Err(Stays::ReadOnly);
        }
        let terms = SessionTerms { ledger: attachment.ledger, boot: attachment.boot };
        let is_certain = is_first && header.run == kernel_run();
        let decided = self.decided.take().filter(|decided| decided.is_at(terms.boot));
        let decided = decided.or_else(|| again::noted(&self.left, header.root, terms));
        let at = decided.as_ref().map(|_| terms.boot);
        let begun = match (DeliveryPlan::of(&self.left.survey, header, terms, is_certain, at), decided) {
            (DeliveryPlan::Resume(replay), _) => {
                Ok(Delivery::resume(terms, replay, self.left.survey.rejected()))
            }
            (DeliveryPlan::Nothing(unfit), _) => Err(Stays::Unfit(unfit)),
            (DeliveryPlan::ReplayAll, Some(decided)) => {
                Delivery::continue_replay(decided, terms).map_err(Stays::from)
            }
            (DeliveryPlan::ReplayAll, None) => {
                again::learned(&self.left, header.root, self.left.survey.end()).and_then(|redo| {
                    Ok(Delivery::replay_all(redo, self.left.survey.latest_time, terms, None)?)
                })
            }
        };
        let mut pump = self.pump(attached)?;
        let _slow = SlowStep::begin(self.plan.tell, MountStep::Journal);
        let ended = begun.and_then(|mut bring| {
            let ended = pump.run(&mut bring, quarantine);
            self.decided = bring.suspend();
            ended
        });
        match &ended {
            Ok(_) | Err(Stays::Unfit(_)) => self.used = Some(pump),
            Err(_) => pump.close(),
        }
        ended
    }

    fn pump(&self, attached: Attached) -> Result<Pump, Stays> {
        Ok(Pump::of_dead(attached, &self.left, self.journal.tell)?)
    }
}

/// What may not be sent.
pub(super) fn keep_aside(
    left: &Left,
    quarantine: &mut Quarantine,
    unfit: Option<Undeliverable>,
) -> Result<(), Stays> {
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
        // None where power was lost: nobody was promised anything of it.
        for record in taken.after_damage.iter().filter(|_| left.survey.after_damage > 0) {
            quarantine.keep(record, "it stands behind a damaged place of the journal")?;
        }
    }
    Ok(())
}
