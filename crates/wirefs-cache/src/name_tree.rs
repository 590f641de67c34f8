//! The name tree: identity, attributes and names of the inodes that the kernel holds.

mod dentries;
mod evicted;
mod memory;
mod negative;
mod replaced;

use crate::coherency::{Coherency, Freshness};
use evicted::EvictedNodes;
use negative::NegativeEntries;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use wirefs_op::{FileId, Stat, Time};

/// The local id of an inode, as in FUSE's `nodeid`. 1 is the root; ids are never reused during a mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TreeNodeId(pub u64);

/// The root of the mount.
pub const ROOT: TreeNodeId = TreeNodeId(1);

/// One inode.
#[derive(Clone, Debug)]
pub struct TreeNode {
    /// The cached attributes.
    pub stat: Stat,
    /// The freshness of the attributes; `None`: invalidated.
    pub freshness: Option<Freshness>,
    /// The time of the last own change of the object: replies to earlier requests are ignored.
    pub changed_at: Time,
    /// The time of the last reply about the object: replies to requests that were pending then may be older.
    pub observed_at: Time,
    /// Replies to own changes sent before this time are ignored, after a later reply or a granted lock.
    effect_at: Time,
    /// The kernel has used the node since the last answer that named it, so no such answer is in transit.
    is_used: bool,
    /// The number of lookups that the kernel holds (`nlookup` in FUSE).
    lookups: u64,
    /// The number of other references: open handles, pending requests.
    holds: u32,
    links: BTreeSet<(TreeNodeId, Vec<u8>)>,
    /// The directory of its latest name.
    home: Option<TreeNodeId>,
    /// The server has shown it in another directory while the kernel may have held it in its home.
    was_moved: bool,
    /// The name seen last. Of several hard links, others may have been removed on the server.
    latest: Option<(TreeNodeId, Vec<u8>)>,
}

impl TreeNode {
    fn new(stat: Stat, freshness: Freshness) -> TreeNode {
        TreeNode {
            stat,
            freshness: Some(freshness),
            changed_at: Time(0),
            observed_at: Time(0),
            effect_at: Time(0),
            is_used: false,
            lookups: 0,
            holds: 0,
            links: BTreeSet::new(),
            home: None,
            was_moved: false,
            latest: None,
        }
    }

    /// Returns true if the attributes are valid.
    pub fn is_fresh(&self, coherency: &Coherency) -> bool {
        self.freshness.is_some_and(|freshness| coherency.is_valid(freshness))
    }

    /// Returns true if the kernel may hold the node.
    pub fn is_held_by_kernel(&self) -> bool {
        self.lookups > 0
    }

    /// Returns true if forgetting `count` lookups releases the node in the kernel.
    pub fn is_last_lookup(&self, count: u64) -> bool {
        self.lookups <= count
    }

    /// Returns true if the kernel has used the node since the last answer that named it, so that the kernel
    /// certainly holds it.
    pub fn is_used(&self) -> bool {
        self.is_used
    }

    fn link(&self) -> Option<&(TreeNodeId, Vec<u8>)> {
        self.latest.as_ref().or_else(|| self.links.first())
    }

    /// Returns true if the node has a cached name.
    pub fn is_named(&self) -> bool {
        !self.links.is_empty()
    }
}

/// All nodes, indexed by local id, by object and by name.
#[derive(Debug)]
pub struct NameTree {
    nodes: BTreeMap<TreeNodeId, TreeNode>,
    by_file: BTreeMap<FileId, TreeNodeId>,
    by_name: BTreeMap<TreeNodeId, BTreeMap<Vec<u8>, TreeNodeId>>,
    evicted: EvictedNodes,
    negative: NegativeEntries,
    /// The time of the last own change of any object.
    changed_at: Time,
    next: u64,
    /// The total length of the names in `by_name`, in bytes.
    name_bytes: usize,
}

impl NameTree {
    /// Creates a tree with the root alone.
    pub fn new(root: Stat, freshness: Freshness) -> NameTree {
        let node = TreeNode { lookups: 1, is_used: true, ..TreeNode::new(root, freshness) };
        NameTree {
            nodes: BTreeMap::from([(ROOT, node)]),
            by_file: BTreeMap::from([(root.id, ROOT)]),
            by_name: BTreeMap::new(),
            evicted: EvictedNodes::default(),
            negative: NegativeEntries::default(),
            changed_at: Time(0),
            next: ROOT.0 + 1,
            name_bytes: 0,
        }
    }

    /// Returns a node.
    pub fn node(&self, id: TreeNodeId) -> Option<&TreeNode> {
        self.nodes.get(&id)
    }

    /// Returns a node for modification.
    pub fn node_mut(&mut self, id: TreeNodeId) -> Option<&mut TreeNode> {
        self.nodes.get_mut(&id)
    }

    /// Returns the number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns true if there is no node; never the case, since the root always exists.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Returns the node of an object.
    pub fn of_file(&self, file: FileId) -> Option<TreeNodeId> {
        self.by_file.get(&file).copied()
    }

    /// Updates the attributes of an object; creates its node if needed. Returns the node, and whether the
    /// attributes were accepted: attributes requested before an own change, or older than the cached ones,
    /// are not.
    ///
    /// A new node lives until [`NameTree::forget`] or [`NameTree::release`] drops its last reference.
    pub fn learn(&mut self, stat: &Stat, freshness: Freshness, coherency: &Coherency) -> (TreeNodeId, bool) {
        if let Some(id) = self.of_file(stat.id)
            && let Some(node) = self.nodes.get_mut(&id)
            && node.stat.kind == stat.kind
        {
            node.observed_at = coherency.now;
            let counts =
                freshness.at >= node.changed_at && node.freshness.is_none_or(|old| freshness.at >= old.at);
            if counts {
                let is_same = node.stat.unleased() == stat.unleased();
                let freshness = coherency.renewed(node.freshness, freshness, is_same);
                node.stat = Stat { leased: freshness.leased, ..*stat };
                node.freshness = Some(freshness);
            }
            return (id, counts);
        }
        let id = TreeNodeId(self.next);
        self.next += 1;
        let node = TreeNode::new(Stat { leased: freshness.leased, ..*stat }, freshness);
        let mut node = TreeNode { observed_at: coherency.now, ..node };
        let counts = self.evicted.restore(&mut node);
        self.nodes.insert(id, node);
        self.by_file.insert(stat.id, id);
        (id, counts)
    }

    /// Updates the attributes after an own change. The change was sent at `freshness.at` and its reply
    /// arrived at `now`; the server may have answered other requests in between.
    pub fn changed(&mut self, id: TreeNodeId, stat: Option<&Stat>, freshness: Freshness, now: Time) {
        if let Some(node) = self.nodes.get_mut(&id)
            && now >= node.changed_at
        {
            self.changed_at = self.changed_at.max(now);
            node.changed_at = now;
            node.freshness = None;
            if let Some(stat) = stat.filter(|stat| stat.id == node.stat.id && freshness.at >= node.effect_at)
            {
                node.freshness = Some(freshness);
                node.effect_at = freshness.at;
                node.stat = Stat { leased: freshness.leased, ..*stat };
            }
        }
    }

    /// Records that this client is about to change the object: replies to earlier requests are ignored.
    pub fn changing(&mut self, id: TreeNodeId, now: Time) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.changed_at = now;
            self.changed_at = self.changed_at.max(now);
        }
    }

    /// Records a granted lock on the object. Of all earlier requests, only the attributes in the grant count,
    /// and only if this client did not change the object after it requested the lock. Returns whether they
    /// count.
    pub fn locked(&mut self, id: TreeNodeId, granted: Option<(&Stat, Freshness)>, now: Time) -> bool {
        let Some(node) = self.nodes.get_mut(&id) else { return false };
        let granted = granted.filter(|(_, freshness)| freshness.at >= node.changed_at);
        node.freshness = granted.map(|(_, freshness)| freshness);
        if let Some((stat, freshness)) = granted {
            node.stat = Stat { leased: freshness.leased, ..*stat };
        }
        (node.changed_at, node.effect_at) = (now, now);
        self.changed_at = self.changed_at.max(now);
        granted.is_some()
    }

    /// Returns true if the reply to an own change sent at `at` is too late to describe the object.
    pub fn is_overtaken(&self, id: TreeNodeId, at: Time) -> bool {
        self.nodes.get(&id).is_some_and(|node| at < node.effect_at)
    }

    /// Invalidates the attributes of a node.
    pub fn invalidate(&mut self, id: TreeNodeId) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.freshness = None;
        }
    }

    /// Invalidates the attributes of an object, whether or not it has a node.
    pub fn invalidate_file(&mut self, file: FileId) {
        self.evicted.invalidate(file);
        if let Some(id) = self.of_file(file) {
            self.invalidate(id);
        }
    }

    /// Invalidates the attributes of all evicted nodes, when it is unknown which object was recalled.
    pub fn invalidate_evicted(&mut self, now: Time) {
        self.evicted.invalidate_all(now);
    }

    /// Returns the attributes that own changes since `at` left, if there were any: a reply to a request sent
    /// at `at` may lack them. The inner `None`: the attributes are unknown.
    pub fn changed_since(&self, file: FileId, at: Time) -> Option<Option<(Stat, Freshness)>> {
        if at > self.changed_at {
            return None;
        }
        match self.of_file(file).and_then(|id| self.nodes.get(&id)) {
            Some(node) => (at < node.changed_at).then(|| Some((node.stat, node.freshness?))),
            None => (at < self.evicted.changed_at(file)).then_some(None),
        }
    }

    /// Returns true if this client changed any object since `at`.
    pub fn is_changed_since(&self, at: Time) -> bool {
        at <= self.changed_at
    }

    /// Records that the kernel used the node: the answer that named it has arrived.
    pub fn used(&mut self, id: TreeNodeId) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.is_used = true;
        }
    }

    /// Returns the nodes that the kernel may hold.
    pub fn held_by_kernel(&self) -> impl Iterator<Item = TreeNodeId> {
        self.nodes.iter().filter(|(_, node)| node.is_held_by_kernel()).map(|(id, _)| *id)
    }

    /// Returns the nodes in a range of ids that only the kernel holds, without directories.
    pub fn idle_files(
        &self,
        from: (Bound<TreeNodeId>, Bound<TreeNodeId>),
    ) -> impl Iterator<Item = TreeNodeId> {
        let is_idle = |node: &TreeNode| {
            node.lookups > 0 && node.holds == 0 && node.stat.kind != wirefs_op::Kind::Directory
        };
        self.nodes.range(from).filter(move |(_, node)| is_idle(node)).map(|(id, _)| *id)
    }

    /// Returns the names in `parent` that the kernel may have cached as existing.
    pub fn kernel_names(&self, parent: TreeNodeId) -> impl Iterator<Item = &[u8]> {
        let names = self.by_name.get(&parent).into_iter().flatten();
        let is_held = |node: &TreeNodeId| self.nodes.get(node).is_some_and(TreeNode::is_held_by_kernel);
        names.filter(move |(_, node)| is_held(node)).map(|(name, _)| name.as_slice())
    }

    /// Limits the number of negative entries that the kernel may cache without a timeout.
    pub fn limit_negatives(&mut self, max: usize) {
        self.negative.limit(max);
    }

    /// Records that the kernel gets a negative entry for `name` in `parent` without a timeout. Returns false
    /// if the limit is reached.
    pub fn add_negative(&mut self, parent: TreeNodeId, name: &[u8]) -> bool {
        self.negative.insert(parent, name)
    }

    /// Removes the record of a negative entry. Returns true if the kernel may have it; the caller then
    /// invalidates it.
    pub fn remove_negative(&mut self, parent: TreeNodeId, name: &[u8]) -> bool {
        self.negative.remove(parent, name)
    }

    /// Removes and returns the negative entries of a directory; the caller invalidates them in the kernel.
    pub fn remove_negatives(&mut self, parent: TreeNodeId) -> BTreeSet<Vec<u8>> {
        self.negative.remove_all(parent)
    }

    /// Returns the directories with negative entries in the kernel.
    pub fn directories_with_negatives(&self) -> Vec<TreeNodeId> {
        self.negative.directories()
    }

    /// Advances the clock: removes records of evicted nodes that are no longer needed.
    pub fn expire(&mut self, now: Time) {
        self.evicted.expire(now);
    }

    /// Returns the number of nodes with leased attributes.
    pub fn leased(&self, coherency: &Coherency) -> usize {
        self.nodes
            .values()
            .filter(|node| node.freshness.is_some_and(|freshness| coherency.is_leased(freshness)))
            .count()
    }

    /// Counts a lookup that was returned to the kernel.
    pub fn count_lookup(&mut self, id: TreeNodeId) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.lookups += 1;
            node.is_used = false;
        }
    }

    /// Drops `count` lookups of the kernel (`FUSE_FORGET`).
    pub fn forget(&mut self, id: TreeNodeId, count: u64) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.lookups = node.lookups.saturating_sub(count);
            // The kernel released the node, but an answer that names it again may be in transit.
            node.is_used = false;
        }
        self.evict_if_unused(id);
    }

    /// Adds a reference until [`NameTree::release`].
    pub fn hold(&mut self, id: TreeNodeId) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.holds += 1;
        }
    }

    /// Drops a reference.
    pub fn release(&mut self, id: TreeNodeId) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.holds = node.holds.saturating_sub(1);
        }
        self.evict_if_unused(id);
    }

    /// Evicts a node without references, such as a new one for a canceled lookup.
    pub fn evict_if_unused(&mut self, id: TreeNodeId) {
        let free = self.nodes.get(&id).is_some_and(|node| node.lookups == 0 && node.holds == 0);
        if !free || id == ROOT {
            return;
        }
        if let Some(node) = self.nodes.remove(&id) {
            if self.of_file(node.stat.id) == Some(id) {
                self.by_file.remove(&node.stat.id);
            }
            self.evicted.note(&node);
            self.negative.remove_all(id);
            for (parent, name) in node.links {
                let removed = Self::remove_name(&mut self.by_name, parent, &name);
                self.name_bytes -= removed.map_or(0, |_| name.len());
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
