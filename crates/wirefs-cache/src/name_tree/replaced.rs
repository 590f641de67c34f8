//! Files that were replaced by own doing, and go on to be the same file for those who work with them here.

use crate::coherency::Freshness;
use crate::name_tree::{NameTree, TreeNodeId};
use wirefs_op::{FileId, Stat, Time};

impl NameTree {
    /// Another object has taken the place of the node's, by a change of this client that was answered at `now`: it is the node's now.
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

    /// The node's object, which this client has made, is known by this number from now on.
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
