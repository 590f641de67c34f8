//! Decides how a dead mount's journal is delivered, from the server's statement about its session.

use crate::header::Header;
use crate::pipeline::{Pipeline, SessionTerms, Undeliverable};
use crate::survey::Survey;
use wirefs_op::message::version::BootId;

/// The number of a session's first change. A ledger up to it has no change.
const FIRST: u64 = 1;

impl SessionTerms {
    /// Returns whether the server keeps a ledger and it has no change of this session.
    pub fn is_void(&self) -> bool {
        self.ledger.is_some_and(|ledger| ledger <= FIRST)
    }
}

/// The way in which a journal is delivered.
#[derive(Debug)]
pub enum DeliveryPlan {
    /// Send the changes that the server's ledger lacks, as they are.
    Resume(Pipeline),
    /// Replay all changes: the server's machine restarted and may have lost changes that were not on its disk.
    ReplayAll,
    /// Send nothing.
    Nothing(Undeliverable),
}

impl DeliveryPlan {
    /// Decides. `is_certain`: no entry of the journal can be lost, and no other process has sent any of its changes. `decided`: a replay to the
    /// server with this boot id is under way.
    pub fn of(
        survey: &Survey,
        header: &Header,
        terms: SessionTerms,
        is_certain: bool,
        decided: Option<BootId>,
    ) -> DeliveryPlan {
        // Before it restarted, the server may have applied changes whose replies were lost.
        let is_other = terms.boot != header.boot;
        if is_other && (decided == Some(terms.boot) || terms.is_void()) {
            return DeliveryPlan::ReplayAll;
        }
        // Numbers above those of the journal come from an unfinished replay by another process whose findings are missing or from another kernel
        // run.
        if is_other && terms.ledger.is_some_and(|ledger| ledger > survey.end()) {
            return DeliveryPlan::Nothing(Undeliverable::Unknown);
        }
        // The journal's entries are all that the server was notified of, unless a power loss removed an entry.
        let certain = is_certain.then_some(survey.answered);
        match Pipeline::new(terms, survey.has_answers(), certain) {
            Ok(pipeline) => DeliveryPlan::Resume(pipeline),
            Err(unfit) => DeliveryPlan::Nothing(unfit),
        }
    }
}
