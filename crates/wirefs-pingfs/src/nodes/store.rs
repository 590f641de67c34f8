//! The store as the tree calls it, and its turns.

use std::collections::BTreeSet;
use std::sync::{MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use wirefs_blocks::id::BlockId;
use wirefs_blocks::store::{BlockStore, Lost, Room, StoreFault, Wanted};
use wirefs_blocks::transactions::{RootFollower, Transactions};
use wirefs_echo::together::wire::IDS_MAX;
use wirefs_echo::together::{Input, Made};

use super::desk::{Desk, Turn};
use super::{CommonStore, Commons};
use crate::limits::{HEAL_WAIT, LEAVE_WAIT, TURN_WAIT, TURN_WAIT_CUT_OFF};
use crate::store::packed;

const NO_TURN: StoreFault = StoreFault::Broken("the other nodes let this one change nothing");
/// The longest wait between two looks whether it is over.
const PAUSE_MAX: Duration = Duration::from_millis(200);

impl Commons {
    /// Waits until a turn has come as far as that, for a limited time.
    fn wait_until<'a>(
        &'a self,
        mut desk: MutexGuard<'a, Desk>,
        limit: Duration,
        is_there: impl Fn(&Desk) -> bool,
    ) -> (MutexGuard<'a, Desk>, bool) {
        let end = Instant::now() + limit;
        while !is_there(&desk) {
            if self.is_over() || Instant::now() >= end {
                return (desk, false);
            }
            self.echo.shared().tell_waiting();
            desk = self.changed.wait_timeout(desk, PAUSE_MAX).unwrap_or_else(PoisonError::into_inner).0;
        }
        (desk, true)
    }
}

impl Commons {
    /// Asks the others for blocks that are lost here.
    pub(super) fn ask(&self, desk: &mut Desk, ids: &[BlockId]) {
        if !ids.is_empty() {
            let ids = ids.iter().copied().map(packed).collect();
            self.work(desk, Input::Miss(ids));
        }
    }

    /// Waits for copies of blocks that are lost here, for a moment.
    fn heal(&self, ids: &BTreeSet<BlockId>) {
        let mut desk = self.desk_in_call();
        if desk.machine.members().len() > 1 {
            self.ask(&mut desk, &ids.iter().copied().collect::<Vec<BlockId>>());
            let _in_time = self.wait_until(desk, HEAL_WAIT, |_| !ids.iter().any(|id| self.echo.misses(*id)));
        }
    }
}

impl CommonStore {
    /// Leaves the others: they go on without this node, with all that it changed. True when they have agreed to that, or there are
    /// none.
    pub fn leave(&self) -> bool {
        let mut desk = self.commons.desk();
        self.commons.work(&mut desk, Input::Leave);
        self.commons.ring();
        self.commons.wait_until(desk, LEAVE_WAIT, |desk| desk.has_left).1
    }
}

impl Transactions for CommonStore {
    fn begin(&self) -> Result<Option<BlockId>, StoreFault> {
        let commons = &*self.commons;
        let is_free = |desk: &Desk| desk.turn == Turn::None;
        let (mut desk, is_first) = commons.wait_until(commons.desk_in_call(), TURN_WAIT, is_free);
        if !is_first || desk.has_left {
            return Err(NO_TURN);
        }
        desk.turn = Turn::Wanted;
        commons.work(&mut desk, Input::Change);
        commons.ring();
        let patience = if desk.is_cut_off { TURN_WAIT_CUT_OFF } else { TURN_WAIT };
        let (mut desk, _) =
            commons.wait_until(desk, patience, |desk| desk.turn != Turn::Wanted || desk.has_left);
        if let Turn::Running(on) = desk.turn {
            return Ok(on);
        }
        desk.turn = Turn::None;
        desk.is_cut_off = true;
        Err(NO_TURN)
    }

    fn commit(&self, root: BlockId, doomed: &[BlockId]) -> Result<bool, StoreFault> {
        let commons = &*self.commons;
        let mut desk = commons.desk_in_call();
        let Turn::Running(_) = desk.turn else { return Err(NO_TURN) };
        desk.turn = Turn::Agreeing(root);
        let room = IDS_MAX.saturating_sub(doomed.len()).min(desk.freed.len());
        desk.told = desk.freed.drain(..room).collect();
        let made = Made {
            root: packed(root),
            made: desk.fresh.keys().copied().map(packed).collect(),
            freed: doomed.iter().chain(&desk.told).copied().map(packed).collect(),
        };
        commons.work(&mut desk, Input::Made(Some(made)));
        commons.ring();
        let (desk, _) = commons.wait_until(desk, TURN_WAIT, |desk| matches!(desk.turn, Turn::Agreed(_)));
        match desk.turn {
            Turn::Agreed(counts) => Ok(counts),
            Turn::None | Turn::Wanted | Turn::Running(_) | Turn::Agreeing(_) => {
                Err(StoreFault::Broken("the other nodes do not say whether they have it"))
            }
        }
    }

    fn end(&self) {
        let mut desk = self.commons.desk_in_call();
        let turn = std::mem::replace(&mut desk.turn, Turn::None);
        if let Turn::Running(_) = turn {
            desk.fresh.clear();
            self.commons.work(&mut desk, Input::Made(None));
            self.commons.ring();
        }
        self.commons.bury_if_unshown(&mut desk);
        self.commons.changed.notify_all();
    }

    fn follow(&self, follower: Weak<dyn RootFollower>) {
        self.commons.desk_in_call().follower = Some(follower);
    }
}

impl BlockStore for CommonStore {
    fn payload_bytes(&self) -> usize {
        self.commons.echo.payload_bytes()
    }

    fn register(&self, blocks: &[(BlockId, Bytes)]) -> Result<(), StoreFault> {
        self.commons.echo.register(blocks)?;
        self.commons.desk_in_call().fresh.extend(blocks.iter().cloned());
        Ok(())
    }

    fn retrieve(&self, wanted: &Wanted, deliver: &mut dyn FnMut(BlockId, Result<Bytes, Lost>)) {
        let echo = &self.commons.echo;
        let mut lost = BTreeSet::new();
        echo.retrieve(wanted, &mut |id, block| {
            if block.is_err() && echo.has(id) {
                lost.insert(id);
            } else {
                deliver(id, block);
            }
        });
        if !lost.is_empty() {
            self.commons.heal(&lost);
            echo.retrieve(&Wanted::of(lost), deliver);
        }
    }

    fn is_gone(&self, id: BlockId) -> bool {
        self.commons.echo.is_gone(id)
    }

    /// What others have as well they let go of when they take the next root of this node.
    fn deregister(&self, ids: &[BlockId]) {
        let mut desk = self.commons.desk_in_call();
        for id in ids {
            let is_own = desk.fresh.remove(id).is_some();
            if !is_own && !desk.dying.contains(id) && self.commons.echo.has(*id) {
                desk.free_later(*id);
            }
        }
        drop(desk);
        self.commons.echo.deregister(ids);
    }

    fn registered(&self, after: Option<BlockId>, count_max: usize) -> Vec<BlockId> {
        self.commons.echo.registered(after, count_max)
    }

    fn root(&self) -> Result<Option<BlockId>, StoreFault> {
        self.commons.echo.root()
    }

    fn switch_root(&self, _: BlockId) -> Result<(), StoreFault> {
        Err(StoreFault::Broken("a root is agreed on"))
    }

    fn sync(&self) -> Result<(), StoreFault> {
        self.commons.echo.sync()
    }

    /// As much as the fullest of the nodes takes.
    fn room(&self) -> Room {
        let room = self.commons.echo.room();
        Room { blocks_free: self.commons.desk_in_call().machine.room().min(room.blocks_free), ..room }
    }

    fn before_waiting(&self, tell: fn()) -> bool {
        self.commons.echo.before_waiting(tell)
    }

    fn transactions(&self) -> Option<&dyn Transactions> {
        Some(self)
    }
}
