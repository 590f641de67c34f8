//! The thread that carries frames between two TAP devices as the link decides.
//!
//! ```text
//! host A ── TAP ──┐                         ┌── TAP ── host B
//!                 ├── one thread, `Link` ───┤
//!           wake ─┘   (a turn at a time)
//! ```
//!
//! A turn: wait for a frame, a deadline or a wake-up; read what came (with its time); lock the link, push, take what
//! is due, unlock; write it. Nobody waits for the lock longer than that middle part.

use std::fs::File;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::OwnedFd;
use rustix::time::{ClockId, clock_gettime};
use wirefs_op::Time;

use crate::counters::LinkCounters;
use crate::error::LabError;
use crate::link::{Direction, Link};
use crate::profile::LinkProfile;
use crate::sys;
use crate::tap::{self, End};

/// Frames that one turn reads from one device, and writes to one: enough to spread the cost of a turn, few enough
/// that the frames behind them do not wait long for their timestamp.
const TURN_FRAMES: usize = 32;
/// Bytes in front of the IP packet that the MTU does not count: Ethernet header and one VLAN tag.
const HEADER_BYTES: usize = 18;
/// Buffers kept for the next frames.
const SPARE_BUFFERS: usize = 1_024;
/// Real-time priority of the thread, low among the real-time ones.
const PRIORITY: i32 = 10;

/// A running link; clones are the same link. It stops when its lab is dropped.
#[derive(Clone, Debug)]
pub struct LinkHandle {
    shared: Arc<Shared>,
    thread: Arc<Mutex<Option<JoinHandle<()>>>>,
    addresses: [Ipv4Addr; 2],
    devices: [String; 2],
}

/// What the thread and the handles share.
#[derive(Debug)]
struct Shared {
    link: Mutex<Link>,
    wake: OwnedFd,
    stopped: AtomicBool,
    real_time: AtomicBool,
}

impl Shared {
    fn link(&self) -> MutexGuard<'_, Link> {
        // A panic elsewhere cannot leave the link half changed: its methods do not panic between two changes.
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        // It fails only when the counter is full, and then the thread is awake already.
        rustix::io::write(&self.wake, &1u64.to_ne_bytes()).ok();
    }
}

impl LinkHandle {
    /// Makes both devices, brings them up and starts the thread.
    pub(crate) fn start(ends: [End<'_>; 2], profile: LinkProfile) -> Result<LinkHandle, LabError> {
        let mtu = profile.mtu;
        let [tap_a, tap_b] = [ends[0].open_tap()?, ends[1].open_tap()?];
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let wake = eventfd(0, flags).map_err(|error| LabError::io("make an eventfd", error))?;
        let shared = Arc::new(Shared {
            link: Mutex::new(Link::new(profile)),
            wake,
            stopped: AtomicBool::new(false),
            real_time: AtomicBool::new(false),
        });
        let emulator = Emulator {
            shared: Arc::clone(&shared),
            taps: [tap_a, tap_b],
            frame_bytes_max: mtu as usize + HEADER_BYTES,
            spare: Vec::new(),
            came: Vec::new(),
            due: Vec::new(),
        };
        let thread = thread::Builder::new()
            .name(ends[0].device())
            .spawn(move || emulator.run())
            .map_err(|error| LabError::io("start a thread", error))?;
        let handle = LinkHandle {
            shared,
            thread: Arc::new(Mutex::new(Some(thread))),
            addresses: ends.each_ref().map(End::address),
            devices: ends.each_ref().map(End::device),
        };
        for end in &ends {
            end.bring_up(mtu).inspect_err(|_| handle.stop())?;
        }
        Ok(handle)
    }

    /// The IPv4 address of the first host on this link.
    pub fn address_a(&self) -> Ipv4Addr {
        self.addresses[0]
    }

    /// The IPv4 address of the second host on this link.
    pub fn address_b(&self) -> Ipv4Addr {
        self.addresses[1]
    }

    /// The name of the link's device in the first host and in the second.
    pub fn devices(&self) -> [&str; 2] {
        self.devices.each_ref().map(String::as_str)
    }

    /// How long and how bad the link is now.
    pub fn profile(&self) -> LinkProfile {
        self.shared.link().profile()
    }

    /// Makes the link as long and as bad as `profile` says, from the next frame on.
    ///
    /// # Errors
    /// [`LabError::Profile`], also when `profile` has another MTU or seed than the link was made with.
    pub fn set_profile(&self, profile: LinkProfile) -> Result<(), LabError> {
        profile.check()?;
        let mut link = self.shared.link();
        let now = link.profile();
        for (field, same) in [("mtu", now.mtu == profile.mtu), ("seed", now.seed == profile.seed)] {
            if !same {
                return Err(LabError::Profile {
                    field,
                    problem: "is fixed when the link is made".to_owned(),
                });
            }
        }
        link.set_profile(profile);
        Ok(())
    }

    /// Cuts both directions: what is under way vanishes, and what is sent until [`heal`](Self::heal). Nobody is told.
    pub fn cut(&self) {
        Direction::BOTH.into_iter().for_each(|direction| self.cut_direction(direction));
    }

    /// Heals both directions.
    pub fn heal(&self) {
        Direction::BOTH.into_iter().for_each(|direction| self.heal_direction(direction));
    }

    /// Cuts one direction.
    pub fn cut_direction(&self, direction: Direction) {
        self.shared.link().cut(direction);
    }

    /// Heals one direction.
    pub fn heal_direction(&self, direction: Direction) {
        self.shared.link().heal(direction);
    }

    /// What was counted since the link was made.
    pub fn counters(&self) -> LinkCounters {
        self.shared.link().counters()
    }

    /// Whether the link's thread runs with real-time priority; without it its delays are less exact on a busy machine.
    pub fn is_real_time(&self) -> bool {
        self.shared.real_time.load(Ordering::Relaxed)
    }

    /// Stops the thread; its devices vanish with it.
    pub(crate) fn stop(&self) {
        self.shared.stopped.store(true, Ordering::Release);
        self.shared.wake();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A thread that panicked has let go of its devices, which is all that is wanted.
            thread.join().ok();
        }
    }
}

/// What the thread owns.
struct Emulator {
    shared: Arc<Shared>,
    /// The ends at host A and host B.
    taps: [File; 2],
    frame_bytes_max: usize,
    spare: Vec<Vec<u8>>,
    /// The frames that one turn read.
    came: Vec<(Time, Direction, Vec<u8>)>,
    /// The frames that one turn writes.
    due: Vec<(Direction, Vec<u8>)>,
}

impl Emulator {
    fn run(mut self) {
        // The default slack of 50 µs would be added to every delay.
        rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1)).ok();
        self.shared.real_time.store(sys::prefer_this_thread(PRIORITY).is_ok(), Ordering::Relaxed);
        let mut deadline = None;
        while !self.shared.stopped.load(Ordering::Acquire) {
            let ready = self.wait(deadline);
            for (direction, ready) in Direction::BOTH.into_iter().zip(ready) {
                if ready {
                    self.read(direction);
                }
            }
            deadline = self.decide();
            self.write();
        }
    }

    /// Waits until a device has a frame, `deadline` has come or somebody wakes the thread; gives which devices are
    /// ready.
    fn wait(&self, deadline: Option<Time>) -> [bool; 2] {
        let timeout = deadline.map(|deadline| timespec(deadline.since(now())));
        let mut waiting = [
            PollFd::new(&self.taps[0], PollFlags::IN),
            PollFd::new(&self.taps[1], PollFlags::IN),
            PollFd::new(&self.shared.wake, PollFlags::IN),
        ];
        if poll(&mut waiting, timeout.as_ref()).is_err() {
            return [false, false];
        }
        if waiting.iter().any(|entry| entry.revents().contains(PollFlags::ERR)) {
            // A device is gone with its namespace; without this the wait would return at once for ever.
            self.shared.stopped.store(true, Ordering::Release);
        }
        let [a, b, wake] = waiting.map(|entry| entry.revents().contains(PollFlags::IN));
        if wake {
            // The value does not matter, only that it is taken.
            rustix::io::read(&self.shared.wake, &mut [0u8; 8]).ok();
        }
        [a, b]
    }

    fn read(&mut self, direction: Direction) {
        for _ in 0..TURN_FRAMES {
            let mut frame = self.spare.pop().unwrap_or_default();
            if !tap::read_frame(source(&self.taps, direction), self.frame_bytes_max, &mut frame) {
                self.spare.push(frame);
                break;
            }
            self.came.push((now(), direction, frame));
        }
    }

    /// Hands what came to the link and takes what is due; gives when to come back.
    fn decide(&mut self) -> Option<Time> {
        let mut link = self.shared.link();
        for (at, direction, frame) in self.came.drain(..) {
            link.push(at, direction, frame);
        }
        let now = now();
        for direction in Direction::BOTH {
            let due = std::iter::from_fn(|| link.poll(now, direction));
            self.due.extend(due.take(TURN_FRAMES).map(|frame| (direction, frame)));
        }
        link.deadline()
    }

    fn write(&mut self) {
        let mut refused = 0;
        for (direction, frame) in self.due.drain(..) {
            let written = tap::write_frame(sink(&self.taps, direction), &frame);
            refused += u64::from(written.is_err());
            if self.spare.len() < SPARE_BUFFERS {
                self.spare.push(frame);
            }
        }
        if refused > 0 {
            self.shared.link().count_refused(refused);
        }
    }
}

fn source(taps: &[File; 2], direction: Direction) -> &File {
    match direction {
        Direction::AToB => &taps[0],
        Direction::BToA => &taps[1],
    }
}

fn sink(taps: &[File; 2], direction: Direction) -> &File {
    match direction {
        Direction::AToB => &taps[1],
        Direction::BToA => &taps[0],
    }
}

/// The time on the machine's monotonic clock.
pub(crate) fn now() -> Time {
    let at = clock_gettime(ClockId::Monotonic);
    // The monotonic clock counts from boot, so both parts are positive.
    Time(at.tv_sec as u64 * 1_000_000_000 + at.tv_nsec as u64)
}

fn timespec(span: Duration) -> Timespec {
    // A span that a link can hold is far below the limits of both fields.
    Timespec { tv_sec: span.as_secs() as i64, tv_nsec: span.subsec_nanos().into() }
}
