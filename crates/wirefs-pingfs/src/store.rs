//! The running store.

mod manager;
mod open;

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::thread::JoinHandle;
use std::time::Instant;

use rustix::fd::OwnedFd;
use wirefs_blocks::id::BlockId;
use wirefs_blocks::store::Lost;
use wirefs_echo::{EchoOutput, HostId};

use crate::ages::BlockAges;
use crate::echo_driver::{EchoDriver, PollBudget};
use crate::limits::{READ_AHEAD_TIME, RECENT_CYCLES, RECENT_MAX, RECENT_MIN, SPIN_MAX};
use crate::missing_blocks::MissingBlocks;
use crate::options::EchoOptions;
use crate::pending_reads::{PendingReads, ReadId};
use crate::recent::RecentBlocks;

pub use open::OpenError;

const SOCKET_FAILED: &str = "a raw socket failed";

/// A block store in echo packets. Dropping it loses all blocks.
pub struct EchoStore {
    shared: Arc<StoreShared>,
    options: EchoOptions,
    block_bytes: usize,
    packet_bytes: usize,
    begun: Instant,
    keeper: Option<JoinHandle<()>>,
}

/// State shared by callers and the keeper.
pub(crate) struct StoreShared {
    core: Mutex<StoreCore>,
    /// Number of callers that poll the sockets themselves; the keeper then pauses.
    pollers: AtomicUsize,
    is_over: AtomicBool,
    /// Readable when the keeper should run at once.
    wakeup: OwnedFd,
    /// A function that threads call before they wait.
    before_waiting: OnceLock<fn()>,
}

/// State under the lock.
pub(crate) struct StoreCore {
    pub(crate) driver: EchoDriver,
    pub(crate) pending_reads: PendingReads,
    pub(crate) ages: BlockAges,
    /// Blocks that arrived for a reader.
    pub(crate) recent: RecentBlocks,
    /// Blocks overheard while a reader waited.
    pub(crate) overheard: RecentBlocks,
    /// The missing blocks.
    pub(crate) missing_blocks: MissingBlocks,
    pub(crate) root: Option<BlockId>,
    /// Blocks reported lost and not recovered.
    pub(crate) lost_count: u64,
    /// When the store was last used.
    pub(crate) last_use: Instant,
    /// The keeper pauses longer than usual.
    pub(crate) is_quiet: bool,
    /// The reason why the store is broken.
    pub(crate) broken: Option<&'static str>,
}

/// A caller that polls the sockets itself.
pub(crate) struct ActivePoller<'a>(&'a StoreShared);

impl Drop for ActivePoller<'_> {
    fn drop(&mut self) {
        self.0.pollers.fetch_sub(1, Ordering::AcqRel);
    }
}

impl StoreShared {
    pub(crate) fn lock(&self) -> MutexGuard<'_, StoreCore> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the state in a call, and announces a wait.
    pub(crate) fn lock_for_call(&self) -> MutexGuard<'_, StoreCore> {
        self.lock_mutex_for_call(&self.core)
    }

    /// Locks a mutex in a call. Announces a wait if the mutex stays locked for longer than a moment.
    pub(crate) fn lock_mutex_for_call<'a, T>(&self, mutex: &'a Mutex<T>) -> MutexGuard<'a, T> {
        let mut begun = None;
        loop {
            match mutex.try_lock() {
                Ok(guard) => return guard,
                Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => {}
            }
            if begun.get_or_insert_with(Instant::now).elapsed() >= SPIN_MAX {
                break;
            }
            std::hint::spin_loop();
        }
        self.announce_wait();
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the keeper pause while the caller polls.
    pub(crate) fn begin_polling(&self) -> ActivePoller<'_> {
        self.pollers.fetch_add(1, Ordering::AcqRel);
        ActivePoller(self)
    }

    pub(crate) fn poller_count(&self) -> usize {
        self.pollers.load(Ordering::Acquire)
    }

    /// Announces that the calling thread is about to wait.
    pub(crate) fn announce_wait(&self) {
        if let Some(announce) = self.before_waiting.get() {
            announce();
        }
    }

    /// Registers a function to be called before callers wait. Returns `false` if another one is registered.
    pub(crate) fn before_waiting(&self, announce: fn()) -> bool {
        self.before_waiting.set(announce).is_ok()
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    pub(crate) fn wakeup(&self) -> &OwnedFd {
        &self.wakeup
    }

    /// Wakes the keeper.
    pub(crate) fn wake(&self) {
        // A write fails only if the counter is full, and then the descriptor is readable anyway.
        let _rung = rustix::io::write(&self.wakeup, &1u64.to_ne_bytes());
    }

    /// Resets the wakeup descriptor.
    pub(crate) fn clear_wakeup(&self) {
        let _silent = rustix::io::read(&self.wakeup, &mut [0; 8]);
    }
}

/// Converts a tree's block id to the echo store's.
pub(crate) fn packed(id: BlockId) -> wirefs_echo::EchoBlockId {
    wirefs_echo::EchoBlockId::from(u128::from(id.bits()))
}

/// Converts an echo store's block id to the tree's; `None` if it is none.
pub(crate) fn unpacked(id: wirefs_echo::EchoBlockId) -> Option<BlockId> {
    BlockId::from_bits(u64::try_from(u128::from_be_bytes(id.0)).ok()?)
}

impl StoreCore {
    /// Polls once and processes the events. Returns the number of received packets.
    pub(crate) fn poll_once(&mut self, budget: PollBudget) -> usize {
        if self.broken.is_some() {
            return 0;
        }
        let count = match self.driver.poll_once(budget) {
            Ok(count) => count,
            Err(_) => {
                self.broken = Some(SOCKET_FAILED);
                0
            }
        };
        self.process_outputs();
        let now = Instant::now();
        self.recent.expire(now);
        self.overheard.expire(now);
        count
    }

    /// Peeks at the next packets of near hosts, at most `max` each, and delivers their blocks to pending
    /// reads.
    pub(crate) fn peek(&mut self, max: usize) {
        let mut seen = Vec::new();
        if self.broken.is_none() && self.driver.peek(max, |id, block| seen.push((id, block))).is_err() {
            self.broken = Some(SOCKET_FAILED);
        }
        let until = (!seen.is_empty()).then(|| self.recent_deadline());
        for ((id, block), until) in seen.into_iter().zip(until.into_iter().cycle()) {
            if let Some(id) = unpacked(id) {
                self.overheard.put(id, &block, until);
                self.pending_reads.deliver(id, &Ok(block));
            }
        }
    }

    /// Processes the events of the echo state machine.
    pub(crate) fn process_outputs(&mut self) {
        let mut until = None;
        while let Some(output) = self.driver.echo.poll() {
            match output {
                EchoOutput::Fetched { id, block } => self.block_arrived(id, Ok(block)),
                EchoOutput::Passed { id, block } => {
                    let until = *until.get_or_insert_with(|| self.recent_deadline());
                    if let Some(id) = unpacked(id) {
                        self.missing_blocks.settle(id);
                        self.overheard.put(id, &block, until);
                    }
                }
                EchoOutput::Missing { id } => self.block_arrived(id, Err(Lost)),
                EchoOutput::Lost { id } => {
                    self.lost_count += 1;
                    if let Some(id) = unpacked(id) {
                        self.missing_blocks.lose(id, Instant::now());
                    }
                }
                EchoOutput::Recovered { id } => {
                    self.lost_count = self.lost_count.saturating_sub(1);
                    if let Some(id) = unpacked(id) {
                        self.missing_blocks.settle(id);
                    }
                }
                // The status reports the state of each host.
                EchoOutput::Silent { .. } | EchoOutput::Answers { .. } => {}
            }
        }
    }

    fn block_arrived(&mut self, id: wirefs_echo::EchoBlockId, block: Result<bytes::Bytes, Lost>) {
        let Some(id) = unpacked(id) else { return };
        let is_read = self.pending_reads.deliver(id, &block);
        match block {
            Ok(block) => {
                self.missing_blocks.settle(id);
                // A block requested ahead waits for its reader.
                let until = if is_read { self.recent_deadline() } else { Instant::now() + READ_AHEAD_TIME };
                self.recent.put(id, &block, until);
            }
            Err(Lost) => self.missing_blocks.miss(id, Instant::now()),
        }
    }

    /// Returns until when a block that passes now is kept: until its packet returns, and another one needed with it.
    fn recent_deadline(&self) -> Instant {
        let hosts =
            (0..self.driver.paths.len()).filter_map(|number| self.driver.echo.status(HostId(number as u8)));
        let cycle = hosts.filter_map(|host| host.cycle).max().unwrap_or_default();
        Instant::now() + (cycle * RECENT_CYCLES).clamp(RECENT_MIN, RECENT_MAX)
    }

    /// Returns a block that passed recently.
    pub(crate) fn recent_block(&self, id: BlockId) -> Option<bytes::Bytes> {
        let now = Instant::now();
        self.recent.find(id, now).or_else(|| self.overheard.find(id, now))
    }

    /// Records a use of the store. Returns whether the keeper must be woken.
    pub(crate) fn note_use(&mut self) -> bool {
        self.last_use = Instant::now();
        std::mem::take(&mut self.is_quiet)
    }

    /// Starts a read of these blocks.
    pub(crate) fn begin_wait(&mut self, ids: BTreeSet<BlockId>) -> ReadId {
        self.driver.echo.overhear(true);
        self.pending_reads.begin(ids)
    }

    /// Ends a read.
    pub(crate) fn end_wait(&mut self, read: ReadId) {
        self.pending_reads.end(read);
        self.driver.echo.overhear(!self.pending_reads.is_empty());
    }

    /// Forgets a block that is deleted.
    pub(crate) fn forget_block(&mut self, id: BlockId) {
        self.missing_blocks.settle(id);
        self.recent.remove(id);
        self.overheard.remove(id);
    }
}

impl EchoStore {
    pub(crate) fn shared(&self) -> &StoreShared {
        &self.shared
    }

    /// Returns whether the index has a block.
    pub(crate) fn has(&self, id: BlockId) -> bool {
        self.shared.lock_for_call().driver.echo.has_block(packed(id)) == Some(true)
    }

    /// Returns whether a block is missing.
    pub(crate) fn misses(&self, id: BlockId) -> bool {
        self.shared.lock_for_call().missing_blocks.missing(id).is_some()
    }

    /// Returns lost blocks, at most `count_max`.
    pub(crate) fn lost(&self, count_max: usize) -> Vec<BlockId> {
        self.shared.lock().missing_blocks.lost(count_max)
    }

    /// Returns the pinged hosts.
    pub(crate) fn hosts(&self) -> Vec<IpAddr> {
        let core = self.shared.lock();
        core.driver.paths.iter().filter(|path| !path.is_gone).map(|path| path.survey.host).collect()
    }

    /// Returns the largest payload for all hosts in bytes.
    pub(crate) fn packet_bytes(&self) -> usize {
        self.packet_bytes
    }

    /// Returns the options of the store.
    pub fn options(&self) -> &EchoOptions {
        &self.options
    }

    /// Returns the block size in bytes.
    pub(crate) fn block_bytes(&self) -> usize {
        self.block_bytes
    }

    /// Returns when the store was opened.
    pub(crate) fn begun(&self) -> Instant {
        self.begun
    }
}

impl Drop for EchoStore {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Release);
        self.shared.wake();
        if let Some(keeper) = self.keeper.take() {
            // A keeper that panicked needs no cleanup either.
            let _ended = keeper.join();
        }
    }
}

impl std::fmt::Debug for EchoStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EchoStore").field("options", &self.options).finish_non_exhaustive()
    }
}

#[cfg(test)]
pub(crate) mod tests;
