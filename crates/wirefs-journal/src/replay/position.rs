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
    /// The object at each name.
    named: BTreeMap<Key, ObjectStat>,
    /// Files that changes after the position remove, and that the server's disk may lack already: another file may be in their place.
    gone: BTreeSet<Inode>,
}

impl Position {
    /// Returns the id that the object was found to have.
    pub(super) fn id(&self, inode: Inode) -> Option<FileId> {
        self.ids.get(&inode).copied()
    }

    /// Returns whether later changes remove the object, so that its contents are useless and it may be absent already.
    pub(super) fn is_gone(&self, inode: Inode) -> bool {
        self.gone.contains(&inode)
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

    /// Returns the object that was found at each name.
    pub(super) fn named(&self) -> impl Iterator<Item = (&Key, &ObjectStat)> {
        self.named.iter()
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
    gone: BTreeSet<Inode>,
}

/// Returns whether a name means the same at two positions, as far as it is known. An object whose id was never reported does not count as one
/// that existed before.
fn agree(names: &Namespace, one: &Candidate, other: &Candidate, key: &Key) -> bool {
    match (one.state.binding(key), other.state.binding(key)) {
        (Binding::Unknown, Binding::Object(inode)) | (Binding::Object(inode), Binding::Unknown) => {
            names.id(inode).is_some() || !names.of(inode).is_new
        }
        (Binding::Unknown, _) | (_, Binding::Unknown) => true,
        // Possibly two names of one file: then one position shows the same id for both.
        (Binding::Object(a), Binding::Object(b)) => {
            a == b || one.ids.contains_key(&a) && one.ids.get(&a) == one.ids.get(&b)
        }
        (one, other) => one == other,
    }
}

/// Returns the first of the positions that fit, if all later changes can be repeated from it whichever of them is the true one.
///
/// # Errors
/// Fails if they cannot.
fn first_of(
    names: &Namespace,
    fitting: Vec<Candidate>,
    last: &Candidate,
    keys: &BTreeSet<Key>,
) -> Result<Candidate, ReplayFault> {
    let mut fitting = fitting.into_iter();
    let mut first = fitting.next().ok_or(ReplayFault::Ambiguous)?;
    for later in fitting.as_slice().iter().chain([last]) {
        for key in keys {
            if !agree(names, &first, later, key) {
                first.gone.extend(recreated(names, &first, later, key).ok_or(ReplayFault::Ambiguous)?);
            }
        }
    }
    Ok(first)
}

/// Returns the file that has a name at one position and is removed at a later one, if the file that has the name then was created in between.
/// Repeated changes remove whichever of the two exists, and create the later one; the journal has all contents of it. The former may be unknown.
/// `None`: something else came between.
fn recreated(names: &Namespace, first: &Candidate, later: &Candidate, key: &Key) -> Option<Option<Inode>> {
    let Binding::Object(made) = later.state.binding(key) else { return None };
    let is_file = |inode: Inode| !names.directories.contains(&inode) && !names.of(inode).is_directory;
    let gone = match first.state.binding(key) {
        Binding::Object(gone) => Some(gone),
        // No change moved it.
        Binding::Unknown => None,
        Binding::Absent => return None,
    };
    let is_gone = gone.is_none_or(|gone| is_file(gone) && later.state.path(gone).is_none());
    let is_made = is_file(made) && names.of(made).is_new && first.state.path(made).is_none();
    (is_gone && is_made).then_some(gone)
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
    let mut unknown = BTreeSet::new();
    for key in keys {
        let Some(found) = path(state, key).and_then(|path| found.get(&path)) else { continue };
        match state.binding(key) {
            Binding::Object(inode) => {
                let is_one_id = *ids.entry(inode).or_insert(found.id) == found.id;
                if !is_one_id || !names.may_be_one(inode, *inodes.entry(found.id).or_insert(inode)) {
                    return None;
                }
            }
            Binding::Unknown => {
                unknown.insert(found.id);
            }
            Binding::Absent => {}
        }
    }
    // A name that no change has mentioned yet means none of the objects that the changes created.
    let is_made = |id: &FileId| inodes.get(id).is_some_and(|inode| names.of(*inode).is_new);
    (!unknown.iter().any(is_made)).then_some(ids)
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
        fitting.extend(ids.map(|ids| Candidate { step, state: state.clone(), ids, gone: BTreeSet::new() }));
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
    let is_certain = fitting.iter().all(|other| keys.iter().all(|key| agree(names, &last, other, key)));
    let chosen = if is_certain { last } else { first_of(names, fitting, &last, &keys)? };
    let Candidate { step, state, ids, gone } = chosen;
    let (mut paths, mut named) = (BTreeMap::new(), BTreeMap::new());
    for key in &keys {
        let Some((path, found)) = path(&state, key).and_then(|path| found.get_key_value(&path)) else {
            continue;
        };
        named.insert(key.clone(), *found);
        paths.insert(found.id, path.clone());
    }
    Ok(Position { step, state, ids, paths, named, gone })
}
