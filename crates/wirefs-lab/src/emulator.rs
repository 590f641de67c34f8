//! The thread that moves frames between two TAP devices under the control of a `Link`.
//!
//! ```text
//! host A ── TAP ──┐                         ┌── TAP ── host B
//!                 ├── one thread, `Link` ───┤
//!           wake ─┘   (one iteration at a time)
//! ```
//!
//! One iteration: wait for a frame, a deadline or a wake-up; read frames with their time; lock the link, push, poll due
//! frames, unlock; write them. The lock is held only for the part in the middle.

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
use crate::tap::{self, LinkEnd};

/// Frames per iteration and device, for reading and for writing: many enough to amortize an iteration, few enough for
/// exact timestamps of the following frames.
const BATCH_FRAMES: usize = 32;
/// Bytes before the IP packet that the MTU does not include: Ethernet header and one VLAN tag.
const HEADER_BYTES: usize = 18;
/// The maximum number of recycled buffers.
const SPARE_BUFFERS_MAX: usize = 1_024;
/// Real-time priority of the thread, low within the real-time range.
const PRIORITY: i32 = 10;

/// A running link; clones share it. It stops when its lab is dropped.
#[derive(Clone, Debug)]
pub struct LinkHandle {
    shared: Arc<SharedLink>,
    thread: Arc<Mutex<Option<JoinHandle<()>>>>,
    addresses: [Ipv4Addr; 2],
    devices: [String; 2],
}

/// State shared by the thread and the handles.
#[derive(Debug)]
struct SharedLink {
    link: Mutex<Link>,
    wake: OwnedFd,
    stopped: AtomicBool,
    real_time: AtomicBool,
}

impl SharedLink {
    fn link(&self) -> MutexGuard<'_, Link> {
        // The methods of the link do not panic between two changes, so a poisoned link is consistent.
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        // Fails only if the counter is full; then the thread is awake already.
        rustix::io::write(&self.wake, &1u64.to_ne_bytes()).ok();
    }
}

impl LinkHandle {
    /// Creates both devices, brings them up and starts the thread.
    pub(crate) fn start(ends: [LinkEnd<'_>; 2], profile: LinkProfile) -> Result<LinkHandle, LabError> {
        let mtu = profile.mtu;
        let [tap_a, tap_b] = [ends[0].open_tap()?, ends[1].open_tap()?];
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let wake = eventfd(0, flags).map_err(|error| LabError::io("make an eventfd", error))?;
        let shared = Arc::new(SharedLink {
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
            received: Vec::new(),
            due: Vec::new(),
        };
        let thread = thread::Builder::new()
            .name(ends[0].device())
            .spawn(move || emulator.run())
            .map_err(|error| LabError::io("start a thread", error))?;
        let handle = LinkHandle {
            shared,
            thread: Arc::new(Mutex::new(Some(thread))),
            addresses: ends.each_ref().map(LinkEnd::address),
            devices: ends.each_ref().map(LinkEnd::device),
        };
        for end in &ends {
            end.bring_up(mtu).inspect_err(|_| handle.stop())?;
        }
        Ok(handle)
    }

    /// Returns the IPv4 address of the first host on this link.
    pub fn address_a(&self) -> Ipv4Addr {
        self.addresses[0]
    }

    /// Returns the IPv4 address of the second host on this link.
    pub fn address_b(&self) -> Ipv4Addr {
        self.addresses[1]
    }

    /// Returns the name of the link's device in the first host and in the second.
    pub fn devices(&self) -> [&str; 2] {
        self.devices.each_ref().map(String::as_str)
    }

    /// Returns the current profile.
    pub fn profile(&self) -> LinkProfile {
        self.shared.link().profile()
    }

    /// Replaces the profile, from the next frame on.
    ///
    /// # Errors
    /// [`LabError::Profile`], also if MTU or seed differ from those at creation.
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

    /// Cuts both directions: drops frames in flight, and all frames until [`heal`](Self::heal). No host is notified.
    pub fn cut(&self) {
        Direction::BOTH.into_iter().for_each(|direction| self.cut_direction(direction));
    }

    /// Restores both directions.
    pub fn heal(&self) {
        Direction::BOTH.into_iter().for_each(|direction| self.heal_direction(direction));
    }

    /// Cuts one direction.
    pub fn cut_direction(&self, direction: Direction) {
        self.shared.link().cut(direction);
    }

    /// Restores one direction.
    pub fn heal_direction(&self, direction: Direction) {
        self.shared.link().heal(direction);
    }

    /// Returns the counters since creation.
    pub fn counters(&self) -> LinkCounters {
        self.shared.link().counters()
    }

    /// Returns whether the thread has real-time priority; without it, delays are less exact on a busy machine.
    pub fn is_real_time(&self) -> bool {
        self.shared.real_time.load(Ordering::Relaxed)
    }

    /// Stops the thread, which removes its devices.
    pub(crate) fn stop(&self) {
        self.shared.stopped.store(true, Ordering::Release);
        self.shared.wake();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A panicked thread has released its devices too.
            thread.join().ok();
        }
    }
}

/// State owned by the thread.
struct Emulator {
    shared: Arc<SharedLink>,
    /// The ends at host A and host B.
    taps: [File; 2],
    frame_bytes_max: usize,
    spare: Vec<Vec<u8>>,
    /// The frames read in this iteration.
    received: Vec<(Time, Direction, Vec<u8>)>,
    /// The frames to write in this iteration.
    due: Vec<(Direction, Vec<u8>)>,
}

impl Emulator {
    fn run(mut self) {
        // The default timer slack of 50 µs would add to every delay.
        rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1)).ok();
        self.shared.real_time.store(sys::set_realtime_priority(PRIORITY).is_ok(), Ordering::Relaxed);
        let mut deadline = None;
        while !self.shared.stopped.load(Ordering::Acquire) {
            let ready = self.wait(deadline);
            for (direction, ready) in Direction::BOTH.into_iter().zip(ready) {
                if ready {
                    self.read(direction);
                }
            }
            deadline = self.exchange();
            self.write();
        }
    }

    /// Waits for a frame, for `deadline` or for a wake-up; returns the readiness of the two devices.
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
            // The device was removed with its namespace; without the stop, poll would return at once for ever.
            self.shared.stopped.store(true, Ordering::Release);
        }
        let [a, b, wake] = waiting.map(|entry| entry.revents().contains(PollFlags::IN));
        if wake {
            // Reading resets the counter; its value is irrelevant.
            rustix::io::read(&self.shared.wake, &mut [0u8; 8]).ok();
        }
        [a, b]
    }

    fn read(&mut self, direction: Direction) {
        for _ in 0..BATCH_FRAMES {
            let mut frame = self.spare.pop().unwrap_or_default();
            if !tap::read_frame(source(&self.taps, direction), self.frame_bytes_max, &mut frame) {
                self.spare.push(frame);
                break;
            }
            self.received.push((now(), direction, frame));
        }
    }

    /// Pushes received frames to the link and takes due ones; returns the next deadline.
    fn exchange(&mut self) -> Option<Time> {
        let mut link = self.shared.link();
        for (at, direction, frame) in self.received.drain(..) {
            link.push(at, direction, frame);
        }
        let now = now();
        for direction in Direction::BOTH {
            let due = std::iter::from_fn(|| link.poll(now, direction));
            self.due.extend(due.take(BATCH_FRAMES).map(|frame| (direction, frame)));
        }
        link.deadline()
    }

    fn write(&mut self) {
        let mut refused = 0;
        for (direction, frame) in self.due.drain(..) {
            let written = tap::write_frame(sink(&self.taps, direction), &frame);
            refused += u64::from(written.is_err());
            if self.spare.len() < SPARE_BUFFERS_MAX {
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

/// Returns the time of the monotonic clock.
pub(crate) fn now() -> Time {
    let at = clock_gettime(ClockId::Monotonic);
    // The monotonic clock starts at boot, so both parts are positive.
    Time(at.tv_sec as u64 * 1_000_000_000 + at.tv_nsec as u64)
}

fn timespec(span: Duration) -> Timespec {
    // The delays of a link are far below the limits of both fields.
    Timespec { tv_sec: span.as_secs() as i64, tv_nsec: span.subsec_nanos().into() }
}
