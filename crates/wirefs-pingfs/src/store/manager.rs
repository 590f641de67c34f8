//! The block store interface: register, retrieve, deregister.

use std::collections::BTreeSet;
use std::sync::MutexGuard;
use std::time::{Duration, Instant};

use bytes::Bytes;
use wirefs_blocks::id::BlockId;
use wirefs_blocks::store::{BlockStore, Lost, Room, StoreFault, Wanted};
use wirefs_echo::{Distance, EchoRefusal};
use wirefs_raw::limits::BATCH_PACKETS_MAX;

use super::{EchoStore, StoreCore, packed, unpacked};
use crate::echo_driver::PollBudget;
use crate::limits::{
    ACCEPT_TRIES_MAX, LATE_GRACE, NEXT_PACKETS, PEEK_PACKETS, READ_AHEAD_BYTES, READ_AHEAD_TIME,
    RETRIEVE_WAIT, ROOM_WAIT, SHARED_WAIT_MAX, SILENCE_WAIT, SYNC_WAIT, WAIT_MAX,
};
use crate::pending_reads::{BlockResult, ReadId};

const SILENT: StoreFault = StoreFault::Broken("the hosts accept no more packets");

/// How long a caller waits for room: while the capacity grows, and longer while no host answers, which may
/// only be delayed.
struct Patience {
    begun: Instant,
    /// When a host last began to answer.
    answered: Instant,
}

impl Patience {
    fn new() -> Patience {
        let now = Instant::now();
        Patience { begun: now, answered: now }
    }

    fn is_over(&mut self, is_silent: bool) -> bool {
        let now = Instant::now();
        if is_silent {
            self.answered = now;
        }
        now >= self.answered + ROOM_WAIT || now >= self.begun + SILENCE_WAIT
    }
}

impl EchoStore {
    /// Waits for the next event, without the lock.
    fn wait_for_change<'a>(&'a self, core: MutexGuard<'a, StoreCore>) -> MutexGuard<'a, StoreCore> {
        let rest = core.driver.next_wait(PollBudget::Full);
        drop(core);
        self.shared().announce_wait();
        // Another waiting caller may take the packet.
        let wait_max = if self.shared().poller_count() > 1 { SHARED_WAIT_MAX } else { WAIT_MAX };
        rest.wait(None, Duration::ZERO, wait_max);
        self.shared().lock_for_call()
    }

    /// Polls, and waits if no packet arrived. For callers that do not wait for the next packets.
    fn poll_or_wait<'a>(&'a self, mut core: MutexGuard<'a, StoreCore>) -> MutexGuard<'a, StoreCore> {
        self.shared().announce_wait();
        if core.poll_once(PollBudget::Full) > 0 { core } else { self.wait_for_change(core) }
    }

    /// Waits for room for `count` blocks while the capacity may grow.
    fn wait_for_room<'a>(
        &'a self,
        mut core: MutexGuard<'a, StoreCore>,
        count: usize,
    ) -> Result<MutexGuard<'a, StoreCore>, StoreFault> {
        let mut patience = Patience::new();
        loop {
            let capacity = core.driver.echo.capacity();
            if capacity.packets_free / capacity.packets_per_block.max(1) >= count as u64 {
                return Ok(core);
            }
            if let Some(why) = core.broken {
                return Err(StoreFault::Broken(why));
            }
            // The capacity of a silent host becomes known when it answers.
            let is_silent = capacity.packets_max == 0;
            if !(capacity.may_grow || is_silent) || patience.is_over(is_silent) {
                return Err(StoreFault::Full);
            }
            core = self.poll_or_wait(core);
        }
    }

    /// Registers one block, as soon as the send queues have room.
    fn register_one<'a>(
        &'a self,
        mut core: MutexGuard<'a, StoreCore>,
        id: BlockId,
        bytes: &Bytes,
    ) -> (MutexGuard<'a, StoreCore>, Result<(), StoreFault>) {
        let mut patience = Patience::new();
        loop {
            let now = core.driver.now();
            let stored = core.driver.echo.store_block(now, packed(id), bytes.clone(), Distance::Any);
            let is_silent = core.driver.echo.capacity().packets_max == 0;
            let is_late = patience.is_over(is_silent);
            let fault = match stored {
                Ok(()) => {
                    core.ages.note(id, Instant::now());
                    return (core, Ok(()));
                }
                Err(EchoRefusal::TooLarge { .. }) => {
                    StoreFault::Broken("a block is larger than the block size")
                }
                Err(EchoRefusal::Exists) => StoreFault::Broken("a block id was used before"),
                Err(EchoRefusal::NoSpace { may_grow }) if !(may_grow || is_silent) || is_late => {
                    StoreFault::Full
                }
                Err(EchoRefusal::Busy) if is_late => SILENT,
                Err(EchoRefusal::NoSpace { .. } | EchoRefusal::Busy) => match core.broken {
                    Some(why) => StoreFault::Broken(why),
                    None => {
                        core = self.poll_or_wait(core);
                        continue;
                    }
                },
            };
            return (core, Err(fault));
        }
    }

    /// Stores a block of another node if there is room now, or replaces a missing one. Returns whether the
    /// store has the block.
    pub(crate) fn accept(&self, id: BlockId, bytes: &Bytes) -> bool {
        let mut core = self.shared().lock();
        for _ in 0..ACCEPT_TRIES_MAX {
            let now = core.driver.now();
            match core.driver.echo.store_block(now, packed(id), bytes.clone(), Distance::Any) {
                Ok(()) => {
                    core.ages.note(id, Instant::now());
                    let until = core.recent_deadline();
                    // A tree that switches to its root needs it at once.
                    core.recent.put(id, bytes, until);
                    // More blocks follow, even without local readers: this node keeps up with the writers.
                    core.note_use();
                    drop(core);
                    self.shared().wake();
                    return true;
                }
                Err(EchoRefusal::Exists) => match core.missing_blocks.missing(id) {
                    None => return true,
                    Some(is_lost) => {
                        core.lost_count = core.lost_count.saturating_sub(u64::from(is_lost));
                        core.forget_block(id);
                        if core.driver.echo.drop_block(now, packed(id)).is_err() {
                            return false;
                        }
                    }
                },
                Err(EchoRefusal::Busy) => {
                    core.poll_once(PollBudget::Full);
                }
                Err(EchoRefusal::NoSpace { .. } | EchoRefusal::TooLarge { .. }) => return false,
            }
        }
        false
    }

    /// Returns the capacity and its use; `None` while no host answers.
    pub(crate) fn room_now(&self) -> Option<Room> {
        let capacity = self.shared().lock_for_call().driver.echo.capacity();
        let lanes = capacity.packets_per_block.max(1);
        let room = Room::new(capacity.blocks_max(), capacity.packets_free / lanes);
        (capacity.packets_max > 0).then_some(room)
    }

    /// Drops one block. A store without an index may have to wait for old tombstones to expire.
    fn drop_one<'a>(&'a self, mut core: MutexGuard<'a, StoreCore>, id: BlockId) -> MutexGuard<'a, StoreCore> {
        core.forget_block(id);
        let end = Instant::now() + RETRIEVE_WAIT;
        loop {
            let now = core.driver.now();
            match core.driver.echo.drop_block(now, packed(id)) {
                Err(EchoRefusal::Busy) if Instant::now() < end && core.broken.is_none() => {
                    core = self.poll_or_wait(core)
                }
                Ok(()) | Err(_) => return core,
            }
        }
    }

    /// Requests hints from the state machine, as far as it takes them. Those that arrive after the read wait for the next
    /// one.
    fn request_hints(core: &mut StoreCore, hints: &BTreeSet<BlockId>) {
        let now = core.driver.now();
        let until = Instant::now() + READ_AHEAD_TIME;
        for id in hints {
            if let Some(block) = core.recent_block(*id) {
                core.recent.renew(*id, &block, until);
                core.pending_reads.deliver(*id, &Ok(block));
            } else if core.driver.echo.fetch(now, packed(*id)).is_err() {
                return;
            }
        }
    }

    /// Requests blocks from the state machine. Requests that it cannot take yet stay in `unrequested`.
    fn request(core: &mut StoreCore, unrequested: &mut BTreeSet<BlockId>) {
        let now = core.driver.now();
        while let Some(id) = unrequested.first().copied() {
            if let Some(block) = core.recent_block(id) {
                core.pending_reads.deliver(id, &Ok(block));
            } else if core.driver.echo.fetch(now, packed(id)).is_err() {
                return;
            }
            unrequested.remove(&id);
        }
    }

    /// Delivers results and removes them from `missing`.
    fn deliver(
        results: Vec<BlockResult>,
        missing: &mut BTreeSet<BlockId>,
        deliver: &mut dyn FnMut(BlockId, Result<Bytes, Lost>),
    ) {
        for (id, block) in results {
            missing.remove(&id);
            deliver(id, block);
        }
    }

    /// Lists the blocks of a store without an index as they pass.
    fn list_blocks(&self) -> Vec<wirefs_echo::EchoBlockId> {
        let _polling = self.shared().begin_polling();
        let mut core = self.shared().lock_for_call();
        core.driver.echo.start_listing();
        let end = Instant::now() + core.driver.echo.listing_time();
        while Instant::now() < end && core.broken.is_none() {
            core = self.poll_or_wait(core);
        }
        core.driver.echo.finish_listing()
    }

    fn wait_for(
        &self,
        read: ReadId,
        hints: &BTreeSet<BlockId>,
        missing: &mut BTreeSet<BlockId>,
        deliver: &mut dyn FnMut(BlockId, Result<Bytes, Lost>),
    ) {
        let end = Instant::now() + RETRIEVE_WAIT;
        // A lost block may only be late, if this machine or the path was delayed.
        let grace_end = Instant::now() + LATE_GRACE;
        let mut core = self.shared().lock_for_call();
        let mut unrequested = missing.clone();
        Self::request(&mut core, &mut unrequested);
        Self::request_hints(&mut core, hints);
        let mut next = NEXT_PACKETS;
        let mut may_peek = true;
        loop {
            Self::request(&mut core, &mut unrequested);
            let mut results = core.pending_reads.take(read);
            if results.is_empty() && std::mem::take(&mut may_peek) {
                // Sending packets again takes several times as long as peeking at them.
                core.peek(PEEK_PACKETS);
                results = core.pending_reads.take(read);
            }
            // A block that is already here needs no poll.
            let count = if results.is_empty() { core.poll_once(PollBudget::Limited(next)) } else { 0 };
            if next >= BATCH_PACKETS_MAX {
                // Near hosts return packets as fast as they are taken: this may be a wait for all of them.
                self.shared().announce_wait();
            }
            next = next.saturating_mul(2);
            results.extend(core.pending_reads.take(read));
            if Instant::now() < grace_end {
                results.retain(|(id, block)| {
                    let may_come = block.is_err() && core.driver.echo.has_block(packed(*id)) == Some(true);
                    if may_come {
                        core.pending_reads.wait_again(read, *id);
                        unrequested.insert(*id);
                    }
                    !may_come
                });
            }
            let is_idle = count == 0 && results.is_empty();
            let is_late = core.broken.is_some() || Instant::now() >= end;
            if !results.is_empty() {
                drop(core);
                Self::deliver(results, missing, deliver);
                core = self.shared().lock_for_call();
            }
            if missing.is_empty() || is_late {
                core.end_wait(read);
                return;
            }
            if is_idle {
                core = self.wait_for_change(core);
            }
        }
    }
}

impl BlockStore for EchoStore {
    fn payload_bytes(&self) -> usize {
        self.block_bytes
    }

    /// All packets pass within a cycle, so a block costs the same wait whether others are requested with it or not.
    fn read_ahead_bytes(&self) -> u64 {
        READ_AHEAD_BYTES
    }

    fn register(&self, blocks: &[(BlockId, Bytes)]) -> Result<(), StoreFault> {
        let _polling = self.shared().begin_polling();
        let mut core = self.wait_for_room(self.shared().lock_for_call(), blocks.len())?;
        // A batch lists blocks before the blocks that name them. It is sent in reverse, so a reader that
        // follows the names finds the next block right behind, and saves a cycle.
        for (number, (id, bytes)) in blocks.iter().rev().enumerate() {
            let outcome;
            (core, outcome) = self.register_one(core, *id, bytes);
            if let Err(fault) = outcome {
                for (taken, _) in blocks.iter().rev().take(number) {
                    core = self.drop_one(core, *taken);
                }
                return Err(fault);
            }
        }
        core.poll_once(PollBudget::Full);
        core.note_use();
        drop(core);
        // Copies follow within a cycle, and no caller may be there to send them.
        self.shared().wake();
        Ok(())
    }

    fn retrieve(&self, wanted: &Wanted, deliver: &mut dyn FnMut(BlockId, Result<Bytes, Lost>)) {
        let _polling = self.shared().begin_polling();
        let mut missing = wanted.ids.clone();
        let (read, wakes) = {
            let mut core = self.shared().lock_for_call();
            (core.begin_wait(wanted.ids.union(&wanted.hints).copied().collect()), core.note_use())
        };
        if wakes {
            self.shared().wake();
        }
        self.wait_for(read, &wanted.hints, &mut missing, deliver);
        for id in missing {
            deliver(id, Err(Lost));
        }
    }

    /// A known block is gone after it was missing for minutes, and a dropped one at once. Without an index a
    /// block is gone after three failed requests, minutes apart.
    fn is_gone(&self, id: BlockId) -> bool {
        let core = self.shared().lock_for_call();
        let is_known = core.driver.echo.has_block(packed(id)) != Some(false);
        !is_known || core.missing_blocks.is_gone(id, Instant::now())
    }

    fn deregister(&self, ids: &[BlockId]) {
        let _polling = self.shared().begin_polling();
        let mut core = self.shared().lock_for_call();
        for id in ids {
            core = self.drop_one(core, *id);
        }
        core.process_outputs();
    }

    fn registered(&self, after: Option<BlockId>, count_max: usize) -> Vec<BlockId> {
        let known = self.shared().lock_for_call().driver.echo.ids(after.map(packed), count_max);
        let ids = known.unwrap_or_else(|| self.list_blocks());
        ids.into_iter().filter_map(unpacked).filter(|id| Some(*id) > after).take(count_max).collect()
    }

    fn root(&self) -> Result<Option<BlockId>, StoreFault> {
        Ok(self.shared().lock_for_call().root)
    }

    fn switch_root(&self, root: BlockId) -> Result<(), StoreFault> {
        self.shared().lock_for_call().root = Some(root);
        Ok(())
    }

    /// Waits until all new packets are sent. No further durability exists.
    fn sync(&self) -> Result<(), StoreFault> {
        let _polling = self.shared().begin_polling();
        let mut core = self.shared().lock_for_call();
        let end = Instant::now() + SYNC_WAIT;
        // Held copies are queued too, possibly always.
        let point = core.driver.echo.sync_point();
        while !core.driver.echo.is_sent_up_to(point) {
            if let Some(why) = core.broken {
                return Err(StoreFault::Broken(why));
            }
            if Instant::now() >= end {
                return Err(SILENT);
            }
            core = self.poll_or_wait(core);
        }
        Ok(())
    }

    fn before_waiting(&self, announce: fn()) -> bool {
        self.shared().before_waiting(announce)
    }

    /// Waits for a while if no host answers.
    fn room(&self) -> Room {
        let end = Instant::now() + SILENCE_WAIT;
        loop {
            match self.room_now() {
                Some(room) => return room,
                None if Instant::now() >= end => return Room::default(),
                None => {
                    let _polling = self.shared().begin_polling();
                    drop(self.poll_or_wait(self.shared().lock_for_call()));
                }
            }
        }
    }
}
