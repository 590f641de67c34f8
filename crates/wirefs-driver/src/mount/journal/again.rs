//! The journal of a mount whose server's machine was started again since: what is known of its changes.

use super::left::Left;
use super::recover::Stays;
use wirefs_journal::{Redo, Unfit, Unlike};
use wirefs_op::FileId;

/// Learns all changes. Those that are sent again get numbers above `end`.
///
/// # Errors
/// It cannot be told what the server's disk may have.
pub(super) fn learned(left: &Left, root: FileId, end: u64) -> Result<Redo, Stays> {
    let unlike = |unlike: Unlike| Stays::Unfit(Unfit::Unlike(unlike));
    let mut redo = Redo::of(&left.survey, root, end).map_err(unlike)?;
    let mut segments = left.segments()?;
    while let Some(taken) = segments.next()? {
        for record in &taken.records {
            redo.learn_of(&left.survey, record).map_err(unlike)?;
        }
    }
    Ok(redo)
}
