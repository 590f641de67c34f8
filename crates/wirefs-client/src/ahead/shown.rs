//! What was shown of objects before the server had them goes on to be shown.

use super::Ahead;
use crate::core::Client;
use crate::present::ino_of;
use std::collections::{BTreeMap, VecDeque};
use wirefs_cache::TreeNodeId;
use wirefs_op::{FileId, Kind, Stat, Timestamp};

/// Objects of which something is shown that the server would tell otherwise, at most.
const TOLD_MAX: usize = 128 * 1024;

/// What is shown of an object instead of what the server says, so that it does not change for those who saw it before the server had
/// it: of each, what the server says and what is shown for that.
#[derive(Clone, Copy, Debug)]
struct Told {
    ino: u64,
    atime: (Timestamp, Timestamp),
    mtime: (Timestamp, Timestamp),
    ctime: (Timestamp, Timestamp),
    blocks: (u64, u64),
    /// A directory's, which each file system counts in its own way.
    size: (u64, u64),
}

impl Told {
    /// The server says `real`, and this is shown for it.
    fn of(ino: u64, real: &Stat, shown: &Stat) -> Told {
        Told {
            ino,
            atime: (real.atime, shown.atime),
            mtime: (real.mtime, shown.mtime),
            ctime: (real.ctime, shown.ctime),
            blocks: (real.blocks, shown.blocks),
            size: (real.size, shown.size),
        }
    }
}

fn shown<T: PartialEq>((real, shown): (T, T), is: T) -> T {
    if is == real { shown } else { is }
}

/// What is shown, by object.
#[derive(Debug, Default)]
pub(super) struct Shown {
    told: BTreeMap<FileId, Told>,
    /// The inode numbers that they are shown by.
    inos: BTreeMap<u64, FileId>,
    /// The first was told first.
    order: VecDeque<FileId>,
}

impl Shown {
    fn tell(&mut self, id: FileId, told: Told) {
        let is_new = !self.told.contains_key(&id);
        self.forget(id);
        self.inos.insert(told.ino, id);
        self.told.insert(id, told);
        if is_new {
            self.order.push_back(id);
            if self.order.len() > TOLD_MAX
                && let Some(oldest) = self.order.pop_front()
            {
                self.forget(oldest);
            }
        }
    }

    /// The object is no longer shown as another one than it is.
    fn forget(&mut self, id: FileId) {
        if let Some(told) = self.told.remove(&id)
            && self.inos.get(&told.ino) == Some(&id)
        {
            self.inos.remove(&told.ino);
        }
    }
}

/// An inode number for an object whose own one another object is shown by: outside the numbers that file systems use.
fn other_ino(id: FileId) -> u64 {
    ino_of(id) ^ (1 << 61) ^ (u64::from(id.generation) << 28)
}

impl Ahead {
    /// The attributes as they were shown before the server had the object, as far as they are the same there.
    pub(crate) fn shown(&self, stat: &Stat) -> Stat {
        self.shown.told.get(&stat.id).map_or(*stat, |told| Stat {
            atime: shown(told.atime, stat.atime),
            mtime: shown(told.mtime, stat.mtime),
            ctime: shown(told.ctime, stat.ctime),
            size: if stat.kind == Kind::Directory { shown(told.size, stat.size) } else { stat.size },
            // A file's come and go while its data find their places.
            blocks: if stat.kind == Kind::File { stat.blocks } else { shown(told.blocks, stat.blocks) },
            ..*stat
        })
    }

    /// The inode number that it was shown by; another one than its own too where that is another object's here.
    pub(crate) fn shown_ino(&self, id: FileId) -> Option<u64> {
        // No other object is shown by the number of a provisional id: it is this one's, which the server may have confirmed since.
        let is_taken = || id.provisional_number().is_none() && self.shown.inos.contains_key(&ino_of(id));
        self.shown.told.get(&id).map(|told| told.ino).or_else(|| is_taken().then(|| other_ino(id)))
    }
}

impl Client {
    /// The server's word on an object counts again: `stat`. What was shown before goes on to be shown where it differs in what nobody
    /// changed.
    pub(crate) fn caught_up(&mut self, before: &Stat, stat: &Stat) {
        let known = self.ahead.shown_ino(stat.id);
        let of = |stat: &Stat| (stat.atime, stat.mtime, stat.ctime, stat.blocks, stat.size);
        if known.is_some() || of(before) != of(stat) {
            let ino = known.unwrap_or_else(|| self.present(stat).id.ino);
            self.ahead.shown.tell(stat.id, Told::of(ino, stat, before));
        }
    }

    /// What the server calls the objects that it had confirmed, by the inode numbers that they are shown by: a server whose machine was
    /// started again does not know them by the numbers of the changes that made them.
    pub(crate) fn confirmed_ids(&self) -> BTreeMap<u64, FileId> {
        self.ahead.shown.told.iter().map(|(id, told)| (told.ino, *id)).collect()
    }

    /// The object that the node stands for has this number at the server.
    pub(crate) fn identified(&mut self, node: TreeNodeId, stat: &Stat) {
        self.all_identified(&BTreeMap::from([(node, *stat)]));
    }

    /// The same of several, whose new ids may be those that others of them had.
    pub(crate) fn all_identified(&mut self, nodes: &BTreeMap<TreeNodeId, Stat>) {
        let known = nodes.iter().filter_map(|(node, stat)| {
            let before = self.names.node(*node)?.stat;
            Some((*node, before, self.present(&before).id.ino, *stat))
        });
        let known: Vec<(TreeNodeId, Stat, u64, Stat)> = known.collect();
        for (_, before, ..) in &known {
            self.ahead.shown.forget(before.id);
        }
        for (node, before, ino, stat) in known {
            self.ahead.shown.tell(stat.id, Told::of(ino, &stat, &before));
            self.names.identified(node, stat.id);
            self.files.identified(node, before.version, stat.version);
            for (dir, name) in self.names.links(node) {
                self.directories.identified(dir, &name, before.id, stat.id);
            }
        }
    }
}

#[cfg(test)]
mod tests;
