//! Carrying changes out: run, register, switch the root, deregister.

use super::serve::Failure;
use super::{BlockTree, Changes, count};
use crate::change::{Basis, Change, Sealed};
use crate::halt::Halt;
use crate::id::BlockId;
use crate::key::Ino;
use crate::limits::IDS_SKIPPED;
use crate::shelf::Shelf;
use crate::store::StoreFault;
use crate::touch::{Parked, Touch, Unasked};
use bytes::Bytes;
use std::sync::Arc;
use wirefs_op::Errno;

/// Tells others what is about to change.
pub(super) type Toucher<'a> = &'a mut dyn FnMut(&[Touch]) -> Result<(), Parked>;

/// For changes that nobody needs to hear of first.
pub(super) fn quietly(_: &[Touch]) -> Result<(), Parked> {
    Ok(())
}

/// What a change is for, as far as a store that is nearly full wants to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Puts something in.
    Fill,
    /// Makes room, if not at once.
    Clear,
}

impl BlockTree {
    /// Carries a change out. `then` is called before the next change may begin.
    ///
    /// # Cost
    /// The waits of its look-ups; then one `register`, one `switch_root`, one `deregister`.
    pub(super) fn change<R, T>(
        &self,
        purpose: Purpose,
        touch: Toucher<'_>,
        op: impl Fn(&mut Change<'_>) -> Result<R, Halt>,
        then: impl FnOnce(R) -> T,
    ) -> Result<T, Failure> {
        let mut changes = self.changes();
        let mut outcome = self.commit(&mut changes, purpose, touch, &op);
        if matches!(outcome, Err(Failure::Errno(Errno::NoSpace))) && self.collect_all(&mut changes) {
            outcome = self.commit(&mut changes, purpose, touch, &op);
        }
        let done = then(outcome?);
        self.collect_some(&mut changes);
        Ok(done)
    }

    /// One change, in the turn of the caller.
    pub(super) fn commit<R>(
        &self,
        changes: &mut Changes,
        purpose: Purpose,
        touch: Toucher<'_>,
        op: &impl Fn(&mut Change<'_>) -> Result<R, Halt>,
    ) -> Result<R, Failure> {
        loop {
            let _turn = self.begin_turn(changes)?;
            // What came to nothing is made again of what another node made.
            if let Some(result) = self.commit_once(changes, purpose, touch, op)? {
                return Ok(result);
            }
        }
    }

    fn commit_once<R>(
        &self,
        changes: &mut Changes,
        purpose: Purpose,
        touch: Toucher<'_>,
        op: &impl Fn(&mut Change<'_>) -> Result<R, Halt>,
    ) -> Result<Option<R>, Failure> {
        if changes.is_broken {
            return Err(Errno::Io.into());
        }
        let volume = self.volume();
        let shelf = Shelf::new(&self.cache);
        let basis = Basis {
            volume: &volume,
            shelf: &shelf,
            opens: &self.opens,
            geometry: self.geometry,
            ids: changes.ids,
            now: (self.clock)(),
        };
        let ran = self.run(&shelf, || {
            let mut change = Change::new(basis);
            let result = op(&mut change)?;
            Ok((result, change.seal()?))
        });
        let outcome = match ran {
            Ok((result, Some(sealed))) => match touch(&sealed.touched) {
                Ok(()) => {
                    let published = self.publish(changes, purpose, sealed);
                    published.map(|counts| counts.then_some(result)).map_err(Failure::Errno)
                }
                Err(Parked) => Err(Failure::Parked),
            },
            Ok((result, None)) => Ok(Some(result)),
            Err(Halt::Failed(errno)) => Err(errno.into()),
            Err(Halt::Lost(_) | Halt::Need(_)) => Err(Errno::Io.into()),
        };
        self.opens.absolve();
        outcome
    }

    /// False: it came to nothing, since another node's change counts.
    fn publish(&self, changes: &mut Changes, purpose: Purpose, sealed: Sealed) -> Result<bool, Errno> {
        let encoded: Vec<(BlockId, Bytes)> =
            sealed.blocks.iter().map(|(id, block)| (*id, block.encode())).collect();
        self.check_room(purpose, encoded.len())?;
        let basis = self.volume().id;
        let turns = self.store.turns();
        // Nodes that share a tree have theirs from a root that leads on from all that they saw.
        if turns.is_none() && sealed.ids.ahead_of(basis) > ids_unused_max(purpose) {
            // Past this, ids of changes that came to nothing might be given out again when the tree is opened.
            return Err(Errno::Io);
        }
        let registered = self.store.register(&encoded);
        // Whatever came of it, others may have seen them.
        changes.ids = sealed.ids;
        let forget = || {
            let ids: Vec<BlockId> = encoded.iter().map(|(id, _)| *id).collect();
            self.store.deregister(&ids);
        };
        match registered {
            Ok(()) => count(&self.counts.registered, encoded.len()),
            Err(StoreFault::Full) => return Err(Errno::NoSpace),
            Err(StoreFault::Broken(_)) => {
                forget();
                return Err(Errno::Io);
            }
        }
        let switched = match turns {
            Some(turns) => turns.agree(sealed.volume.id, &sealed.doomed),
            None => self.store.switch_root(sealed.volume.id).map(|()| true),
        };
        match switched {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(StoreFault::Full) => {
                forget();
                return Err(Errno::NoSpace);
            }
            Err(StoreFault::Broken(_)) => {
                // The others know, and the next turn begins with what they say.
                changes.is_broken = turns.is_none();
                return Err(Errno::Io);
            }
        }
        self.adopt(changes, basis, sealed);
        Ok(true)
    }

    /// Keeps some room for changes that make more.
    fn check_room(&self, purpose: Purpose, wanted: usize) -> Result<(), Errno> {
        let room = self.store.room();
        let usable = match purpose {
            Purpose::Fill => room.blocks_available(),
            Purpose::Clear => room.blocks_free,
        };
        if usable >= wanted as u64 { Ok(()) } else { Err(Errno::NoSpace) }
    }

    /// Goes over to the new root, unless others have gone on from it already.
    fn adopt(&self, changes: &mut Changes, basis: BlockId, sealed: Sealed) {
        let Sealed { volume, blocks, doomed, orphaned, adopted, trimmed, .. } = sealed;
        for (id, block) in blocks {
            self.cache.put(id, block);
        }
        let volume = Arc::new(volume);
        let before = {
            let mut state = self.state();
            let is_next = state.volume.id == basis;
            is_next.then(|| std::mem::replace(&mut state.volume, Arc::clone(&volume)))
        };
        if before.is_some_and(|before| volume.root.era != before.root.era) {
            self.opens.forget_dead();
            changes.dead_unread_from = Some(Ino(0));
            self.tell(Unasked::Everything);
        }
        for id in adopted {
            self.opens.adopt(id);
        }
        for id in orphaned {
            self.opens.orphan(id);
        }
        for id in trimmed {
            self.opens.trim(id);
        }
        self.let_go(&doomed);
    }

    /// Deregisters blocks that nothing reaches.
    pub(super) fn let_go(&self, ids: &[BlockId]) {
        if !ids.is_empty() {
            self.cache.forget(ids);
            self.store.deregister(ids);
            count(&self.counts.deregistered, ids.len());
        }
    }
}

/// How many ids changes may have used that came to nothing. Making room goes on where filling it has failed too often.
fn ids_unused_max(purpose: Purpose) -> u64 {
    match purpose {
        Purpose::Fill => IDS_SKIPPED / 2,
        Purpose::Clear => IDS_SKIPPED / 4 * 3,
    }
}
