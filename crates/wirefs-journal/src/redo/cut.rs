//! The moment up to which the changes of names are done.

use super::deed::Deed;
use super::names::{Holder, Key, Names, Node, ROOT, State};
use super::{Found, Unlike};
use std::collections::{BTreeMap, BTreeSet};
use wirefs_op::{FileId, TreePath};

/// Names times moved directories, at most: so many steps it takes.
const STEPS_MAX: usize = 16 * 1024 * 1024;

/// The moment, and what is there then.
#[derive(Clone, Debug)]
pub(super) struct Cut {
    /// So many changes of names are done.
    pub(super) step: usize,
    pub(super) state: State,
    ids: BTreeMap<Node, FileId>,
    /// When what has a name was changed last.
    changed: BTreeMap<Key, u64>,
}

impl Cut {
    /// The number that the object was found to have.
    pub(super) fn id(&self, node: Node) -> Option<FileId> {
        self.ids.get(&node).copied()
    }

    /// The object is found to have this number.
    pub(super) fn learn(&mut self, node: Node, id: FileId) {
        self.ids.insert(node, id);
    }

    /// The names of what was changed later than that.
    pub(super) fn changed_after(&self, seen: u64) -> BTreeSet<Key> {
        self.changed.iter().filter(|(_, changed)| **changed > seen).map(|(key, _)| key.clone()).collect()
    }

    /// Whether it has a name.
    pub(super) fn is_there(&self, node: Node) -> bool {
        self.state.path(node).is_some()
    }
}

/// All names that any change gives or takes.
fn keys(steps: &[&Deed]) -> BTreeSet<Key> {
    steps.iter().flat_map(|deed| deed.names.iter().map(|(key, _)| key.clone())).collect()
}

/// Whether a change moves, makes or removes a directory that others are below.
fn moves(names: &Names, state: &State, deed: &Deed) -> bool {
    let is_directory = |node: &Node| names.directories.contains(node);
    deed.names.iter().any(|(key, holder)| {
        let before = state.holder(key);
        [before, *holder].iter().any(|holder| matches!(holder, Holder::Object(node) if is_directory(node)))
    })
}

fn apply(state: &mut State, deed: &Deed) {
    for (key, holder) in &deed.names {
        state.set(key.clone(), *holder);
    }
}

/// The path of a name, while its directory has one.
pub(super) fn path(state: &State, key: &Key) -> Option<TreePath> {
    let dir = if key.0 == ROOT { TreePath::root() } else { state.path(key.0)? };
    dir.join(&key.1)
}

pub(super) fn probes(names: &Names, steps: &[&Deed]) -> Result<BTreeSet<TreePath>, Unlike> {
    let keys = keys(steps);
    let mut state = names.first.clone();
    let mut paths: BTreeSet<TreePath> = keys.iter().filter_map(|key| path(&state, key)).collect();
    let mut taken = keys.len();
    for deed in steps {
        let is_moved = moves(names, &state, deed);
        apply(&mut state, deed);
        if is_moved {
            taken += keys.len();
            if taken > STEPS_MAX {
                return Err(Unlike::Large);
            }
            paths.extend(keys.iter().filter_map(|key| path(&state, key)));
        }
    }
    Ok(paths)
}

/// Moments that fit, at most.
const MOMENTS_MAX: usize = 256;

/// Whether two moments that fit are the same but for what nobody knows. What was made, and its number never told, is not taken for what
/// was there before.
fn agree(names: &Names, one: &State, other: &State, keys: &BTreeSet<Key>) -> bool {
    keys.iter().all(|key| match (one.holder(key), other.holder(key)) {
        (Holder::Unknown, Holder::Object(node)) | (Holder::Object(node), Holder::Unknown) => {
            names.id(node).is_some() || !names.of(node).is_new
        }
        (Holder::Unknown, _) | (_, Holder::Unknown) => true,
        (one, other) => one == other,
    })
}

/// Whether what the server has fits what a name would mean at a moment.
fn fits(names: &Names, state: &State, key: &Key, found: &BTreeMap<TreePath, Found>) -> bool {
    let Some(path) = path(state, key) else { return true };
    match (state.holder(key), found.get(&path)) {
        (Holder::Unknown, _) | (Holder::Nobody, None) => true,
        (Holder::Nobody, Some(_)) | (Holder::Object(_), None) => false,
        // One that is not known by its number is none of those that are.
        (Holder::Object(node), Some(found)) => match names.id(node) {
            Some(known) => known == found.id,
            None => names.by_id(found.id).is_none(),
        },
    }
}

/// # Errors
/// No moment fits.
pub(super) fn find(names: &Names, steps: &[&Deed], found: &BTreeMap<TreePath, Found>) -> Result<Cut, Unlike> {
    let keys = keys(steps);
    let mut state = names.first.clone();
    let all = |state: &State| -> BTreeSet<Key> {
        keys.iter().filter(|key| !fits(names, state, key, found)).cloned().collect()
    };
    let mut wrong = all(&state);
    let mut fitting: Vec<(usize, State)> = Vec::new();
    fitting.extend(wrong.is_empty().then(|| (0, state.clone())));
    for (index, deed) in steps.iter().enumerate() {
        let is_moved = moves(names, &state, deed);
        apply(&mut state, deed);
        if is_moved {
            wrong = all(&state);
        } else {
            for (key, _) in &deed.names {
                if fits(names, &state, key, found) {
                    wrong.remove(key);
                } else {
                    wrong.insert(key.clone());
                }
            }
        }
        if wrong.is_empty() {
            fitting.push((index + 1, state.clone()));
        }
        if fitting.len() > MOMENTS_MAX {
            return Err(Unlike::Large);
        }
    }
    let (step, state) = fitting.pop().ok_or(Unlike::Server)?;
    if !fitting.iter().all(|(_, other)| agree(names, &state, other, &keys)) {
        return Err(Unlike::Several);
    }
    let (mut ids, mut changed) = (BTreeMap::new(), BTreeMap::new());
    for key in &keys {
        let Some(found) = path(&state, key).and_then(|path| found.get(&path)) else { continue };
        changed.insert(key.clone(), found.changed);
        if let Holder::Object(node) = state.holder(key) {
            ids.insert(node, found.id);
        }
    }
    Ok(Cut { step, state, ids, changed })
}
