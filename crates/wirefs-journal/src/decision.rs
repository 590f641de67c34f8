//! What is noted of changes that are being done again, so that another process goes on with them: what the server's machine was found to
//! have before the first of them was sent. The same journal and the same findings lead to the same changes under the same numbers, and the
//! server's ledger knows which of these it has.
//!
//! ```text
//!  front    magic[16] version[4]
//!  entry    length[4] sum[4] body[length]
//!  the first      run[8] boot[8] next[8] seen[8] names objects     each of both: count[4] (length[2] path fs[4] ino[8] generation[4] changed[8])*
//!  each other     answered[8]: the server may have forgotten its replies to changes below that
//! ```
//! INVARIANT: it counts only in the run of the kernel that wrote it: a loss of power may have taken a part of the journal away, or of this.

use crate::redo::Found;
use crate::replay::Terms;
use crate::sum::sum;
use bytes::{Buf as _, Bytes};
use std::collections::BTreeMap;
use wirefs_op::message::version::BootId;
use wirefs_op::{FileId, TreePath};

const MAGIC: [u8; 16] = *b"wirefs decided\r\n";
const VERSION: u32 = 1;

/// That, and what the server may have forgotten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The server's.
    pub boot: BootId,
    /// The number of the first change that is sent.
    pub next: u64,
    /// The latest time of change that the server had told.
    pub seen: u64,
    /// What names were found to be; those that are missing were not there.
    pub names: BTreeMap<TreePath, Found>,
    /// The same of the objects that changes are about.
    pub objects: BTreeMap<TreePath, Found>,
    /// The server knows its replies to changes from this number on.
    pub answered: u64,
}

impl Decision {
    /// The bytes of the file to begin with, in this run of the kernel.
    pub fn encode(&self, run: u64) -> Vec<u8> {
        let mut body = Vec::new();
        for number in [run, self.boot.0, self.next, self.seen] {
            body.extend_from_slice(&number.to_le_bytes());
        }
        for found in [&self.names, &self.objects] {
            body.extend_from_slice(&(found.len() as u32).to_le_bytes());
            found.iter().for_each(|(path, found)| one(&mut body, path, found));
        }
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend(entry(&body));
        bytes
    }

    /// What is put behind that before the server is told that replies below a number have come.
    pub fn answered(below: u64) -> Vec<u8> {
        entry(&below.to_le_bytes())
    }

    /// Reads a file in this run of the kernel; `None`: it tells nothing.
    pub fn decode(file: &[u8], run: u64) -> Option<Decision> {
        let mut from = file.strip_prefix(&MAGIC)?;
        if from.try_get_u32_le().ok()? != VERSION {
            return None;
        }
        let mut body = next(&mut from)?;
        if body.try_get_u64_le().ok()? != run {
            return None;
        }
        let boot = BootId(body.try_get_u64_le().ok()?);
        let (next_number, seen) = (body.try_get_u64_le().ok()?, body.try_get_u64_le().ok()?);
        let (names, objects) = (all(&mut body)?, all(&mut body)?);
        let mut decision = Decision { boot, next: next_number, seen, names, objects, answered: 0 };
        // A torn end: its writer died before it told the server.
        while let Some(mut body) = next(&mut from) {
            decision.answered = decision.answered.max(body.try_get_u64_le().ok()?);
        }
        Some(decision)
    }

    /// Whether a server that says this has done some of it.
    pub fn is_begun_at(&self, terms: Terms) -> bool {
        self.boot == terms.boot && terms.ledger.is_some_and(|ledger| ledger >= self.next)
    }
}

fn entry(body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32).to_le_bytes();
    [&length[..], &sum(&[&length, body]).to_le_bytes(), body].concat()
}

fn next<'a>(from: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = from.try_get_u32_le().ok()?;
    let expected = from.try_get_u32_le().ok()?;
    let (body, rest) = from.split_at_checked(usize::try_from(length).ok()?)?;
    *from = rest;
    (sum(&[&length.to_le_bytes(), body]) == expected).then_some(body)
}

fn one(body: &mut Vec<u8>, path: &TreePath, found: &Found) {
    let path = path.as_bytes();
    body.extend_from_slice(&(path.len() as u16).to_le_bytes());
    body.extend_from_slice(path);
    body.extend_from_slice(&found.id.fs.to_le_bytes());
    body.extend_from_slice(&found.id.ino.to_le_bytes());
    body.extend_from_slice(&found.id.generation.to_le_bytes());
    body.extend_from_slice(&found.changed.to_le_bytes());
}

fn all(from: &mut &[u8]) -> Option<BTreeMap<TreePath, Found>> {
    let count = from.try_get_u32_le().ok()?;
    let mut all = BTreeMap::new();
    for _ in 0..count {
        let length = usize::from(from.try_get_u16_le().ok()?);
        let (path, rest) = from.split_at_checked(length)?;
        *from = rest;
        let id = FileId {
            fs: from.try_get_u32_le().ok()?,
            ino: from.try_get_u64_le().ok()?,
            generation: from.try_get_u32_le().ok()?,
        };
        let found = Found { id, changed: from.try_get_u64_le().ok()? };
        all.insert(TreePath::from_bytes(Bytes::copy_from_slice(path))?, found);
    }
    Some(all)
}

#[cfg(test)]
mod tests;
