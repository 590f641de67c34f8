//! One path of a group: from a card of ours to one of the peer's.
//!
//! ```text
//! dead ─ acknowledged ─> live ─ no acknowledgement in time ─> doubtful ─ none to several questions ─> dead
//!                          └───────────── acknowledged ──────────┘
//! ```
//! Only a live path gets data. As soon as one is doubtful and others live, these send what was under way on it.

use std::time::Duration;

use wirefs_op::Time;

use crate::address::Way;
use crate::flight::{Flight, NeverSent, Report};
use crate::limits::{ACK_DELAY_MAX, ACK_EVERY, DOUBTS_MAX, KEEPALIVE, PROBE_WAIT_MAX, PROBE_WAIT_MIN};
use crate::rate::Rate;
use crate::replay::Arrived;
use crate::rtt::Rtt;
use crate::seal::PathKeys;
use crate::sizing::Sizing;
use crate::wire::part::Ack;

/// Packets that a doubtful path may send again to find out, where no other path lives.
const SPARE_PACKETS: usize = 2;

/// Whether a path carries data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Live,
    Doubtful,
    /// Not, or not yet; it is asked again then.
    Dead {
        next: Time,
        wait: Duration,
    },
}

/// What is to be acknowledged.
#[derive(Debug, Default)]
pub(crate) struct Owed {
    /// Packets that want to be acknowledged and were not.
    count: u32,
    /// When it has to be done.
    due: Option<Time>,
    /// When the newest packet came.
    newest_at: Time,
}

#[derive(Debug)]
pub(crate) struct Path {
    pub(crate) way: Way,
    pub(crate) keys_out: PathKeys,
    pub(crate) keys_in: PathKeys,
    pub(crate) standing: Standing,
    pub(crate) flight: Flight,
    pub(crate) rtt: Rtt,
    pub(crate) rate: Rate,
    pub(crate) sizing: Sizing,
    pub(crate) arrived: Arrived,
    owed: Owed,
    /// Questions in a row that were not answered.
    questions: u32,
    /// Since when an answer is waited for: the last one, or the first packet that wants one.
    asked_at: Time,
    /// The peer is to be asked with the next packet.
    pub(crate) wants_ping: bool,
    /// Packets that may be sent though the path is doubtful.
    pub(crate) spare: usize,
    /// The driver was told that it lives.
    pub(crate) is_told: bool,
    /// Bytes of its packets that arrived, and of those that were lost.
    pub(crate) fates: Fates,
}

/// What became of the packets of a path, in bytes since the group stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fates {
    pub(crate) arrived_bytes: u64,
    pub(crate) lost_bytes: u64,
}

impl Path {
    pub(crate) fn new(now: Time, way: Way, keys_out: PathKeys, keys_in: PathKeys, card_bytes: usize) -> Path {
        Path {
            way,
            keys_out,
            keys_in,
            standing: Standing::Dead { next: now, wait: PROBE_WAIT_MIN },
            flight: Flight::new(),
            rtt: Rtt::new(),
            rate: Rate::new(),
            sizing: Sizing::new(card_bytes),
            arrived: Arrived::new(),
            owed: Owed::default(),
            questions: 0,
            asked_at: now,
            wants_ping: true,
            spare: 0,
            is_told: false,
            fates: Fates::default(),
        }
    }

    pub(crate) fn is_live(&self) -> bool {
        self.standing == Standing::Live
    }

    pub(crate) fn is_dead(&self) -> bool {
        matches!(self.standing, Standing::Dead { .. })
    }

    /// Notes a packet that arrived.
    pub(crate) fn note(&mut self, now: Time, counter: u64, is_asking: bool) {
        let is_newest = self.arrived.largest().is_none_or(|largest| counter > largest);
        let is_next = self.arrived.note(counter);
        if is_newest {
            self.owed.newest_at = now;
        }
        if !is_asking {
            return;
        }
        self.owed.count += 1;
        let at_once = !is_next || self.owed.count >= ACK_EVERY;
        let due = if at_once { now } else { now + ACK_DELAY_MAX };
        self.owed.due = Some(self.owed.due.map_or(due, |before| before.min(due)));
    }

    /// The peer waits for an answer: it is given at once.
    pub(crate) fn hurry(&mut self, now: Time) {
        self.owed.due = self.owed.due.map(|_| now);
    }

    pub(crate) fn owes(&self) -> bool {
        self.owed.due.is_some()
    }

    pub(crate) fn owes_now(&self, now: Time) -> bool {
        self.owed.due.is_some_and(|due| due <= now)
    }

    /// What to acknowledge, and how long the newest waited; nothing is owed afterwards.
    pub(crate) fn settle_owed(&mut self, now: Time) -> (Duration, impl Iterator<Item = (u64, u64)>) {
        self.owed.count = 0;
        self.owed.due = None;
        (now.since(self.owed.newest_at), self.arrived.runs())
    }

    /// Notes that something leaves that wants an answer, where nothing did.
    pub(crate) fn asks(&mut self, now: Time) {
        self.asked_at = now;
    }

    /// Takes what the peer acknowledges. Returns whether the path came back to life.
    ///
    /// # Errors
    /// The peer acknowledges what was never sent.
    pub(crate) fn acknowledge(
        &mut self,
        now: Time,
        ack: &Ack<'_>,
        report: &mut Report,
    ) -> Result<bool, NeverSent> {
        self.flight.acknowledge(now, ack, &self.rtt, report)?;
        if !report.is_news() {
            return Ok(false);
        }
        if let Some(measured) = report.rtt {
            self.rtt.note(now, measured, ack.waited);
        }
        self.questions = 0;
        self.spare = 0;
        self.asked_at = now;
        self.learn(now, report);
        let revives = !self.is_told;
        self.standing = Standing::Live;
        self.is_told = true;
        Ok(revives)
    }

    /// Learns from what became of packets.
    fn learn(&mut self, now: Time, report: &mut Report) {
        self.fates.arrived_bytes += report.arrived_bytes;
        self.fates.lost_bytes += report.lost_bytes;
        let flying = self.flight.flying_bytes();
        let shortest = self.rtt.shortest();
        self.rate.learn(now, report.arrived_bytes, report.lost_bytes, report.newest, flying, shortest);
        self.learn_size(now, report);
    }

    /// Learns from what became of packets for their size, once.
    pub(crate) fn learn_size(&mut self, now: Time, report: &mut Report) {
        if let Some((bytes, arrived)) = report.sized.take() {
            self.sizing.learn(now, bytes as usize, arrived);
        }
        let (arrived, lost) =
            (std::mem::take(&mut report.has_large_arrived), std::mem::take(&mut report.large_lost));
        self.sizing.watch(now, arrived, lost);
    }

    /// When the peer is asked, or asked again.
    fn question_at(&self) -> Time {
        match self.standing {
            Standing::Dead { next, .. } => next,
            Standing::Live | Standing::Doubtful if self.flight.is_empty() => self.asked_at + KEEPALIVE,
            Standing::Live | Standing::Doubtful => self.asked_at + self.rtt.patience_after(self.questions),
        }
    }

    /// The next time at which something happens of itself.
    pub(crate) fn deadline(&self) -> Time {
        let loss = self.flight.loss_at();
        let sizing = self.sizing.deadline().filter(|_| self.is_live() && !self.flight.is_full());
        [loss, self.owed.due, sizing].into_iter().flatten().fold(self.question_at(), Time::min)
    }

    /// Lets time pass. Returns whether the path died now.
    pub(crate) fn tick(&mut self, now: Time, others_live: bool, report: &mut Report) -> bool {
        if self.flight.loss_at().is_some_and(|at| at <= now) {
            self.flight.detect(now, &self.rtt, report);
            self.learn(now, report);
        }
        if self.question_at() > now {
            return false;
        }
        let died = self.ask(now, others_live, report);
        self.learn_size(now, report);
        died
    }

    /// Asks the peer whether the path lives. Returns whether it died now.
    fn ask(&mut self, now: Time, others_live: bool, report: &mut Report) -> bool {
        self.wants_ping = true;
        self.asked_at = now;
        match self.standing {
            Standing::Dead { wait, .. } => {
                self.flight.give_up(usize::MAX, report);
                self.standing = Standing::Dead { next: now + wait, wait: (wait * 2).min(PROBE_WAIT_MAX) };
                false
            }
            Standing::Live | Standing::Doubtful if self.flight.is_empty() => false,
            Standing::Live | Standing::Doubtful => self.doubt(now, others_live, report),
        }
    }

    /// An acknowledgement is late.
    fn doubt(&mut self, now: Time, others_live: bool, report: &mut Report) -> bool {
        self.questions += 1;
        self.standing = Standing::Doubtful;
        if self.questions >= 2 {
            self.sizing.fall_back(now);
        }
        if self.questions >= DOUBTS_MAX {
            self.flight.give_up(usize::MAX, report);
            self.rate = Rate::new();
            self.rtt = Rtt::new();
            self.spare = 0;
            self.standing = Standing::Dead { next: now + PROBE_WAIT_MIN, wait: PROBE_WAIT_MIN };
            return std::mem::replace(&mut self.is_told, false);
        }
        let most = if others_live { usize::MAX } else { SPARE_PACKETS };
        self.flight.give_up(most, report);
        self.spare = SPARE_PACKETS;
        false
    }
}
