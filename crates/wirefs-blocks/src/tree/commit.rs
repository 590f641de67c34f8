//! Commit of changes: run, register, switch the root, deregister.

use super::serve::Failure;
use super::{BlockTree, Changes, count};
use crate::affected::{AffectedObject, Postponed, UnrequestedChange};
use crate::block_set::BlockSet;
use crate::change::{Basis, Change, Sealed};
use crate::halt::Halt;
use crate::id::BlockId;
use crate::key::Ino;
use crate::limits::IDS_SKIPPED;
use crate::store::StoreFault;
use bytes::Bytes;
use std::sync::Arc;
use wirefs_op::Errno;

/// Announces the objects that a change is about to modify.
pub(super) type Announcer<'a> = &'a mut dyn FnMut(&[AffectedObject]) -> Result<(), Postponed>;

/// For changes that need no announcement.
pub(super) fn no_announcement(_: &[AffectedObject]) -> Result<(), Postponed> {
    Ok(())
}

/// Whether a change may use reserved space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Adds data.
    Fill,
    /// Frees space, now or later.
    Clear,
}

impl BlockTree {
    /// Commits a change. `then` runs before the next change may start.
    ///
    /// # Cost
    /// The retrievals of its lookups; then one `register`, one `switch_root`, one `deregister`.
    pub(super) fn change<R, T>(
        &self,
        purpose: Purpose,
        announce: Announcer<'_>,
        op: impl Fn(&mut Change<'_>) -> Result<R, Halt>,
        then: impl FnOnce(R) -> T,
    ) -> Result<T, Failure> {
        let mut changes = self.changes();
        let mut outcome = self.commit(&mut changes, purpose, announce, &op);
        if matches!(outcome, Err(Failure::Errno(Errno::NoSpace))) && self.collect_all(&mut changes) {
            outcome = self.commit(&mut changes, purpose, announce, &op);
        }
        let done = then(outcome?);
        self.collect_some(&mut changes);
        Ok(done)
    }

    /// Commits a change, as often as its transaction is aborted.
    pub(super) fn commit<R>(
        &self,
        changes: &mut Changes,
        purpose: Purpose,
        announce: Announcer<'_>,
        op: &impl Fn(&mut Change<'_>) -> Result<R, Halt>,
    ) -> Result<R, Failure> {
        loop {
            let _transaction = self.begin_transaction(changes)?;
            // An aborted change is repeated on the new root of the other node.
            if let Some(result) = self.commit_once(changes, purpose, announce, op)? {
                return Ok(result);
            }
        }
    }

    fn commit_once<R>(
        &self,
        changes: &mut Changes,
        purpose: Purpose,
        announce: Announcer<'_>,
        op: &impl Fn(&mut Change<'_>) -> Result<R, Halt>,
    ) -> Result<Option<R>, Failure> {
        if changes.is_broken {
            return Err(Errno::Io.into());
        }
        let volume = self.volume();
        let block_set = BlockSet::new(&self.cache);
        let basis = Basis {
            volume: &volume,
            block_set: &block_set,
            opens: &self.opens,
            geometry: self.geometry,
            boot: self.options.boot,
            ids: changes.ids,
            now: (self.clock)(),
        };
        let ran = self.run(&block_set, || {
            let mut change = Change::new(basis);
            let result = op(&mut change)?;
            Ok((result, change.seal()?))
        });
        let outcome = match ran {
            Ok((result, Some(sealed))) => match announce(&sealed.affected) {
                Ok(()) => {
                    let published = self.publish(changes, purpose, sealed);
                    published.map(|counts| counts.then_some(result)).map_err(Failure::Errno)
                }
                Err(Postponed) => Err(Failure::Postponed),
            },
            Ok((result, None)) => Ok(Some(result)),
            Err(Halt::Failed(errno)) => Err(errno.into()),
            Err(Halt::Lost(_) | Halt::Need(_)) => Err(Errno::Io.into()),
        };
        self.opens.end_removals();
        outcome
    }

    /// Returns `false` if the transaction was aborted in favor of another node.
    fn publish(&self, changes: &mut Changes, purpose: Purpose, sealed: Sealed) -> Result<bool, Errno> {
        let encoded: Vec<(BlockId, Bytes)> =
            sealed.blocks.iter().map(|(id, block)| (*id, block.encode())).collect();
        self.check_room(purpose, encoded.len())?;
        let basis = self.volume().id;
        let transactions = self.store.transactions();
        // In a shared tree, ids continue after the root of `begin`, which is newer than all observed ids.
        if transactions.is_none() && sealed.ids.distance_from(basis) > ids_unused_max(purpose) {
            // Beyond this limit, ids of aborted changes might be reused after the tree is opened again.
            return Err(Errno::Io);
        }
        let registered = self.store.register(&encoded);
        // Even after a failure, other nodes may have seen these ids.
        changes.ids = sealed.ids;
        let deregister_new = || {
            let ids: Vec<BlockId> = encoded.iter().map(|(id, _)| *id).collect();
            self.store.deregister(&ids);
        };
        match registered {
            Ok(()) => count(&self.counts.registered, encoded.len()),
            Err(StoreFault::Full) => return Err(Errno::NoSpace),
            Err(StoreFault::Broken(_)) => {
                deregister_new();
                return Err(Errno::Io);
            }
        }
        let switched = match transactions {
            Some(transactions) => transactions.commit(sealed.volume.id, &sealed.free_list),
            None => self.store.switch_root(sealed.volume.id).map(|()| true),
        };
        match switched {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(StoreFault::Full) => {
                deregister_new();
                return Err(Errno::NoSpace);
            }
            Err(StoreFault::Broken(_)) => {
                // In a shared tree, the next `begin` returns the actual root.
                changes.is_broken = transactions.is_none();
                return Err(Errno::Io);
            }
        }
        self.adopt(changes, basis, sealed);
        Ok(true)
    }

    /// Fails with `NoSpace` if only space reserved for other purposes is left.
    fn check_room(&self, purpose: Purpose, wanted: usize) -> Result<(), Errno> {
        let room = self.store.room();
        let usable = match purpose {
            Purpose::Fill => room.blocks_available(),
            Purpose::Clear => room.blocks_free,
        };
        if usable >= wanted as u64 { Ok(()) } else { Err(Errno::NoSpace) }
    }

    /// Switches to the new root, unless the tree has already moved past it.
    fn adopt(&self, changes: &mut Changes, basis: BlockId, sealed: Sealed) {
        let Sealed { volume, blocks, free_list, orphaned, adopted, trimmed, .. } = sealed;
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
            self.opens.clear_orphans();
            changes.orphans_unread_from = Some(Ino(0));
            self.notify(UnrequestedChange::Everything);
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
        self.deregister(&free_list);
    }

    /// Deregisters unreachable blocks.
    pub(super) fn deregister(&self, ids: &[BlockId]) {
        if !ids.is_empty() {
            self.cache.evict(ids);
            self.store.deregister(ids);
            count(&self.counts.deregistered, ids.len());
        }
    }
}

/// Returns how many ids aborted changes may use. The limit is higher for changes that free space.
fn ids_unused_max(purpose: Purpose) -> u64 {
    match purpose {
        Purpose::Fill => IDS_SKIPPED / 2,
        Purpose::Clear => IDS_SKIPPED / 4 * 3,
    }
}
