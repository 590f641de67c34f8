//! The journal of a mount whose server's machine was started again since: what is known of its changes.

use super::decided;
use super::left::{Left, LeftError};
use super::recover::Stays;
use wirefs_journal::{Decided, Record, Redo, Terms, Unfit, Unlike};
use wirefs_op::FileId;

/// Learns all changes. Those that are sent again get numbers above `end`.
///
/// # Errors
/// It cannot be told what the server's disk may have.
pub(super) fn learned(left: &Left, root: FileId, end: u64) -> Result<Redo, Stays> {
    let mut redo = Redo::of(&left.survey, root, end).map_err(unlike)?;
    each(left, |record| redo.learn_of(&left.survey, record))?;
    Ok(redo)
}

/// What another process was doing again at the server, and did not come to its end, where that can be gone on with.
pub(super) fn noted(left: &Left, root: FileId, terms: Terms) -> Option<Decided> {
    let decision = decided::noted(left.dir()).filter(|decision| decision.is_begun_at(terms))?;
    let mut redo = Redo::after(&left.survey, root, decision.next);
    each(left, |record| redo.learn_of(&left.survey, record)).ok()?;
    let mut decided = Decided::noted(&decision, redo).ok()?;
    each(left, |record| decided.take(record, terms)).ok()?;
    Some(decided)
}

/// Goes through all changes, in their order.
fn each(left: &Left, mut take: impl FnMut(&Record) -> Result<(), Unlike>) -> Result<(), Stays> {
    let mut segments = left.segments().map_err(LeftError::from)?;
    while let Some(taken) = segments.next()? {
        taken.records.iter().try_for_each(&mut take).map_err(unlike)?;
    }
    Ok(())
}

fn unlike(unlike: Unlike) -> Stays {
    Stays::Unfit(Unfit::Unlike(unlike))
}
