//! `wirefs recover`: sends the pending changes of a dead mount's journal to the server, or lists journals.

mod report;

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::{IsTerminal, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use wirefs_mount::{
    JournalRecovery, PendingJournalState, ReplayProgress, count_quarantined, pending_journals,
};

use crate::arguments;
use crate::failure::{failure, print_error};
use crate::mount::{self, JOURNALS, QUARANTINE};
use crate::node;
use crate::terminal::say;
use crate::user_dirs;
pub(crate) use report::Outcome;
use report::{JournalEntry, Report};

/// No progress is printed before this time.
const PROGRESS_DELAY: Duration = Duration::from_secs(1);

/// Prints the progress of a recovery.
pub(crate) fn progress(progress: ReplayProgress) {
    let ReplayProgress { done, of, since } = progress;
    if since < PROGRESS_DELAY || !std::io::stderr().is_terminal() {
        return;
    }
    let end = if done >= of { "\r\x1b[K" } else { "" };
    // Fails if the terminal is closed; then no progress is needed.
    let _gone = write!(std::io::stderr(), "\r{done} of {of} changes of an earlier mount sent\x1b[K{end}");
}

/// Lists, or recovers. Fails if changes remain in a journal.
pub(crate) fn run(arguments: &arguments::Recover) -> Result<ExitCode> {
    if arguments.list {
        list(arguments.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    let sources = match &arguments.source {
        Some(source) => vec![source.clone()],
        None => left_sources()?,
    };
    let (mountpoints, sources): (Vec<OsString>, Vec<OsString>) =
        sources.into_iter().partition(|source| node::recover::is_place(source.as_bytes()));
    let mountpoints: Vec<String> = mountpoints.iter().map(|place| shown(place)).collect();
    let mut outcomes = node::recover::recover(&mountpoints)?;
    for source in &sources {
        match mount::recover(source) {
            Ok(recovered) => outcomes.extend(recovered.iter().map(|one| Outcome::of(source, one))),
            Err(error) if sources.len() + mountpoints.len() > 1 => {
                print_error(&error);
                outcomes.push(Outcome::failed(source, &error));
            }
            Err(error) => return Err(error),
        }
    }
    if arguments.json {
        say!("{}", serde_json::to_string_pretty(&outcomes)?);
    } else if outcomes.is_empty() {
        say!("no killed mount has unsent changes");
    } else {
        outcomes.iter().for_each(|outcome| say!("{}", outcome.line()));
    }
    let all = outcomes.iter().all(Outcome::is_done);
    Ok(if all { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the sources of mounts that left a journal.
fn left_sources() -> Result<Vec<OsString>> {
    let mut sources = BTreeSet::new();
    for journal in pending_journals(&user_dirs::state_dir()?.join(JOURNALS)) {
        match journal.state {
            PendingJournalState::Pending { source, .. } if !source.is_empty() => {
                sources.insert(OsString::from_vec(source.into_bytes()));
            }
            PendingJournalState::Pending { .. } | PendingJournalState::InUse => {}
            PendingJournalState::Unreadable(why) => print_error(&failure(
                format!("the journal {} cannot be read: {why}", journal.dir.display()),
                "use the version of wirefs that wrote it, or move the directory elsewhere",
            )),
        }
    }
    Ok(sources.into_iter().collect())
}

fn list(json: bool) -> Result<()> {
    let state = user_dirs::state_dir()?;
    let report = Report {
        journals: pending_journals(&state.join(JOURNALS)).iter().map(JournalEntry::of).collect(),
        quarantine: count_quarantined(&state.join(QUARANTINE))
            .iter()
            .map(report::QuarantinedChanges::of)
            .collect(),
    };
    if json {
        say!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        report.lines().iter().for_each(|line| say!("{line}"));
    }
    Ok(())
}

/// Returns the source as the user wrote it.
fn shown(source: &OsStr) -> String {
    String::from_utf8_lossy(source.as_bytes()).into_owned()
}

impl Outcome {
    pub(crate) fn of(source: &OsStr, recovered: &JournalRecovery) -> Outcome {
        let base = Outcome {
            source: shown(source),
            journal: recovered.dir.display().to_string(),
            ..Outcome::default()
        };
        match &recovered.result {
            Ok(brought) => Outcome {
                done: true,
                sent: brought.outcome.sent,
                skipped: brought.outcome.skipped,
                aside: brought.aside,
                quarantine: (brought.aside > 0).then(|| brought.quarantine.display().to_string()),
                damaged: brought.damage.is_some(),
                why: brought.unfit.map(|unfit| unfit.to_string()),
                ..base
            },
            Err(stays) => Outcome { why: Some(stays.to_string()), ..base },
        }
    }

    /// Returns the outcome of a journal that could not be recovered.
    pub(crate) fn stays(source: &OsStr, journal: String, error: &anyhow::Error) -> Outcome {
        Outcome { journal, ..Outcome::failed(source, error) }
    }

    /// Returns the outcome of a source whose journals could not be recovered.
    pub(crate) fn failed(source: &OsStr, error: &anyhow::Error) -> Outcome {
        Outcome { source: shown(source), why: Some(error.to_string()), ..Outcome::default() }
    }
}
