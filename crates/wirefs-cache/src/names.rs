//! The nodes that the kernel knows: identity, attributes, and where each is in the tree.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use wirefs_op::{FileId, Stat, Time, TreePath};

/// A file as the front end names it. 1 is the root; numbers are never reused while the mount lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u64);

/// The root of the mount.
pub const ROOT: NodeId = NodeId(1);

/// How deep a path may be before it is taken for a loop; a path of this many one-byte names passes the path limit.
const DEPTH_MAX: usize = wirefs_op::limits::PATH_BYTES_MAX / 2;

/// One object.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its attributes as last heard of.
    pub stat: Stat,
    /// When they were asked for: they may be believed from here on as long as the mode says. `None`: not any more.
    pub known_at: Option<Time>,
    /// When this client last changed the object: replies that were asked for before do not count.
    pub changed_at: Time,
    /// How many lookups the kernel holds.
    lookups: u64,
    /// What else holds it: open handles, requests under way.
    holds: u32,
    links: BTreeSet<(NodeId, Vec<u8>)>,
    /// The name that it was last seen by: of several, others may be gone at the server.
    latest: Option<(NodeId, Vec<u8>)>,
}

impl Node {
    /// Whether the attributes may be believed at `now`.
    pub fn is_fresh(&self, now: Time, window: std::time::Duration) -> bool {
        self.known_at.is_some_and(|at| now < at + window)
    }

    fn link(&self) -> Option<&(NodeId, Vec<u8>)> {
        self.latest.as_ref().or_else(|| self.links.first())
    }

    /// Whether it has a name that we know of.
    pub fn is_named(&self) -> bool {
        !self.links.is_empty()
    }
}

/// All nodes, by number, by identity and by name.
#[derive(Debug)]
pub struct Names {
    nodes: BTreeMap<NodeId, Node>,
    by_file: BTreeMap<FileId, NodeId>,
    by_name: BTreeMap<NodeId, BTreeMap<Vec<u8>, NodeId>>,
    next: u64,
}

impl Names {
    /// Starts with the root.
    pub fn new(root: Stat, at: Time) -> Names {
        let node = Node {
            stat: root,
            known_at: Some(at),
            changed_at: Time(0),
            lookups: 1,
            holds: 0,
            links: BTreeSet::new(),
            latest: None,
        };
        Names {
            nodes: BTreeMap::from([(ROOT, node)]),
            by_file: BTreeMap::from([(root.id, ROOT)]),
            by_name: BTreeMap::new(),
            next: ROOT.0 + 1,
        }
    }

    /// The node with this number.
    pub fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(&id)
    }

    /// The node with this number, to change.
    pub fn node_mut(&mut self, id: NodeId) -> Option<&mut Node> {
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
    pub fn of_file(&self, file: FileId) -> Option<NodeId> {
        self.by_file.get(&file).copied()
    }

    /// Takes in attributes that were asked for at `at`; makes the node when it is new.
    ///
    /// A new node lives until [`Names::forget`] or [`Names::release`] finds nothing holding it.
    pub fn learn(&mut self, stat: &Stat, at: Time) -> NodeId {
        if let Some(id) = self.of_file(stat.id)
            && let Some(node) = self.nodes.get_mut(&id)
            && node.stat.kind == stat.kind
        {
            if at >= node.changed_at && node.known_at.is_none_or(|known| at >= known) {
                node.stat = *stat;
                node.known_at = Some(at);
            }
            return id;
        }
        let id = NodeId(self.next);
        self.next += 1;
        let node = Node {
            stat: *stat,
            known_at: Some(at),
            changed_at: Time(0),
            lookups: 0,
            holds: 0,
            links: BTreeSet::new(),
            latest: None,
        };
        self.nodes.insert(id, node);
        self.by_file.insert(stat.id, id);
        id
    }

    /// Takes in the attributes that a change made by this client left behind. The change was sent at `sent` and its
    /// reply came at `now`; in between, the server may have answered others from before it.
    pub fn changed(&mut self, id: NodeId, stat: Option<&Stat>, sent: Time, now: Time) {
        if let Some(node) = self.nodes.get_mut(&id)
            && now >= node.changed_at
        {
            node.changed_at = now;
            node.known_at = None;
            if let Some(stat) = stat.filter(|stat| stat.id == node.stat.id) {
                node.known_at = Some(sent);
                node.stat = *stat;
            }
        }
    }

    /// No longer believes the node's attributes.
    pub fn doubt(&mut self, id: NodeId) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.known_at = None;
        }
    }

    /// Records that `name` in `parent` is `node`.
    pub fn link(&mut self, parent: NodeId, name: &[u8], node: NodeId) {
        if self.child(parent, name) == Some(node) {
            if let Some(entry) = self.nodes.get_mut(&node).filter(|entry| entry.links.len() > 1) {
                entry.latest = Some((parent, name.to_vec()));
            }
            return;
        }
        self.unlink(parent, name);
        if let Some(entry) = self.nodes.get_mut(&node) {
            // A directory has one name: a second one means that it was moved behind our back.
            if entry.stat.kind == wirefs_op::Kind::Directory {
                for (old_parent, old_name) in std::mem::take(&mut entry.links) {
                    Self::drop_name(&mut self.by_name, old_parent, &old_name);
                }
            }
            entry.links.insert((parent, name.to_vec()));
            entry.latest = Some((parent, name.to_vec()));
            self.by_name.entry(parent).or_default().insert(name.to_vec(), node);
        }
    }

    /// Records that there is no `name` in `parent` any more; tells which node it was.
    pub fn unlink(&mut self, parent: NodeId, name: &[u8]) -> Option<NodeId> {
        let node = Self::drop_name(&mut self.by_name, parent, name)?;
        if let Some(entry) = self.nodes.get_mut(&node) {
            let link = (parent, name.to_vec());
            entry.links.remove(&link);
            if entry.latest.as_ref() == Some(&link) {
                entry.latest = None;
            }
        }
        Some(node)
    }

    fn drop_name(
        by_name: &mut BTreeMap<NodeId, BTreeMap<Vec<u8>, NodeId>>,
        parent: NodeId,
        name: &[u8],
    ) -> Option<NodeId> {
        let names = by_name.get_mut(&parent)?;
        let node = names.remove(name);
        if names.is_empty() {
            by_name.remove(&parent);
        }
        node
    }

    /// The node that `name` in `parent` was last known to be.
    pub fn child(&self, parent: NodeId, name: &[u8]) -> Option<NodeId> {
        self.by_name.get(&parent)?.get(name).copied()
    }

    /// Records a rename; with `exchange` the two change places.
    pub fn rename(&mut self, from: (NodeId, &[u8]), to: (NodeId, &[u8]), exchange: bool) {
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
    pub fn path(&self, id: NodeId) -> Option<TreePath> {
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
    pub fn directories_after(&self, parent: NodeId, name: &[u8], count: usize) -> Vec<NodeId> {
        let Some(names) = self.by_name.get(&parent) else { return Vec::new() };
        let after = names.range::<[u8], _>((Bound::Excluded(name), Bound::Unbounded)).map(|(_, node)| *node);
        let is_directory =
            |id: &NodeId| self.nodes.get(id).is_some_and(|node| node.stat.kind == wirefs_op::Kind::Directory);
        after.filter(is_directory).take(count).collect()
    }

    /// The names that the node is known by.
    pub fn links(&self, id: NodeId) -> Vec<(NodeId, Vec<u8>)> {
        self.nodes.get(&id).map(|node| node.links.iter().cloned().collect()).unwrap_or_default()
    }

    /// The directory that holds the node; the root holds itself.
    pub fn parent(&self, id: NodeId) -> NodeId {
        let link = self.nodes.get(&id).and_then(Node::link);
        link.map_or(ROOT, |(parent, _)| *parent)
    }

    /// Counts a lookup that the kernel was told.
    pub fn count(&mut self, id: NodeId) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.lookups += 1;
        }
    }

    /// The kernel gives back `count` lookups.
    pub fn forget(&mut self, id: NodeId, count: u64) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.lookups = node.lookups.saturating_sub(count);
        }
        self.drop_if_free(id);
    }

    /// Keeps the node alive until [`Names::release`].
    pub fn hold(&mut self, id: NodeId) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.holds += 1;
        }
    }

    /// Ends a hold.
    pub fn release(&mut self, id: NodeId) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.holds = node.holds.saturating_sub(1);
        }
        self.drop_if_free(id);
    }

    /// Drops a node that nothing holds, such as one just learned for a lookup that nobody waits for any more.
    pub fn drop_if_free(&mut self, id: NodeId) {
        let free = self.nodes.get(&id).is_some_and(|node| node.lookups == 0 && node.holds == 0);
        if !free || id == ROOT {
            return;
        }
        if let Some(node) = self.nodes.remove(&id) {
            if self.of_file(node.stat.id) == Some(id) {
                self.by_file.remove(&node.stat.id);
            }
            for (parent, name) in node.links {
                Self::drop_name(&mut self.by_name, parent, &name);
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
