//! One host that answers, and all that is known of it.

use std::time::Duration;

use wirefs_op::Time;

use crate::epoch::Epoch;
use crate::lap::Lap;
use crate::limits::{
    DRIVEN_RATE, FLOOR_PACKETS, OUTBOX_BYTES_MAX, PATIENCE_MIN, PROBE_WAIT_MAX, PROBE_WAIT_MIN,
    REORDERING_MIN,
};
use crate::outbox::Outbox;
use crate::pace::Pace;
use crate::packet::Sequence;
use crate::rate::{Governor, Judgement, Rate};
use crate::timeline::Timeline;

/// Silence of a host that was asked, in times of its patience, after which its packets are taken for lost and it gets no
/// new ones.
const SILENCE: u32 = 3;
/// The shortest such silence.
const SILENCE_MIN: Duration = Duration::from_millis(200);
/// The part of what is admitted beyond which more is looked for.
const DEMAND: f64 = 0.6;

/// Packets that are allowed at once at most: more than a driver passes on in one turn.
const ALLOWANCE_MAX: usize = 1_024;

/// The number of a host in its store, below [`HOSTS_MAX`](crate::limits::HOSTS_MAX).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub u8);

/// Whether a host answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It was asked and did not answer yet.
    Unknown,
    /// It answers.
    Answering,
    /// It answered once and does not now.
    Silent,
}

/// What is said about a host from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostConfig {
    /// How many packets the receive buffer holds, should all of them come at once: the kernel drops what comes on top.
    pub buffer_packets: u64,
    /// How many packets more than the wire holds may be admitted, to wait in that buffer. Not storage in the network,
    /// but on a wire that is short there is no other.
    pub parked_packets: u64,
    /// How many packets of room are looked for before the first block comes, with an adaptive rate.
    pub goal_packets: u64,
    /// Its own rate, where it is another than the store's.
    pub rate: Option<Rate>,
}

/// What is known of a host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HostStatus {
    /// Whether it answers.
    pub standing: Standing,
    /// Packets a second that it is sent at most.
    pub rate: f64,
    /// From sending a packet to sending it again, lately; none before the first reply.
    pub lap: Option<Duration>,
    /// There and back at best, without the time in the receive buffer; none before the first reply.
    pub way: Option<Duration>,
    /// Packets of blocks that belong there.
    pub packets: u64,
    /// Packets of blocks that it is given at most.
    pub packets_max: u64,
    /// Packets of blocks that went missing on the way there or back.
    pub lost: u64,
    /// Whether its packets go to other hosts as they come.
    pub is_draining: bool,
}

/// What a reply told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reply {
    pub(crate) sequence: Sequence,
    pub(crate) sent: Time,
    pub(crate) waited: Duration,
}

/// The record of one host.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) id: HostId,
    config: HostConfig,
    pub(crate) line: Timeline,
    pub(crate) outbox: Outbox,
    /// Packets of blocks that belong here, wherever they are.
    pub(crate) assigned: u64,
    standing: Standing,
    /// Its packets go to other hosts as they come.
    is_draining: bool,
    governor: Governor,
    pace: Pace,
    /// From sending to the next sending.
    lap: Lap,
    /// From sending to coming back, without the time in the receive buffer.
    way: Lap,
    epoch: Epoch,
    /// The latest time of sending of those that came back.
    newest_answered: Option<Time>,
    /// When the receive buffer was last seen empty.
    drained: Time,
    /// When the first packet was sent after the last reply.
    asked: Option<Time>,
    /// Packets without content that may be sent now.
    ballast_due: usize,
    probe_at: Time,
    probe_wait: Duration,
    /// Allowance for packets that overtake one another, doubled each time it proved too small.
    widened: u32,
    lost: u64,
}

impl Host {
    /// Makes the record of a host of which nothing is known.
    pub(crate) fn new(id: HostId, config: HostConfig, rate: Rate) -> Host {
        Host {
            id,
            config,
            line: Timeline::new(),
            outbox: Outbox::default(),
            assigned: 0,
            standing: Standing::Unknown,
            is_draining: false,
            governor: Governor::new(config.rate.unwrap_or(rate)),
            pace: Pace::new(),
            lap: Lap::default(),
            way: Lap::default(),
            epoch: Epoch::open(Time::default()),
            newest_answered: None,
            drained: Time::default(),
            asked: None,
            ballast_due: 0,
            probe_at: Time::default(),
            probe_wait: PROBE_WAIT_MIN,
            widened: 1,
            lost: 0,
        }
    }

    /// Whether blocks may be sent to it.
    pub(crate) fn is_answering(&self) -> bool {
        matches!(self.standing, Standing::Answering)
    }

    /// Whether it answers, and what it was asked last is not overdue.
    pub(crate) fn is_prompt(&self) -> bool {
        self.is_answering() && self.asked.is_none_or(|asked| self.drained - asked <= self.patience())
    }

    /// From sending to the next sending; none before the first reply.
    pub(crate) fn lap(&self) -> Option<Duration> {
        self.lap.smoothed()
    }

    /// The lap as it is, or will be at once, with a driver that does not rest; none before the first reply.
    pub(crate) fn driven_lap(&self) -> Option<Duration> {
        let rate = self.governor.rate().clamp(1.0, f64::from(DRIVEN_RATE));
        let waits = Duration::from_secs_f64(self.assigned as f64 / rate);
        let driven = self.way.smoothed().unwrap_or_default().saturating_add(waits);
        self.lap().map(|lap| lap.min(driven))
    }

    /// The shortest time there and back of the last minutes, without the time in the receive buffer.
    pub(crate) fn shortest(&self) -> Option<Duration> {
        self.way.shortest()
    }

    /// What a person may want to know of it.
    pub(crate) fn status(&self) -> HostStatus {
        HostStatus {
            standing: self.standing,
            rate: self.governor.rate(),
            lap: self.lap.smoothed(),
            way: self.way.shortest(),
            packets: self.assigned,
            packets_max: self.limit(),
            lost: self.lost,
            is_draining: self.is_draining,
        }
    }

    /// Gives it no new packets, and its packets to others.
    pub(crate) fn drain(&mut self) {
        self.is_draining = true;
    }

    /// Whether its packets go to others.
    pub(crate) fn is_draining(&self) -> bool {
        self.is_draining
    }

    /// Packets of blocks that it is given at most: what is under way at its rate, and what may wait in the buffer.
    pub(crate) fn limit(&self) -> u64 {
        let Some(shortest) = self.shortest().filter(|_| self.is_answering() && !self.is_draining) else {
            return 0;
        };
        let admitted = self.governor.reliable() * shortest.as_secs_f64();
        let floor = if self.governor.is_finding() { FLOOR_PACKETS } else { 0 };
        (admitted as u64)
            .max(floor)
            .saturating_add(self.config.parked_packets)
            .min(self.config.buffer_packets)
    }

    /// Packets of blocks that may wait in the receive buffer, of those that it is given.
    pub(crate) fn parked_max(&self) -> u64 {
        if self.is_answering() && !self.is_draining {
            self.config.parked_packets.min(self.config.buffer_packets)
        } else {
            0
        }
    }

    /// Packets of blocks that it could be given more.
    pub(crate) fn room(&self) -> u64 {
        self.limit().saturating_sub(self.assigned)
    }

    /// Whether more room may be found.
    pub(crate) fn may_grow(&self, now: Time) -> bool {
        if self.is_draining {
            return false;
        }
        match self.standing {
            Standing::Unknown => true,
            Standing::Answering => self.governor.may_grow(now) && self.limit() < self.config.buffer_packets,
            Standing::Silent => false,
        }
    }

    /// Packets that may be received and sent on now, beside those that wait here already.
    pub(crate) fn allowance(&mut self, now: Time) -> usize {
        self.pace.fill(now, self.governor.rate());
        self.left(now)
    }

    /// Packets that may be sent beside those that wait here. What waits for a silent host stands back: only what is
    /// received can show that it answers again.
    fn left(&self, now: Time) -> usize {
        let available = self.pace.available().min(ALLOWANCE_MAX);
        let due = if self.is_answering() { self.outbox.due_count(now, available) } else { 0 };
        available - due
    }

    /// Whether one packet may be sent now.
    pub(crate) fn may_send(&mut self, now: Time) -> bool {
        self.pace.fill(now, self.governor.rate());
        self.pace.available() > 0
    }

    /// Whether a packet that could go on may be held back instead: while few are.
    pub(crate) fn has_room_to_hold(&self) -> bool {
        self.outbox.bytes() < OUTBOX_BYTES_MAX / 4
    }

    /// When something is to be sent, or something may be received again; none when that depends on others.
    pub(crate) fn ready(&self) -> Option<Time> {
        let next = self.pace.ready(1.0, self.governor.rate());
        let is_waiting_for_tokens = self.pace.available() == 0;
        let due = self.outbox.due().filter(|_| self.is_answering()).map(|due| due.max(next));
        due.into_iter().chain(is_waiting_for_tokens.then_some(next)).min()
    }

    /// Gives the number of a packet that is sent now.
    pub(crate) fn send(&mut self, now: Time, is_ballast: bool) -> Sequence {
        self.pace.pay();
        self.asked.get_or_insert(now);
        self.line.send(now, is_ballast)
    }

    /// Notes that a packet came back. Returns whether the host did not answer before.
    pub(crate) fn answered(&mut self, now: Time, reply: Reply) -> bool {
        let lap = now - reply.sent;
        // A wait as long as all of the lap is none: the clocks that told it do not agree, and no way takes no time.
        let waited = if reply.waited < lap { reply.waited } else { Duration::ZERO };
        let way = lap - waited;
        self.lap.note(now, lap);
        self.way.note(now, way);
        let arrived = before(now, waited).unwrap_or_default();
        self.epoch.add_reply(arrived, way);
        if let Some(shortest) = self.way.shortest() {
            // What was sent when the queue began that this one waited in.
            let is_pressed = self.pace.pressed_for() > way;
            self.governor.hear(arrived, way, self.epoch.loss(), shortest, is_pressed);
        }
        self.newest_answered = self.newest_answered.max(Some(reply.sent));
        self.asked = None;
        let is_new = !self.is_answering();
        if is_new {
            self.standing = Standing::Answering;
            self.probe_wait = PROBE_WAIT_MIN;
            self.governor.begin(FLOOR_PACKETS, way);
        }
        is_new
    }

    /// Notes that a packet came back that had been taken for lost: more patience is needed.
    pub(crate) fn came_late(&mut self) {
        self.widened = (self.widened * 2).min(8);
    }

    /// Notes that the receive buffer is empty.
    pub(crate) fn drained(&mut self, now: Time) {
        self.drained = now;
    }

    /// How much later a packet may have been sent than one that comes after it.
    fn reordering(&self) -> Duration {
        let way = self.way.smoothed().unwrap_or_default();
        let lap = self.lap.smoothed().unwrap_or_default();
        let allowed = (self.way.strays() * 4).max(way / 8) * self.widened;
        allowed.min(lap * 3 / 5).max(REORDERING_MIN)
    }

    /// How long a reply may take on the way.
    fn patience(&self) -> Duration {
        let way = self.way.smoothed().unwrap_or(PROBE_WAIT_MIN);
        let extra = (way / 4 * self.widened).min(way * 3 / 4);
        (way + (self.way.strays() * 4).max(extra)).max(PATIENCE_MIN)
    }

    /// Finds what is not expected any more. Returns whether pieces are missing.
    pub(crate) fn close(&mut self, now: Time) -> bool {
        let overtaken = self.newest_answered.and_then(|sent| before(sent, self.reordering()));
        let until = overtaken.max(before(self.drained, self.patience()));
        let mut missing = 0;
        while let Some(mark) = until.and_then(|until| self.line.close(until)) {
            missing += mark.pieces.missing();
            self.epoch.add(&mark);
        }
        self.lost += missing;
        let lap = self.lap.smoothed().unwrap_or_default();
        self.line.set_lap(lap);
        if self.epoch.is_whole(lap) {
            self.judge(now);
        }
        missing > 0
    }

    fn judge(&mut self, now: Time) {
        let epoch = std::mem::replace(&mut self.epoch, Epoch::open(now));
        let shortest = self.way.shortest().unwrap_or_default();
        match self.governor.judge(now, &epoch, shortest, self.assigned) {
            Judgement::Same => {}
            Judgement::LongerWay => self.way.forget_shortest(),
        }
    }

    /// Notes whether it fell silent. Returns whether it did so now.
    pub(crate) fn listen(&mut self) -> bool {
        let silence = (self.patience() * SILENCE).max(SILENCE_MIN);
        let is_silent = self.asked.is_some_and(|asked| self.drained - asked > silence);
        if !is_silent || !self.is_answering() {
            return false;
        }
        self.standing = Standing::Silent;
        self.probe_at = self.drained;
        true
    }

    /// Decides how many packets without content to send: to find room while it is wanted, or to ask whether the host is
    /// there at all.
    pub(crate) fn plan_ballast(&mut self, now: Time) {
        self.pace.fill(now, self.governor.rate());
        if self.is_draining {
            // Nothing more is asked of it.
            self.ballast_due = 0;
            return;
        }
        match self.standing {
            Standing::Answering => {
                let limit = self.limit();
                let is_wanted = limit < self.config.goal_packets.min(self.config.buffer_packets)
                    || self.assigned as f64 > limit as f64 * DEMAND;
                let is_useful = is_wanted && self.may_grow(now);
                // Nobody else wants what is left now.
                let of_use = if is_useful { self.left(now) } else { 0 };
                // A host that has no blocks is asked now and then, so that its distance is known.
                let is_idle = self.line.out() == 0 && now >= self.probe_at;
                if is_idle {
                    self.probe_at = now + PROBE_WAIT_MIN;
                }
                self.ballast_due = of_use.max(usize::from(is_idle));
            }
            Standing::Unknown | Standing::Silent => {
                self.ballast_due = usize::from(now >= self.probe_at);
                if self.ballast_due > 0 {
                    self.probe_at = now + self.probe_wait;
                    self.probe_wait = (self.probe_wait * 2).min(PROBE_WAIT_MAX);
                }
            }
        }
    }

    /// Takes one of the packets without content that are to be sent.
    pub(crate) fn take_ballast(&mut self) -> bool {
        let is_due = self.ballast_due > 0;
        self.ballast_due = self.ballast_due.saturating_sub(1);
        is_due
    }
}

/// So long before a time; none before time began.
fn before(time: Time, span: Duration) -> Option<Time> {
    time.0.checked_sub(u64::try_from(span.as_nanos()).ok()?).map(Time)
}

#[cfg(test)]
mod tests;
