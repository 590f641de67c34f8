//! The difference between two trees, by path.

use super::BlockTree;
use crate::halt::Halt;
use crate::item::{Entry, Head};
use crate::key::{Ino, Key, Part, ROOT};
use crate::limits::LISTING_ENTRIES_MAX;
use crate::map::difference::{MapDifference, compare};
use crate::view::View;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use wirefs_op::Errno;
use wirefs_op::limits::PATH_BYTES_MAX;

/// The kind of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DifferenceKind {
    /// The name was added.
    Added,
    /// The name was removed.
    Removed,
    /// Attributes or contents changed, or the name refers to another object.
    Modified,
}

/// One difference between two trees.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Difference {
    /// The path below the root, or `#ino` for an object that has no name in its last known directory.
    pub path: Vec<u8>,
    /// The kind of the difference.
    pub kind: DifferenceKind,
}

impl BlockTree {
    /// Returns the differences from checkpoint `from` to checkpoint `to`, or to the live tree, in path order.
    /// A renamed object is reported as removed and added.
    ///
    /// # Cost
    /// Reads only blocks that the trees do not share, and the ancestors of differing objects.
    ///
    /// # Errors
    /// `NotFound`: no such checkpoint. `Overflow`: too many differences. `Io`.
    pub fn diff(&self, from: &[u8], to: Option<&[u8]>) -> Result<Vec<Difference>, Errno> {
        let (differences, _) = self.read_tree(|trees| {
            let named = |name: &[u8]| {
                let checkpoint = trees.volume.checkpoint_named(name).ok_or(Errno::NotFound)?;
                trees.view(checkpoint.serial)
            };
            let old = named(from)?;
            let new = to.map_or_else(|| Ok(trees.present()), named)?;
            Namer::new(old, new).differences()
        })?;
        Ok(differences.into_iter().collect())
    }
}

/// Finds the paths of differing items.
struct Namer<'a> {
    old: Side<'a>,
    new: Side<'a>,
}

/// One tree, with the paths found so far.
struct Side<'a> {
    view: View<'a>,
    paths: BTreeMap<Ino, Vec<u8>>,
    /// By directory: the names of its objects.
    names: BTreeMap<Ino, BTreeMap<Ino, Bytes>>,
}

/// Objects by directory and name.
type Names = BTreeMap<(Ino, Bytes), Ino>;

impl<'a> Namer<'a> {
    fn new(old: View<'a>, new: View<'a>) -> Namer<'a> {
        let side = |view| Side { view, paths: BTreeMap::from([(ROOT, Vec::new())]), names: BTreeMap::new() };
        Namer { old: side(old), new: side(new) }
    }

    fn differences(mut self) -> Result<BTreeSet<Difference>, Halt> {
        let MapDifference { old, new } = compare(&self.old.view.map, &self.new.view.map)?;
        let (old_names, new_names) = (names(&old)?, names(&new)?);
        let mut found = BTreeSet::new();
        for ((dir, name), ino) in &old_names {
            let kind = match new_names.get(&(*dir, name.clone())) {
                Some(other) if other == ino => continue,
                Some(_) => DifferenceKind::Modified,
                None => DifferenceKind::Removed,
            };
            found.insert(Difference { path: self.old.path_in(*dir, name)?, kind });
        }
        for (dir, name) in new_names.keys().filter(|place| !old_names.contains_key(*place)) {
            let path = self.new.path_in(*dir, name)?;
            found.insert(Difference { path, kind: DifferenceKind::Added });
        }
        let paths: BTreeSet<Vec<u8>> = found.iter().map(|difference| difference.path.clone()).collect();
        for ino in self.modified(&old, &new)? {
            let path = self.new.path_of(ino)?;
            if !paths.contains(&path) {
                found.insert(Difference { path, kind: DifferenceKind::Modified });
            }
        }
        Ok(found)
    }

    /// Adds the objects that exist in both trees and differ.
    fn modified(
        &self,
        old: &BTreeMap<Key, Bytes>,
        new: &BTreeMap<Key, Bytes>,
    ) -> Result<BTreeSet<Ino>, Halt> {
        let of_object = |key: &&Key| matches!(key.part, Part::Head | Part::Run | Part::Xattr);
        let touched: BTreeSet<Ino> =
            old.keys().chain(new.keys()).filter(of_object).map(|key| key.ino).collect();
        let mut modified = BTreeSet::new();
        for ino in touched {
            let head = |view: &View<'_>| {
                let value = view.get(Key::head(ino))?;
                Ok::<Option<Head>, Halt>(value.map(Head::decode).transpose()?)
            };
            let (before, after) = crate::halt::both(head(&self.old.view), head(&self.new.view))?;
            if let (Some(before), Some(after)) = (before, after)
                && before.generation == after.generation
                && after.nlink > 0
                && !is_same_root(ino, before, after)
            {
                modified.insert(ino);
            }
        }
        Ok(modified)
    }
}

/// Returns whether the root directory differs only by the entry `.checkpoints`.
fn is_same_root(ino: Ino, before: Head, after: Head) -> bool {
    ino == ROOT && Head { version: after.version, ..before } == after
}

fn names(items: &BTreeMap<Key, Bytes>) -> Result<Names, Halt> {
    let entries = items.iter().filter(|(key, _)| key.part == Part::Entry);
    let named = entries.map(|(key, value)| {
        let entry = Entry::decode(value.clone())?;
        Ok(((key.ino, entry.name), entry.ino))
    });
    named.collect()
}

impl Side<'_> {
    fn path_in(&mut self, dir: Ino, name: &[u8]) -> Result<Vec<u8>, Halt> {
        let dir = self.path_of(dir)?;
        Ok(if dir.is_empty() { name.to_vec() } else { [&dir[..], b"/", name].concat() })
    }

    /// Returns the path of an object through the directory in which it last gained a name.
    fn path_of(&mut self, ino: Ino) -> Result<Vec<u8>, Halt> {
        let mut below: Vec<Bytes> = Vec::new();
        let mut at = ino;
        let mut len = 0;
        while !self.paths.contains_key(&at) {
            let parent = self.view.head(at)?.parent;
            let Some(name) = self.name_in(parent, at)? else {
                self.paths.insert(at, format!("#{}", at.0).into_bytes());
                break;
            };
            len += name.len() + 1;
            if len > PATH_BYTES_MAX {
                return Err(Halt::Failed(Errno::Loop));
            }
            below.push(name);
            at = parent;
        }
        let mut path = self.paths.get(&at).cloned().unwrap_or_default();
        for name in below.into_iter().rev() {
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(&name);
        }
        self.paths.insert(ino, path.clone());
        Ok(path)
    }

    /// Returns a name of an object in a directory.
    fn name_in(&mut self, dir: Ino, ino: Ino) -> Result<Option<Bytes>, Halt> {
        if !self.names.contains_key(&dir) {
            let mut names = BTreeMap::new();
            let mut after = 0;
            loop {
                let entries = self.view.list(dir, after, LISTING_ENTRIES_MAX)?;
                let Some((last, _)) = entries.last() else { break };
                after = *last;
                names.extend(entries.into_iter().map(|(_, entry)| (entry.ino, entry.name)));
            }
            self.names.insert(dir, names);
        }
        Ok(self.names.get(&dir).and_then(|names| names.get(&ino)).cloned())
    }
}
