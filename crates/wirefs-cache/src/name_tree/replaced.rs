//! Files that this client replaced, and that remain the same inode for local programs.

use crate::coherency::Freshness;
use crate::name_tree::{NameTree, TreeNodeId};
use wirefs_op::{FileId, Stat, Time};

impl NameTree {
    /// Records that another object took the place of the node's object, by an own change that was answered at
    /// `now`.
    pub fn replaced(&mut self, id: TreeNodeId, stat: &Stat, freshness: Freshness, now: Time) {
        let Some(node) = self.nodes.get_mut(&id) else { return };
        if self.by_file.get(&node.stat.id) == Some(&id) {
            self.by_file.remove(&node.stat.id);
        }
        node.stat = Stat { leased: freshness.leased, ..*stat };
        node.freshness = Some(freshness);
        (node.changed_at, node.effect_at) = (now, freshness.at);
        self.changed_at = self.changed_at.max(now);
        self.by_file.insert(stat.id, id);
    }

    /// Replaces the provisional id of an object that this client created by its id on the server.
    pub fn identified(&mut self, id: TreeNodeId, file: FileId) {
        let Some(node) = self.nodes.get_mut(&id) else { return };
        if self.by_file.get(&node.stat.id) == Some(&id) {
            self.by_file.remove(&node.stat.id);
        }
        node.stat.id = file;
        self.by_file.insert(file, id);
    }
}

#[cfg(test)]
mod tests;
