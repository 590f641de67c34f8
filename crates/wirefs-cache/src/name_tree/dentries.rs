//! The names of nodes, and their paths.

use super::{NameTree, ROOT, TreeNode, TreeNodeId};
use std::collections::BTreeMap;
use std::ops::Bound;
use wirefs_op::TreePath;

/// The maximal depth of a path; a path of this many one-byte names already exceeds the limit of paths.
const DEPTH_MAX: usize = wirefs_op::limits::PATH_BYTES_MAX / 2;

impl NameTree {
    /// Records that `name` in `parent` refers to `node`.
    pub fn link(&mut self, parent: TreeNodeId, name: &[u8], node: TreeNodeId) {
        if self.child(parent, name) == Some(node) {
            if let Some(entry) = self.nodes.get_mut(&node).filter(|entry| entry.links.len() > 1) {
                entry.latest = Some((parent, name.to_vec()));
            }
            return;
        }
        if let Some(entry) = self.nodes.get_mut(&node) {
            let is_held = entry.is_held_by_kernel();
            let has_several = entry.stat.kind != wirefs_op::Kind::Directory && !entry.links.is_empty();
            let is_elsewhere = entry.home.is_some_and(|home| home != parent);
            entry.was_moved = (entry.was_moved && is_held) || (is_elsewhere && (is_held || has_several));
        }
        self.relink(parent, name, node);
    }

    /// Gives `node` the name.
    fn relink(&mut self, parent: TreeNodeId, name: &[u8], node: TreeNodeId) {
        self.unlink(parent, name);
        if parent == node {
            return;
        }
        self.break_cycle(parent, node);
        if let Some(entry) = self.nodes.get_mut(&node) {
            // A directory has one name: a second one means that another client moved it.
            if entry.stat.kind == wirefs_op::Kind::Directory {
                for (old_parent, old_name) in std::mem::take(&mut entry.links) {
                    let removed = Self::remove_name(&mut self.by_name, old_parent, &old_name);
                    self.name_bytes -= removed.map_or(0, |_| old_name.len());
                }
            }
            entry.links.insert((parent, name.to_vec()));
            entry.home = Some(parent);
            entry.latest = Some((parent, name.to_vec()));
            self.by_name.entry(parent).or_default().insert(name.to_vec(), node);
            self.name_bytes += name.len();
        }
    }

    /// Removes the names on the path from `node` down to `dir`, if `dir` is below `node` in the cache and
    /// `node` is about to get a name in `dir`. The cached path is then out of date, or the server is faulty.
    ///
    /// INVARIANT: from each node, the parents lead to the root.
    fn break_cycle(&mut self, dir: TreeNodeId, node: TreeNodeId) {
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

    /// Records that `name` in `parent` no longer exists. Returns its former node.
    pub fn unlink(&mut self, parent: TreeNodeId, name: &[u8]) -> Option<TreeNodeId> {
        let node = Self::remove_name(&mut self.by_name, parent, name)?;
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

    pub(super) fn remove_name(
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

    /// Returns the cached node of `name` in `parent`.
    pub fn child(&self, parent: TreeNodeId, name: &[u8]) -> Option<TreeNodeId> {
        self.by_name.get(&parent)?.get(name).copied()
    }

    /// Records a rename; with `exchange`, of both names.
    pub fn rename(&mut self, from: (TreeNodeId, &[u8]), to: (TreeNodeId, &[u8]), exchange: bool) {
        let moved = self.unlink(from.0, from.1);
        let replaced = self.unlink(to.0, to.1);
        if let Some(moved) = moved {
            self.relink(to.0, to.1, moved);
        }
        if let (true, Some(replaced)) = (exchange, replaced) {
            self.relink(from.0, from.1, replaced);
        }
    }

    /// Records that a node has got its name by a rename in which the kernel takes no part: its caller is gone. The kernel
    /// knows the node at its former place.
    pub fn moved_without_kernel(&mut self, node: TreeNodeId) {
        if let Some(entry) = self.nodes.get_mut(&node) {
            entry.was_moved |= entry.is_held_by_kernel();
        }
    }

    /// Returns whether the kernel follows the symbolic link `link` to a place below the root, and not beyond: the target
    /// is relative, and climbs only at its beginning, and not higher than the root from any directory that has the
    /// link. Behind another name, which may be a link itself, a climb leads to an unknown directory.
    pub fn leads_inside(&self, link: TreeNodeId, target: &[u8]) -> bool {
        let names = target.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b"."));
        let climbs = names.clone().take_while(|name| *name == b"..").count();
        let climbs_later = names.skip(climbs).any(|name| name == b"..");
        let is_relative = !target.starts_with(b"/") && !target.contains(&0);
        is_relative
            && !climbs_later
            && (climbs == 0 || self.depth_min(link).is_some_and(|depth| climbs <= depth))
    }

    /// Returns whether the kernel follows an absolute target to the mount at `mountpoint`, and not out of it. In a program
    /// to which that path means something else, it leads elsewhere.
    pub fn leads_to_mount(mountpoint: &[u8], target: &[u8]) -> bool {
        let Some(below) = target.strip_prefix(mountpoint) else { return false };
        let is_separate = below.is_empty() || below.starts_with(b"/");
        is_separate && !below.contains(&0) && below.split(|byte| *byte == b'/').all(|name| name != b"..")
    }

    /// Returns the smallest number of directories between the root and a name of the node; `None` if the kernel may know
    /// the node elsewhere.
    fn depth_min(&self, id: TreeNodeId) -> Option<usize> {
        let node = self.nodes.get(&id).filter(|node| !node.was_moved)?;
        let depths = node.links.iter().map(|(parent, _)| self.depth(*parent));
        depths.collect::<Option<Vec<_>>>()?.into_iter().min()
    }

    /// Returns the number of names on the path of a directory; `None` if the kernel may know another path.
    fn depth(&self, directory: TreeNodeId) -> Option<usize> {
        let (mut at, mut depth) = (directory, 0);
        while at != ROOT {
            let node = self.nodes.get(&at).filter(|node| !node.was_moved)?;
            at = node.link()?.0;
            depth += 1;
        }
        Some(depth)
    }

    /// Returns one path of the node; `None` if it or an ancestor has no cached name.
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

    /// Returns at most `count` cached subdirectories of `parent` whose names are after `name`.
    pub fn directories_after(&self, parent: TreeNodeId, name: &[u8], count: usize) -> Vec<TreeNodeId> {
        let Some(names) = self.by_name.get(&parent) else { return Vec::new() };
        let after = names.range::<[u8], _>((Bound::Excluded(name), Bound::Unbounded)).map(|(_, node)| *node);
        let is_directory = |id: &TreeNodeId| {
            self.nodes.get(id).is_some_and(|node| node.stat.kind == wirefs_op::Kind::Directory)
        };
        after.filter(is_directory).take(count).collect()
    }

    /// Returns the cached names of a node, each with its parent.
    pub fn links(&self, id: TreeNodeId) -> Vec<(TreeNodeId, Vec<u8>)> {
        self.nodes.get(&id).map(|node| node.links.iter().cloned().collect()).unwrap_or_default()
    }

    /// Returns the parent directory of the node; the root is its own parent.
    pub fn parent(&self, id: TreeNodeId) -> TreeNodeId {
        let link = self.nodes.get(&id).and_then(TreeNode::link);
        link.map_or(ROOT, |(parent, _)| *parent)
    }
}
