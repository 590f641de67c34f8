//! The server's machine was started once more while changes were sent again: the disk has some of these by now.

use super::Redo;
use super::cut::Cut;
use std::collections::BTreeMap;
use wirefs_op::FileId;

impl Redo {
    /// The connection broke; `sent` is the copy that gave out what was sent over it.
    pub(crate) fn is_broken(&mut self, sent: &Redo) {
        self.remade.extend(sent.again.keys());
    }

    /// The machine was started once more in the midst of an `earlier` redo of the same changes. What that found to be changed by somebody
    /// else still is; names are not older than it found them; and what it made again has another id, as far as its reply was `heard` by the
    /// number of the change that makes it.
    pub(crate) fn begins_anew_after(&mut self, earlier: &Redo, heard: &BTreeMap<u64, FileId>) {
        self.foreign.clone_from(&earlier.foreign);
        self.later.clone_from(&earlier.later);
        self.least = earlier.cut.as_ref().map_or(0, |cut| cut.step);
        for node in earlier.remade.iter().chain(earlier.renewed.keys()) {
            let id = match earlier.remade.contains(node) {
                true => self.names.of(*node).made.and_then(|number| heard.get(&number).copied()),
                false => earlier.cut.as_ref().and_then(|cut: &Cut| cut.id(*node)),
            };
            let told = self.renewed.get(node).copied().unwrap_or_else(|| self.names.id(*node));
            self.renewed.insert(*node, told);
            self.names.renew(*node, id);
        }
    }
}
