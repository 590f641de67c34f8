//! Going on with what another process was doing again and did not come to the end of: what it has done is as it was to be, and what
//! others have changed since it was found out is left alone.

use super::cut::path;
use super::names::{Holder, Key, Node};
use super::{Found, Redo, Redone, Unlike};
use crate::entry::Record;
use std::collections::{BTreeMap, BTreeSet};
use wirefs_op::{FileId, TreePath};

/// What was done by then.
#[derive(Clone, Debug, Default)]
pub struct Touched {
    nodes: BTreeSet<Node>,
    keys: BTreeSet<Key>,
}

impl Redo {
    /// Takes the next change of all, in their order: where it was sent under a number below `ledger`, the server has it. Of a copy of the
    /// one that goes on.
    ///
    /// # Errors
    /// It is none that was learned.
    pub fn is_done_below(
        &mut self,
        record: &Record,
        ledger: u64,
        touched: &mut Touched,
    ) -> Result<(), Unlike> {
        let is_done = matches!(self.redo(record)?, Redone::Send(number, _) if number < ledger);
        let (Some(cut), Some(known)) = (&self.cut, self.deeds.get(&record.number).filter(|_| is_done)) else {
            return Ok(());
        };
        let deed = &known.deed;
        touched.nodes.extend(deed.ids.into_iter().flatten().chain(deed.of).chain(deed.makes));
        for (key, holder) in &deed.names {
            // What had the name, what has it, and the directory: all have another time of change by now.
            let holders = [cut.state.holder(key), *holder].into_iter().filter_map(|holder| match holder {
                Holder::Object(node) => Some(node),
                Holder::Unknown | Holder::Nobody => None,
            });
            touched.nodes.extend(holders.chain([key.0]));
            touched.keys.insert(key.clone());
        }
        Ok(())
    }

    /// The paths to be looked at once more.
    pub fn looks_again(&self) -> BTreeSet<TreePath> {
        let named = self.keys().into_iter().map(|(_, path)| path);
        named.chain(self.targets()).collect()
    }

    /// All names that changes give or take, where their directories have been.
    fn keys(&self) -> Vec<(Key, TreePath)> {
        let Some(cut) = &self.cut else { return Vec::new() };
        let keys = self.deeds.values().flat_map(|known| known.deed.names.iter().map(|(key, _)| key));
        keys.filter_map(|key| Some((key.clone(), path(&cut.state, key)?))).collect()
    }

    /// What is at [`Redo::looks_again`] now.
    pub fn refresh(&mut self, found: &BTreeMap<TreePath, Found>, seen: u64, touched: &Touched) {
        let id = |node: &Node| self.cut.as_ref().and_then(|cut| cut.id(*node)).or(self.names.id(*node));
        let own: BTreeSet<FileId> = touched.nodes.iter().filter_map(id).collect();
        let is_later = |path: &TreePath| {
            found.get(path).is_some_and(|found| found.changed > seen && !own.contains(&found.id))
        };
        let foreign = self.concerned().filter(|(node, path)| !touched.nodes.contains(node) && is_later(path));
        let foreign: Vec<Node> = foreign.map(|(node, _)| node).collect();
        let named =
            self.keys().into_iter().filter(|(key, path)| !touched.keys.contains(key) && is_later(path));
        let later: Vec<Key> = named.map(|(key, _)| key).collect();
        self.foreign.extend(foreign);
        self.later.extend(later);
    }
}
