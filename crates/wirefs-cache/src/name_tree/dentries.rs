//! Which names lead to which nodes.

use super::{NameTree, ROOT, TreeNode, TreeNodeId};
use std::collections::BTreeMap;
use std::ops::Bound;
use wirefs_op::TreePath;

/// How deep a path may be before it is taken for a loop; a path of this many one-byte names passes the path limit.
const DEPTH_MAX: usize = wirefs_op::limits::PATH_BYTES_MAX / 2;

impl NameTree {
    /// Records that `name` in `parent` is `node`.
    pub fn link(&mut self, parent: TreeNodeId, name: &[u8], node: TreeNodeId) {
        if self.child(parent, name) == Some(node) {
            if let Some(entry) = self.nodes.get_mut(&node).filter(|entry| entry.links.len() > 1) {
                entry.latest = Some((parent, name.to_vec()));
            }
            return;
        }
        self.unlink(parent, name);
        if parent == node {
            return;
        }
        self.cut_circle(parent, node);
        if let Some(entry) = self.nodes.get_mut(&node) {
            // A directory has one name: a second one means that it was moved behind our back.
            if entry.stat.kind == wirefs_op::Kind::Directory {
                for (old_parent, old_name) in std::mem::take(&mut entry.links) {
                    let gone = Self::drop_name(&mut self.by_name, old_parent, &old_name);
                    self.name_bytes -= gone.map_or(0, |_| old_name.len());
                }
            }
            entry.links.insert((parent, name.to_vec()));
            entry.latest = Some((parent, name.to_vec()));
            self.by_name.entry(parent).or_default().insert(name.to_vec(), node);
            self.name_bytes += name.len();
        }
    }

    /// Where `dir` lies below `node` as far as is known, and `node` is about to get a name in it, what is known is out of date: others
    /// have moved one of them, or the server lies. The way down from `node` is forgotten.
    ///
    /// INVARIANT: who goes up from node to parent comes to the root.
    fn cut_circle(&mut self, dir: TreeNodeId, node: TreeNodeId) {
        let mut at = dir;
        while at != ROOT {
            let above = self.parent(at);
            if above == node {
                for (parent, name) in self.links(at) {
                    self.unlink(parent, &name);
                }
                return;
            }
            at = above;
        }
    }

    /// Records that there is no `name` in `parent` any more; tells which node it was.
    pub fn unlink(&mut self, parent: TreeNodeId, name: &[u8]) -> Option<TreeNodeId> {
        let node = Self::drop_name(&mut self.by_name, parent, name)?;
        self.name_bytes -= name.len();
        if let Some(entry) = self.nodes.get_mut(&node) {
            let link = (parent, name.to_vec());
            entry.links.remove(&link);
            if entry.latest.as_ref() == Some(&link) {
                entry.latest = None;
            }
        }
        Some(node)
    }

    pub(super) fn drop_name(
        by_name: &mut BTreeMap<TreeNodeId, BTreeMap<Vec<u8>, TreeNodeId>>,
        parent: TreeNodeId,
        name: &[u8],
    ) -> Option<TreeNodeId> {
        let names = by_name.get_mut(&parent)?;
        let node = names.remove(name);
        if names.is_empty() {
            by_name.remove(&parent);
        }
        node
    }

    /// The node that `name` in `parent` was last known to be.
    pub fn child(&self, parent: TreeNodeId, name: &[u8]) -> Option<TreeNodeId> {
        self.by_name.get(&parent)?.get(name).copied()
    }

    /// Records a rename; with `exchange` the two change places.
    pub fn rename(&mut self, from: (TreeNodeId, &[u8]), to: (TreeNodeId, &[u8]), exchange: bool) {
        let moved = self.unlink(from.0, from.1);
        let replaced = self.unlink(to.0, to.1);
        if let Some(moved) = moved {
            self.link(to.0, to.1, moved);
        }
        if let (true, Some(replaced)) = (exchange, replaced) {
            self.link(from.0, from.1, replaced);
        }
    }

    /// Where the node is, by one of its names; `None` when no name of it is known, or one of an ancestor's.
    pub fn path(&self, id: TreeNodeId) -> Option<TreePath> {
        let mut names: Vec<&[u8]> = Vec::new();
        let mut at = id;
        while at != ROOT {
            let (parent, name) = self.nodes.get(&at)?.link()?;
            names.push(name);
            at = *parent;
            if names.len() > DEPTH_MAX {
                return None;
            }
        }
        TreePath::from_names(names.into_iter().rev())
    }

    /// The directories in `parent` whose names come after `name`, at most `count`, as far as they are known.
    pub fn directories_after(&self, parent: TreeNodeId, name: &[u8], count: usize) -> Vec<TreeNodeId> {
        let Some(names) = self.by_name.get(&parent) else { return Vec::new() };
        let after = names.range::<[u8], _>((Bound::Excluded(name), Bound::Unbounded)).map(|(_, node)| *node);
        let is_directory = |id: &TreeNodeId| {
            self.nodes.get(id).is_some_and(|node| node.stat.kind == wirefs_op::Kind::Directory)
        };
        after.filter(is_directory).take(count).collect()
    }

    /// The names that the node is known by.
    pub fn links(&self, id: TreeNodeId) -> Vec<(TreeNodeId, Vec<u8>)> {
        self.nodes.get(&id).map(|node| node.links.iter().cloned().collect()).unwrap_or_default()
    }

    /// The directory that holds the node; the root holds itself.
    pub fn parent(&self, id: TreeNodeId) -> TreeNodeId {
        let link = self.nodes.get(&id).and_then(TreeNode::link);
        link.map_or(ROOT, |(parent, _)| *parent)
    }
}
