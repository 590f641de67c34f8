//! Restart of the server's machine during a replay: its disk has some of the replayed changes.

use super::Replay;
use super::position::Position;
use std::collections::BTreeMap;
use wirefs_op::FileId;

impl Replay {
    /// Records a lost connection; `sent` is the copy that replayed over it.
    pub(crate) fn connection_lost(&mut self, sent: &Replay) {
        self.maybe_recreated.extend(sent.recreated_as.keys());
    }

    /// Starts after an `earlier` replay of the same changes. Objects that it found to be changed by others stay so, and names are not older than
    /// it found them. An object that it created again has another id: the one in `replies`, by the number of the change that creates it.
    pub(crate) fn restart_after(&mut self, earlier: &Replay, replies: &BTreeMap<u64, FileId>) {
        self.foreign.clone_from(&earlier.foreign);
        self.changed_later.clone_from(&earlier.changed_later);
        self.position_min = earlier.position.as_ref().map_or(0, |position| position.step);
        for inode in earlier.maybe_recreated.iter().chain(earlier.recreated_before.keys()) {
            let id = match earlier.maybe_recreated.contains(inode) {
                true => self.names.of(*inode).made.and_then(|number| replies.get(&number).copied()),
                false => earlier.position.as_ref().and_then(|position: &Position| position.id(*inode)),
            };
            let former = self.recreated_before.get(inode).copied().unwrap_or_else(|| self.names.id(*inode));
            self.recreated_before.insert(*inode, former);
            self.names.renew(*inode, id);
        }
    }
}
