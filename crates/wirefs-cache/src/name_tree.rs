//! The nodes that the kernel knows: identity, attributes, and where each is in the tree.

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

/// A file as the front end names it. 1 is the root; numbers are never reused while the mount lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TreeNodeId(pub u64);

/// The root of the mount.
pub const ROOT: TreeNodeId = TreeNodeId(1);

/// One object.
#[derive(Clone, Debug)]
pub struct TreeNode {
    /// Its attributes as last heard of.
    pub stat: Stat,
    /// As of when they are known. `None`: they may not be believed any more.
    pub freshness: Option<Freshness>,
    /// When this client last changed the object: replies that were asked for before do not count.
    pub changed_at: Time,
    /// When it was last heard of: what was under way then may be older.
    pub observed_at: Time,
    /// Replies to own changes that were sent before do not count: a later one was taken in, or a lock granted.
    effect_at: Time,
    /// The kernel has used it since it was last told of it: it is there, and no answer is on its way that could bring it.
    is_used: bool,
    /// How many lookups the kernel holds.
    lookups: u64,
    /// What else holds it: open handles, requests under way.
    holds: u32,
    links: BTreeSet<(TreeNodeId, Vec<u8>)>,
    /// The name that it was last seen by: of several, others may be gone at the server.
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
            latest: None,
        }
    }

    /// Whether the attributes may be believed.
    pub fn is_fresh(&self, coherency: &Coherency) -> bool {
        self.freshness.is_some_and(|freshness| coherency.is_valid(freshness))
    }

    /// Whether the kernel may hold it.
    pub fn is_held_by_kernel(&self) -> bool {
        self.lookups > 0
    }

    /// Whether the kernel does not hold it any more once it has given back `count` lookups.
    pub fn is_last_lookup(&self, count: u64) -> bool {
        self.lookups <= count
    }

    /// Whether the kernel has used it since it was last told of it anew: it knows it for certain.
    pub fn is_used(&self) -> bool {
        self.is_used
    }

    fn link(&self) -> Option<&(TreeNodeId, Vec<u8>)> {
        self.latest.as_ref().or_else(|| self.links.first())
    }

    /// Whether it has a name that we know of.
    pub fn is_named(&self) -> bool {
        !self.links.is_empty()
    }
}

/// All nodes, by number, by identity and by name.
#[derive(Debug)]
pub struct NameTree {
    nodes: BTreeMap<TreeNodeId, TreeNode>,
    by_file: BTreeMap<FileId, TreeNodeId>,
    by_name: BTreeMap<TreeNodeId, BTreeMap<Vec<u8>, TreeNodeId>>,
    evicted: EvictedNodes,
    negative: NegativeEntries,
    /// When this client last changed anything.
    changed_at: Time,
    next: u64,
    /// Bytes of all names in `by_name`.
    name_bytes: usize,
}

impl NameTree {
    /// Starts with the root.
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

    /// The node with this number.
    pub fn node(&self, id: TreeNodeId) -> Option<&TreeNode> {
        self.nodes.get(&id)
    }

    /// The node with this number, to change.
    pub fn node_mut(&mut self, id: TreeNodeId) -> Option<&mut TreeNode> {
        self.nodes.get_mut(&id)
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are none; never, since there is a root.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The node that this object is, if it has one.
    pub fn of_file(&self, file: FileId) -> Option<TreeNodeId> {
        self.by_file.get(&file).copied()
    }

    /// Takes in attributes that are known so; makes the node when it is new. Tells whether they count: those asked for before an
    /// own change or before what is known do not.
    ///
    /// A new node lives until [`NameTree::forget`] or [`NameTree::release`] finds nothing holding it.
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

    /// Takes in the attributes that a change made by this client left behind. The change was sent at `freshness.at` and its
    /// reply came at `now`; in between, the server may have answered others from before it.
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

    /// This client is about to change the node: what was asked for before does not count.
    pub fn changing(&mut self, id: TreeNodeId, now: Time) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.changed_at = now;
            self.changed_at = self.changed_at.max(now);
        }
    }

    /// The server granted a lock on the object: of all that was asked for before, only the attributes that came with the grant count, and
    /// those only if this client did not change the object after it asked for the lock. Returns whether they count.
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

    /// Whether the reply to an own change of the object that was sent at `at` comes too late to say what the object is.
    pub fn is_overtaken(&self, id: TreeNodeId, at: Time) -> bool {
        self.nodes.get(&id).is_some_and(|node| at < node.effect_at)
    }

    /// No longer believes the node's attributes.
    pub fn invalidate(&mut self, id: TreeNodeId) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.freshness = None;
        }
    }

    /// No longer believes the attributes of an object, whether it has a node or not.
    pub fn invalidate_file(&mut self, file: FileId) {
        self.evicted.invalidate(file);
        if let Some(id) = self.of_file(file) {
            self.invalidate(id);
        }
    }

    /// No longer believes the attributes of any object that has no node: one of them was taken back, and nobody says which.
    pub fn invalidate_evicted(&mut self, now: Time) {
        self.evicted.invalidate_all(now);
    }

    /// The object's attributes as this client's own changes left them, where it changed them since `at`: what was asked for then may
    /// not know of that. `None` within: nobody knows them.
    pub fn changed_since(&self, file: FileId, at: Time) -> Option<Option<(Stat, Freshness)>> {
        if at > self.changed_at {
            return None;
        }
        match self.of_file(file).and_then(|id| self.nodes.get(&id)) {
            Some(node) => (at < node.changed_at).then(|| Some((node.stat, node.freshness?))),
            None => (at < self.evicted.changed_at(file)).then_some(None),
        }
    }

    /// Whether this client changed anything since `at`.
    pub fn is_changed_since(&self, at: Time) -> bool {
        at <= self.changed_at
    }

    /// The kernel made use of the node: what told it of the node has arrived there.
    pub fn used(&mut self, id: TreeNodeId) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.is_used = true;
        }
    }

    /// All nodes that the kernel may hold.
    pub fn held_by_kernel(&self) -> impl Iterator<Item = TreeNodeId> {
        self.nodes.iter().filter(|(_, node)| node.is_held_by_kernel()).map(|(id, _)| *id)
    }

    /// The nodes from there on, by age, that the kernel holds and nothing else does: files of all kinds, no directories.
    pub fn idle_files(
        &self,
        from: (Bound<TreeNodeId>, Bound<TreeNodeId>),
    ) -> impl Iterator<Item = TreeNodeId> {
        let is_idle = |node: &TreeNode| {
            node.lookups > 0 && node.holds == 0 && node.stat.kind != wirefs_op::Kind::Directory
        };
        self.nodes.range(from).filter(move |(_, node)| is_idle(node)).map(|(id, _)| *id)
    }

    /// The names in `parent` that the kernel may hold as something that is there.
    pub fn kernel_names(&self, parent: TreeNodeId) -> impl Iterator<Item = &[u8]> {
        let names = self.by_name.get(&parent).into_iter().flatten();
        let is_held = |node: &TreeNodeId| self.nodes.get(node).is_some_and(TreeNode::is_held_by_kernel);
        names.filter(move |(_, node)| is_held(node)).map(|(name, _)| name.as_slice())
    }

    /// No more than `most` names are noted from now on of which the kernel is told for ever that they are not there.
    pub fn limit_negatives(&mut self, most: usize) {
        self.negative.limit(most);
    }

    /// Notes that the kernel is to be told for ever that `name` is not in `parent`; false when that would be too much to
    /// remember.
    pub fn add_negative(&mut self, parent: TreeNodeId, name: &[u8]) -> bool {
        self.negative.insert(parent, name)
    }

    /// Whether the kernel may hold that `name` is not in `parent`; it will be told to forget it.
    pub fn remove_negative(&mut self, parent: TreeNodeId, name: &[u8]) -> bool {
        self.negative.remove(parent, name)
    }

    /// The names of which the kernel may hold that they are not in `parent`; it will be told to forget them.
    pub fn remove_negatives(&mut self, parent: TreeNodeId) -> BTreeSet<Vec<u8>> {
        self.negative.remove_all(parent)
    }

    /// The directories of which the kernel may hold that names are not in them.
    pub fn directories_with_negatives(&self) -> Vec<TreeNodeId> {
        self.negative.directories()
    }

    /// Lets time pass.
    pub fn expire(&mut self, now: Time) {
        self.evicted.expire(now);
    }

    /// How many nodes' attributes are leased.
    pub fn leased(&self, coherency: &Coherency) -> usize {
        self.nodes
            .values()
            .filter(|node| node.freshness.is_some_and(|freshness| coherency.is_leased(freshness)))
            .count()
    }

    /// Counts a lookup that the kernel was told.
    pub fn count_lookup(&mut self, id: TreeNodeId) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.lookups += 1;
            node.is_used = false;
        }
    }

    /// The kernel gives back `count` lookups.
    pub fn forget(&mut self, id: TreeNodeId, count: u64) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.lookups = node.lookups.saturating_sub(count);
            // The kernel let it go, and an answer that brings it back is on its way.
            node.is_used = false;
        }
        self.evict_if_unused(id);
    }

    /// Keeps the node alive until [`NameTree::release`].
    pub fn hold(&mut self, id: TreeNodeId) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.holds += 1;
        }
    }

    /// Ends a hold.
    pub fn release(&mut self, id: TreeNodeId) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.holds = node.holds.saturating_sub(1);
        }
        self.evict_if_unused(id);
    }

    /// Drops a node that nothing holds, such as one just learned for a lookup that nobody waits for any more.
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
                let gone = Self::drop_name(&mut self.by_name, parent, &name);
                self.name_bytes -= gone.map_or(0, |_| name.len());
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
