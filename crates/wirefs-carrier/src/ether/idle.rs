//! The leader's wait for frames, or for a timer.

use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wirefs_circuit::Time;
use wirefs_raw::Ring;

use super::engine::{CHECK_INTERVAL, Engine, LeaderState};
use super::event::Event;

/// The leader of a node with traffic within this time sleeps at most [`CHECK_INTERVAL`], so that senders need not wake
/// it for later timers.
const ACTIVE_TIME: Duration = Duration::from_millis(50);
/// Polls between two reads of the clock.
const POLLS_PER_CLOCK_READ: u32 = 8;

impl Engine {
    fn has_work(&self, leader_state: &LeaderState, now: Time) -> bool {
        leader_state.rings.iter().any(Ring::is_ready)
            || self.leader_notified.load(Ordering::SeqCst)
            || self.due.load(Ordering::Relaxed) <= now.0
    }

    /// Returns when there is work, at the latest at `until`: busy-polls for a while if that pays off, and then sleeps.
    pub(super) fn idle(&self, leader_state: &mut LeaderState, until: Option<Instant>) {
        let begun = self.now();
        let spin_time = leader_state.spin.spin_time();
        let (mut now, mut polls) = (begun, 0u32);
        while now.since(begun) < spin_time {
            if self.has_work(leader_state, now) {
                self.leader_notified.store(false, Ordering::SeqCst);
                leader_state.spin.record_hit();
                return;
            }
            std::hint::spin_loop();
            polls += 1;
            // Reading the clock costs more than a poll.
            if polls % POLLS_PER_CLOCK_READ == 0 {
                now = self.now();
            }
        }
        self.sleep(leader_state, now, until);
        leader_state.spin.record_sleep(self.now().since(now), !spin_time.is_zero());
    }

    fn sleep(&self, leader_state: &mut LeaderState, now: Time, until: Option<Instant>) {
        let is_active = now.since(leader_state.last) < ACTIVE_TIME;
        let most = if is_active { now + CHECK_INTERVAL } else { Time(u64::MAX) };
        let mux = self.lock();
        let due = Time(self.due.load(Ordering::Relaxed)).min(most);
        let left = until.map_or(Duration::MAX, |until| until.saturating_duration_since(Instant::now()));
        self.asleep_until.store(due.min(now + left).0.max(1), Ordering::SeqCst);
        drop(mux);
        // A thread that notifies after this sees that the leader sleeps; earlier notifications are seen here.
        if !self.has_work(leader_state, now) {
            self.poll(&self.wakeup, due.since(now).min(left));
        }
        self.asleep_until.store(0, Ordering::SeqCst);
        self.leader_notified.store(false, Ordering::SeqCst);
    }

    /// Sleeps until a card has frames or the event is set; clears the event. Returns the number of ready descriptors.
    pub(super) fn poll(&self, wakeup: &Event, most: Duration) -> usize {
        let mut fds: Vec<PollFd<'_>> = Vec::with_capacity(self.cards.len() + 1);
        fds.push(PollFd::from_borrowed_fd(wakeup.as_fd(), PollFlags::IN));
        fds.extend(self.cards.iter().map(|card| PollFd::new(&card.socket, PollFlags::IN)));
        // An interrupted or failed wait ends early; the caller checks and waits again.
        let ready = poll(&mut fds, Timespec::try_from(most).ok().as_ref()).unwrap_or(0);
        if fds.first().is_some_and(|fd| fd.revents().contains(PollFlags::IN)) {
            wakeup.clear();
        }
        for (fd, card) in fds.iter().skip(1).zip(&self.cards) {
            // A card that went down stays ready until its error is read, and receiving frames does not read it.
            if fd.revents().contains(PollFlags::ERR) {
                card.socket.take_error();
            }
        }
        ready
    }
}
