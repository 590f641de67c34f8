//! `wirefs quarantine`: changes that servers rejected after they were answered.

mod files;

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;
use wirefs_mount::{QuarantinedChange, quarantined_changes};

use crate::arguments::{Quarantine, QuarantineAction};
use crate::failure::failure;
use crate::mount::QUARANTINE;
use crate::status::bytes;
use crate::terminal::say;
use crate::user_dirs;

/// One change, in the format of `--json`. Its fields are stable; new ones may be added.
#[derive(Clone, Debug, Serialize)]
struct Report<'a> {
    change: &'a str,
    source: &'a str,
    /// Below the mount. Unprintable bytes are escaped.
    path: &'a str,
    what: &'a str,
    why: &'a str,
    /// Bytes of its write.
    bytes: u64,
}

/// Runs the command.
pub(crate) fn run(arguments: &Quarantine) -> Result<()> {
    let changes = quarantined_changes(&user_dirs::state_dir()?.join(QUARANTINE));
    match &arguments.action {
        QuarantineAction::List { json } => list(&changes, *json),
        QuarantineAction::Show { change } => {
            show(named(&changes, change)?);
            Ok(())
        }
        QuarantineAction::Take { change, file } => match of_file(&changes, change)? {
            writes if writes.is_empty() => take(named(&changes, change)?, file),
            writes => take_all(&writes, file),
        },
        QuarantineAction::Drop { change: Some(change), .. } => discard(named(&changes, change)?),
        QuarantineAction::Drop { change: None, .. } => changes.iter().try_for_each(discard),
    }
}

fn list(changes: &[QuarantinedChange], json: bool) -> Result<()> {
    if json {
        let reports: Vec<Report<'_>> = changes.iter().map(Report::of).collect();
        say!("{}", serde_json::to_string_pretty(&reports)?);
    } else if changes.is_empty() {
        say!("no server has rejected a change");
    } else {
        files::groups(changes).iter().for_each(|group| say!("{}", group.line()));
    }
    Ok(())
}

fn show(change: &QuarantinedChange) {
    let QuarantinedChange { id, source, path, what, why, .. } = change;
    say!("change  {id}\nof      {source}\npath    {path}\nwhat    {what}\nwhy     {why}");
    say!("data    {}", if change.bytes > 0 { bytes(change.bytes) } else { "none".to_owned() });
}

fn take(change: &QuarantinedChange, file: &Path) -> Result<()> {
    if change.bytes == 0 {
        return Err(failure(
            format!("{} has no data", change.id),
            format!("`wirefs quarantine show {}` shows it", change.id),
        ));
    }
    let taken = change.take(file).with_context(|| format!("cannot write to {}", file.display()))?;
    say!(
        "{} are in {}; `wirefs quarantine drop {}` drops the change",
        bytes(taken),
        file.display(),
        change.id
    );
    Ok(())
}

/// Returns all writes to the file of this name, in order. Empty if the text is no file name.
///
/// # Errors
/// Fails if several mounts wrote a file of this name: the order is unknown.
fn of_file<'a>(changes: &'a [QuarantinedChange], path: &str) -> Result<Vec<&'a QuarantinedChange>> {
    let writes: Vec<&QuarantinedChange> =
        changes.iter().filter(|change| change.path == path && change.bytes > 0).collect();
    let sessions =
        writes.windows(2).all(|two| matches!(two, [one, other] if one.session() == other.session()));
    if !sessions {
        return Err(failure(
            format!("several mounts have written to {path}"),
            "name one of the changes that `wirefs quarantine list --json` shows",
        ));
    }
    Ok(writes)
}

/// Applies all writes to a new file. The changes are kept.
fn take_all(writes: &[&QuarantinedChange], file: &Path) -> Result<()> {
    let cannot = || format!("cannot write to {}", file.display());
    let mut to =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(file).with_context(cannot)?;
    let mut taken = 0;
    for change in writes {
        taken += change.put(&mut to).with_context(cannot)?;
    }
    to.sync_all().with_context(cannot)?;
    say!(
        "{} of {} writes are in {}, each at its offset; bytes that this mount did not write are missing",
        bytes(taken),
        writes.len(),
        file.display()
    );
    Ok(())
}

fn discard(change: &QuarantinedChange) -> Result<()> {
    change.discard().with_context(|| format!("cannot drop {}", change.id))
}

/// Returns the change of this name; its number suffices if it is unique.
fn named<'a>(changes: &'a [QuarantinedChange], name: &str) -> Result<&'a QuarantinedChange> {
    let number = name.parse().ok();
    let mut numbered = changes.iter().filter(|change| number == Some(change.number));
    let found = match (changes.iter().find(|change| change.id == name), numbered.next(), numbered.next()) {
        (Some(found), ..) | (None, Some(found), None) => Some(found),
        (None, ..) => None,
    };
    found.ok_or_else(|| {
        failure(format!("the quarantine has no change `{name}`"), "see `wirefs quarantine list`")
    })
}

impl<'a> Report<'a> {
    fn of(change: &'a QuarantinedChange) -> Report<'a> {
        let QuarantinedChange { id, source, path, what, why, bytes, .. } = change;
        Report { change: id, source, path, what, why, bytes: *bytes }
    }
}
