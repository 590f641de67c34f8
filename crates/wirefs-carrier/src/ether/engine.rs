//! Turning the node: by whoever waits, by whoever sends.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use wirefs_circuit::{CardAddress as Address, CardId, GroupId, Time, limits::CARDS_MAX};
use wirefs_raw::Ring;

use super::bell::Bell;
use super::card::{Filling, OutCard};
use super::machine::{Leader, Machine};
use super::spin::Spin;

/// Frames of one card that are received before the machine is let go of.
const TURN_FRAMES: usize = 64;
/// A sleeping leader is woken for a time that is nearer than this; else it looks around that often of itself while
/// something happens.
pub(super) const LOOK: Duration = Duration::from_millis(5);
/// How soon a card that is full is tried again.
pub(super) const STUCK_WAIT: Duration = Duration::from_micros(500);

/// What the leader has.
#[derive(Debug)]
pub(super) struct Wheel {
    pub(super) rings: Vec<Ring>,
    pub(super) spin: Spin,
    /// When something came last.
    pub(super) last: Time,
}

/// A node with its cards.
#[derive(Debug)]
pub(super) struct Engine {
    pub(super) cards: Vec<OutCard>,
    machine: Mutex<Machine>,
    wheel: Mutex<Wheel>,
    begun: Instant,
    /// When something is to be done next, in nanoseconds since `begun`.
    pub(super) due: AtomicU64,
    /// Until when the leader sleeps; 0: it does not.
    pub(super) asleep_until: AtomicU64,
    /// The leader is to look around.
    pub(super) nudged: AtomicBool,
    /// Wakes the leader.
    pub(super) bell: Bell,
    /// Wakes the keeper when it watches.
    pub(super) keeper: Condvar,
    /// Wakes the keeper when it led and slept, whether it still leads or not.
    pub(super) keeper_bell: Bell,
    pub(super) is_keeper_asleep: AtomicBool,
    /// Rings while peers wait to be accepted.
    pub(super) door: Bell,
}

impl Engine {
    pub(super) fn new(machine: Machine, cards: Vec<OutCard>, rings: Vec<Ring>) -> std::io::Result<Engine> {
        Ok(Engine {
            cards,
            machine: Mutex::new(machine),
            wheel: Mutex::new(Wheel { rings, spin: Spin::default(), last: Time::default() }),
            begun: Instant::now(),
            due: AtomicU64::new(u64::MAX),
            asleep_until: AtomicU64::new(0),
            nudged: AtomicBool::new(false),
            bell: Bell::new()?,
            keeper: Condvar::new(),
            keeper_bell: Bell::new()?,
            is_keeper_asleep: AtomicBool::new(false),
            door: Bell::new()?,
        })
    }

    pub(super) fn now(&self) -> Time {
        Time(u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Machine> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn wheel(&self) -> MutexGuard<'_, Wheel> {
        self.wheel.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with the machine, and sends what follows from it.
    pub(super) fn with<T>(&self, work: impl FnOnce(&mut Machine, Time) -> T) -> T {
        let mut machine = self.lock();
        let now = self.now();
        let result = work(&mut machine, now);
        self.leave(machine, now);
        result
    }

    /// Lets go of the machine and sends what is due. Returns how many packets left.
    pub(super) fn leave(&self, mut machine: MutexGuard<'_, Machine>, now: Time) -> usize {
        machine.settle(now);
        let mut fillings: [Option<Filling<'_>>; CARDS_MAX] = [const { None }; CARDS_MAX];
        let mut sent = 0;
        for (card, place) in self.cards.iter().zip(&mut fillings) {
            if let Some(frames) = card.take() {
                let filling = card.fill(frames, &mut machine.node, now);
                sent += filling.added;
                *place = Some(filling);
            }
        }
        // What is under way first is there first: times can be noted behind it.
        let mut is_noted = sent == 0;
        if is_noted {
            self.note_due(&machine, now);
        }
        if machine.has_arrivals() {
            self.door.ring();
        }
        drop(machine);
        for (card, place) in self.cards.iter().zip(&mut fillings) {
            if let Some(filling) = place.take()
                && self.send(card, filling)
                && let Some(more) = self.flush(card)
            {
                sent += more;
                is_noted = true;
            }
        }
        if !is_noted {
            let machine = self.lock();
            self.note_due(&machine, self.now());
        }
        sent
    }

    /// Sends what this card may, until there is no more or another thread does it. None: another one did from the first.
    fn flush(&self, card: &OutCard) -> Option<usize> {
        let mut sent = None;
        while let Some(frames) = card.take() {
            let mut machine = self.lock();
            let now = self.now();
            let filling = card.fill(frames, &mut machine.node, now);
            machine.settle(now);
            self.note_due(&machine, now);
            drop(machine);
            sent = Some(sent.unwrap_or(0) + filling.added);
            if !self.send(card, filling) {
                break;
            }
        }
        sent
    }

    /// Sends what was filled in. Returns whether there is more for this thread to do.
    fn send(&self, card: &OutCard, filling: Filling<'_>) -> bool {
        let was_stuck = card.is_stuck();
        let is_more = card.send(filling);
        if card.is_stuck() && !was_stuck {
            // The time to try again was not among those that were noted before.
            let machine = self.lock();
            self.note_due(&machine, self.now());
        }
        is_more
    }

    /// Notes when something is to be done next, and has the leader woken if it would sleep too long.
    fn note_due(&self, machine: &Machine, now: Time) {
        let mut due = machine.deadline();
        if self.cards.iter().any(OutCard::is_stuck) {
            due = due.min(now + STUCK_WAIT);
        }
        self.due.store(due.0, Ordering::Relaxed);
        let until = self.asleep_until.load(Ordering::SeqCst);
        if due.0 < until && (Time(until).since(now) > LOOK || due.since(now) < LOOK) {
            self.nudge();
        }
    }

    /// Has the leader look around.
    pub(super) fn nudge(&self) {
        self.nudged.store(true, Ordering::SeqCst);
        if self.asleep_until.load(Ordering::SeqCst) != 0 {
            self.bell.ring();
        }
        self.wake_keeper();
    }

    /// Has the keeper look who leads, if it led and sleeps. One from which the lead was taken in its sleep would sleep on
    /// when nobody leads any more.
    fn wake_keeper(&self) {
        if self.is_keeper_asleep.swap(false, Ordering::SeqCst) {
            self.keeper_bell.ring();
        }
    }

    /// Takes what the cards have, and lets time pass. Returns how many frames there were, and whether it was time for
    /// something.
    pub(super) fn turn(&self, machine: &mut Machine, wheel: &mut Wheel, now: Time) -> (usize, bool) {
        let mut count = 0;
        for (index, ring) in wheel.rings.iter_mut().enumerate() {
            // CARDS_MAX is at most 255.
            let card = CardId(index as u8);
            let node = &mut machine.node;
            count += ring.each(TURN_FRAMES, |source, packet| {
                node.receive(now, card, Address(source.0), packet);
            });
        }
        if count > 0 {
            wheel.last = now;
        }
        let is_due = self.due.load(Ordering::Relaxed) <= now.0;
        if is_due {
            machine.tick(now);
        }
        machine.settle(now);
        (count, is_due)
    }

    /// Waits until `ready` says something, at most until `until`; turns the node meanwhile, if nobody else does who waits.
    /// None: the time passed.
    pub(super) fn wait<T>(
        &self,
        group: GroupId,
        until: Option<Instant>,
        mut ready: impl FnMut(&mut Machine, Time) -> Option<T>,
    ) -> Option<T> {
        let mut machine = self.lock();
        loop {
            let now = self.now();
            machine.settle(now);
            let got = ready(&mut machine, now);
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if got.is_some() || left.is_some_and(|left| left.is_zero()) {
                // It may have been called to lead.
                let calls_keeper = machine.pass_on();
                self.leave(machine, now);
                if calls_keeper {
                    self.keeper.notify_one();
                }
                return got;
            }
            if machine.leader != Leader::Waiter {
                machine.lead(Leader::Waiter);
                // It may be the keeper that sleeps; now it is nobody.
                self.asleep_until.store(0, Ordering::SeqCst);
                drop(machine);
                return self.lead(until, ready);
            }
            let signal = match machine.lane(group) {
                Some(lane) => Arc::clone(&lane.signal),
                None => return None,
            };
            machine.note_sleeper(group, true);
            let step = left.unwrap_or(Duration::MAX).min(Duration::from_secs(10));
            let woken = signal.wait_timeout(machine, step).unwrap_or_else(PoisonError::into_inner);
            machine = woken.0;
            machine.note_sleeper(group, false);
        }
    }

    fn lead<T>(
        &self,
        until: Option<Instant>,
        mut ready: impl FnMut(&mut Machine, Time) -> Option<T>,
    ) -> Option<T> {
        let mut wheel = self.wheel();
        loop {
            let mut machine = self.lock();
            let now = self.now();
            let (count, is_due) = self.turn(&mut machine, &mut wheel, now);
            let got = ready(&mut machine, now);
            let is_over = got.is_some() || until.is_some_and(|until| until <= Instant::now());
            let calls_keeper = is_over && machine.resign();
            let sent = if is_over && !is_due && machine.can_wait(now) {
                // Whoever leads next looks at once what there is to be done: that is not kept from whom this was for.
                self.due.store(0, Ordering::Relaxed);
                drop(machine);
                0
            } else if count > 0 || is_due || is_over {
                self.leave(machine, now)
            } else {
                // Where nothing happened nothing is to be sent that was not sent by whoever made it so.
                drop(machine);
                0
            };
            if calls_keeper {
                self.keeper.notify_one();
            }
            if is_over {
                self.wake_keeper();
                return got;
            }
            if count == 0 && sent == 0 {
                self.rest(&mut wheel, until);
            }
        }
    }
}
