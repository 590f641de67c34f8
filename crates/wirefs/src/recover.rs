//! `wirefs recover`: brings to the server what a mount that died had in its journal, and shows what was left.

mod report;

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::{IsTerminal, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use wirefs_driver::mount::{LeftState, Progress, Recovered, kept_in, left_journals};

use crate::arguments;
use crate::failure::{failure, tell};
use crate::mount::{self, JOURNALS, QUARANTINE};
use crate::node;
use crate::places;
use crate::terminal::say;
pub(crate) use report::Outcome;
use report::{Left, Report};

/// Nothing is told before that.
const TOLD_AFTER: Duration = Duration::from_secs(1);

/// Told from time to time how far a journal has been brought to its server: for people who wait.
pub(crate) fn progress(progress: Progress) {
    let Progress { done, of, since } = progress;
    if since < TOLD_AFTER || !std::io::stderr().is_terminal() {
        return;
    }
    let end = if done >= of { "\r\x1b[K" } else { "" };
    // A terminal that is gone needs no progress.
    let _gone = write!(
        std::io::stderr(),
        "\r{done} of {of} changes of an earlier mount are at the server\x1b[K{end}"
    );
}

/// Lists, or recovers. Ends with a failure where anything stays in a journal.
pub(crate) fn run(arguments: &arguments::Recover) -> Result<ExitCode> {
    if arguments.list {
        list(arguments.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    let sources = match &arguments.source {
        Some(source) => vec![source.clone()],
        None => left_sources()?,
    };
    let (places, sources): (Vec<OsString>, Vec<OsString>) =
        sources.into_iter().partition(|source| node::recover::is_place(source.as_bytes()));
    let places: Vec<String> = places.iter().map(|place| shown(place)).collect();
    let mut outcomes = node::recover::recover(&places)?;
    for source in &sources {
        match mount::recover(source) {
            Ok(recovered) => outcomes.extend(recovered.iter().map(|one| Outcome::of(source, one))),
            Err(error) if sources.len() + places.len() > 1 => {
                tell(&error);
                outcomes.push(Outcome::failed(source, &error));
            }
            Err(error) => return Err(error),
        }
    }
    if arguments.json {
        say!("{}", serde_json::to_string_pretty(&outcomes)?);
    } else if outcomes.is_empty() {
        say!("nothing was left by a mount that died");
    } else {
        outcomes.iter().for_each(|outcome| say!("{}", outcome.line()));
    }
    let all = outcomes.iter().all(Outcome::is_done);
    Ok(if all { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What was mounted by those that left a journal.
fn left_sources() -> Result<Vec<OsString>> {
    let mut sources = BTreeSet::new();
    for journal in left_journals(&places::state_dir()?.join(JOURNALS)) {
        match journal.state {
            LeftState::Left { source, .. } if !source.is_empty() => {
                sources.insert(OsString::from_vec(source.into_bytes()));
            }
            LeftState::Left { .. } | LeftState::InUse => {}
            LeftState::Unreadable(why) => tell(&failure(
                format!("the journal {} cannot be read: {why}", journal.dir.display()),
                "use the version of wirefs that wrote it, or move it away",
            )),
        }
    }
    Ok(sources.into_iter().collect())
}

fn list(json: bool) -> Result<()> {
    let state = places::state_dir()?;
    let report = Report {
        journals: left_journals(&state.join(JOURNALS)).iter().map(Left::of).collect(),
        quarantine: kept_in(&state.join(QUARANTINE)).iter().map(report::Kept::of).collect(),
    };
    if json {
        say!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        report.lines().iter().for_each(|line| say!("{line}"));
    }
    Ok(())
}

/// How the source was written.
fn shown(source: &OsStr) -> String {
    String::from_utf8_lossy(source.as_bytes()).into_owned()
}

impl Outcome {
    pub(crate) fn of(source: &OsStr, recovered: &Recovered) -> Outcome {
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

    /// A journal for which nothing could be done.
    pub(crate) fn stays(source: &OsStr, journal: String, error: &anyhow::Error) -> Outcome {
        Outcome { journal, ..Outcome::failed(source, error) }
    }

    /// Journals of a source for which nothing could be done.
    pub(crate) fn failed(source: &OsStr, error: &anyhow::Error) -> Outcome {
        Outcome { source: shown(source), why: Some(error.to_string()), ..Outcome::default() }
    }
}
