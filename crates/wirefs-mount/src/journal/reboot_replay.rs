//! Reads the journal of a mount whose server's machine has rebooted, for a replay.

use super::findings_file;
use super::pending::{JournalError, SurveyedJournal};
use super::recover::RecoveryError;
use wirefs_journal::{Record, Replay, ReplayFault, SessionTerms, SuspendedReplay, Undeliverable};
use wirefs_op::FileId;

/// Reads all changes. Resent ones get numbers from `end` on.
///
/// # Errors
/// The server's stable state cannot be determined.
pub(super) fn learned(left: &SurveyedJournal, root: FileId, end: u64) -> Result<Replay, RecoveryError> {
    let mut redo = Replay::of(&left.survey, root, end).map_err(unlike)?;
    each(left, |record| redo.learn_from(&left.survey, record))?;
    Ok(redo)
}

/// Returns the suspended replay of another process, if it can be continued.
pub(super) fn noted(left: &SurveyedJournal, root: FileId, terms: SessionTerms) -> Option<SuspendedReplay> {
    let decision = findings_file::noted(left.dir()).filter(|decision| decision.is_begun_at(terms))?;
    let mut redo = Replay::after(&left.survey, root, decision.next);
    each(left, |record| redo.learn_from(&left.survey, record)).ok()?;
    let mut decided = SuspendedReplay::from_findings(&decision, redo).ok()?;
    each(left, |record| decided.take(record, terms)).ok()?;
    Some(decided)
}

/// Visits all changes in order.
fn each(
    left: &SurveyedJournal,
    mut take: impl FnMut(&Record) -> Result<(), ReplayFault>,
) -> Result<(), RecoveryError> {
    let mut segments = left.segments().map_err(JournalError::from)?;
    while let Some(taken) = segments.next()? {
        taken.records.iter().try_for_each(&mut take).map_err(unlike)?;
    }
    Ok(())
}

fn unlike(unlike: ReplayFault) -> RecoveryError {
    RecoveryError::Unfit(Undeliverable::Replay(unlike))
}
