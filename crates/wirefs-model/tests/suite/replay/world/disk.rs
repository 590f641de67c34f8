//! The changes that a disk has after a power loss.

use super::change::{Change, changes_names};
use super::{World, path, put};
use bytes::Bytes;
use std::collections::BTreeSet;
use wirefs_op::message::get::GetMode;
use wirefs_op::message::put::{PutMode, Rput, Tput};
use wirefs_op::message::target::Target;
use wirefs_op::wire::Data;
use wirefs_op::{FileId, Reply, Request, SetStat, TreePath};

impl World {
    /// Returns the tree after a power loss: the changes of names up to a position, and some of the others. `None`: inode numbers would
    /// differ.
    pub(in crate::replay) fn lose_power(&mut self, changes: &[Change]) -> Option<World> {
        let lost = World::with(self.dice.below(1 << 40), &self.begun);
        let named = changes.iter().filter(|change| changes_names(&change.asked)).count();
        let mut kept = self.below(named);
        for (number, id) in changes.iter().filter_map(|change| Some((change.record.number, change.file()?))) {
            if self.dice.below(6) == 0 {
                self.synced.insert(id, number + 1);
            }
        }
        let is_synced = |change: &Change| {
            let below = change.file().and_then(|id| self.synced.get(&id));
            below.is_some_and(|below| change.record.number < *below)
        };
        for change in changes {
            if changes_names(&change.asked) {
                if kept > 0 {
                    kept -= 1;
                    if !lost.wait_for(change.made) {
                        return None;
                    }
                    // Data in a creation may be lost.
                    let mut asked = change.asked.clone();
                    if let Request::Put(put) = &mut asked
                        && put.mode.has(PutMode::DATA)
                        && !is_synced(change)
                        && self.dice.below(2) == 0
                    {
                        (put.mode, put.data) = (put.mode.without(PutMode::DATA), Data(Bytes::new()));
                    }
                    assert_eq!(lost.ask(asked).is_ok(), change.is_done);
                }
            } else if change.is_done && (is_synced(change) || self.dice.below(2) == 0) {
                lost.somewhere(change);
            }
        }
        // A file that does not exist yet cannot be synced.
        let there: BTreeSet<FileId> = lost.walk().into_iter().map(|(_, id, _)| id).collect();
        self.synced.retain(|id, _| there.contains(id));
        Some(lost)
    }

    /// Uses up inode numbers until the next object gets this one; `false`: it is used already.
    fn wait_for(&self, made: Option<FileId>) -> bool {
        let Some(made) = made else { return true };
        let known = self.get(&path("k"), GetMode::STAT).unwrap().stat.unwrap();
        let since = known.mtime.secs - known.id.ino as i64;
        loop {
            let next = self.idle() - since + 1;
            if next >= made.ino as i64 {
                return next == made.ino as i64;
            }
        }
    }

    /// Uses up one step of the tree's time. Returns the time.
    pub(super) fn idle(&self) -> i64 {
        let set = SetStat { mode: Some(0o755), ..SetStat::default() };
        let idle = Tput { set, ..put(Target::at(TreePath::root()), PutMode::STAT) };
        match self.ask(Request::Put(idle)) {
            Ok(Reply::Put(Rput { stat: Some(root), .. })) => root.ctime.secs,
            other => panic!("{other:?}"),
        }
    }

    /// Applies a change of contents or attributes at the present path of its object.
    fn somewhere(&self, change: &Change) {
        let mut request = change.asked.clone();
        let target = match &mut request {
            Request::Put(put) => {
                // An append becomes a write at its offset.
                if let Some(offset) = change.outcome.offset {
                    (put.mode, put.offset) = (PutMode::DATA, offset);
                }
                &mut put.target
            }
            Request::Xattr(xattr) => &mut xattr.target,
            _ => return,
        };
        let found = self.walk().into_iter().find(|(_, id, _)| Some(*id) == target.id);
        if let Some((path, ..)) = found {
            target.path = path;
            self.ask(request).unwrap();
        }
    }
}
