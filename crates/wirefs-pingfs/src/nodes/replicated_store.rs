//! The replicated store as seen by the tree, and its transactions.

use std::collections::BTreeSet;
use std::sync::{MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use wirefs_blocks::id::BlockId;
use wirefs_blocks::store::{BlockStore, Lost, Room, StoreFault, Wanted};
use wirefs_blocks::transactions::{RootFollower, Transactions};
use wirefs_echo::replication::wire::IDS_MAX;
use wirefs_echo::replication::{NewRoot, ReplicaInput};

use super::local_replica::{LocalReplica, TransactionState};
use super::{NodeShared, ReplicatedStore};
use crate::limits::{COPY_WAIT, LEAVE_WAIT, TRANSACTION_WAIT, TRANSACTION_WAIT_CUT_OFF};
use crate::store::packed;

const NO_TRANSACTION: StoreFault =
    StoreFault::Broken("the other nodes did not grant this node the write token in time");
/// The longest wait before a caller checks whether the store was dropped.
const PAUSE_MAX: Duration = Duration::from_millis(200);

impl NodeShared {
    /// Waits until a condition holds, for at most `limit`. Returns whether it holds.
    fn wait_until<'a>(
        &'a self,
        mut replica: MutexGuard<'a, LocalReplica>,
        limit: Duration,
        is_met: impl Fn(&LocalReplica) -> bool,
    ) -> (MutexGuard<'a, LocalReplica>, bool) {
        let end = Instant::now() + limit;
        while !is_met(&replica) {
            if self.is_over() || Instant::now() >= end {
                return (replica, false);
            }
            self.echo.shared().announce_wait();
            replica = self.changed.wait_timeout(replica, PAUSE_MAX).unwrap_or_else(PoisonError::into_inner).0;
        }
        (replica, true)
    }
}

impl NodeShared {
    /// Requests copies of lost blocks from the other nodes.
    pub(super) fn request_lost(&self, replica: &mut LocalReplica, ids: &[BlockId]) {
        if !ids.is_empty() {
            let ids = ids.iter().copied().map(packed).collect();
            self.handle_input(replica, ReplicaInput::BlocksLost(ids));
        }
    }

    /// Waits briefly for copies of lost blocks.
    fn wait_for_copies(&self, ids: &BTreeSet<BlockId>) {
        let mut replica = self.replica_for_call();
        if replica.machine.members().len() > 1 {
            self.request_lost(&mut replica, &ids.iter().copied().collect::<Vec<BlockId>>());
            let _in_time =
                self.wait_until(replica, COPY_WAIT, |_| !ids.iter().any(|id| self.echo.misses(*id)));
        }
    }
}

impl ReplicatedStore {
    /// Leaves the other nodes, which continue with all changes of this node. Returns whether they accepted
    /// that, or there are none.
    pub fn leave(&self) -> bool {
        let mut replica = self.shared.replica();
        self.shared.handle_input(&mut replica, ReplicaInput::Leave);
        self.shared.wake();
        self.shared.wait_until(replica, LEAVE_WAIT, |replica| replica.has_left).1
    }
}

impl Transactions for ReplicatedStore {
    fn begin(&self) -> Result<Option<BlockId>, StoreFault> {
        let shared = &*self.shared;
        let is_free = |replica: &LocalReplica| replica.transaction == TransactionState::Idle;
        let (mut replica, is_first) = shared.wait_until(shared.replica_for_call(), TRANSACTION_WAIT, is_free);
        if !is_first || replica.has_left {
            return Err(NO_TRANSACTION);
        }
        replica.transaction = TransactionState::Waiting;
        shared.handle_input(&mut replica, ReplicaInput::RequestWrite);
        shared.wake();
        let timeout = if replica.is_cut_off { TRANSACTION_WAIT_CUT_OFF } else { TRANSACTION_WAIT };
        let (mut replica, _) = shared.wait_until(replica, timeout, |replica| {
            replica.transaction != TransactionState::Waiting || replica.has_left
        });
        if let TransactionState::Running(base) = replica.transaction {
            return Ok(base);
        }
        replica.transaction = TransactionState::Idle;
        replica.is_cut_off = true;
        Err(NO_TRANSACTION)
    }

    fn commit(&self, root: BlockId, doomed: &[BlockId]) -> Result<bool, StoreFault> {
        let shared = &*self.shared;
        let mut replica = shared.replica_for_call();
        let TransactionState::Running(_) = replica.transaction else { return Err(NO_TRANSACTION) };
        replica.transaction = TransactionState::Committing(root);
        let room = IDS_MAX.saturating_sub(doomed.len()).min(replica.freed.len());
        replica.announced_frees = replica.freed.drain(..room).collect();
        let new_root = NewRoot {
            root: packed(root),
            new_blocks: replica.new_blocks.keys().copied().map(packed).collect(),
            freed: doomed.iter().chain(&replica.announced_frees).copied().map(packed).collect(),
        };
        shared.handle_input(&mut replica, ReplicaInput::ChangeDone(Some(new_root)));
        shared.wake();
        let (replica, _) = shared.wait_until(replica, TRANSACTION_WAIT, |replica| {
            matches!(replica.transaction, TransactionState::Decided(_))
        });
        match replica.transaction {
            TransactionState::Decided(is_committed) => Ok(is_committed),
            TransactionState::Idle
            | TransactionState::Waiting
            | TransactionState::Running(_)
            | TransactionState::Committing(_) => Err(StoreFault::Broken(
                "the other nodes did not accept the change in time; its outcome is unknown",
            )),
        }
    }

    fn end(&self) {
        let mut replica = self.shared.replica_for_call();
        let transaction = std::mem::replace(&mut replica.transaction, TransactionState::Idle);
        if let TransactionState::Running(_) = transaction {
            replica.new_blocks.clear();
            self.shared.handle_input(&mut replica, ReplicaInput::ChangeDone(None));
            self.shared.wake();
        }
        self.shared.delete_pending_if_unused(&mut replica);
        self.shared.changed.notify_all();
    }

    fn follow(&self, follower: Weak<dyn RootFollower>) {
        self.shared.replica_for_call().follower = Some(follower);
    }
}

impl BlockStore for ReplicatedStore {
    fn read_ahead_bytes(&self) -> u64 {
        self.shared.echo.read_ahead_bytes()
    }

    fn payload_bytes(&self) -> usize {
        self.shared.echo.payload_bytes()
    }

    fn register(&self, blocks: &[(BlockId, Bytes)]) -> Result<(), StoreFault> {
        self.shared.echo.register(blocks)?;
        self.shared.replica_for_call().new_blocks.extend(blocks.iter().cloned());
        Ok(())
    }

    fn retrieve(&self, wanted: &Wanted, deliver: &mut dyn FnMut(BlockId, Result<Bytes, Lost>)) {
        let echo = &self.shared.echo;
        let mut lost = BTreeSet::new();
        echo.retrieve(wanted, &mut |id, block| {
            if block.is_err() && echo.has(id) {
                lost.insert(id);
            } else {
                deliver(id, block);
            }
        });
        if !lost.is_empty() {
            self.shared.wait_for_copies(&lost);
            echo.retrieve(&Wanted::of(lost), deliver);
        }
    }

    fn is_gone(&self, id: BlockId) -> bool {
        self.shared.echo.is_gone(id)
    }

    /// The other nodes delete shared blocks when they accept the next root of this node.
    fn deregister(&self, ids: &[BlockId]) {
        let mut replica = self.shared.replica_for_call();
        for id in ids {
            let is_own = replica.new_blocks.remove(id).is_some();
            if !is_own && !replica.pending_deletes.contains(id) && self.shared.echo.has(*id) {
                replica.announce_free_later(*id);
            }
        }
        drop(replica);
        self.shared.echo.deregister(ids);
    }

    fn registered(&self, after: Option<BlockId>, count_max: usize) -> Vec<BlockId> {
        self.shared.echo.registered(after, count_max)
    }

    fn root(&self) -> Result<Option<BlockId>, StoreFault> {
        self.shared.echo.root()
    }

    fn switch_root(&self, _: BlockId) -> Result<(), StoreFault> {
        Err(StoreFault::Broken("the root of a replicated tree changes only in a transaction"))
    }

    fn sync(&self) -> Result<(), StoreFault> {
        self.shared.echo.sync()
    }

    /// Returns the room of the fullest node.
    fn room(&self) -> Room {
        let room = self.shared.echo.room();
        Room {
            blocks_free: self.shared.replica_for_call().machine.free_blocks().min(room.blocks_free),
            ..room
        }
    }

    fn before_waiting(&self, announce: fn()) -> bool {
        self.shared.echo.before_waiting(announce)
    }

    fn transactions(&self) -> Option<&dyn Transactions> {
        Some(self)
    }
}
