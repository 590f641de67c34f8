//! Resumes a replay that another process has begun. Its changes stay as they are, and objects that other programs changed since its findings
//! are left alone.

use super::foreign::is_foreign;
use super::names::{Binding, Inode, Key};
use super::position::path;
use super::{ObjectStat, Replay, ReplayFault, ReplayStep};
use crate::entry::Record;
use std::collections::{BTreeMap, BTreeSet};
use wirefs_op::{FileId, TreePath};

/// Objects and names that the earlier process has changed.
#[derive(Clone, Debug, Default)]
pub struct TouchedObjects {
    inodes: BTreeSet<Inode>,
    keys: BTreeSet<Key>,
}

impl Replay {
    /// Takes the next change, in order, on a copy of the replay. A change that was sent under a number below `ledger` is applied.
    ///
    /// # Errors
    /// Fails if the record is no message.
    pub fn learn_progress(
        &mut self,
        record: &Record,
        ledger: u64,
        touched: &mut TouchedObjects,
    ) -> Result<(), ReplayFault> {
        let is_done = matches!(self.step(record)?, ReplayStep::Send(number, _) if number < ledger);
        let (Some(position), Some(known)) =
            (&self.position, self.effects.get(&record.number).filter(|_| is_done))
        else {
            return Ok(());
        };
        let effect = &known.effect;
        touched.inodes.extend(effect.ids.into_iter().flatten().chain(effect.of).chain(effect.makes));
        for (key, binding) in &effect.names {
            // The former and the new object of the name, and the directory: the change has set the change time of each.
            let bindings =
                [position.state.binding(key), *binding].into_iter().filter_map(|binding| match binding {
                    Binding::Object(inode) => Some(inode),
                    Binding::Unknown | Binding::Absent => None,
                });
            touched.inodes.extend(bindings.chain([key.0]));
            touched.keys.insert(key.clone());
        }
        Ok(())
    }

    /// Returns the paths to look up again.
    pub fn refresh_targets(&self) -> BTreeSet<TreePath> {
        let named = self.keys().into_iter().map(|(_, path)| path);
        named.chain(self.targets()).collect()
    }

    /// Returns all names that changes bind or remove, if their directories have paths.
    fn keys(&self) -> Vec<(Key, TreePath)> {
        let Some(position) = &self.position else { return Vec::new() };
        let keys = self.effects.values().flat_map(|known| known.effect.names.iter().map(|(key, _)| key));
        keys.filter_map(|key| Some((key.clone(), path(&position.state, key)?))).collect()
    }

    /// Takes the present objects at [`Replay::refresh_targets`].
    pub fn refresh(
        &mut self,
        found: &BTreeMap<TreePath, ObjectStat>,
        latest_time: u64,
        touched: &TouchedObjects,
    ) {
        let own: BTreeSet<FileId> = touched.inodes.iter().filter_map(|inode| self.known_id(*inode)).collect();
        let resized = self.resized();
        let is_later = |path: &TreePath| {
            let found = found.get(path).filter(|found| !own.contains(&found.id));
            found.is_some_and(|found| is_foreign(found, latest_time, &resized))
        };
        let foreign =
            self.concerned().filter(|(inode, path)| !touched.inodes.contains(inode) && is_later(path));
        let foreign: Vec<Inode> = foreign.map(|(inode, _)| inode).collect();
        let named =
            self.keys().into_iter().filter(|(key, path)| !touched.keys.contains(key) && is_later(path));
        let changed_later: Vec<Key> = named.map(|(key, _)| key).collect();
        self.foreign.extend(foreign);
        self.changed_later.extend(changed_later);
    }
}
