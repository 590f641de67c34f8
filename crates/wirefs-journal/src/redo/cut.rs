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
    /// A path of each object that was found.
    paths: BTreeMap<FileId, TreePath>,
    /// When what has a name was changed last.
    changed: BTreeMap<Key, u64>,
    /// Files that changes behind this moment remove, and that the server's disk may lack already: another file may be in their place.
    gone: BTreeSet<Node>,
}

impl Cut {
    /// The number that the object was found to have.
    pub(super) fn id(&self, node: Node) -> Option<FileId> {
        self.ids.get(&node).copied()
    }

    /// Whether nobody has a use for the contents of an object, nor knows whether it is still there.
    pub(super) fn is_gone(&self, node: Node) -> bool {
        self.gone.contains(&node)
    }

    /// More paths at which objects were found.
    pub(super) fn found_at(&mut self, found: &BTreeMap<TreePath, Found>) {
        for (path, found) in found {
            self.paths.entry(found.id).or_insert_with(|| path.clone());
        }
    }

    /// The object is found to have this number.
    pub(super) fn learn(&mut self, node: Node, id: FileId) {
        self.ids.insert(node, id);
    }

    /// The names of what was changed later than that.
    pub(super) fn changed_after(&self, seen: u64) -> BTreeSet<Key> {
        self.changed.iter().filter(|(_, changed)| **changed > seen).map(|(key, _)| key.clone()).collect()
    }

    /// A path of the object: by a name that changes gave it, or by one that was found to mean it.
    pub(super) fn path(&self, names: &Names, node: Node) -> Option<TreePath> {
        let found = || self.paths.get(&self.id(node).or(names.id(node))?).cloned();
        self.state.path(node).or_else(found)
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

/// A moment at which the server has what every name means then.
struct Fitting {
    step: usize,
    state: State,
    ids: BTreeMap<Node, FileId>,
    gone: BTreeSet<Node>,
}

/// Whether a name means the same at two moments that fit but for what nobody knows. What was made, and its number never told, is not taken for what
/// was there before.
fn agree(names: &Names, one: &Fitting, other: &Fitting, key: &Key) -> bool {
    match (one.state.holder(key), other.state.holder(key)) {
        (Holder::Unknown, Holder::Object(node)) | (Holder::Object(node), Holder::Unknown) => {
            names.id(node).is_some() || !names.of(node).is_new
        }
        (Holder::Unknown, _) | (_, Holder::Unknown) => true,
        // Two names of one file, perhaps: then both are found to be that at one moment.
        (Holder::Object(a), Holder::Object(b)) => {
            a == b || one.ids.contains_key(&a) && one.ids.get(&a) == one.ids.get(&b)
        }
        (one, other) => one == other,
    }
}

/// The first of the moments that fit, where all changes behind it can be done again whichever of them it was.
///
/// # Errors
/// They cannot.
fn first_of(
    names: &Names,
    fitting: Vec<Fitting>,
    last: &Fitting,
    keys: &BTreeSet<Key>,
) -> Result<Fitting, Unlike> {
    let mut fitting = fitting.into_iter();
    let mut first = fitting.next().ok_or(Unlike::Several)?;
    for later in fitting.as_slice().iter().chain([last]) {
        for key in keys {
            if !agree(names, &first, later, key) {
                first.gone.extend(remade(names, &first, later, key).ok_or(Unlike::Several)?);
            }
        }
    }
    Ok(first)
}

/// The file that has a name at one moment and is gone at a later one, where what has the name then was made in between: changes that are done
/// again remove whichever of the two is there, and make the later one, all of whose contents are in the journal. The former may not be known.
/// `None`: something else came between.
fn remade(names: &Names, first: &Fitting, later: &Fitting, key: &Key) -> Option<Option<Node>> {
    let Holder::Object(made) = later.state.holder(key) else { return None };
    let is_file = |node: Node| !names.directories.contains(&node) && !names.of(node).is_directory;
    let gone = match first.state.holder(key) {
        Holder::Object(gone) => Some(gone),
        // No change moved it.
        Holder::Unknown => None,
        Holder::Nobody => return None,
    };
    let is_gone = gone.is_none_or(|gone| is_file(gone) && later.state.path(gone).is_none());
    let is_made = is_file(made) && names.of(made).is_new && first.state.path(made).is_none();
    (is_gone && is_made).then_some(gone)
}

/// Whether what the server has fits what a name would mean at a moment.
fn fits(names: &Names, state: &State, key: &Key, found: &BTreeMap<TreePath, Found>) -> bool {
    let Some(path) = path(state, key) else { return true };
    match (state.holder(key), found.get(&path)) {
        (Holder::Unknown, _) | (Holder::Nobody, None) => true,
        (Holder::Nobody, Some(_)) | (Holder::Object(_), None) => false,
        (Holder::Object(node), Some(found)) => names.may_be(node, found.id),
    }
}

/// The ids that the objects have at a moment at which each name fits; `None`: one object would have two of them, or two objects that cannot
/// be one file the same.
fn ids(
    names: &Names,
    state: &State,
    keys: &BTreeSet<Key>,
    found: &BTreeMap<TreePath, Found>,
) -> Option<BTreeMap<Node, FileId>> {
    let (mut ids, mut nodes) = (BTreeMap::new(), BTreeMap::new());
    let mut unknown = BTreeSet::new();
    for key in keys {
        let Some(found) = path(state, key).and_then(|path| found.get(&path)) else { continue };
        match state.holder(key) {
            Holder::Object(node) => {
                let is_one_id = *ids.entry(node).or_insert(found.id) == found.id;
                if !is_one_id || !names.may_be_one(node, *nodes.entry(found.id).or_insert(node)) {
                    return None;
                }
            }
            Holder::Unknown => {
                unknown.insert(found.id);
            }
            Holder::Nobody => {}
        }
    }
    // A name of which no change has spoken yet is none of what the changes made.
    let is_made = |id: &FileId| nodes.get(id).is_some_and(|node| names.of(*node).is_new);
    (!unknown.iter().any(is_made)).then_some(ids)
}

/// The moment, after the first `least` changes of names or later.
///
/// # Errors
/// No moment fits.
pub(super) fn find(
    names: &Names,
    steps: &[&Deed],
    found: &BTreeMap<TreePath, Found>,
    least: usize,
) -> Result<Cut, Unlike> {
    let keys = keys(steps);
    let mut state = names.first.clone();
    let all = |state: &State| -> BTreeSet<Key> {
        keys.iter().filter(|key| !fits(names, state, key, found)).cloned().collect()
    };
    let mut wrong = all(&state);
    let (mut fitting, mut taken): (Vec<Fitting>, usize) = (Vec::new(), 0);
    let mut look = |step: usize, state: &State| {
        taken += 1;
        let ids = ids(names, state, &keys, found);
        fitting.extend(ids.map(|ids| Fitting { step, state: state.clone(), ids, gone: BTreeSet::new() }));
        if taken > MOMENTS_MAX { Err(Unlike::Large) } else { Ok(()) }
    };
    if wrong.is_empty() && least == 0 {
        look(0, &state)?;
    }
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
        if wrong.is_empty() && index + 1 >= least {
            look(index + 1, &state)?;
        }
    }
    let last = fitting.pop().ok_or(Unlike::Server)?;
    let is_certain = fitting.iter().all(|other| keys.iter().all(|key| agree(names, &last, other, key)));
    let chosen = if is_certain { last } else { first_of(names, fitting, &last, &keys)? };
    let Fitting { step, state, ids, gone } = chosen;
    let (mut paths, mut changed) = (BTreeMap::new(), BTreeMap::new());
    for key in &keys {
        let Some((path, found)) = path(&state, key).and_then(|path| found.get_key_value(&path)) else {
            continue;
        };
        changed.insert(key.clone(), found.changed);
        paths.insert(found.id, path.clone());
    }
    Ok(Cut { step, state, ids, paths, changed, gone })
}
