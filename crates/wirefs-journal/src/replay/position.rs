//! The position in the journal up to which the server's disk has the changes of names.

use super::effect::Effect;
use super::names::{Binding, Inode, Key, NameTable, Namespace, ROOT};
use super::{ObjectStat, ReplayFault};
use std::collections::{BTreeMap, BTreeSet};
use wirefs_op::{FileId, TreePath};

/// Bound on names times moved directories.
const STEPS_MAX: usize = 16 * 1024 * 1024;

/// The position, and the names there.
#[derive(Clone, Debug)]
pub(super) struct Position {
    /// The number of name changes before it.
    pub(super) step: usize,
    pub(super) state: NameTable,
    ids: BTreeMap<Inode, FileId>,
    /// A path of each object that was found.
    paths: BTreeMap<FileId, TreePath>,
    /// The change time of the object at each name.
    changed: BTreeMap<Key, u64>,
}

impl Position {
    /// Returns the id that the object was found to have.
    pub(super) fn id(&self, inode: Inode) -> Option<FileId> {
        self.ids.get(&inode).copied()
    }

    /// Adds paths at which objects were found.
    pub(super) fn found_at(&mut self, found: &BTreeMap<TreePath, ObjectStat>) {
        for (path, found) in found {
            self.paths.entry(found.id).or_insert_with(|| path.clone());
        }
    }

    /// Records the id that the object was found to have.
    pub(super) fn learn(&mut self, inode: Inode, id: FileId) {
        self.ids.insert(inode, id);
    }

    /// Returns the names whose objects changed after a time.
    pub(super) fn changed_after(&self, latest_time: u64) -> BTreeSet<Key> {
        self.changed
            .iter()
            .filter(|(_, changed)| **changed > latest_time)
            .map(|(key, _)| key.clone())
            .collect()
    }

    /// Returns a path of the object: by a name in the changes, or by one at which it was found.
    pub(super) fn path(&self, names: &Namespace, inode: Inode) -> Option<TreePath> {
        let found = || self.paths.get(&self.id(inode).or(names.id(inode))?).cloned();
        self.state.path(inode).or_else(found)
    }

    /// Returns whether the object has a name.
    pub(super) fn is_there(&self, inode: Inode) -> bool {
        self.state.path(inode).is_some()
    }
}

/// Returns all names that changes bind or remove.
fn keys(steps: &[&Effect]) -> BTreeSet<Key> {
    steps.iter().flat_map(|effect| effect.names.iter().map(|(key, _)| key.clone())).collect()
}

/// Returns whether a change moves, creates or removes a directory on which other paths depend.
fn moves(names: &Namespace, state: &NameTable, effect: &Effect) -> bool {
    let is_directory = |inode: &Inode| names.directories.contains(inode);
    effect.names.iter().any(|(key, binding)| {
        let before = state.binding(key);
        [before, *binding]
            .iter()
            .any(|binding| matches!(binding, Binding::Object(inode) if is_directory(inode)))
    })
}

fn apply(state: &mut NameTable, effect: &Effect) {
    for (key, binding) in &effect.names {
        state.set(key.clone(), *binding);
    }
}

/// Returns the path of a name while its directory has one.
pub(super) fn path(state: &NameTable, key: &Key) -> Option<TreePath> {
    let dir = if key.0 == ROOT { TreePath::root() } else { state.path(key.0)? };
    dir.join(&key.1)
}

pub(super) fn probes(names: &Namespace, steps: &[&Effect]) -> Result<BTreeSet<TreePath>, ReplayFault> {
    let keys = keys(steps);
    let mut state = names.first.clone();
    let mut paths: BTreeSet<TreePath> = keys.iter().filter_map(|key| path(&state, key)).collect();
    let mut taken = keys.len();
    for effect in steps {
        let is_moved = moves(names, &state, effect);
        apply(&mut state, effect);
        if is_moved {
            taken += keys.len();
            if taken > STEPS_MAX {
                return Err(ReplayFault::TooLarge);
            }
            paths.extend(keys.iter().filter_map(|key| path(&state, key)));
        }
    }
    Ok(paths)
}

/// Bound on positions that fit.
const CANDIDATES_MAX: usize = 256;

/// A position at which the server has the object of each name.
struct Candidate {
    step: usize,
    state: NameTable,
    ids: BTreeMap<Inode, FileId>,
}

/// Returns whether two positions agree on all known names. An object whose id was never reported does not count as one that existed before.
fn agree(names: &Namespace, one: &Candidate, other: &Candidate, keys: &BTreeSet<Key>) -> bool {
    keys.iter().all(|key| match (one.state.binding(key), other.state.binding(key)) {
        (Binding::Unknown, Binding::Object(inode)) | (Binding::Object(inode), Binding::Unknown) => {
            names.id(inode).is_some() || !names.of(inode).is_new
        }
        (Binding::Unknown, _) | (_, Binding::Unknown) => true,
        // Possibly two names of one file: then one position shows the same id for both.
        (Binding::Object(a), Binding::Object(b)) => {
            a == b || one.ids.contains_key(&a) && one.ids.get(&a) == one.ids.get(&b)
        }
        (one, other) => one == other,
    })
}

/// Returns whether the server has the object that a name means at a position.
fn fits(names: &Namespace, state: &NameTable, key: &Key, found: &BTreeMap<TreePath, ObjectStat>) -> bool {
    let Some(path) = path(state, key) else { return true };
    match (state.binding(key), found.get(&path)) {
        (Binding::Unknown, _) | (Binding::Absent, None) => true,
        (Binding::Absent, Some(_)) | (Binding::Object(_), None) => false,
        (Binding::Object(inode), Some(found)) => names.may_be(inode, found.id),
    }
}

/// Returns the ids of the objects at a position at which each name fits. `None`: one object would have two ids, or two objects that
/// cannot be one file would have the same id.
fn ids(
    names: &Namespace,
    state: &NameTable,
    keys: &BTreeSet<Key>,
    found: &BTreeMap<TreePath, ObjectStat>,
) -> Option<BTreeMap<Inode, FileId>> {
    let (mut ids, mut inodes) = (BTreeMap::new(), BTreeMap::new());
    for key in keys {
        let Binding::Object(inode) = state.binding(key) else { continue };
        let Some(found) = path(state, key).and_then(|path| found.get(&path)) else { continue };
        let is_one_id = *ids.entry(inode).or_insert(found.id) == found.id;
        if !is_one_id || !names.may_be_one(inode, *inodes.entry(found.id).or_insert(inode)) {
            return None;
        }
    }
    Some(ids)
}

/// Finds the position, after at least `position_min` name changes.
///
/// # Errors
/// Fails if no position fits, or several different ones.
pub(super) fn find(
    names: &Namespace,
    steps: &[&Effect],
    found: &BTreeMap<TreePath, ObjectStat>,
    position_min: usize,
) -> Result<Position, ReplayFault> {
    let keys = keys(steps);
    let mut state = names.first.clone();
    let all = |state: &NameTable| -> BTreeSet<Key> {
        keys.iter().filter(|key| !fits(names, state, key, found)).cloned().collect()
    };
    let mut wrong = all(&state);
    let (mut fitting, mut taken): (Vec<Candidate>, usize) = (Vec::new(), 0);
    let mut look = |step: usize, state: &NameTable| {
        taken += 1;
        let ids = ids(names, state, &keys, found);
        fitting.extend(ids.map(|ids| Candidate { step, state: state.clone(), ids }));
        if taken > CANDIDATES_MAX { Err(ReplayFault::TooLarge) } else { Ok(()) }
    };
    if wrong.is_empty() && position_min == 0 {
        look(0, &state)?;
    }
    for (index, effect) in steps.iter().enumerate() {
        let is_moved = moves(names, &state, effect);
        apply(&mut state, effect);
        if is_moved {
            wrong = all(&state);
        } else {
            for (key, _) in &effect.names {
                if fits(names, &state, key, found) {
                    wrong.remove(key);
                } else {
                    wrong.insert(key.clone());
                }
            }
        }
        if wrong.is_empty() && index + 1 >= position_min {
            look(index + 1, &state)?;
        }
    }
    let last = fitting.pop().ok_or(ReplayFault::Server)?;
    if !fitting.iter().all(|other| agree(names, &last, other, &keys)) {
        return Err(ReplayFault::Ambiguous);
    }
    let Candidate { step, state, ids } = last;
    let (mut paths, mut changed) = (BTreeMap::new(), BTreeMap::new());
    for key in &keys {
        let Some((path, found)) = path(&state, key).and_then(|path| found.get_key_value(&path)) else {
            continue;
        };
        changed.insert(key.clone(), found.changed);
        paths.insert(found.id, path.clone());
    }
    Ok(Position { step, state, ids, paths, changed })
}
