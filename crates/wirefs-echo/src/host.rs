//! State of one host.

use std::time::Duration;

use wirefs_op::Time;

use crate::limits::{
    BUSY_RATE, INITIAL_PACKETS, PROBE_WAIT_MAX, PROBE_WAIT_MIN, REORDERING_WINDOW_MIN, REPLY_TIMEOUT_MIN,
    SEND_QUEUE_BYTES_MAX,
};
use crate::monitor_interval::MonitorInterval;
use crate::packet::PacketSequence;
use crate::rate::{PathChange, RateController, SendRate};
use crate::rtt::RttEstimator;
use crate::send_queue::SendQueue;
use crate::timeline::Timeline;
use crate::token_bucket::TokenBucket;

/// Reply timeouts without a reply after which a host counts as silent: its packets are lost, and it gets no
/// new ones.
const SILENCE_TIMEOUTS: u32 = 3;
/// The shortest time after which a host counts as silent.
const SILENCE_MIN: Duration = Duration::from_millis(200);
/// The used part of a host's limit above which the store probes for a higher rate.
const GROWTH_THRESHOLD: f64 = 0.6;

/// Upper limit of one allowance, in packets; larger than one batch of a driver.
const ALLOWANCE_MAX: usize = 1_024;

/// The number of a host in its store, below [`HOSTS_MAX`](crate::limits::HOSTS_MAX).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub u8);

/// Whether a host answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostState {
    /// No reply yet.
    Unknown,
    /// The host answers.
    Answering,
    /// The host answered before and does not now.
    Silent,
}

/// Configuration of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostConfig {
    /// Capacity of the receive buffer in packets, if all of them arrive at once. The kernel drops the rest.
    pub buffer_packets: u64,
    /// Packets admitted beyond the capacity of the path, which wait in the receive buffer. They are not
    /// stored in the network, but a short path stores nothing else.
    pub parked_packets: u64,
    /// Capacity in packets for which the store probes before the first block, with an adaptive rate.
    pub goal_packets: u64,
    /// The rate of this host, if it differs from the store's.
    pub rate: Option<SendRate>,
}

/// Status of a host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HostStatus {
    /// Whether the host answers.
    pub state: HostState,
    /// The current send rate in packets per second.
    pub rate: f64,
    /// The cycle time: from one transmission of a packet to its next, the wait in the receive buffer
    /// included. `None` before the first reply.
    pub cycle: Option<Duration>,
    /// The minimum RTT, without the wait in the receive buffer. `None` before the first reply.
    pub rtt_min: Option<Duration>,
    /// Packets of blocks assigned to the host.
    pub packets: u64,
    /// Maximum number of packets of blocks.
    pub packets_max: u64,
    /// Packets of blocks that were lost.
    pub lost: u64,
    /// Whether packets move to other hosts as they arrive.
    pub is_draining: bool,
}

/// The measurements that one reply yields.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reply {
    pub(crate) sequence: PacketSequence,
    pub(crate) sent: Time,
    pub(crate) waited: Duration,
}

/// State of one host.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) id: HostId,
    config: HostConfig,
    pub(crate) timeline: Timeline,
    pub(crate) send_queue: SendQueue,
    /// Packets of blocks assigned to this host, in flight or queued.
    pub(crate) assigned: u64,
    state: HostState,
    /// Packets move to other hosts as they arrive.
    is_draining: bool,
    rate_controller: RateController,
    bucket: TokenBucket,
    /// From one transmission of a packet to its next.
    cycle: RttEstimator,
    /// The RTT without the wait in the receive buffer.
    rtt: RttEstimator,
    interval: MonitorInterval,
    /// The latest send time of a packet that was answered.
    newest_answered: Option<Time>,
    /// When the receive buffer was last seen empty.
    drained: Time,
    /// When the first packet after the last reply was sent.
    unanswered_since: Option<Time>,
    /// Padding probes that may be sent now.
    probes_due: usize,
    probe_at: Time,
    probe_wait: Duration,
    /// Factor of the reordering window and the reply timeout; doubled after each late reply.
    tolerance: u32,
    lost: u64,
}

impl Host {
    /// Creates the state of a host that has not answered yet.
    pub(crate) fn new(id: HostId, config: HostConfig, rate: SendRate) -> Host {
        Host {
            id,
            config,
            timeline: Timeline::new(),
            send_queue: SendQueue::default(),
            assigned: 0,
            state: HostState::Unknown,
            is_draining: false,
            rate_controller: RateController::new(config.rate.unwrap_or(rate)),
            bucket: TokenBucket::new(),
            cycle: RttEstimator::default(),
            rtt: RttEstimator::default(),
            interval: MonitorInterval::open(Time::default()),
            newest_answered: None,
            drained: Time::default(),
            unanswered_since: None,
            probes_due: 0,
            probe_at: Time::default(),
            probe_wait: PROBE_WAIT_MIN,
            tolerance: 1,
            lost: 0,
        }
    }

    /// Returns whether blocks may be sent to the host.
    pub(crate) fn is_answering(&self) -> bool {
        matches!(self.state, HostState::Answering)
    }

    /// Returns whether the host answers and no reply is overdue.
    pub(crate) fn is_responsive(&self) -> bool {
        self.is_answering()
            && self.unanswered_since.is_none_or(|since| self.drained - since <= self.reply_timeout())
    }

    /// Returns the smoothed cycle time; `None` before the first reply.
    pub(crate) fn cycle(&self) -> Option<Duration> {
        self.cycle.smoothed()
    }

    /// Returns the cycle time that holds while the driver takes packets at full speed; `None` before the
    /// first reply.
    pub(crate) fn busy_cycle(&self) -> Option<Duration> {
        let rate = self.rate_controller.rate().clamp(1.0, f64::from(BUSY_RATE));
        let waits = Duration::from_secs_f64(self.assigned as f64 / rate);
        let driven = self.rtt.smoothed().unwrap_or_default().saturating_add(waits);
        self.cycle().map(|cycle| cycle.min(driven))
    }

    /// Returns the minimum RTT of the last minutes, without the wait in the receive buffer.
    pub(crate) fn rtt_min(&self) -> Option<Duration> {
        self.rtt.min()
    }

    /// Returns the status.
    pub(crate) fn status(&self) -> HostStatus {
        HostStatus {
            state: self.state,
            rate: self.rate_controller.rate(),
            cycle: self.cycle.smoothed(),
            rtt_min: self.rtt.min(),
            packets: self.assigned,
            packets_max: self.limit(),
            lost: self.lost,
            is_draining: self.is_draining,
        }
    }

    /// Stops new packets to the host and moves its packets to other hosts.
    pub(crate) fn drain(&mut self) {
        self.is_draining = true;
    }

    /// Returns whether packets move to other hosts.
    pub(crate) fn is_draining(&self) -> bool {
        self.is_draining
    }

    /// Returns the maximum number of packets of blocks: the bandwidth-delay product, plus the parked packets.
    pub(crate) fn limit(&self) -> u64 {
        let Some(rtt_min) = self.rtt_min().filter(|_| self.is_answering() && !self.is_draining) else {
            return 0;
        };
        let admitted = self.rate_controller.reliable() * rtt_min.as_secs_f64();
        let floor = if self.rate_controller.is_startup() { INITIAL_PACKETS } else { 0 };
        (admitted as u64)
            .max(floor)
            .saturating_add(self.config.parked_packets)
            .min(self.config.buffer_packets)
    }

    /// Returns how many of those packets may wait in the receive buffer.
    pub(crate) fn parked_max(&self) -> u64 {
        if self.is_answering() && !self.is_draining {
            self.config.parked_packets.min(self.config.buffer_packets)
        } else {
            0
        }
    }

    /// Returns how many packets of blocks can be added.
    pub(crate) fn room(&self) -> u64 {
        self.limit().saturating_sub(self.assigned)
    }

    /// Returns whether the limit may grow.
    pub(crate) fn may_grow(&self, now: Time) -> bool {
        if self.is_draining {
            return false;
        }
        match self.state {
            HostState::Unknown => true,
            HostState::Answering => {
                self.rate_controller.may_grow(now) && self.limit() < self.config.buffer_packets
            }
            HostState::Silent => false,
        }
    }

    /// Returns how many packets may be received and sent again now, beside the queued ones.
    pub(crate) fn allowance(&mut self, now: Time) -> usize {
        self.bucket.refill(now, self.rate_controller.rate());
        self.unreserved(now)
    }

    /// Returns how many packets may be sent beside the queued ones. Packets queued for a silent host do not
    /// count: only a received reply can show that the host answers again.
    fn unreserved(&self, now: Time) -> usize {
        let available = self.bucket.available().min(ALLOWANCE_MAX);
        let due = if self.is_answering() { self.send_queue.due_count(now, available) } else { 0 };
        available - due
    }

    /// Returns whether a packet may be sent now.
    pub(crate) fn may_send(&mut self, now: Time) -> bool {
        self.bucket.refill(now, self.rate_controller.rate());
        self.bucket.available() > 0
    }

    /// Returns whether a packet may be held in the send queue.
    pub(crate) fn has_room_to_hold(&self) -> bool {
        self.send_queue.bytes() < SEND_QUEUE_BYTES_MAX / 4
    }

    /// Returns when a packet is due or may be received again; `None` if that depends on other events.
    pub(crate) fn ready_at(&self) -> Option<Time> {
        let next = self.bucket.ready_at(1.0, self.rate_controller.rate());
        let is_waiting_for_tokens = self.bucket.available() == 0;
        let due = self.send_queue.due().filter(|_| self.is_answering()).map(|due| due.max(next));
        due.into_iter().chain(is_waiting_for_tokens.then_some(next)).min()
    }

    /// Records a transmission and returns the number of the packet.
    pub(crate) fn send(&mut self, now: Time, is_probe: bool) -> PacketSequence {
        self.bucket.spend();
        self.unanswered_since.get_or_insert(now);
        self.timeline.send(now, is_probe)
    }

    /// Records a reply. Returns whether the host did not answer before.
    pub(crate) fn answered(&mut self, now: Time, reply: Reply) -> bool {
        let cycle = now - reply.sent;
        // A wait as long as the whole cycle is an error of the clocks: no path takes no time.
        let waited = if reply.waited < cycle { reply.waited } else { Duration::ZERO };
        let rtt = cycle - waited;
        self.cycle.sample(now, cycle);
        self.rtt.sample(now, rtt);
        let arrived = earlier(now, waited).unwrap_or_default();
        self.interval.add_reply(arrived, rtt);
        if let Some(rtt_min) = self.rtt.min() {
            // Whether the rate was the limit when the queue began in which this packet waited.
            let is_rate_limited = self.bucket.limited_for() > rtt;
            self.rate_controller.on_reply(arrived, rtt, self.interval.loss(), rtt_min, is_rate_limited);
        }
        self.newest_answered = self.newest_answered.max(Some(reply.sent));
        self.unanswered_since = None;
        let is_new = !self.is_answering();
        if is_new {
            self.state = HostState::Answering;
            self.probe_wait = PROBE_WAIT_MIN;
            self.rate_controller.set_initial_rate(INITIAL_PACKETS, rtt);
        }
        is_new
    }

    /// Records that a packet declared lost arrived later, and widens the timeouts.
    pub(crate) fn tolerate_more(&mut self) {
        self.tolerance = (self.tolerance * 2).min(8);
    }

    /// Records that the receive buffer is empty.
    pub(crate) fn drained(&mut self, now: Time) {
        self.drained = now;
    }

    /// Returns by how much a packet may have been sent later than one that arrives after it (the reordering
    /// window of RACK).
    fn reordering_window(&self) -> Duration {
        let rtt = self.rtt.smoothed().unwrap_or_default();
        let cycle = self.cycle.smoothed().unwrap_or_default();
        let allowed = (self.rtt.variation() * 4).max(rtt / 8) * self.tolerance;
        allowed.min(cycle * 3 / 5).max(REORDERING_WINDOW_MIN)
    }

    /// Returns the longest RTT before a reply is overdue.
    fn reply_timeout(&self) -> Duration {
        let rtt = self.rtt.smoothed().unwrap_or(PROBE_WAIT_MIN);
        let extra = (rtt / 4 * self.tolerance).min(rtt * 3 / 4);
        (rtt + (self.rtt.variation() * 4).max(extra)).max(REPLY_TIMEOUT_MIN)
    }

    /// Closes the groups of packets that are no longer expected. Returns whether pieces are missing.
    pub(crate) fn close(&mut self, now: Time) -> bool {
        let overtaken = self.newest_answered.and_then(|sent| earlier(sent, self.reordering_window()));
        let until = overtaken.max(earlier(self.drained, self.reply_timeout()));
        let mut missing = 0;
        while let Some(mark) = until.and_then(|until| self.timeline.close(until)) {
            missing += mark.pieces.missing();
            self.interval.add(&mark);
        }
        self.lost += missing;
        let cycle = self.cycle.smoothed().unwrap_or_default();
        self.timeline.set_cycle(cycle);
        if self.interval.is_whole(cycle) {
            self.evaluate(now);
        }
        missing > 0
    }

    fn evaluate(&mut self, now: Time) {
        let interval = std::mem::replace(&mut self.interval, MonitorInterval::open(now));
        let rtt_min = self.rtt.min().unwrap_or_default();
        match self.rate_controller.evaluate(now, &interval, rtt_min, self.assigned) {
            PathChange::Unchanged => {}
            PathChange::Longer => self.rtt.reset_min(),
        }
    }

    /// Detects whether the host became silent. Returns whether that happened now.
    pub(crate) fn detect_silence(&mut self) -> bool {
        let silence = (self.reply_timeout() * SILENCE_TIMEOUTS).max(SILENCE_MIN);
        let is_silent = self.unanswered_since.is_some_and(|since| self.drained - since > silence);
        if !is_silent || !self.is_answering() {
            return false;
        }
        self.state = HostState::Silent;
        self.probe_at = self.drained;
        true
    }

    /// Sets the number of padding probes to send: to find a higher rate while capacity is needed, or to test
    /// whether the host answers.
    pub(crate) fn plan_probes(&mut self, now: Time) {
        self.bucket.refill(now, self.rate_controller.rate());
        if self.is_draining {
            // A drained host gets no probes.
            self.probes_due = 0;
            return;
        }
        match self.state {
            HostState::Answering => {
                let limit = self.limit();
                let is_wanted = limit < self.config.goal_packets.min(self.config.buffer_packets)
                    || self.assigned as f64 > limit as f64 * GROWTH_THRESHOLD;
                let is_useful = is_wanted && self.may_grow(now);
                // No other packets need the rest of the allowance.
                let of_use = if is_useful { self.unreserved(now) } else { 0 };
                // A host without blocks is probed once in a while to keep its RTT known.
                let is_idle = self.timeline.in_flight() == 0 && now >= self.probe_at;
                if is_idle {
                    self.probe_at = now + PROBE_WAIT_MIN;
                }
                self.probes_due = of_use.max(usize::from(is_idle));
            }
            HostState::Unknown | HostState::Silent => {
                self.probes_due = usize::from(now >= self.probe_at);
                if self.probes_due > 0 {
                    self.probe_at = now + self.probe_wait;
                    self.probe_wait = (self.probe_wait * 2).min(PROBE_WAIT_MAX);
                }
            }
        }
    }

    /// Takes one of the probes that are due.
    pub(crate) fn take_probe(&mut self) -> bool {
        let is_due = self.probes_due > 0;
        self.probes_due = self.probes_due.saturating_sub(1);
        is_due
    }
}

/// Returns the time `span` before `time`; `None` before time zero.
fn earlier(time: Time, span: Duration) -> Option<Time> {
    time.0.checked_sub(u64::try_from(span.as_nanos()).ok()?).map(Time)
}

#[cfg(test)]
mod tests;
