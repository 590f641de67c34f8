//! Changes that a server does not have after the end of their mount: those of one mount, and those in all journals.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use wirefs_mount::{PendingJournalState, pending_journals};

use crate::failure::failure;
use crate::mount::JOURNALS;
use crate::status::bytes;
use crate::user_dirs;

/// Changes of an ended mount that its server does not have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Unsent {
    /// Changes in the journal; 0 without one.
    pub(crate) changes: u64,
    pub(crate) bytes: u64,
    /// The directory of the journal that keeps them.
    pub(crate) journal: Option<String>,
}

impl Unsent {
    pub(crate) fn of(unsent: &wirefs_mount::Unsent) -> Unsent {
        let journal = unsent.journal.as_ref().map(|dir| dir.display().to_string());
        Unsent { changes: unsent.changes, bytes: unsent.bytes, journal }
    }

    /// Returns whether the server has everything.
    pub(crate) fn is_empty(&self) -> bool {
        self.changes == 0 && self.bytes == 0
    }

    /// Returns the amount as text.
    pub(crate) fn amount(&self) -> String {
        match self.changes {
            0 => bytes(self.bytes),
            1 => format!("1 change ({})", bytes(self.bytes)),
            count => format!("{count} changes ({})", bytes(self.bytes)),
        }
    }

    /// Returns the error of an unmount after which the server does not have everything.
    pub(crate) fn error(&self, mountpoint: &str, source: &str) -> anyhow::Error {
        let amount = self.amount();
        match &self.journal {
            Some(dir) => failure(
                format!(
                    "{mountpoint} is unmounted, but {source} did not take everything: {amount} not sent, kept in {dir}"
                ),
                format!(
                    "`wirefs recover {source}` sends the rest once the server answers; so does the next mount of it"
                ),
            ),
            None => failure(
                format!(
                    "{mountpoint} is unmounted, but {source} did not answer: {amount} of written data are lost"
                ),
                "write that data again when the server answers; a mount in mode lease keeps unsent data in a journal",
            ),
        }
    }
}

/// Returns the unsent changes in the journals of ended mounts, by source.
pub(crate) fn left() -> BTreeMap<String, Unsent> {
    let mut left: BTreeMap<String, Unsent> = BTreeMap::new();
    let Ok(state) = user_dirs::state_dir() else { return left };
    for journal in pending_journals(&state.join(JOURNALS)) {
        let PendingJournalState::Pending { source, changes, bytes, .. } = journal.state else { continue };
        if changes > 0 {
            let of_source = left.entry(source).or_default();
            of_source.changes += changes;
            of_source.bytes += bytes;
            of_source.journal = Some(journal.dir.display().to_string());
        }
    }
    left
}

/// Returns the line of `wirefs status` about the unsent changes of a source.
pub(crate) fn line(source: &str, unsent: &Unsent) -> String {
    format!(
        "NOT SENT to {source}: {} of an earlier mount; `wirefs recover {source}` or the next mount sends them",
        unsent.amount()
    )
}
