//! Waiting for frames, or for a time.

use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wirefs_circuit::Time;
use wirefs_raw::Ring;

use super::bell::Bell;
use super::engine::{Engine, LOOK, Wheel};

/// A node over which something went so lately is not left alone for longer than [`LOOK`], so that who sends need not wake
/// the leader for the times that follow from it.
const LATELY: Duration = Duration::from_millis(50);
/// Looks between two looks at the clock.
const LOOKS_PER_TIME: u32 = 8;

impl Engine {
    fn is_called(&self, wheel: &Wheel, now: Time) -> bool {
        wheel.rings.iter().any(Ring::is_ready)
            || self.nudged.load(Ordering::SeqCst)
            || self.due.load(Ordering::Relaxed) <= now.0
    }

    /// Returns when there is something to do, at the latest at `until`: looks for a while, where that is worth it, and then
    /// sleeps.
    pub(super) fn rest(&self, wheel: &mut Wheel, until: Option<Instant>) {
        let begun = self.now();
        let worth = wheel.spin.worth();
        let (mut now, mut looks) = (begun, 0u32);
        while now.since(begun) < worth {
            if self.is_called(wheel, now) {
                self.nudged.store(false, Ordering::SeqCst);
                wheel.spin.found();
                return;
            }
            std::hint::spin_loop();
            looks += 1;
            // The clock costs more than the look.
            if looks % LOOKS_PER_TIME == 0 {
                now = self.now();
            }
        }
        self.sleep(wheel, now, until);
        wheel.spin.slept(self.now().since(now), !worth.is_zero());
    }

    fn sleep(&self, wheel: &mut Wheel, now: Time, until: Option<Instant>) {
        let is_lively = now.since(wheel.last) < LATELY;
        let most = if is_lively { now + LOOK } else { Time(u64::MAX) };
        let machine = self.lock();
        let due = Time(self.due.load(Ordering::Relaxed)).min(most);
        let left = until.map_or(Duration::MAX, |until| until.saturating_duration_since(Instant::now()));
        self.asleep_until.store(due.min(now + left).0.max(1), Ordering::SeqCst);
        drop(machine);
        // Whoever nudges after this sees that we sleep; who did before is seen here.
        if !self.is_called(wheel, now) {
            self.poll(&self.bell, due.since(now).min(left));
        }
        self.asleep_until.store(0, Ordering::SeqCst);
        self.nudged.store(false, Ordering::SeqCst);
    }

    /// Sleeps until a card has something or the bell rings, which is silenced. Returns how many of them called.
    pub(super) fn poll(&self, bell: &Bell, most: Duration) -> usize {
        let mut fds: Vec<PollFd<'_>> = Vec::with_capacity(self.cards.len() + 1);
        fds.push(PollFd::from_borrowed_fd(bell.as_fd(), PollFlags::IN));
        fds.extend(self.cards.iter().map(|card| PollFd::new(&card.socket, PollFlags::IN)));
        // An interrupted or impossible wait ends early; the caller looks around and comes again.
        let called = poll(&mut fds, Timespec::try_from(most).ok().as_ref()).unwrap_or(0);
        if fds.first().is_some_and(|fd| fd.revents().contains(PollFlags::IN)) {
            bell.clear();
        }
        for (fd, card) in fds.iter().skip(1).zip(&self.cards) {
            // A card that went down calls until somebody hears it, and frames do not come by the calls that would.
            if fd.revents().contains(PollFlags::ERR) {
                card.socket.take_error();
            }
        }
        called
    }
}
