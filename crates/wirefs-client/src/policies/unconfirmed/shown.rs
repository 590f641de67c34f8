//! Objects of unconfirmed changes keep the attributes that programs have already seen, after the server has confirmed
//! the changes.

use crate::view::View;
use crate::view::shown::ShownAs;
use std::collections::BTreeMap;
use wirefs_cache::TreeNodeId;
use wirefs_op::{FileId, Stat};

impl View {
    /// Returns an object to the server's attributes, `stat`. Attributes that were shown before and that no change affects stay as
    /// they were shown.
    pub(crate) fn caught_up(&mut self, before: &Stat, stat: &Stat) {
        let known = self.exclusive.unconfirmed.shown_ino(stat.id);
        let of = |stat: &Stat| (stat.atime, stat.mtime, stat.ctime, stat.blocks, stat.size);
        if known.is_some() || of(before) != of(stat) {
            let ino = known.unwrap_or_else(|| self.present(stat).id.ino);
            self.exclusive.unconfirmed.shown.tell(stat.id, ShownAs::of(ino, stat, before));
        }
    }

    /// The server's ids of confirmed objects, by the inode numbers that the mount shows: a server whose machine has restarted does
    /// not know them by the numbers of the changes that made them.
    pub(crate) fn confirmed_ids(&self) -> BTreeMap<u64, FileId> {
        self.exclusive.unconfirmed.shown.shown_as.iter().map(|(id, shown_as)| (shown_as.ino, *id)).collect()
    }

    /// Sets the server's id and attributes of a node's object.
    pub(crate) fn identified(&mut self, node: TreeNodeId, stat: &Stat) {
        self.all_identified(&BTreeMap::from([(node, *stat)]));
    }

    /// The same for several nodes. The new id of one may be the former id of another.
    pub(crate) fn all_identified(&mut self, nodes: &BTreeMap<TreeNodeId, Stat>) {
        let known = nodes.iter().filter_map(|(node, stat)| {
            let before = self.names.node(*node)?.stat;
            Some((*node, before, self.present(&before).id.ino, *stat))
        });
        let known: Vec<(TreeNodeId, Stat, u64, Stat)> = known.collect();
        for (_, before, ..) in &known {
            self.exclusive.unconfirmed.shown.forget(before.id);
        }
        for (node, before, ino, stat) in known {
            self.exclusive.unconfirmed.shown.tell(stat.id, ShownAs::of(ino, &stat, &before));
            self.names.identified(node, stat.id);
            self.files.identified(node, before.version, stat.version);
            for (dir, name) in self.names.links(node) {
                self.directories.identified(dir, &name, before.id, stat.id);
            }
        }
    }
}
