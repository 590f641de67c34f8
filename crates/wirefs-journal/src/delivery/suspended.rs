//! A replay between two connections, or between two processes.

use super::report::ReplyCollector;
use crate::entry::Record;
use crate::findings::Findings;
use crate::pipeline::SessionTerms;
use crate::replay::{Replay, ReplayFault, TouchedObjects};
use std::collections::BTreeMap;
use wirefs_op::message::version::BootId;

/// A replay to the server with one boot id, between two connections.
#[derive(Debug)]
pub struct SuspendedReplay {
    pub(super) boot: BootId,
    pub(super) replay: Replay,
    pub(super) replies: Option<ReplyCollector>,
    /// The server has its replies to changes from this number on.
    pub(super) answered: u64,
    pub(super) predecessor: Option<Predecessor>,
}

/// The part of a replay that an earlier process has done.
#[derive(Debug)]
pub(super) struct Predecessor {
    /// A copy that gives each change the number that the earlier process gave it.
    replay: Replay,
    pub(super) touched: TouchedObjects,
    pub(super) latest_time: u64,
}

impl SuspendedReplay {
    /// Resumes the replay of a process that died. `replay` has learned all changes and numbers them from [`Findings::next`] on.
    ///
    /// # Errors
    /// Fails if the findings belong to another journal.
    pub fn from_findings(findings: &Findings, mut replay: Replay) -> Result<SuspendedReplay, ReplayFault> {
        replay.decide(&findings.names)?;
        replay.compare(&findings.objects, findings.latest_time);
        let predecessor = Predecessor {
            replay: replay.clone(),
            touched: TouchedObjects::default(),
            latest_time: findings.latest_time,
        };
        let (boot, answered) = (findings.boot, findings.answered);
        Ok(SuspendedReplay { boot, replay, replies: None, answered, predecessor: Some(predecessor) })
    }

    /// Learns from the server's ledger which changes the earlier process has sent. Takes all changes of the journal, in order.
    ///
    /// # Errors
    /// Fails if the findings belong to another journal.
    pub fn take(&mut self, record: &Record, terms: SessionTerms) -> Result<(), ReplayFault> {
        match &mut self.predecessor {
            Some(Predecessor { replay, touched, .. }) => {
                replay.learn_progress(record, terms.ledger.unwrap_or_default(), touched)
            }
            None => Ok(()),
        }
    }

    /// Passes what is known to `replay`, which has learned the same changes and starts again, because the server's machine restarted once more.
    pub fn hand_over_to(&self, replay: &mut Replay) {
        let made = self.replies.as_ref().map(|replies| &replies.made);
        replay.restart_after(&self.replay, made.unwrap_or(&BTreeMap::new()));
    }

    /// Returns whether the replay is for the server with this boot id.
    pub fn is_at(&self, boot: BootId) -> bool {
        self.boot == boot
    }
}
