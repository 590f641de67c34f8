//! All reachable objects of a tree at one time, and the changes between two times.

use crate::ops::client::TreeClient;
use std::collections::{BTreeMap, BTreeSet};
use wirefs_op::{FileId, Kind, Stat, TreePath};
use wirefs_server::Touched;

/// The name of an object, equal in all trees with the same history.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ObjectLabel {
    /// The first of its paths.
    Path(TreePath),
    /// An open file without a path, by its slot.
    Open(usize),
}

/// One change, actual or announced.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TreeChange {
    /// Any part of the object.
    Object(ObjectLabel),
    /// The meaning of a name in a directory, and the directory's attributes.
    Name(ObjectLabel, Vec<u8>),
    /// Only the attributes of a directory.
    Attributes(ObjectLabel),
}

#[derive(Debug)]
struct ObjectState {
    label: ObjectLabel,
    stat: Stat,
    /// For directories.
    names: BTreeMap<Vec<u8>, FileId>,
}

/// All objects.
#[derive(Debug, Default)]
pub(super) struct ObjectSnapshot(BTreeMap<FileId, ObjectState>);

impl ObjectSnapshot {
    /// Reads all objects visible to `client`.
    pub(super) fn of(client: &TreeClient<'_>) -> ObjectSnapshot {
        let mut objects = ObjectSnapshot::default();
        let mut pending = BTreeSet::from([TreePath::root()]);
        // In order of paths, so that each object gets the first of its names.
        while let Some(path) = pending.pop_first() {
            let Some(stat) = client.stat_of(&path) else { continue };
            let listed = if stat.kind == Kind::Directory { client.names_in(&path) } else { BTreeMap::new() };
            pending.extend(listed.keys().filter_map(|name| path.join(name)));
            let label = ObjectLabel::Path(path);
            objects.0.entry(stat.id).or_insert(ObjectState { label, stat, names: listed });
        }
        for (slot, stat) in client.open_file_stats() {
            let names = BTreeMap::new();
            objects.0.entry(stat.id).or_insert(ObjectState { label: ObjectLabel::Open(slot), stat, names });
        }
        objects
    }

    /// Returns the changes from `self` to `after`, of objects in `self`.
    pub(super) fn changes_to(&self, after: &ObjectSnapshot) -> BTreeSet<TreeChange> {
        let mut changes = BTreeSet::new();
        for (id, before) in &self.0 {
            let Some(after) = after.0.get(id) else {
                // A closed object without a name is gone.
                if before.stat.nlink > 0 {
                    changes.insert(TreeChange::Object(before.label.clone()));
                }
                continue;
            };
            let names: BTreeSet<&Vec<u8>> = before.names.keys().chain(after.names.keys()).collect();
            let changed = names.into_iter().filter(|name| before.names.get(*name) != after.names.get(*name));
            let changed: Vec<TreeChange> =
                changed.map(|name| TreeChange::Name(before.label.clone(), name.clone())).collect();
            // A change of its names implies a change of a directory's attributes.
            if changed.is_empty() && before.stat.version != after.stat.version {
                let label = before.label.clone();
                let is_directory = before.stat.kind == Kind::Directory;
                changes.insert(if is_directory {
                    TreeChange::Attributes(label)
                } else {
                    TreeChange::Object(label)
                });
            }
            changes.extend(changed);
        }
        changes
    }

    /// Returns whether the object had no name and was closed, so that its change can no longer be observed.
    pub(super) fn was_closed_by(&self, after: &ObjectSnapshot, change: &TreeChange) -> bool {
        let closed = self.0.iter().filter(|(id, _)| !after.0.contains_key(id));
        closed.into_iter().any(|(_, object)| *change == TreeChange::Object(object.label.clone()))
    }

    /// Returns the announced changes of objects in `self`.
    pub(super) fn touched_by(&self, touched: &[Touched]) -> BTreeSet<TreeChange> {
        let change = |touched: &Touched| {
            let label = self.0.get(&touched.id)?.label.clone();
            Some(match &touched.name {
                Some(name) => TreeChange::Name(label, name.to_vec()),
                None => TreeChange::Object(label),
            })
        };
        touched.iter().filter_map(change).collect()
    }
}
