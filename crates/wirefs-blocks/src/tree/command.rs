//! Checkpoint commands as extended attributes, so that they work through any mount of the whole tree.
//!
//! ```text
//! set   wirefs.checkpoint             "create NAME" | "restore NAME" | "drop NAME"      of the root directory
//! read  wirefs.checkpoints.SKIP       { secs.nanos  change  NAME  NUL }*                of .checkpoints
//! read  wirefs.diff.SKIP.FROM[/TO]    { A | R | M  path  NUL }*                         of .checkpoints
//! ```
//! A value holds as many entries as fit an attribute; the reader passes the number of entries to skip. No
//! other file system accepts attributes in this namespace, so a command sent to one by mistake leaves nothing
//! behind.

use super::commit::Purpose;
use super::locate::{CHECKPOINTS, RequestContext, Trees, root_of};
use super::serve::{Failure, ReplySink};
use super::{BlockTree, DifferenceKind};
use crate::change::Change;
use crate::halt::Halt;
use bytes::Bytes;
use wirefs_op::Errno;
use wirefs_op::limits::XATTR_BYTES_MAX;
use wirefs_op::message::xattr::{Rxattr, Txattr};
use wirefs_op::wire::Data;

/// The prefix of all these attributes.
pub(super) const PREFIX: &[u8] = b"wirefs.";
const COMMAND_NAME: &[u8] = b"wirefs.checkpoint";
const LIST_PREFIX: &[u8] = b"wirefs.checkpoints.";
const DIFF_PREFIX: &[u8] = b"wirefs.diff.";

/// A checkpoint command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Command<'a> {
    Create(&'a [u8]),
    Restore(&'a [u8]),
    Drop(&'a [u8]),
}

impl Command<'_> {
    fn decode(value: &[u8]) -> Option<Command<'_>> {
        let (verb, name) = value.split_at_checked(value.iter().position(|byte| *byte == b' ')?)?;
        let name = name.get(1..)?;
        match verb {
            b"create" => Some(Command::Create(name)),
            b"restore" => Some(Command::Restore(name)),
            b"drop" => Some(Command::Drop(name)),
            _ => None,
        }
    }

    fn purpose(self) -> Purpose {
        match self {
            Command::Create(_) => Purpose::Fill,
            Command::Restore(_) | Command::Drop(_) => Purpose::Clear,
        }
    }
}

impl BlockTree {
    /// Runs the command in the value of an attribute.
    ///
    /// # Errors
    /// `NotSupported`: not a command, or not on the root directory. `Invalid`. Errors of the command.
    pub(super) fn run_command(
        &self,
        context: RequestContext,
        request: &Txattr,
        replies: &mut dyn ReplySink,
    ) -> Result<Rxattr, Failure> {
        if request.name.as_bytes() != COMMAND_NAME {
            return Err(Errno::NotSupported.into());
        }
        let command = Command::decode(&request.value.0).ok_or(Errno::Invalid)?;
        let op = |change: &mut Change<'_>| {
            let found = Trees::of(change).locate(context, &request.target)?;
            if found.id != root_of(0) {
                return Err(Halt::Failed(Errno::NotSupported));
            }
            match command {
                Command::Create(name) => change.create_checkpoint(name).map(drop),
                Command::Restore(name) => change.restore_checkpoint(name),
                Command::Drop(name) => change.drop_checkpoint(name),
            }
        };
        self.change(command.purpose(), &mut |affected| replies.announce(affected), op, |()| ())?;
        let (stat, _) = self.read_tree(|trees| trees.stat(root_of(0)))?;
        Ok(Rxattr { stat: Some(stat), value: Data(Bytes::new()) })
    }

    /// Returns the value of an attribute of the checkpoint directory.
    ///
    /// # Errors
    /// `NoData`: no such attribute. `NotFound`: no such checkpoint. Errors of [`BlockTree::diff`].
    pub(super) fn read_attribute(&self, context: RequestContext, request: &Txattr) -> Result<Bytes, Errno> {
        let (found, _) = self.read_tree(|trees| trees.locate(context, &request.target))?;
        if found.id != CHECKPOINTS {
            return Err(Errno::NoData);
        }
        let name = request.name.as_bytes();
        if let Some(skip) = name.strip_prefix(LIST_PREFIX) {
            let checkpoint = self.checkpoints().into_iter().map(|checkpoint| {
                let line =
                    format!("{}.{:09} {} ", checkpoint.made.secs, checkpoint.made.nanos, checkpoint.change);
                [line.as_bytes(), &checkpoint.name].concat()
            });
            return Ok(page(checkpoint, number(skip)?));
        }
        let asked = name.strip_prefix(DIFF_PREFIX).ok_or(Errno::NoData)?;
        let (skip, names) = split(asked, b'.').ok_or(Errno::NoData)?;
        let (from, to) = split(names, b'/').map_or((names, None), |(from, to)| (from, Some(to)));
        let differences = self.diff(from, to)?.into_iter().map(|difference| {
            let letter: &[u8] = match difference.kind {
                DifferenceKind::Added => b"A ",
                DifferenceKind::Removed => b"R ",
                DifferenceKind::Modified => b"M ",
            };
            [letter, &difference.path].concat()
        });
        Ok(page(differences, number(skip)?))
    }
}

fn split(text: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let (before, after) = text.split_at_checked(text.iter().position(|byte| *byte == at)?)?;
    Some((before, after.get(1..)?))
}

fn number(text: &[u8]) -> Result<usize, Errno> {
    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).ok_or(Errno::NoData)
}

/// Joins as many entries as fit, each terminated by NUL.
fn page(entries: impl Iterator<Item = Vec<u8>>, skip: usize) -> Bytes {
    let mut page = Vec::new();
    for entry in entries.skip(skip) {
        if page.len() + entry.len() + 1 > XATTR_BYTES_MAX {
            break;
        }
        page.extend_from_slice(&entry);
        page.push(0);
    }
    Bytes::from(page)
}
