//! Files that published copies replaced, and conflict copies.

use crate::call::CallId;
use std::collections::BTreeMap;
use wirefs_cache::TreeNodeId;
use wirefs_op::Timestamp;
use wirefs_op::limits::NAME_BYTES_MAX;

/// Names that are remembered for people, at most; all are counted.
pub(crate) const NAMED_MAX: usize = 16;

/// Files that others had written, and that copies of this mount replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conflicts {
    /// How many there were since the mount began.
    pub count: u64,
    /// The last of them: where they are kept, from the root on.
    pub last: Vec<Vec<u8>>,
}

impl Conflicts {
    pub(crate) fn add(&mut self, path: Vec<u8>) {
        self.count += 1;
        if self.last.len() >= NAMED_MAX {
            self.last.remove(0);
        }
        self.last.push(path);
    }
}

/// Those that are being looked at.
#[derive(Debug, Default)]
pub(crate) struct ReplacedFiles {
    pub(crate) conflicts: Conflicts,
    /// How many there are in a directory.
    pub(crate) under_way: BTreeMap<TreeNodeId, u32>,
    /// Removals of such directories.
    pub(crate) rmdirs: Vec<Rmdir>,
}

#[derive(Debug)]
pub(crate) struct Rmdir {
    pub(crate) call: CallId,
    pub(crate) dir: TreeNodeId,
    pub(crate) parent: TreeNodeId,
    pub(crate) name: Vec<u8>,
}

/// How many names are tried for one that is kept.
pub(crate) const NAMES_MAX: u32 = 64;

/// `NAME.wirefs-conflict-HOST-TIME`, where TIME is when it was written last, in UTC. A long name loses its end.
pub(crate) fn name_of(name: &[u8], host: &[u8], mtime: Timestamp, tries: u32) -> Vec<u8> {
    let plain = |byte: &u8| if byte.is_ascii_alphanumeric() || *byte == b'.' { *byte } else { b'_' };
    let host = host.iter().map(plain).collect::<Vec<_>>();
    let time = mtime.in_utc();
    let end = [b".wirefs-conflict-", host.as_slice(), b"-", time.as_bytes()].concat();
    // Room for a number behind it.
    let kept = name.len().min(NAME_BYTES_MAX.saturating_sub(end.len() + 4));
    let whole = [name.get(..kept).unwrap_or_default(), end.as_slice()].concat();
    numbered(&whole, 0, tries)
}

/// The name with another number behind it; 0 is none.
pub(crate) fn numbered(name: &[u8], before: u32, now: u32) -> Vec<u8> {
    let end = |number: u32| if number == 0 { String::new() } else { format!("-{number}") };
    let plain = name.strip_suffix(end(before).as_bytes()).unwrap_or(name);
    [plain, end(now).as_bytes()].concat()
}

#[cfg(test)]
mod tests;
