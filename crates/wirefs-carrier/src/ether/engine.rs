//! The work loop of a node, run by waiting and by sending threads.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use wirefs_circuit::{CardAddress, CardId, GroupId, Time, limits::CARDS_MAX};
use wirefs_raw::Ring;

use super::card::{CardSender, FilledBatch};
use super::event::Event;
use super::mux::{Leader, Mux};
use super::spin::AdaptiveSpin;

/// Frames of one card received before the mux is unlocked.
const POLL_FRAMES: usize = 64;
/// A sleeping leader is woken for a timer earlier than this; for later timers it wakes itself at this interval while
/// the node is active.
pub(super) const CHECK_INTERVAL: Duration = Duration::from_millis(5);
/// The retry interval of a card whose send buffer is full.
pub(super) const BLOCKED_RETRY: Duration = Duration::from_micros(500);

/// State of the leading thread.
#[derive(Debug)]
pub(super) struct LeaderState {
    pub(super) rings: Vec<Ring>,
    pub(super) spin: AdaptiveSpin,
    /// The time of the last received frame.
    pub(super) last: Time,
}

/// A node with its cards.
#[derive(Debug)]
pub(super) struct Engine {
    pub(super) cards: Vec<CardSender>,
    mux: Mutex<Mux>,
    leader_state: Mutex<LeaderState>,
    begun: Instant,
    /// The next timer, in nanoseconds since `begun`.
    pub(super) due: AtomicU64,
    /// The time until which the leader sleeps; 0 if it does not.
    pub(super) asleep_until: AtomicU64,
    /// The leader must check for work.
    pub(super) leader_notified: AtomicBool,
    /// Wakes the leader.
    pub(super) wakeup: Event,
    /// Wakes the background thread while it watches.
    pub(super) background: Condvar,
    /// Wakes the background thread if it slept as leader, whether it still leads or not.
    pub(super) background_wakeup: Event,
    pub(super) is_background_asleep: AtomicBool,
    /// Set while peers wait to be accepted.
    pub(super) accept_event: Event,
}

impl Engine {
    pub(super) fn new(mux: Mux, cards: Vec<CardSender>, rings: Vec<Ring>) -> std::io::Result<Engine> {
        Ok(Engine {
            cards,
            mux: Mutex::new(mux),
            leader_state: Mutex::new(LeaderState {
                rings,
                spin: AdaptiveSpin::default(),
                last: Time::default(),
            }),
            begun: Instant::now(),
            due: AtomicU64::new(u64::MAX),
            asleep_until: AtomicU64::new(0),
            leader_notified: AtomicBool::new(false),
            wakeup: Event::new()?,
            background: Condvar::new(),
            background_wakeup: Event::new()?,
            is_background_asleep: AtomicBool::new(false),
            accept_event: Event::new()?,
        })
    }

    pub(super) fn now(&self) -> Time {
        Time(u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Mux> {
        self.mux.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn leader_state(&self) -> MutexGuard<'_, LeaderState> {
        self.leader_state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` on the mux, and sends the resulting packets.
    pub(super) fn with<T>(&self, work: impl FnOnce(&mut Mux, Time) -> T) -> T {
        let mut mux = self.lock();
        let now = self.now();
        let result = work(&mut mux, now);
        self.leave(mux, now);
        result
    }

    /// Unlocks the mux and sends the due packets. Returns the number of packets sent.
    pub(super) fn leave(&self, mut mux: MutexGuard<'_, Mux>, now: Time) -> usize {
        mux.process_outputs(now);
        let mut batches: [Option<FilledBatch<'_>>; CARDS_MAX] = [const { None }; CARDS_MAX];
        let mut sent = 0;
        for (card, slot) in self.cards.iter().zip(&mut batches) {
            if let Some(frames) = card.take() {
                let batch = card.fill(frames, &mut mux.node, now);
                sent += batch.added;
                *slot = Some(batch);
            }
        }
        // Sending first reduces latency; timers can be noted afterwards.
        let mut is_noted = sent == 0;
        if is_noted {
            self.note_due(&mux, now);
        }
        if mux.has_arrivals() {
            self.accept_event.signal();
        }
        drop(mux);
        for (card, slot) in self.cards.iter().zip(&mut batches) {
            if let Some(batch) = slot.take()
                && self.send(card, batch)
                && let Some(more) = self.flush(card)
            {
                sent += more;
                is_noted = true;
            }
        }
        if !is_noted {
            let mux = self.lock();
            self.note_due(&mux, self.now());
        }
        sent
    }

    /// Sends this card's packets until there are no more or another thread sends. Returns `None` if another thread sent
    /// from the start.
    fn flush(&self, card: &CardSender) -> Option<usize> {
        let mut sent = None;
        while let Some(frames) = card.take() {
            let mut mux = self.lock();
            let now = self.now();
            let batch = card.fill(frames, &mut mux.node, now);
            mux.process_outputs(now);
            self.note_due(&mux, now);
            drop(mux);
            sent = Some(sent.unwrap_or(0) + batch.added);
            if !self.send(card, batch) {
                break;
            }
        }
        sent
    }

    /// Sends a batch. Returns whether this thread has more to do.
    fn send(&self, card: &CardSender, batch: FilledBatch<'_>) -> bool {
        let was_blocked = card.is_blocked();
        let is_more = card.send(batch);
        if card.is_blocked() && !was_blocked {
            // The retry time was not among the timers noted before.
            let mux = self.lock();
            self.note_due(&mux, self.now());
        }
        is_more
    }

    /// Notes the next timer, and wakes the leader if it would sleep too long.
    fn note_due(&self, mux: &Mux, now: Time) {
        let mut due = mux.deadline();
        if self.cards.iter().any(CardSender::is_blocked) {
            due = due.min(now + BLOCKED_RETRY);
        }
        self.due.store(due.0, Ordering::Relaxed);
        let until = self.asleep_until.load(Ordering::SeqCst);
        if due.0 < until && (Time(until).since(now) > CHECK_INTERVAL || due.since(now) < CHECK_INTERVAL) {
            self.wake_leader();
        }
    }

    /// Makes the leader check for work.
    pub(super) fn wake_leader(&self) {
        self.leader_notified.store(true, Ordering::SeqCst);
        if self.asleep_until.load(Ordering::SeqCst) != 0 {
            self.wakeup.signal();
        }
        self.wake_background();
    }

    /// Wakes the background thread if it slept as leader, so that it checks who leads. Otherwise it would sleep on when
    /// no thread leads any more.
    fn wake_background(&self) {
        if self.is_background_asleep.swap(false, Ordering::SeqCst) {
            self.background_wakeup.signal();
        }
    }

    /// Receives the cards' frames and runs timers. Returns the number of frames, and whether a timer was due.
    pub(super) fn poll_cards(
        &self,
        mux: &mut Mux,
        leader_state: &mut LeaderState,
        now: Time,
    ) -> (usize, bool) {
        let mut count = 0;
        for (index, ring) in leader_state.rings.iter_mut().enumerate() {
            // CARDS_MAX is at most 255.
            let card = CardId(index as u8);
            let node = &mut mux.node;
            count += ring.each(POLL_FRAMES, |source, packet| {
                node.receive(now, card, CardAddress(source.0), packet);
            });
        }
        if count > 0 {
            leader_state.last = now;
        }
        let is_due = self.due.load(Ordering::Relaxed) <= now.0;
        if is_due {
            mux.tick(now);
        }
        mux.process_outputs(now);
        (count, is_due)
    }

    /// Waits until `ready` returns a value, at most until `until`; leads meanwhile if no other waiting thread does.
    /// Returns `None` on a timeout.
    pub(super) fn wait<T>(
        &self,
        group: GroupId,
        until: Option<Instant>,
        mut ready: impl FnMut(&mut Mux, Time) -> Option<T>,
    ) -> Option<T> {
        let mut mux = self.lock();
        loop {
            let now = self.now();
            mux.process_outputs(now);
            let got = ready(&mut mux, now);
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if got.is_some() || left.is_some_and(|left| left.is_zero()) {
                // This thread may have been woken to lead.
                let wakes_background = mux.wake_next_leader();
                self.leave(mux, now);
                if wakes_background {
                    self.background.notify_one();
                }
                return got;
            }
            if mux.leader != Leader::Waiter {
                mux.lead(Leader::Waiter);
                // The background thread may be the sleeping leader; now no leader sleeps.
                self.asleep_until.store(0, Ordering::SeqCst);
                drop(mux);
                return self.lead(until, ready);
            }
            let signal = match mux.connection(group) {
                Some(connection) => Arc::clone(&connection.signal),
                None => return None,
            };
            mux.count_sleeper(group, true);
            let step = left.unwrap_or(Duration::MAX).min(Duration::from_secs(10));
            let woken = signal.wait_timeout(mux, step).unwrap_or_else(PoisonError::into_inner);
            mux = woken.0;
            mux.count_sleeper(group, false);
        }
    }

    fn lead<T>(
        &self,
        until: Option<Instant>,
        mut ready: impl FnMut(&mut Mux, Time) -> Option<T>,
    ) -> Option<T> {
        let mut leader_state = self.leader_state();
        loop {
            let mut mux = self.lock();
            let now = self.now();
            let (count, is_due) = self.poll_cards(&mut mux, &mut leader_state, now);
            let got = ready(&mut mux, now);
            let is_done = got.is_some() || until.is_some_and(|until| until <= Instant::now());
            let wakes_background = is_done && mux.resign();
            let sent = if is_done && !is_due && mux.can_wait(now) {
                // The next leader checks for work at once, so the result is returned without that delay.
                self.due.store(0, Ordering::Relaxed);
                drop(mux);
                0
            } else if count > 0 || is_due || is_done {
                self.leave(mux, now)
            } else {
                // Nothing happened, so the threads that caused earlier packets have sent them.
                drop(mux);
                0
            };
            if wakes_background {
                self.background.notify_one();
            }
            if is_done {
                self.wake_background();
                return got;
            }
            if count == 0 && sent == 0 {
                self.idle(&mut leader_state, until);
            }
        }
    }
}
