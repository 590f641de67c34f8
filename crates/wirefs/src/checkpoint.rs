//! `wirefs checkpoint`: creates, lists, compares, restores and drops checkpoints of a block tree, through its mount.

use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::fs::XattrFlags;
use rustix::io::Errno;

use crate::arguments::{Checkpoint, CheckpointAction};
use crate::failure::failure;

/// The directory of a tree's checkpoints; exists only if there are any.
const DIRECTORY: &str = ".checkpoints";
/// The extended attribute for commands to a tree.
const COMMAND: &str = "wirefs.checkpoint";
/// The maximum value of an attribute, in bytes.
const VALUE_BYTES_MAX: usize = 64 * 1024;

/// Runs the command.
pub(crate) fn run(arguments: &Checkpoint) -> Result<()> {
    match &arguments.action {
        CheckpointAction::Create { mountpoint, name } => command(mountpoint, "create", name),
        CheckpointAction::Restore { mountpoint, name } => command(mountpoint, "restore", name),
        CheckpointAction::Drop { mountpoint, name } => command(mountpoint, "drop", name),
        CheckpointAction::List { mountpoint } => list(mountpoint),
        CheckpointAction::Diff { mountpoint, from, to } => diff(mountpoint, from, to.as_deref()),
    }
}

fn command(mountpoint: &Path, verb: &str, name: &OsStr) -> Result<()> {
    let value = [verb.as_bytes(), b" ", name.as_bytes()].concat();
    rustix::fs::setxattr(mountpoint, COMMAND, &value, XattrFlags::empty())
        .map_err(|errno| explained(errno, mountpoint, name))?;
    // The kernel's caches of the old tree are invalid once this is answered, with any result (S-10).
    let _forgotten = rustix::fs::getxattr(mountpoint, COMMAND, &mut [0_u8; 1]);
    Ok(())
}

/// Explains an errno for a checkpoint.
fn explained(errno: Errno, mountpoint: &Path, name: &OsStr) -> anyhow::Error {
    let (shown, name) = (mountpoint.display(), name.to_string_lossy());
    match errno {
        Errno::EXIST => failure(
            format!("there is a checkpoint `{name}` already"),
            format!("choose another name, or `wirefs checkpoint drop {shown} {name}`"),
        ),
        Errno::NOENT => failure(
            format!("there is no checkpoint `{name}` in {shown}"),
            format!("see `wirefs checkpoint list {shown}`"),
        ),
        Errno::INVAL => {
            failure(format!("`{name}` cannot be the name of a checkpoint"), "choose a valid file name")
        }
        Errno::NOSPC => failure(
            "there are too many checkpoints, or the disk is full".to_owned(),
            format!("drop some: `wirefs checkpoint list {shown}`"),
        ),
        Errno::OPNOTSUPP => failure(
            format!("{shown} is not the mountpoint of a whole block tree"),
            "only trees from blocks://, blocks+memory: or `wirefs echo` have checkpoints",
        ),
        other => anyhow::Error::from(other).context(format!("the checkpoints of {shown}")),
    }
}

fn list(mountpoint: &Path) -> Result<()> {
    let mut out = std::io::stdout().lock();
    for entry in entries(mountpoint, "wirefs.checkpoints.", None)? {
        let mut words = entry.splitn(3, |byte| *byte == b' ');
        let (made, change, name) = (words.next(), words.next(), words.next());
        let text = |word: Option<&[u8]>| String::from_utf8_lossy(word.unwrap_or_default()).into_owned();
        let seconds = text(made);
        let seconds = seconds.split('.').next().unwrap_or_default().to_owned();
        write!(out, "@{seconds}  change {}  ", text(change))?;
        out.write_all(name.unwrap_or_default())?;
        writeln!(out)?;
    }
    Ok(())
}

fn diff(mountpoint: &Path, from: &OsStr, to: Option<&OsStr>) -> Result<()> {
    let names = match to {
        Some(to) => [from.as_bytes(), b"/", to.as_bytes()].concat(),
        None => from.as_bytes().to_vec(),
    };
    let mut out = std::io::stdout().lock();
    for entry in entries(mountpoint, "wirefs.diff.", Some(&names))? {
        let (letter, path) = entry.split_at_checked(2).unwrap_or((&entry, b""));
        out.write_all(letter)?;
        out.write_all(if path.is_empty() { b"." } else { path })?;
        writeln!(out)?;
    }
    Ok(())
}

/// Returns all entries of an attribute with several values. `names` follow the number of entries to skip.
fn entries(mountpoint: &Path, prefix: &str, names: Option<&[u8]>) -> Result<Vec<Vec<u8>>> {
    let directory: PathBuf = mountpoint.join(DIRECTORY);
    let asked = OsStr::from_bytes(names.unwrap_or_default());
    let failed = |errno| explained(errno, mountpoint, asked);
    if !directory.exists() {
        // No checkpoints, or no block tree: an empty command, which changes nothing, distinguishes them.
        return match (rustix::fs::setxattr(mountpoint, COMMAND, b"", XattrFlags::empty()), names) {
            (Err(Errno::INVAL), None) => Ok(Vec::new()),
            (Err(Errno::INVAL), Some(_)) => Err(failed(Errno::NOENT)),
            (Err(errno), _) => Err(failed(errno)),
            (Ok(()), _) => Err(failed(Errno::OPNOTSUPP)),
        };
    }
    let suffix = names.map(|names| [b".", names].concat()).unwrap_or_default();
    let mut found: Vec<Vec<u8>> = Vec::new();
    let mut buffer = vec![0; VALUE_BYTES_MAX];
    loop {
        let name = [prefix.as_bytes(), found.len().to_string().as_bytes(), &suffix].concat();
        let len = rustix::fs::getxattr(&directory, name.as_slice(), &mut buffer).map_err(failed)?;
        let value = buffer.get(..len).context("an attribute is longer than it can be")?;
        let before = found.len();
        found.extend(value.split(|byte| *byte == 0).filter(|entry| !entry.is_empty()).map(<[u8]>::to_vec));
        if found.len() == before {
            return Ok(found);
        }
    }
}
