//! Commands about checkpoints as extended attributes, so that they work through any mount of the whole tree.
//!
//! ```text
//! set   wirefs.checkpoint             "create NAME" | "restore NAME" | "drop NAME"      of the root directory
//! read  wirefs.checkpoints.SKIP       { secs.nanos  change  NAME  NUL }*                of .checkpoints
//! read  wirefs.diff.SKIP.FROM[/TO]    { A | R | M  path  NUL }*                         of .checkpoints
//! ```
//! A value is cut at an entry so that it fits an attribute; whoever wants more skips what was told. The names are of a kind
//! that no other file system takes, so that nothing is left on one that does not know them.

use super::commit::Purpose;
use super::locate::{CHECKPOINTS, Seat, Trees, root_of};
use super::serve::{Answers, Failure};
use super::{BlockTree, Changed};
use crate::change::Change;
use crate::halt::Halt;
use bytes::Bytes;
use wirefs_op::Errno;
use wirefs_op::limits::XATTR_BYTES_MAX;
use wirefs_op::message::xattr::{Rxattr, Txattr};
use wirefs_op::wire::Data;

/// What the names of all these attributes begin with.
pub(super) const PREFIX: &[u8] = b"wirefs.";
const COMMAND_NAME: &[u8] = b"wirefs.checkpoint";
const LIST_PREFIX: &[u8] = b"wirefs.checkpoints.";
const DIFF_PREFIX: &[u8] = b"wirefs.diff.";

/// What is to be done with a checkpoint.
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
    /// Does what an attribute that is set says.
    ///
    /// # Errors
    /// `NotSupported`: it is no command, or not of the root directory. `Invalid`. As for the command.
    pub(super) fn obey(
        &self,
        seat: Seat,
        request: &Txattr,
        answers: &mut dyn Answers,
    ) -> Result<Rxattr, Failure> {
        if request.name.as_bytes() != COMMAND_NAME {
            return Err(Errno::NotSupported.into());
        }
        let command = Command::decode(&request.value.0).ok_or(Errno::Invalid)?;
        let op = |change: &mut Change<'_>| {
            let found = Trees::of(change).locate(seat, &request.target)?;
            if found.id != root_of(0) {
                return Err(Halt::Failed(Errno::NotSupported));
            }
            match command {
                Command::Create(name) => change.keep_checkpoint(name).map(drop),
                Command::Restore(name) => change.restore_checkpoint(name),
                Command::Drop(name) => change.drop_checkpoint(name),
            }
        };
        self.change(command.purpose(), &mut |touched| answers.touch(touched), op, |()| ())?;
        let (stat, _) = self.look(|trees| trees.stat(root_of(0)))?;
        Ok(Rxattr { stat: Some(stat), value: Data(Bytes::new()) })
    }

    /// What an attribute of the directory of checkpoints tells.
    ///
    /// # Errors
    /// `NoData`: there is no such attribute. `NotFound`: there is no such checkpoint. As [`BlockTree::diff`].
    pub(super) fn told(&self, seat: Seat, request: &Txattr) -> Result<Bytes, Errno> {
        let (found, _) = self.look(|trees| trees.locate(seat, &request.target))?;
        if found.id != CHECKPOINTS {
            return Err(Errno::NoData);
        }
        let name = request.name.as_bytes();
        if let Some(skip) = name.strip_prefix(LIST_PREFIX) {
            let kept = self.checkpoints().into_iter().map(|kept| {
                let told = format!("{}.{:09} {} ", kept.made.secs, kept.made.nanos, kept.change);
                [told.as_bytes(), &kept.name].concat()
            });
            return Ok(page(kept, number(skip)?));
        }
        let asked = name.strip_prefix(DIFF_PREFIX).ok_or(Errno::NoData)?;
        let (skip, names) = split(asked, b'.').ok_or(Errno::NoData)?;
        let (from, to) = split(names, b'/').map_or((names, None), |(from, to)| (from, Some(to)));
        let differences = self.diff(from, to)?.into_iter().map(|difference| {
            let letter: &[u8] = match difference.changed {
                Changed::Added => b"A ",
                Changed::Removed => b"R ",
                Changed::Modified => b"M ",
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

/// As many entries as fit, each ended by NUL.
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
