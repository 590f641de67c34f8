//! Garbage collection of orphans, truncated files and dropped checkpoints: a bounded step with each change.

use super::commit::{Purpose, no_announcement};
use super::{BlockTree, Changes};
use crate::block_set::BlockSet;
use crate::change::{Change, Progress};
use crate::collect::{Reaper, unreachable_blocks};
use crate::halt::Halt;
use crate::id::BlockId;
use crate::item::Head;
use crate::key::{Ino, Key, Part, SYSTEM};
use crate::limits::{BACKLOG_MAX, SWEEP_BATCH};
use crate::view::View;
use crate::volume::Volume;
use wirefs_op::{Errno, FileId};

/// The maximum number of steps on behalf of a change that finds no space. Each step frees something.
const STEPS_MAX: usize = 1 << 20;

/// The result of one step of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweepResult {
    /// The position of the next step; `None` at the end.
    pub next: Option<BlockId>,
    /// Blocks that the sweep could not retrieve. [`TreeStatistics::lost`](super::TreeStatistics::lost)
    /// includes them.
    pub lost: u64,
    /// Some of the lost blocks may only be delayed. Blocks below them stay until they arrive or are gone.
    pub has_delayed: bool,
}

impl BlockTree {
    /// Runs at most `steps` steps of garbage collection; returns `true` if more work remains. For an idle
    /// driver: changes run steps, too.
    ///
    /// # Cost
    /// Each step reads a bounded number of blocks and makes one small change. Other changes wait for at most
    /// one step.
    pub fn collect(&self, steps: usize) -> bool {
        self.changes().is_blocked = false;
        (0..steps).all(|_| self.step(&mut self.changes()))
    }

    /// Searches registered blocks after `after` for unreachable ones and deregisters them. A block becomes
    /// unreachable without being freed if its parents are gone for good
    /// ([`BlockStore::is_gone`](crate::store::BlockStore::is_gone)).
    ///
    /// # Cost
    /// Retrieves each searched block, in batches. Blocks changes only if unreachable blocks were found.
    pub fn sweep(&self, after: Option<BlockId>) -> SweepResult {
        if after.is_none() && self.store.transactions().is_none() {
            // Orphans that could not be removed earlier are retried.
            self.changes().orphans_unread_from = Some(Ino(0));
        }
        let volume = self.volume();
        let ids = self.store.registered(after, SWEEP_BATCH);
        let older: Vec<BlockId> = ids.into_iter().filter(|id| *id < volume.id).collect();
        let Some(last) = older.last().copied() else {
            return SweepResult { next: None, lost: 0, has_delayed: false };
        };
        let mut missed = Vec::new();
        let found = self.unreachable_blocks(&volume, &older, &mut missed);
        if !found.is_empty() {
            // No change may run between check and deregistration. A change since the search may have begun to
            // destroy a tree, or have deregistered parents of these blocks.
            let _changes = self.changes();
            let present = self.volume();
            let is_as_it_was = present.id == volume.id;
            self.deregister(&if is_as_it_was {
                found
            } else {
                self.unreachable_blocks(&present, &found, &mut missed)
            });
        }
        let has_delayed = missed.iter().any(|id| !self.store.is_gone(*id));
        SweepResult { next: Some(last), lost: missed.len() as u64, has_delayed }
    }

    /// Returns the unreachable blocks among `ids`, and adds those that were lost to `missed`.
    fn unreachable_blocks(
        &self,
        volume: &Volume,
        ids: &[BlockId],
        missed: &mut Vec<BlockId>,
    ) -> Vec<BlockId> {
        let block_set = BlockSet::new(&self.cache);
        let found = self
            .run(&block_set, || unreachable_blocks(volume, &block_set, ids, &|id| self.store.is_gone(id)));
        missed.append(&mut block_set.into_missed());
        found.unwrap_or_default()
    }

    pub(super) fn collect_some(&self, changes: &mut Changes) {
        self.step(changes);
    }

    /// Collects until nothing remains; returns `false` if there was nothing to collect.
    pub(super) fn collect_all(&self, changes: &mut Changes) -> bool {
        changes.is_blocked = false;
        let steps = (0..STEPS_MAX).take_while(|_| self.step(changes)).count();
        steps > 0
    }

    /// Runs one step; returns `true` if it made progress.
    fn step(&self, changes: &mut Changes) -> bool {
        if changes.is_broken {
            return false;
        }
        if let Some(from) = changes.orphans_unread_from
            && self.opens.backlog() < BACKLOG_MAX
        {
            changes.orphans_unread_from = self.read_orphans(changes, from);
        }
        if let Some(id) = self.opens.next_in_backlog() {
            return self.reap(changes, id);
        }
        self.destroy(changes)
    }

    /// Reads orphans from `from` on into the backlog; returns where to continue.
    fn read_orphans(&self, changes: &Changes, from: Ino) -> Option<Ino> {
        let noted = self.read_tree_in(Some(changes), |trees| {
            let view = trees.present();
            let range = Key::orphan(from)..=Key::new(SYSTEM, Part::Orphan, u64::MAX);
            let items = view.scan(range, BACKLOG_MAX)?.into_iter();
            items.map(|item| load_orphan(&view, Ino(item.key.sub))).collect::<Result<Vec<_>, Halt>>()
        });
        let (noted, _) = noted.ok()?;
        let last = noted.last().filter(|_| noted.len() == BACKLOG_MAX).map(|(id, _)| Ino(id.ino));
        for (id, head) in noted {
            match head {
                Some(head) if head.nlink > 0 => self.opens.trim(id),
                Some(_) | None => self.opens.orphan(id),
            }
        }
        last.and_then(|last| last.0.checked_add(1)).map(Ino)
    }

    /// Continues the removal of one object.
    fn reap(&self, changes: &mut Changes, id: FileId) -> bool {
        let op = |change: &mut Change<'_>| change.reap(Ino(id.ino));
        match self.commit(changes, Purpose::Clear, &mut no_announcement, &op) {
            Ok(Progress::Again) => true,
            // An object that cannot be removed now stays in the table of orphans until the tree is opened
            // again.
            Ok(Progress::Done) | Err(_) => {
                self.opens.mark_clean(id);
                true
            }
        }
    }

    /// Continues the destruction of the first tree.
    fn destroy(&self, changes: &mut Changes) -> bool {
        let volume = self.volume();
        let Some(destroyed) = volume.destroyed.first().copied().filter(|_| !changes.is_blocked) else {
            return false;
        };
        let reaper =
            changes.reaper.filter(|reaper| reaper.destroyed == destroyed).unwrap_or(Reaper::new(destroyed));
        let block_set = BlockSet::new(&self.cache);
        match self.run(&block_set, || reaper.step(&volume, &block_set, &|id| self.store.is_gone(id))) {
            Ok(reaped) => {
                self.deregister(&reaped.free);
                changes.reaper = reaped.next;
                changes.is_blocked = reaped.is_blocked;
                if reaped.next.is_some() {
                    return !reaped.is_blocked;
                }
                let op = |change: &mut Change<'_>| {
                    change.finish_destroy(destroyed);
                    Ok(())
                };
                self.commit(changes, Purpose::Clear, &mut no_announcement, &op).is_ok()
            }
            Err(Halt::Lost(_) | Halt::Failed(_) | Halt::Need(_)) => false,
        }
    }
}

/// Returns an orphan with its current head.
fn load_orphan(view: &View<'_>, ino: Ino) -> Result<(FileId, Option<Head>), Halt> {
    let id = |generation| FileId { fs: 0, ino: ino.0, generation };
    match view.head(ino) {
        Ok(head) => Ok((id(head.generation), Some(head))),
        Err(Halt::Lost(_) | Halt::Failed(Errno::Stale | Errno::Io)) => Ok((id(0), None)),
        Err(halt) => Err(halt),
    }
}
