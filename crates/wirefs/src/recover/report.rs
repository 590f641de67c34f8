//! The output of `wirefs recover`, as JSON and as text.

use serde::{Deserialize, Serialize};
use wirefs_mount::{PendingJournal, PendingJournalState};

use crate::status::bytes;

/// Journals and quarantined changes.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Report {
    pub(super) journals: Vec<JournalEntry>,
    pub(super) quarantine: Vec<QuarantinedChanges>,
}

/// One journal.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct JournalEntry {
    pub(super) dir: String,
    /// `in use`, `left` or `unreadable`.
    pub(super) state: String,
    pub(super) source: Option<String>,
    /// Changes that may not be on the server's disk, and their bytes.
    pub(super) changes: u64,
    pub(super) bytes: u64,
    /// Changes after a damaged record; they will be quarantined.
    pub(super) behind_damage: u64,
    pub(super) damaged: bool,
    pub(super) why: Option<String>,
}

/// Changes that a server rejected.
#[derive(Clone, Debug, Serialize)]
pub(super) struct QuarantinedChanges {
    pub(super) dir: String,
    pub(super) changes: u64,
}

/// The outcome of one journal.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Outcome {
    pub(super) source: String,
    pub(super) journal: String,
    /// Whether it is completely recovered.
    pub(super) done: bool,
    /// Changes sent to the server now, and changes that it already had.
    pub(super) sent: u64,
    pub(super) skipped: u64,
    /// Quarantined changes, and their directory.
    pub(super) aside: u64,
    pub(super) quarantine: Option<String>,
    pub(super) damaged: bool,
    pub(super) why: Option<String>,
}

impl JournalEntry {
    pub(super) fn of(journal: &PendingJournal) -> JournalEntry {
        let dir = journal.dir.display().to_string();
        match &journal.state {
            PendingJournalState::InUse => {
                JournalEntry { dir, state: "in use".to_owned(), ..JournalEntry::default() }
            }
            PendingJournalState::Pending { source, changes, bytes, behind, damage } => JournalEntry {
                dir,
                state: "left".to_owned(),
                source: Some(source.clone()),
                changes: *changes,
                bytes: *bytes,
                behind_damage: *behind,
                damaged: damage.is_some(),
                why: None,
            },
            PendingJournalState::Unreadable(why) => JournalEntry {
                dir,
                state: "unreadable".to_owned(),
                why: Some(why.clone()),
                ..JournalEntry::default()
            },
        }
    }

    fn line(&self) -> String {
        let JournalEntry { dir, state, changes, behind_damage, .. } = self;
        match (&self.source, &self.why) {
            (Some(source), _) => {
                let damage = match behind_damage {
                    0 if self.damaged => ", DAMAGED at its end".to_owned(),
                    0 => String::new(),
                    count => format!(", DAMAGED: {count} changes behind it will be kept aside"),
                };
                format!("{source}: {changes} changes, {}, left in {dir}{damage}", bytes(self.bytes))
            }
            (None, Some(why)) => format!("{dir}: {state}: {why}"),
            (None, None) => format!("{dir}: {state}"),
        }
    }
}

impl QuarantinedChanges {
    pub(super) fn of(kept: &wirefs_mount::QuarantineCount) -> QuarantinedChanges {
        QuarantinedChanges { dir: kept.dir.display().to_string(), changes: kept.changes }
    }
}

impl Report {
    pub(super) fn lines(&self) -> Vec<String> {
        let refused = |kept: &QuarantinedChanges| {
            format!("{} changes that a server did not take, with the reasons, in {}", kept.changes, kept.dir)
        };
        let lines: Vec<String> =
            self.journals.iter().map(JournalEntry::line).chain(self.quarantine.iter().map(refused)).collect();
        if lines.is_empty() { vec!["no killed mount has unsent changes".to_owned()] } else { lines }
    }
}

impl Outcome {
    /// Returns whether the outcome is about this journal, or about its source as a whole.
    pub(crate) fn is_about(&self, source: &str, journal: &str) -> bool {
        self.journal == journal || self.journal.is_empty() && self.source == source
    }

    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    pub(super) fn line(&self) -> String {
        let Outcome { source, journal, sent, skipped, aside, .. } = self;
        let why = self.why.as_deref().unwrap_or_default();
        if !self.done {
            return format!("{source}: the changes in {journal} stay there: {why}");
        }
        let damage = if self.damaged { "; the journal was DAMAGED" } else { "" };
        let aside = match &self.quarantine {
            Some(dir) if why.is_empty() => format!("; {aside} are kept aside in {dir}"),
            Some(dir) => format!("; {aside} are kept aside in {dir}: {why}"),
            None => String::new(),
        };
        format!(
            "{source}: {sent} changes have now been sent; the server had {skipped} already{damage}{aside}"
        )
    }
}
