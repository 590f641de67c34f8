//! The echo machine and its sockets: what one turn does, and what to wait for until the next.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wirefs_echo::{Echo, HostId, Time, Verdict};
use wirefs_raw::limits::BATCH_PACKETS_MAX;
use wirefs_raw::{Arrivals, Batch, EchoSocket, RawError, Sequence};

use crate::limits::IDLE_RATE;
use crate::survey::Survey;

/// Why the circuit is turned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Zeal {
    /// Somebody waits: all that the rates allow.
    Full,
    /// Somebody waits for something that may be among the next packets: of a near host at most so many, so that what comes behind
    /// them does not hold it up.
    Next(usize),
    /// Nobody waits: packets of near hosts keep as well in the receive buffer for a moment.
    Idle,
}

/// The way to one host.
#[derive(Debug)]
pub(crate) struct Way {
    pub(crate) socket: Arc<EchoSocket>,
    pub(crate) survey: Survey,
    pub(crate) is_near: bool,
    /// It was drained and holds nothing: it is left alone.
    pub(crate) is_gone: bool,
    pub(crate) traffic: Traffic,
    batch: Batch,
    /// Until then nothing is taken from a near host while nobody waits.
    rests_until: Time,
    /// Whether the machine lets nothing be received until its next deadline.
    is_held: bool,
}

/// What passed between a host and us.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    pub(crate) received_packets: u64,
    pub(crate) received_bytes: u64,
    pub(crate) sent_packets: u64,
    /// Packets given up because the way became too narrow for them.
    pub(crate) too_large: u64,
}

impl Way {
    pub(crate) fn new(socket: EchoSocket, survey: Survey, is_near: bool, packet_bytes: usize) -> Way {
        Way {
            socket: Arc::new(socket),
            survey,
            is_near,
            is_gone: false,
            traffic: Traffic::default(),
            batch: Batch::new(packet_bytes),
            rests_until: Time::default(),
            is_held: false,
        }
    }

    /// Sends what is left in the batch. Returns whether nothing is.
    fn flush(&mut self) -> Result<bool, RawError> {
        if !self.batch.is_sent() {
            let departures = self.socket.send(&mut self.batch)?;
            self.traffic.sent_packets += departures.packets as u64;
            self.traffic.too_large += departures.too_large as u64;
        }
        Ok(self.batch.is_sent())
    }
}

/// What to wait for before the next turn.
pub(crate) struct Rest {
    sockets: Vec<Arc<EchoSocket>>,
    until: Duration,
}

impl Rest {
    /// Waits until a packet comes, or `also` is readable, or it is time; between `least` and `most`.
    pub(crate) fn wait(&self, also: Option<&rustix::fd::OwnedFd>, least: Duration, most: Duration) {
        let Ok(timeout) = Timespec::try_from(self.until.max(least).min(most)) else { return };
        let sockets = self.sockets.iter().map(|socket| PollFd::new(&**socket, PollFlags::IN));
        let mut all: Vec<PollFd<'_>> = sockets.chain(also.map(|fd| PollFd::new(fd, PollFlags::IN))).collect();
        // Interrupted or not: the next turn looks for itself.
        let _woken = poll(&mut all, Some(&timeout));
    }
}

/// The echo machine with its sockets.
pub(crate) struct Circuit {
    pub(crate) echo: Echo,
    pub(crate) ways: Vec<Way>,
    begun: Instant,
}

impl Circuit {
    pub(crate) fn new(echo: Echo, ways: Vec<Way>) -> Circuit {
        Circuit { echo, ways, begun: Instant::now() }
    }

    pub(crate) fn now(&self) -> Time {
        Time(u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Receives and sends once: of each host at most a batch each way. Returns how many packets came.
    ///
    /// # Errors
    /// A socket is broken.
    pub(crate) fn turn(&mut self, zeal: Zeal) -> Result<usize, RawError> {
        let mut count = 0;
        for number in 0..self.ways.len() {
            count += self.receive(number, zeal)?;
        }
        let now = self.now();
        self.echo.tick(now);
        for number in 0..self.ways.len() {
            self.launch(number)?;
        }
        Ok(count)
    }

    fn receive(&mut self, number: usize, zeal: Zeal) -> Result<usize, RawError> {
        let now = self.now();
        let (host, echo) = (HostId(number as u8), &mut self.echo);
        let Some(way) = self.ways.get_mut(number).filter(|way| !way.is_gone) else { return Ok(0) };
        way.is_gone = echo.status(host).is_some_and(|host| host.is_draining && host.packets == 0);
        if !way.flush()? || (zeal == Zeal::Idle && way.is_near && now < way.rests_until) {
            return Ok(0);
        }
        let wanted = match zeal {
            Zeal::Next(most) if way.is_near => most.min(BATCH_PACKETS_MAX),
            Zeal::Next(_) | Zeal::Full | Zeal::Idle => BATCH_PACKETS_MAX,
        };
        let most = echo.allowance(now, host).min(wanted);
        way.is_held = most == 0;
        if most == 0 {
            return Ok(0);
        }
        let Arrivals { replies, is_drained, .. } = way.socket.receive(&mut way.batch, most)?;
        let now = Time(u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX));
        let traffic = &mut way.traffic;
        way.batch.exchange(|packet, waited| {
            traffic.received_packets += 1;
            traffic.received_bytes += packet.len() as u64;
            match echo.receive(now, host, waited, packet) {
                Verdict::Resend(number) => Some(Sequence(number)),
                Verdict::Absorb => None,
            }
        });
        way.flush()?;
        if is_drained {
            echo.drained(now, host);
        }
        if zeal == Zeal::Idle && way.is_near {
            way.rests_until = now + Duration::from_secs(1) * replies as u32 / IDLE_RATE;
        }
        Ok(replies)
    }

    /// Sends what is due and does not go out in the buffer that it came in.
    fn launch(&mut self, number: usize) -> Result<(), RawError> {
        let now = self.now();
        let (host, echo) = (HostId(number as u8), &mut self.echo);
        let Some(way) = self.ways.get_mut(number).filter(|way| !way.is_gone) else { return Ok(()) };
        while way.flush()? {
            way.batch.clear();
            while way.batch.push(|room| {
                echo.poll_packet(now, host, room).map(|written| (written.bytes, Sequence(written.number)))
            }) {}
            if !way.batch.is_full() {
                way.flush()?;
                break;
            }
        }
        Ok(())
    }

    /// What to wait for before the next turn with this zeal.
    pub(crate) fn rest(&self, zeal: Zeal) -> Rest {
        let now = self.now();
        let mut until = self.echo.deadline() - now;
        let mut sockets = Vec::with_capacity(self.ways.len());
        for way in self.ways.iter().filter(|way| !way.is_gone) {
            if zeal == Zeal::Idle && way.is_near && way.rests_until > now {
                until = until.min(way.rests_until - now);
            } else if way.batch.is_sent() && !way.is_held {
                sockets.push(Arc::clone(&way.socket));
            }
        }
        Rest { sockets, until }
    }
}
