//! The store as the tree calls it: register, retrieve, deregister.

use std::collections::BTreeSet;
use std::sync::MutexGuard;
use std::time::{Duration, Instant};

use bytes::Bytes;
use wirefs_blocks::id::BlockId;
use wirefs_blocks::store::{BlockStore, Lost, Room, StoreFault, Wanted};
use wirefs_echo::{Distance, Refusal};
use wirefs_raw::limits::BATCH_PACKETS_MAX;

use super::{Core, EchoStore, packed, unpacked};
use crate::circuit::Zeal;
use crate::limits::{
    ACCEPT_TRIES_MAX, GLANCE_PACKETS, GRACE, NEXT_PACKETS, RETRIEVE_WAIT, ROOM_WAIT, SHARED_WAIT_MAX,
    SILENCE_WAIT, SYNC_WAIT, WAIT_MAX,
};
use crate::waiting::{Came, Ticket};

const SILENT: StoreFault = StoreFault::Broken("the hosts take no more packets");

/// How long a caller waits for room: while a host finds more, and for longer while none answers, since it may only be held up.
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
    /// Waits until something may have changed. The lock is let go of meanwhile.
    fn rest<'a>(&'a self, core: MutexGuard<'a, Core>) -> MutexGuard<'a, Core> {
        let rest = core.circuit.rest(Zeal::Full);
        drop(core);
        self.shared().tell_waiting();
        // Another who waits may take what wakes this one.
        let most = if self.shared().driver_count() > 1 { SHARED_WAIT_MAX } else { WAIT_MAX };
        rest.wait(None, Duration::ZERO, most);
        self.shared().enter()
    }

    /// Turns the circuit, and waits where nothing came. Who does so waits for something else than the next packets.
    fn pass<'a>(&'a self, mut core: MutexGuard<'a, Core>) -> MutexGuard<'a, Core> {
        self.shared().tell_waiting();
        if core.turn(Zeal::Full) > 0 { core } else { self.rest(core) }
    }

    /// Waits for room for so many blocks, while more may be found.
    fn wait_for_room<'a>(
        &'a self,
        mut core: MutexGuard<'a, Core>,
        count: usize,
    ) -> Result<MutexGuard<'a, Core>, StoreFault> {
        let mut patience = Patience::new();
        loop {
            let capacity = core.circuit.echo.capacity();
            if capacity.packets_free / capacity.packets_per_block.max(1) >= count as u64 {
                return Ok(core);
            }
            if let Some(why) = core.broken {
                return Err(StoreFault::Broken(why));
            }
            // What a host that is silent for a moment has room for is known when it answers.
            let is_silent = capacity.packets_max == 0;
            if !(capacity.may_grow || is_silent) || patience.is_over(is_silent) {
                return Err(StoreFault::Full);
            }
            core = self.pass(core);
        }
    }

    /// Takes one block, as soon as the hosts take the ones before it.
    fn register_one<'a>(
        &'a self,
        mut core: MutexGuard<'a, Core>,
        id: BlockId,
        bytes: &Bytes,
    ) -> (MutexGuard<'a, Core>, Result<(), StoreFault>) {
        let mut patience = Patience::new();
        loop {
            let now = core.circuit.now();
            let kept = core.circuit.echo.keep(now, packed(id), bytes.clone(), Distance::Any);
            let is_silent = core.circuit.echo.capacity().packets_max == 0;
            let is_late = patience.is_over(is_silent);
            let fault = match kept {
                Ok(()) => {
                    core.ages.note(id, Instant::now());
                    return (core, Ok(()));
                }
                Err(Refusal::TooLarge { .. }) => StoreFault::Broken("a block over the payload"),
                Err(Refusal::Exists) => StoreFault::Broken("an id that was used before"),
                Err(Refusal::NoSpace { may_grow }) if !(may_grow || is_silent) || is_late => StoreFault::Full,
                Err(Refusal::Busy) if is_late => SILENT,
                Err(Refusal::NoSpace { .. } | Refusal::Busy) => match core.broken {
                    Some(why) => StoreFault::Broken(why),
                    None => {
                        core = self.pass(core);
                        continue;
                    }
                },
            };
            return (core, Err(fault));
        }
    }

    /// Takes a block that another node made, if there is room for it now; in the place of what is missing of it. Whether it is there
    /// then.
    pub(crate) fn accept(&self, id: BlockId, bytes: &Bytes) -> bool {
        let mut core = self.shared().lock();
        for _ in 0..ACCEPT_TRIES_MAX {
            let now = core.circuit.now();
            match core.circuit.echo.keep(now, packed(id), bytes.clone(), Distance::Any) {
                Ok(()) => {
                    core.ages.note(id, Instant::now());
                    let until = core.kept_until();
                    // It is wanted at once, where a tree goes over to it.
                    core.recent.put(id, bytes, until);
                    // More will come, also where nobody reads: this node keeps up with those that write.
                    core.stir();
                    drop(core);
                    self.shared().ring();
                    return true;
                }
                Err(Refusal::Exists) => match core.doubt.missing(id) {
                    None => return true,
                    Some(is_lost) => {
                        core.lost_count = core.lost_count.saturating_sub(u64::from(is_lost));
                        core.forget(id);
                        if core.circuit.echo.drop_block(now, packed(id)).is_err() {
                            return false;
                        }
                    }
                },
                Err(Refusal::Busy) => {
                    core.turn(Zeal::Full);
                }
                Err(Refusal::NoSpace { .. } | Refusal::TooLarge { .. }) => return false,
            }
        }
        false
    }

    /// How full it is; none while no host answers.
    pub(crate) fn room_now(&self) -> Option<Room> {
        let capacity = self.shared().enter().circuit.echo.capacity();
        let lanes = capacity.packets_per_block.max(1);
        let room = Room::new(capacity.blocks_max(), capacity.packets_free / lanes);
        (capacity.packets_max > 0).then_some(room)
    }

    /// Lets go of one block. A store without index may have to wait until it has forgotten earlier ones.
    fn drop_one<'a>(&'a self, mut core: MutexGuard<'a, Core>, id: BlockId) -> MutexGuard<'a, Core> {
        core.forget(id);
        let end = Instant::now() + RETRIEVE_WAIT;
        loop {
            let now = core.circuit.now();
            match core.circuit.echo.drop_block(now, packed(id)) {
                Err(Refusal::Busy) if Instant::now() < end && core.broken.is_none() => core = self.pass(core),
                Ok(()) | Err(_) => return core,
            }
        }
    }

    /// Asks the machine for blocks; those that it has no room to note yet stay in `unasked`.
    fn ask(core: &mut Core, unasked: &mut BTreeSet<BlockId>) {
        let now = core.circuit.now();
        while let Some(id) = unasked.first().copied() {
            if let Some(block) = core.at_hand(id) {
                core.waiting.came(id, &Ok(block));
            } else if core.circuit.echo.fetch(now, packed(id)).is_err() {
                return;
            }
            unasked.remove(&id);
        }
    }

    /// Delivers what came, and says which of the wanted ones it was.
    fn deliver(
        came: Vec<Came>,
        lacking: &mut BTreeSet<BlockId>,
        deliver: &mut dyn FnMut(BlockId, Result<Bytes, Lost>),
    ) {
        for (id, block) in came {
            lacking.remove(&id);
            deliver(id, block);
        }
    }

    /// Hears which blocks come by, where no index knows them.
    fn listen(&self) -> Vec<wirefs_echo::BlockId> {
        let _driving = self.shared().drive();
        let mut core = self.shared().enter();
        core.circuit.echo.listen_to_blocks();
        let end = Instant::now() + core.circuit.echo.listening_span();
        while Instant::now() < end && core.broken.is_none() {
            core = self.pass(core);
        }
        core.circuit.echo.heard()
    }

    fn wait_for(
        &self,
        ticket: Ticket,
        mut unasked: BTreeSet<BlockId>,
        lacking: &mut BTreeSet<BlockId>,
        deliver: &mut dyn FnMut(BlockId, Result<Bytes, Lost>),
    ) {
        let end = Instant::now() + RETRIEVE_WAIT;
        // What counts as lost may only be late, where this machine or the way was held up for a moment.
        let grace_end = Instant::now() + GRACE;
        let mut core = self.shared().enter();
        let mut next = NEXT_PACKETS;
        let mut may_glance = true;
        loop {
            Self::ask(&mut core, &mut unasked);
            let mut came = core.waiting.take(ticket);
            if came.is_empty() && std::mem::take(&mut may_glance) {
                // To send packets on takes several times as long as to look into them.
                core.glance(GLANCE_PACKETS);
                came = core.waiting.take(ticket);
            }
            // What is here already needs no turn.
            let count = if came.is_empty() { core.turn(Zeal::Next(next)) } else { 0 };
            if next >= BATCH_PACKETS_MAX {
                // On a near way packets come as long as they are taken: this may be a wait for all of them.
                self.shared().tell_waiting();
            }
            next = next.saturating_mul(2);
            came.extend(core.waiting.take(ticket));
            if Instant::now() < grace_end {
                came.retain(|(id, block)| {
                    let may_come = block.is_err() && core.circuit.echo.has_block(packed(*id)) == Some(true);
                    if may_come {
                        core.waiting.lack(ticket, *id);
                        unasked.insert(*id);
                    }
                    !may_come
                });
            }
            let is_idle = count == 0 && came.is_empty();
            let is_late = core.broken.is_some() || Instant::now() >= end;
            if !came.is_empty() {
                drop(core);
                Self::deliver(came, lacking, deliver);
                core = self.shared().enter();
            }
            if lacking.is_empty() || is_late {
                core.end_to_wait(ticket);
                return;
            }
            if is_idle {
                core = self.rest(core);
            }
        }
    }
}

impl BlockStore for EchoStore {
    fn payload_bytes(&self) -> usize {
        self.block_bytes
    }

    fn register(&self, blocks: &[(BlockId, Bytes)]) -> Result<(), StoreFault> {
        let _driving = self.shared().drive();
        let mut core = self.wait_for_room(self.shared().enter(), blocks.len())?;
        // Blocks are given with those that they name before them. They are sent the other way round: whoever follows the
        // names finds the next block right behind, and need not wait for another lap.
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
        core.turn(Zeal::Full);
        core.stir();
        drop(core);
        // Copies follow within a lap; nobody else may be there to send them.
        self.shared().ring();
        Ok(())
    }

    fn retrieve(&self, wanted: &Wanted, deliver: &mut dyn FnMut(BlockId, Result<Bytes, Lost>)) {
        let _driving = self.shared().drive();
        let mut lacking = wanted.ids.clone();
        let all: BTreeSet<BlockId> = wanted.ids.union(&wanted.hints).copied().collect();
        let (ticket, wakes) = {
            let mut core = self.shared().enter();
            (core.begin_to_wait(all.clone()), core.stir())
        };
        if wakes {
            self.shared().ring();
        }
        self.wait_for(ticket, all, &mut lacking, deliver);
        for id in lacking {
            deliver(id, Err(Lost));
        }
    }

    /// A block that is known is gone when it has been missing for minutes, and one that was dropped is; without an index all are
    /// known as far as can be told, and missing is what was asked for in vain three times, minutes apart.
    fn is_gone(&self, id: BlockId) -> bool {
        let core = self.shared().enter();
        let is_known = core.circuit.echo.has_block(packed(id)) != Some(false);
        !is_known || core.doubt.is_gone(id, Instant::now())
    }

    fn deregister(&self, ids: &[BlockId]) {
        let _driving = self.shared().drive();
        let mut core = self.shared().enter();
        for id in ids {
            core = self.drop_one(core, *id);
        }
        core.hear();
    }

    fn registered(&self, after: Option<BlockId>, count_max: usize) -> Vec<BlockId> {
        let known = self.shared().enter().circuit.echo.ids(after.map(packed), count_max);
        let ids = known.unwrap_or_else(|| self.listen());
        ids.into_iter().filter_map(unpacked).filter(|id| Some(*id) > after).take(count_max).collect()
    }

    fn root(&self) -> Result<Option<BlockId>, StoreFault> {
        Ok(self.shared().enter().root)
    }

    fn switch_root(&self, root: BlockId) -> Result<(), StoreFault> {
        self.shared().enter().root = Some(root);
        Ok(())
    }

    /// Waits until all that is new has left. Nothing makes it any safer than that.
    fn sync(&self) -> Result<(), StoreFault> {
        let _driving = self.shared().drive();
        let mut core = self.shared().enter();
        let end = Instant::now() + SYNC_WAIT;
        // Copies that are held back wait there too, and there may always be some.
        let mark = core.circuit.echo.mark();
        while !core.circuit.echo.has_left(mark) {
            if let Some(why) = core.broken {
                return Err(StoreFault::Broken(why));
            }
            if Instant::now() >= end {
                return Err(SILENT);
            }
            core = self.pass(core);
        }
        Ok(())
    }

    fn before_waiting(&self, tell: fn()) -> bool {
        self.shared().before_waiting(tell)
    }

    /// Waits for a while where no host answers.
    fn room(&self) -> Room {
        let end = Instant::now() + SILENCE_WAIT;
        loop {
            match self.room_now() {
                Some(room) => return room,
                None if Instant::now() >= end => return Room::default(),
                None => {
                    let _driving = self.shared().drive();
                    drop(self.pass(self.shared().enter()));
                }
            }
        }
    }
}
