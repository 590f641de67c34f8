//! The echo machine and its sockets: what one turn does, and what to wait for until the next.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wirefs_echo::{BlockId, Echo, HostId, Time, Verdict};
use wirefs_raw::limits::BATCH_PACKETS_MAX;
use wirefs_raw::{Arrivals, Batch, EchoSocket, RawError, Sequence};

use crate::limits::{IDLE_RATE, KEEPER_PAUSE_MIN, QUIET_LAP_SECS, QUIET_RATE};
use crate::survey::Survey;
use crate::tempo::{Taken, Tempo};

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
    /// Nobody has waited for a while: they keep there for longer.
    Quiet,
}

impl Zeal {
    /// How many packets a second to take from a near host that has so many; `None`: as many as there are.
    pub(crate) fn rate(self, packets: u64) -> Option<u32> {
        match self {
            Zeal::Full | Zeal::Next(_) => None,
            Zeal::Idle => Some(IDLE_RATE),
            Zeal::Quiet => {
                let needed = u32::try_from(packets / QUIET_LAP_SECS).unwrap_or(u32::MAX);
                Some(needed.clamp(QUIET_RATE, IDLE_RATE))
            }
        }
    }

    /// Whether nobody waits.
    fn is_idle(self) -> bool {
        matches!(self, Zeal::Idle | Zeal::Quiet)
    }
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
    /// When what is in the batch came, where it was only looked into.
    glanced: Option<Time>,
    /// Of a near host, while nobody waits.
    pub(crate) tempo: Tempo,
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
            glanced: None,
            tempo: Tempo::default(),
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

    /// Has the machine take what came into the batch, `late` ago, and sends it on. Returns how many packets went on.
    fn exchange(
        &mut self,
        echo: &mut Echo,
        now: Time,
        host: HostId,
        late: Duration,
    ) -> Result<u32, RawError> {
        let traffic = &mut self.traffic;
        let mut sent_on = 0;
        self.batch.exchange(|packet, waited| {
            traffic.received_packets += 1;
            traffic.received_bytes += packet.len() as u64;
            match echo.receive(now, host, waited + late, packet) {
                Verdict::Resend(number) => {
                    sent_on += 1;
                    Some(Sequence(number))
                }
                Verdict::Absorb => None,
            }
        });
        self.flush()?;
        Ok(sent_on)
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

    /// Receives of each near host at most so many packets and shows the blocks in them. Whoever turns the circuit next sends them on,
    /// and is to do so within a millisecond: until then they count as if they had waited in the receive buffer.
    ///
    /// # Errors
    /// A socket is broken.
    pub(crate) fn glance(
        &mut self,
        most: usize,
        mut show: impl FnMut(BlockId, Bytes),
    ) -> Result<(), RawError> {
        let now = self.now();
        let echo = &mut self.echo;
        let mut copy = Vec::new();
        for (number, way) in self.ways.iter_mut().enumerate() {
            let host = HostId(number as u8);
            if way.is_gone || !way.is_near || way.glanced.is_some() || !way.batch.is_sent() {
                continue;
            }
            let most = echo.allowance(now, host).min(most);
            if most == 0 || way.socket.receive(&mut way.batch, most)?.replies == 0 {
                continue;
            }
            way.glanced = Some(now);
            way.batch.look(|packet| {
                copy.clear();
                copy.extend_from_slice(packet);
                if let Some((id, block)) = echo.glance(host, &mut copy) {
                    show(id, block);
                }
            });
        }
        Ok(())
    }

    fn receive(&mut self, number: usize, zeal: Zeal) -> Result<usize, RawError> {
        let now = self.now();
        let (host, echo) = (HostId(number as u8), &mut self.echo);
        let Some(way) = self.ways.get_mut(number).filter(|way| !way.is_gone) else { return Ok(0) };
        if let Some(came) = way.glanced.take() {
            way.exchange(echo, now, host, now - came)?;
        }
        way.is_gone = echo.status(host).is_some_and(|host| host.is_draining && host.packets == 0);
        if !way.flush()? || (zeal.is_idle() && way.is_near && way.tempo.rests(now).is_some()) {
            return Ok(0);
        }
        let wanted = match zeal {
            Zeal::Next(most) if way.is_near => most.min(BATCH_PACKETS_MAX),
            Zeal::Next(_) | Zeal::Full | Zeal::Idle | Zeal::Quiet => BATCH_PACKETS_MAX,
        };
        let most = echo.allowance(now, host).min(wanted);
        way.is_held = most == 0;
        if most == 0 {
            way.tempo.hold();
            return Ok(0);
        }
        let Arrivals { replies, is_drained, .. } = way.socket.receive(&mut way.batch, most)?;
        let now = Time(u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX));
        let sent_on = way.exchange(echo, now, host, Duration::ZERO)?;
        if is_drained {
            echo.drained(now, host);
        }
        let packets = echo.status(host).map_or(0, |host| host.packets);
        let rate = zeal.rate(packets).filter(|_| way.is_near);
        way.tempo.took(now, rate, Taken { replies: replies as u32, sent_on, is_drained, packets });
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
            if zeal == Zeal::Idle && way.is_near {
                // What a reader looks into meanwhile is sent on no later than this.
                until = until.min(KEEPER_PAUSE_MIN);
            }
            let rests = way.tempo.rests(now).filter(|_| zeal.is_idle() && way.is_near);
            if let Some(rests) = rests {
                until = until.min(rests);
            } else if way.batch.is_sent() && !way.is_held {
                sockets.push(Arc::clone(&way.socket));
            }
        }
        Rest { sockets, until }
    }
}
