//! Collection: dead objects, cut-off files and dropped checkpoints, a bounded part with each change.

use super::commit::{Purpose, quietly};
use super::{BlockTree, Changes};
use crate::change::{Change, Progress};
use crate::collect::{Reaper, strays};
use crate::halt::Halt;
use crate::id::BlockId;
use crate::item::Head;
use crate::key::{Ino, Key, Part, SYSTEM};
use crate::limits::{BACKLOG_MAX, STRAYS_BATCH};
use crate::shelf::Shelf;
use crate::view::View;
use crate::volume::Volume;
use wirefs_op::{Errno, FileId};

/// Steps of collection that are done for a change that finds no room, at most: each frees something.
const STEPS_MAX: usize = 1 << 20;

/// What one part of a sweep came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Swept {
    /// Where to go on; `None` at the end.
    pub next: Option<BlockId>,
    /// Blocks that were asked for and not delivered; they are counted in [`Figures::lost`](super::Figures::lost) too.
    pub lost: u64,
    /// Of these some may only be late, and keep what nothing else reaches until they are gone or back.
    pub has_late: bool,
}

impl BlockTree {
    /// Does some of what is to be collected; true when there is more. For a driver with nothing else to do: each change
    /// does a part of it too.
    ///
    /// # Cost
    /// Looks at a bounded number of blocks for each step, and makes one small change. Other changes wait for a step at most.
    pub fn collect(&self, steps: usize) -> bool {
        self.changes().is_stuck = false;
        (0..steps).all(|_| self.step(&mut self.changes()))
    }

    /// Looks through registered blocks after `after` for some that nothing reaches: those that were named only by blocks
    /// that are gone for good ([`BlockStore::is_gone`](crate::store::BlockStore::is_gone)).
    ///
    /// # Cost
    /// Retrieves each block that it looks at, so many at a time. Changes wait only where it found some.
    pub fn sweep(&self, after: Option<BlockId>) -> Swept {
        if after.is_none() && self.store.turns().is_none() {
            // What could not be removed of dead objects when it was tried may be there again.
            self.changes().dead_unread_from = Some(Ino(0));
        }
        let volume = self.volume();
        let ids = self.store.registered(after, STRAYS_BATCH);
        let older: Vec<BlockId> = ids.into_iter().filter(|id| *id < volume.id).collect();
        let Some(last) = older.last().copied() else {
            return Swept { next: None, lost: 0, has_late: false };
        };
        let mut missed = Vec::new();
        let found = self.strays(&volume, &older, &mut missed);
        if !found.is_empty() {
            // No change comes between looking and letting go. One that came since may have begun to take a tree apart, or
            // have deregistered what was on the way to them.
            let _changes = self.changes();
            let present = self.volume();
            let is_as_it_was = present.id == volume.id;
            self.let_go(&if is_as_it_was { found } else { self.strays(&present, &found, &mut missed) });
        }
        let has_late = missed.iter().any(|id| !self.store.is_gone(*id));
        Swept { next: Some(last), lost: missed.len() as u64, has_late }
    }

    /// Which of these nothing reaches, and what was missed on the way.
    fn strays(&self, volume: &Volume, ids: &[BlockId], missed: &mut Vec<BlockId>) -> Vec<BlockId> {
        let shelf = Shelf::new(&self.cache);
        let found = self.run(&shelf, || strays(volume, &shelf, ids, &|id| self.store.is_gone(id)));
        missed.append(&mut shelf.into_missed());
        found.unwrap_or_default()
    }

    pub(super) fn collect_some(&self, changes: &mut Changes) {
        self.step(changes);
    }

    /// Collects until nothing is left; false when nothing was there.
    pub(super) fn collect_all(&self, changes: &mut Changes) -> bool {
        changes.is_stuck = false;
        let steps = (0..STEPS_MAX).take_while(|_| self.step(changes)).count();
        steps > 0
    }

    /// One step; true when it did something.
    fn step(&self, changes: &mut Changes) -> bool {
        if changes.is_broken {
            return false;
        }
        if let Some(from) = changes.dead_unread_from
            && self.opens.backlog() < BACKLOG_MAX
        {
            changes.dead_unread_from = self.read_dead(changes, from);
        }
        if let Some(id) = self.opens.next_in_backlog() {
            return self.reap(changes, id);
        }
        self.take_apart(changes)
    }

    /// Takes objects that the tree notes as dead into the backlog, from `from` on; answers where to go on.
    fn read_dead(&self, changes: &Changes, from: Ino) -> Option<Ino> {
        let noted = self.look_in(Some(changes), |trees| {
            let view = trees.present();
            let range = Key::dead(from)..=Key::new(SYSTEM, Part::Dead, u64::MAX);
            let items = view.scan(range, BACKLOG_MAX)?.into_iter();
            items.map(|item| noted(&view, Ino(item.key.sub))).collect::<Result<Vec<_>, Halt>>()
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

    /// Goes on removing what is left of one object.
    fn reap(&self, changes: &mut Changes, id: FileId) -> bool {
        let op = |change: &mut Change<'_>| change.reap(Ino(id.ino));
        match self.commit(changes, Purpose::Clear, &mut quietly, &op) {
            Ok(Progress::Again) => true,
            // What cannot be removed now stays noted in the tree for the next time that it is opened.
            Ok(Progress::Done) | Err(_) => {
                self.opens.settled(id);
                true
            }
        }
    }

    /// Goes on with the first tree that is to be taken apart.
    fn take_apart(&self, changes: &mut Changes) -> bool {
        let volume = self.volume();
        let Some(dying) = volume.dying.first().copied().filter(|_| !changes.is_stuck) else { return false };
        let reaper = changes.reaper.filter(|reaper| reaper.dying == dying).unwrap_or(Reaper::new(dying));
        let shelf = Shelf::new(&self.cache);
        match self.run(&shelf, || reaper.step(&volume, &shelf, &|id| self.store.is_gone(id))) {
            Ok(reaped) => {
                self.let_go(&reaped.free);
                changes.reaper = reaped.next;
                changes.is_stuck = reaped.is_stuck;
                if reaped.next.is_some() {
                    return !reaped.is_stuck;
                }
                let op = |change: &mut Change<'_>| {
                    change.bury(dying);
                    Ok(())
                };
                self.commit(changes, Purpose::Clear, &mut quietly, &op).is_ok()
            }
            Err(Halt::Lost(_) | Halt::Failed(_) | Halt::Need(_)) => false,
        }
    }
}

/// An object that is noted as dead, as it is now.
fn noted(view: &View<'_>, ino: Ino) -> Result<(FileId, Option<Head>), Halt> {
    let id = |generation| FileId { fs: 0, ino: ino.0, generation };
    match view.head(ino) {
        Ok(head) => Ok((id(head.generation), Some(head))),
        Err(Halt::Lost(_) | Halt::Failed(Errno::Stale | Errno::Io)) => Ok((id(0), None)),
        Err(halt) => Err(halt),
    }
}
