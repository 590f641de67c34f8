//! All objects of a tree that can be reached, at one moment, and what was changed between two.

use crate::ops::client::Client;
use std::collections::{BTreeMap, BTreeSet};
use wirefs_op::{FileId, Kind, Stat, TreePath};
use wirefs_server::Touched;

/// An object by what it is called in every tree in which the same was done.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Label {
    /// The first of its paths.
    Path(TreePath),
    /// It has none, but is open here.
    Open(usize),
}

/// One thing that changed, or was said to be about to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Change {
    /// All of the object.
    Object(Label),
    /// What a name in a directory means, and the directory's attributes.
    Name(Label, Vec<u8>),
    /// A directory's attributes alone.
    Attributes(Label),
}

#[derive(Debug)]
struct Object {
    label: Label,
    stat: Stat,
    /// Of a directory.
    names: BTreeMap<Vec<u8>, FileId>,
}

/// All objects.
#[derive(Debug, Default)]
pub(super) struct Objects(BTreeMap<FileId, Object>);

impl Objects {
    /// Looks at everything that `client` can see.
    pub(super) fn of(client: &Client<'_>) -> Objects {
        let mut objects = Objects::default();
        let mut unread = BTreeSet::from([TreePath::root()]);
        // In the order of paths, so that each object gets the first of its names.
        while let Some(path) = unread.pop_first() {
            let Some(stat) = client.look_at(&path) else { continue };
            let listed = if stat.kind == Kind::Directory { client.names_in(&path) } else { BTreeMap::new() };
            unread.extend(listed.keys().filter_map(|name| path.join(name)));
            let label = Label::Path(path);
            objects.0.entry(stat.id).or_insert(Object { label, stat, names: listed });
        }
        for (slot, stat) in client.look_at_open() {
            let names = BTreeMap::new();
            objects.0.entry(stat.id).or_insert(Object { label: Label::Open(slot), stat, names });
        }
        objects
    }

    /// What is not as it was, of all that was there before.
    pub(super) fn changed_until(&self, after: &Objects) -> BTreeSet<Change> {
        let mut changes = BTreeSet::new();
        for (id, before) in &self.0 {
            let Some(after) = after.0.get(id) else {
                // What had no name and was closed is nobody's any more.
                if before.stat.nlink > 0 {
                    changes.insert(Change::Object(before.label.clone()));
                }
                continue;
            };
            let names: BTreeSet<&Vec<u8>> = before.names.keys().chain(after.names.keys()).collect();
            let changed = names.into_iter().filter(|name| before.names.get(*name) != after.names.get(*name));
            let changed: Vec<Change> =
                changed.map(|name| Change::Name(before.label.clone(), name.clone())).collect();
            // A directory whose names change has other attributes after that.
            if changed.is_empty() && before.stat.version != after.stat.version {
                let label = before.label.clone();
                let is_directory = before.stat.kind == Kind::Directory;
                changes.insert(if is_directory { Change::Attributes(label) } else { Change::Object(label) });
            }
            changes.extend(changed);
        }
        changes
    }

    /// Whether this object had no name and was closed, so that nobody can tell any more whether it was changed before.
    pub(super) fn is_closed_until(&self, after: &Objects, change: &Change) -> bool {
        let closed = self.0.iter().filter(|(id, _)| !after.0.contains_key(id));
        closed.into_iter().any(|(_, object)| *change == Change::Object(object.label.clone()))
    }

    /// What was said to be about to change, of all that is there.
    pub(super) fn touched_by(&self, touched: &[Touched]) -> BTreeSet<Change> {
        let change = |touched: &Touched| {
            let label = self.0.get(&touched.id)?.label.clone();
            Some(match &touched.name {
                Some(name) => Change::Name(label, name.to_vec()),
                None => Change::Object(label),
            })
        };
        touched.iter().filter_map(change).collect()
    }
}
