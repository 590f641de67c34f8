//! The findings of a replay, stored so that another process can continue it: the objects that the server had before the first change was
//! replayed. The same journal with the same findings gives the same changes under the same numbers, and the server's ledger shows which
//! of them are applied.
//!
//! ```text
//!  front    magic[16] version[4]
//!  entry    length[4] sum[4] body[length]
//!  first          run[8] boot[8] next[8] latest_time[8] names objects     each of both: count[4] (length[2] path fs[4] ino[8] generation[4] changed[8] modified[8] size[8])*
//!  others         answered[8]: the server may have forgotten its replies to changes below it
//! ```
//! INVARIANT: findings count only in the kernel run that wrote them: a power loss may have removed a part of the journal or of the findings.

use crate::pipeline::SessionTerms;
use crate::replay::ObjectStat;
use bytes::{Buf as _, Bytes};
use std::collections::BTreeMap;
use wirefs_log::{Crc32c, Form, ReadOutcome};
use wirefs_op::message::version::BootId;
use wirefs_op::{FileId, TreePath};

const MAGIC: [u8; 16] = *b"wirefs decided\r\n";
const VERSION: u32 = 2;
/// The form of an entry.
const ENTRY: Form<Crc32c> = Form::new(u32::MAX as usize);

/// The findings, and the replies that the server may have forgotten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Findings {
    /// The server's boot id.
    pub boot: BootId,
    /// The number of the first change that is sent.
    pub next: u64,
    /// The latest change time that the server had reported, in nanoseconds since 1970.
    pub latest_time: u64,
    /// The objects found at the names that changes are about; a missing name has none.
    pub names: BTreeMap<TreePath, ObjectStat>,
    /// The same for the objects that changes modify.
    pub objects: BTreeMap<TreePath, ObjectStat>,
    /// The server has its replies to changes from this number on.
    pub answered: u64,
}

impl Findings {
    /// Encodes the file as it begins, in this kernel run.
    pub fn encode(&self, run: u64) -> Vec<u8> {
        let mut body = Vec::new();
        for number in [run, self.boot.0, self.next, self.latest_time] {
            body.extend_from_slice(&number.to_le_bytes());
        }
        for found in [&self.names, &self.objects] {
            body.extend_from_slice(&(found.len() as u32).to_le_bytes());
            found.iter().for_each(|(path, found)| one(&mut body, path, found));
        }
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        ENTRY.append(&mut bytes, &[&body]);
        bytes
    }

    /// Encodes the entry that is appended before the server is notified that the replies below a number have arrived.
    pub fn answered(below: u64) -> Vec<u8> {
        let mut entry = Vec::new();
        ENTRY.append(&mut entry, &[&below.to_le_bytes()]);
        entry
    }

    /// Decodes a file in this kernel run; `None` if it does not count.
    pub fn decode(file: &[u8], run: u64) -> Option<Findings> {
        let mut from = file.strip_prefix(&MAGIC)?;
        if from.try_get_u32_le().ok()? != VERSION {
            return None;
        }
        let ReadOutcome::Record { contents: mut body, rest: mut from, .. } =
            ENTRY.read(from, Crc32c::default())
        else {
            return None;
        };
        if body.try_get_u64_le().ok()? != run {
            return None;
        }
        let boot = BootId(body.try_get_u64_le().ok()?);
        let (next_number, latest_time) = (body.try_get_u64_le().ok()?, body.try_get_u64_le().ok()?);
        let (names, objects) = (all(&mut body)?, all(&mut body)?);
        let mut findings = Findings { boot, next: next_number, latest_time, names, objects, answered: 0 };
        // A torn end is ignored: its writer died before it notified the server.
        while let ReadOutcome::Record { mut contents, rest, .. } = ENTRY.read(from, Crc32c::default()) {
            findings.answered = findings.answered.max(contents.try_get_u64_le().ok()?);
            from = rest;
        }
        Some(findings)
    }

    /// Returns whether the server has applied some of the replayed changes, by its boot id and ledger.
    pub fn is_begun_at(&self, terms: SessionTerms) -> bool {
        self.boot == terms.boot && terms.ledger.is_some_and(|ledger| ledger >= self.next)
    }
}

fn one(body: &mut Vec<u8>, path: &TreePath, found: &ObjectStat) {
    let path = path.as_bytes();
    body.extend_from_slice(&(path.len() as u16).to_le_bytes());
    body.extend_from_slice(path);
    body.extend(found.id.to_bytes());
    for number in [found.changed, found.modified, found.size] {
        body.extend_from_slice(&number.to_le_bytes());
    }
}

fn all(from: &mut &[u8]) -> Option<BTreeMap<TreePath, ObjectStat>> {
    let count = from.try_get_u32_le().ok()?;
    let mut all = BTreeMap::new();
    for _ in 0..count {
        let length = usize::from(from.try_get_u16_le().ok()?);
        let (path, rest) = from.split_at_checked(length)?;
        *from = rest;
        let id = FileId::take_bytes(from)?;
        let mut number = || from.try_get_u64_le().ok();
        let found = ObjectStat { id, changed: number()?, modified: number()?, size: number()? };
        all.insert(TreePath::from_bytes(Bytes::copy_from_slice(path))?, found);
    }
    Some(all)
}

#[cfg(test)]
mod tests;
