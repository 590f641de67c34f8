//! Drives the echo state machine with its sockets.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wirefs_echo::{Echo, EchoBlockId, HostId, ReceiveVerdict, Time};
use wirefs_raw::limits::BATCH_PACKETS_MAX;
use wirefs_raw::{Arrivals, EchoSequence, EchoSocket, PacketBatch, RawError};

use crate::limits::{IDLE_RATE, KEEPER_PAUSE_MIN, QUIET_CYCLE_SECS, QUIET_RATE};
use crate::pacing::{ReceivePacing, ReceivedBatch};
use crate::survey::HostSurvey;

/// How many packets a poll takes from near hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PollBudget {
    /// A caller waits: all packets that the rates allow.
    Full,
    /// A caller waits for a block that may be among the next packets: at most this many from a near host, so
    /// that later packets do not delay it.
    Limited(usize),
    /// No caller waits: packets of near hosts may stay in the receive buffer for a moment.
    Idle,
    /// No caller has waited for a while: they may stay there longer.
    Quiet,
}

impl PollBudget {
    /// Returns the packets per second to take from a near host that holds `packets`; `None` without a limit.
    pub(crate) fn rate(self, packets: u64) -> Option<u32> {
        match self {
            PollBudget::Full | PollBudget::Limited(_) => None,
            PollBudget::Idle => Some(IDLE_RATE),
            PollBudget::Quiet => {
                let needed = u32::try_from(packets / QUIET_CYCLE_SECS).unwrap_or(u32::MAX);
                Some(needed.clamp(QUIET_RATE, IDLE_RATE))
            }
        }
    }

    /// Returns whether no caller waits.
    fn is_idle(self) -> bool {
        matches!(self, PollBudget::Idle | PollBudget::Quiet)
    }
}

/// Socket and state of one host.
#[derive(Debug)]
pub(crate) struct HostPath {
    pub(crate) socket: Arc<EchoSocket>,
    pub(crate) survey: HostSurvey,
    pub(crate) is_near: bool,
    /// The host was drained and is empty: it is no longer pinged.
    pub(crate) is_gone: bool,
    pub(crate) traffic: Traffic,
    batch: PacketBatch,
    /// When the packets in the batch were received, if they were only peeked at.
    peeked_at: Option<Time>,
    /// Pacing of a near host while no caller waits.
    pub(crate) pacing: ReceivePacing,
    /// Whether the state machine allows no reception before its next deadline.
    is_rate_limited: bool,
}

/// Traffic counters of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    pub(crate) received_packets: u64,
    pub(crate) received_bytes: u64,
    pub(crate) sent_packets: u64,
    /// Packets discarded because the path MTU became too small.
    pub(crate) too_large: u64,
}

impl HostPath {
    pub(crate) fn new(
        socket: EchoSocket,
        survey: HostSurvey,
        is_near: bool,
        packet_bytes: usize,
    ) -> HostPath {
        HostPath {
            socket: Arc::new(socket),
            survey,
            is_near,
            is_gone: false,
            traffic: Traffic::default(),
            batch: PacketBatch::new(packet_bytes),
            peeked_at: None,
            pacing: ReceivePacing::default(),
            is_rate_limited: false,
        }
    }

    /// Sends the queued packets of the batch. Returns whether none is left.
    fn flush(&mut self) -> Result<bool, RawError> {
        if !self.batch.is_sent() {
            let departures = self.socket.send(&mut self.batch)?;
            self.traffic.sent_packets += departures.packets as u64;
            self.traffic.too_large += departures.too_large as u64;
        }
        Ok(self.batch.is_sent())
    }

    /// Passes the received packets to the state machine, `late` after their reception, and sends the replies.
    /// Returns how many packets were sent again.
    fn exchange(
        &mut self,
        echo: &mut Echo,
        now: Time,
        host: HostId,
        late: Duration,
    ) -> Result<u32, RawError> {
        let traffic = &mut self.traffic;
        let mut resent = 0;
        self.batch.exchange(|packet, waited| {
            traffic.received_packets += 1;
            traffic.received_bytes += packet.len() as u64;
            match echo.receive(now, host, waited + late, packet) {
                ReceiveVerdict::Resend(number) => {
                    resent += 1;
                    Some(EchoSequence(number))
                }
                ReceiveVerdict::Absorb => None,
            }
        });
        self.flush()?;
        Ok(resent)
    }
}

/// The events to wait for before the next poll.
pub(crate) struct PollWait {
    sockets: Vec<Arc<EchoSocket>>,
    until: Duration,
}

impl PollWait {
    /// Waits for a packet, for `also` to become readable, or for the deadline, between `wait_min` and
    /// `wait_max`.
    pub(crate) fn wait(&self, also: Option<&rustix::fd::OwnedFd>, wait_min: Duration, wait_max: Duration) {
        let Ok(timeout) = Timespec::try_from(self.until.max(wait_min).min(wait_max)) else { return };
        let sockets = self.sockets.iter().map(|socket| PollFd::new(&**socket, PollFlags::IN));
        let mut all: Vec<PollFd<'_>> = sockets.chain(also.map(|fd| PollFd::new(fd, PollFlags::IN))).collect();
        // Interrupted or not: the next poll checks the sockets itself.
        let _woken = poll(&mut all, Some(&timeout));
    }
}

/// The echo state machine and its sockets.
pub(crate) struct EchoDriver {
    pub(crate) echo: Echo,
    pub(crate) paths: Vec<HostPath>,
    begun: Instant,
}

impl EchoDriver {
    pub(crate) fn new(echo: Echo, paths: Vec<HostPath>) -> EchoDriver {
        EchoDriver { echo, paths, begun: Instant::now() }
    }

    pub(crate) fn now(&self) -> Time {
        Time(u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Receives and sends at most one batch per host. Returns the number of received packets.
    ///
    /// # Errors
    /// A socket is broken.
    pub(crate) fn poll_once(&mut self, budget: PollBudget) -> Result<usize, RawError> {
        let mut count = 0;
        for number in 0..self.paths.len() {
            count += self.receive(number, budget)?;
        }
        let now = self.now();
        self.echo.tick(now);
        for number in 0..self.paths.len() {
            self.launch(number)?;
        }
        Ok(count)
    }

    /// Receives at most `max` packets of each near host and shows their blocks. The next poll sends them
    /// again, which must happen within a millisecond. Until then they count as waiting in the receive buffer.
    ///
    /// # Errors
    /// A socket is broken.
    pub(crate) fn peek(
        &mut self,
        max: usize,
        mut show: impl FnMut(EchoBlockId, Bytes),
    ) -> Result<(), RawError> {
        let now = self.now();
        let echo = &mut self.echo;
        let mut copy = Vec::new();
        for (number, path) in self.paths.iter_mut().enumerate() {
            let host = HostId(number as u8);
            if path.is_gone || !path.is_near || path.peeked_at.is_some() || !path.batch.is_sent() {
                continue;
            }
            let max = echo.allowance(now, host).min(max);
            if max == 0 || path.socket.receive(&mut path.batch, max)?.replies == 0 {
                continue;
            }
            path.peeked_at = Some(now);
            path.batch.for_each_arrived(|packet| {
                copy.clear();
                copy.extend_from_slice(packet);
                if let Some((id, block)) = echo.peek(host, &mut copy) {
                    show(id, block);
                }
            });
        }
        Ok(())
    }

    fn receive(&mut self, number: usize, budget: PollBudget) -> Result<usize, RawError> {
        let now = self.now();
        let (host, echo) = (HostId(number as u8), &mut self.echo);
        let Some(path) = self.paths.get_mut(number).filter(|path| !path.is_gone) else { return Ok(0) };
        if let Some(received) = path.peeked_at.take() {
            path.exchange(echo, now, host, now - received)?;
        }
        path.is_gone = echo.status(host).is_some_and(|host| host.is_draining && host.packets == 0);
        if !path.flush()? || (budget.is_idle() && path.is_near && path.pacing.wait(now).is_some()) {
            return Ok(0);
        }
        let wanted = match budget {
            PollBudget::Limited(max) if path.is_near => max.min(BATCH_PACKETS_MAX),
            PollBudget::Limited(_) | PollBudget::Full | PollBudget::Idle | PollBudget::Quiet => {
                BATCH_PACKETS_MAX
            }
        };
        let max = echo.allowance(now, host).min(wanted);
        path.is_rate_limited = max == 0;
        if max == 0 {
            path.pacing.hold();
            return Ok(0);
        }
        let Arrivals { replies, is_drained, .. } = path.socket.receive(&mut path.batch, max)?;
        let now = Time(u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX));
        let resent = path.exchange(echo, now, host, Duration::ZERO)?;
        if is_drained {
            echo.drained(now, host);
        }
        let packets = echo.status(host).map_or(0, |host| host.packets);
        let rate = budget.rate(packets).filter(|_| path.is_near);
        path.pacing.record(now, rate, ReceivedBatch { replies: replies as u32, resent, is_drained, packets });
        Ok(replies)
    }

    /// Sends the due packets that are not replies: new ones, rebuilt ones, probes.
    fn launch(&mut self, number: usize) -> Result<(), RawError> {
        let now = self.now();
        let (host, echo) = (HostId(number as u8), &mut self.echo);
        let Some(path) = self.paths.get_mut(number).filter(|path| !path.is_gone) else { return Ok(()) };
        while path.flush()? {
            path.batch.clear();
            while path.batch.push(|room| {
                echo.poll_packet(now, host, room).map(|written| (written.bytes, EchoSequence(written.number)))
            }) {}
            if !path.batch.is_full() {
                path.flush()?;
                break;
            }
        }
        Ok(())
    }

    /// Returns the events to wait for before the next poll with this budget.
    pub(crate) fn next_wait(&self, budget: PollBudget) -> PollWait {
        let now = self.now();
        let mut until = self.echo.deadline() - now;
        let mut sockets = Vec::with_capacity(self.paths.len());
        for path in self.paths.iter().filter(|path| !path.is_gone) {
            if budget == PollBudget::Idle && path.is_near {
                // Packets that a reader peeked at are sent again no later than this.
                until = until.min(KEEPER_PAUSE_MIN);
            }
            let wait = path.pacing.wait(now).filter(|_| budget.is_idle() && path.is_near);
            if let Some(wait) = wait {
                until = until.min(wait);
            } else if path.batch.is_sent() && !path.is_rate_limited {
                sockets.push(Arc::clone(&path.socket));
            }
        }
        PollWait { sockets, until }
    }
}
