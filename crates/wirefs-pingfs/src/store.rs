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
use wirefs_echo::{HostId, Output};

use crate::ages::Ages;
use crate::circuit::{Circuit, Zeal};
use crate::doubt::Doubt;
use crate::limits::{MOMENT, RECENT_LAPS, RECENT_MIN};
use crate::options::EchoOptions;
use crate::recent::Recent;
use crate::waiting::{Ticket, Waiting};

pub use open::OpenError;

const SOCKET_FAILED: &str = "a raw socket failed";

/// A block store whose blocks are in echo packets. Dropping it is the end of all blocks.
pub struct EchoStore {
    shared: Arc<Shared>,
    options: EchoOptions,
    block_bytes: usize,
    packet_bytes: usize,
    begun: Instant,
    keeper: Option<JoinHandle<()>>,
}

/// What callers and the keeper share.
pub(crate) struct Shared {
    core: Mutex<Core>,
    /// Callers that turn the circuit themselves now: the keeper stands back.
    drivers: AtomicUsize,
    is_over: AtomicBool,
    /// Readable when the keeper should look again at once.
    bell: OwnedFd,
    /// What callers call before they wait.
    before_waiting: OnceLock<fn()>,
}

/// What the lock protects.
pub(crate) struct Core {
    pub(crate) circuit: Circuit,
    pub(crate) waiting: Waiting,
    pub(crate) ages: Ages,
    /// What came for those who waited.
    pub(crate) recent: Recent,
    /// What passed while somebody waited.
    pub(crate) overheard: Recent,
    /// Blocks that are missing.
    pub(crate) doubt: Doubt,
    pub(crate) root: Option<BlockId>,
    /// Blocks reported lost and not found again.
    pub(crate) lost_count: u64,
    /// When somebody asked for something last.
    pub(crate) stirred: Instant,
    /// The keeper sleeps for longer than usual.
    pub(crate) is_quiet: bool,
    /// Why the store works no more.
    pub(crate) broken: Option<&'static str>,
}

/// A caller that turns the circuit itself.
pub(crate) struct Driving<'a>(&'a Shared);

impl Drop for Driving<'_> {
    fn drop(&mut self) {
        self.0.drivers.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Shared {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same in a call: who waits for it says so before.
    pub(crate) fn enter(&self) -> MutexGuard<'_, Core> {
        self.lock_in_call(&self.core)
    }

    /// Locks something in a call: where another holds it for longer than a moment, the calling thread says that it is about to wait.
    pub(crate) fn lock_in_call<'a, T>(&self, mutex: &'a Mutex<T>) -> MutexGuard<'a, T> {
        let mut begun = None;
        loop {
            match mutex.try_lock() {
                Ok(guard) => return guard,
                Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => {}
            }
            if begun.get_or_insert_with(Instant::now).elapsed() >= MOMENT {
                break;
            }
            std::hint::spin_loop();
        }
        self.tell_waiting();
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the keeper stand back while the caller turns the circuit.
    pub(crate) fn drive(&self) -> Driving<'_> {
        self.drivers.fetch_add(1, Ordering::AcqRel);
        Driving(self)
    }

    pub(crate) fn driver_count(&self) -> usize {
        self.drivers.load(Ordering::Acquire)
    }

    /// The calling thread is about to wait.
    pub(crate) fn tell_waiting(&self) {
        if let Some(tell) = self.before_waiting.get() {
            tell();
        }
    }

    /// Has `tell` called before callers wait; false: another is.
    pub(crate) fn before_waiting(&self, tell: fn()) -> bool {
        self.before_waiting.set(tell).is_ok()
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    pub(crate) fn bell(&self) -> &OwnedFd {
        &self.bell
    }

    /// Has the keeper look again at once.
    pub(crate) fn ring(&self) {
        // It can only fail when it has been rung very often and not heard: then it is readable anyway.
        let _rung = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }

    /// The keeper has heard.
    pub(crate) fn hush(&self) {
        let _silent = rustix::io::read(&self.bell, &mut [0; 8]);
    }
}

/// The machine's name of a block.
pub(crate) fn packed(id: BlockId) -> wirefs_echo::BlockId {
    wirefs_echo::BlockId::from(u128::from(id.bits()))
}

/// The tree's name of a block; none of what is no block of a tree.
pub(crate) fn unpacked(id: wirefs_echo::BlockId) -> Option<BlockId> {
    BlockId::from_bits(u64::try_from(u128::from_be_bytes(id.0)).ok()?)
}

impl Core {
    /// Turns the circuit once and hears what it tells. Returns how many packets came.
    pub(crate) fn turn(&mut self, zeal: Zeal) -> usize {
        if self.broken.is_some() {
            return 0;
        }
        let count = match self.circuit.turn(zeal) {
            Ok(count) => count,
            Err(_) => {
                self.broken = Some(SOCKET_FAILED);
                0
            }
        };
        self.hear();
        let now = Instant::now();
        self.recent.expire(now);
        self.overheard.expire(now);
        count
    }

    /// Looks into the next packets of near hosts, at most so many, for what somebody waits for.
    pub(crate) fn glance(&mut self, most: usize) {
        let mut seen = Vec::new();
        if self.broken.is_none() && self.circuit.glance(most, |id, block| seen.push((id, block))).is_err() {
            self.broken = Some(SOCKET_FAILED);
        }
        let until = (!seen.is_empty()).then(|| self.kept_until());
        for ((id, block), until) in seen.into_iter().zip(until.into_iter().cycle()) {
            if let Some(id) = unpacked(id) {
                self.overheard.put(id, &block, until);
                self.waiting.came(id, &Ok(block));
            }
        }
    }

    /// Hears what the machine tells.
    pub(crate) fn hear(&mut self) {
        let mut until = None;
        while let Some(output) = self.circuit.echo.poll() {
            match output {
                Output::Fetched { id, block } => self.came(id, Ok(block)),
                Output::Passed { id, block } => {
                    let until = *until.get_or_insert_with(|| self.kept_until());
                    if let Some(id) = unpacked(id) {
                        self.doubt.settle(id);
                        self.overheard.put(id, &block, until);
                    }
                }
                Output::Missing { id } => self.came(id, Err(Lost)),
                Output::Lost { id } => {
                    self.lost_count += 1;
                    if let Some(id) = unpacked(id) {
                        self.doubt.lose(id, Instant::now());
                    }
                }
                Output::Found { id } => {
                    self.lost_count = self.lost_count.saturating_sub(1);
                    if let Some(id) = unpacked(id) {
                        self.doubt.settle(id);
                    }
                }
                // The status tells how each host stands.
                Output::Silent { .. } | Output::Answers { .. } => {}
            }
        }
    }

    fn came(&mut self, id: wirefs_echo::BlockId, block: Result<bytes::Bytes, Lost>) {
        let Some(id) = unpacked(id) else { return };
        self.waiting.came(id, &block);
        match block {
            Ok(block) => {
                self.doubt.settle(id);
                self.recent.put(id, &block, self.kept_until());
            }
            Err(Lost) => self.doubt.miss(id, Instant::now()),
        }
    }

    /// Until when a block is kept that passes now: until its packet is back, and another that is needed with it.
    fn kept_until(&self) -> Instant {
        let hosts =
            (0..self.circuit.ways.len()).filter_map(|number| self.circuit.echo.status(HostId(number as u8)));
        let rtt = hosts.filter_map(|host| host.way).max().unwrap_or_default();
        Instant::now() + (rtt * RECENT_LAPS).max(RECENT_MIN)
    }

    /// A block that passed a moment ago.
    pub(crate) fn at_hand(&self, id: BlockId) -> Option<bytes::Bytes> {
        let now = Instant::now();
        self.recent.find(id, now).or_else(|| self.overheard.find(id, now))
    }

    /// Somebody asks for something. True: the keeper is to be woken.
    pub(crate) fn stir(&mut self) -> bool {
        self.stirred = Instant::now();
        std::mem::take(&mut self.is_quiet)
    }

    /// Somebody begins to wait for these.
    pub(crate) fn begin_to_wait(&mut self, ids: BTreeSet<BlockId>) -> Ticket {
        self.circuit.echo.overhear(true);
        self.waiting.begin(ids)
    }

    /// Somebody waits no more.
    pub(crate) fn end_to_wait(&mut self, ticket: Ticket) {
        self.waiting.end(ticket);
        self.circuit.echo.overhear(!self.waiting.is_empty());
    }

    /// A block is let go of.
    pub(crate) fn forget(&mut self, id: BlockId) {
        self.doubt.settle(id);
        self.recent.remove(id);
        self.overheard.remove(id);
    }
}

impl EchoStore {
    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Whether a block is there, as far as its index knows.
    pub(crate) fn has(&self, id: BlockId) -> bool {
        self.shared.enter().circuit.echo.has_block(packed(id)) == Some(true)
    }

    /// Whether a block that it knows is missing.
    pub(crate) fn misses(&self, id: BlockId) -> bool {
        self.shared.enter().doubt.missing(id).is_some()
    }

    /// Blocks that it knows and that are lost, so many at most.
    pub(crate) fn lost(&self, count_max: usize) -> Vec<BlockId> {
        self.shared.lock().doubt.lost(count_max)
    }

    /// The hosts that it pings.
    pub(crate) fn hosts(&self) -> Vec<IpAddr> {
        let core = self.shared.lock();
        core.circuit.ways.iter().filter(|way| !way.is_gone).map(|way| way.survey.host).collect()
    }

    /// The largest payload of a packet to all hosts, in bytes.
    pub(crate) fn packet_bytes(&self) -> usize {
        self.packet_bytes
    }

    /// What it was made from.
    pub fn options(&self) -> &EchoOptions {
        &self.options
    }

    /// The bytes of a block.
    pub(crate) fn block_bytes(&self) -> usize {
        self.block_bytes
    }

    /// When it was opened.
    pub(crate) fn begun(&self) -> Instant {
        self.begun
    }
}

impl Drop for EchoStore {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Release);
        self.shared.ring();
        if let Some(keeper) = self.keeper.take() {
            // One that panicked has nothing more to do either.
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
