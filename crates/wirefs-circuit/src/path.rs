//! One path of a group: a local card and a remote card.
//!
//! ```text
//! dead ─ acknowledgement ─> live ─ probe timeout ─> suspect ─ several probe timeouts ─> dead
//!                            └──── acknowledgement ────┘
//! ```
//! Only live paths carry data. When a path becomes suspect and others are live, its packets in flight are
//! retransmitted on those. Probe timeouts follow RFC 9002, section 6.2.

use std::time::Duration;

use wirefs_op::Time;

use crate::address::NetworkPath;
use crate::congestion::CongestionControl;
use crate::limits::{ACK_DELAY_MAX, ACK_EVERY, KEEPALIVE, PROBE_WAIT_MAX, PROBE_WAIT_MIN, PROBES_MAX};
use crate::mtu::MtuDiscovery;
use crate::replay_window::ReplayWindow;
use crate::rtt::Rtt;
use crate::seal::PathKeys;
use crate::sent_packets::{DeliveryReport, SentPackets, UnsentPacketAcked};
use crate::wire::part::Ack;

/// The packets that a suspect path may send as probes if no other path is live (RFC 9002, section 6.2.4).
const PROBE_PACKETS: usize = 2;

/// Whether a path carries data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathStatus {
    Live,
    Suspect,
    /// Not validated yet, or failed; it is probed at intervals.
    Dead {
        next: Time,
        wait: Duration,
    },
}

/// The state of acknowledging received packets.
#[derive(Debug, Default)]
pub(crate) struct PendingAck {
    /// Ack-eliciting packets that were not acknowledged.
    count: u32,
    /// When an acknowledgement is due.
    due: Option<Time>,
    /// When the newest packet was received.
    newest_at: Time,
}

/// The transport state of one path.
#[derive(Debug)]
pub(crate) struct Path {
    pub(crate) network_path: NetworkPath,
    pub(crate) send_keys: PathKeys,
    pub(crate) receive_keys: PathKeys,
    pub(crate) status: PathStatus,
    pub(crate) sent_packets: SentPackets,
    pub(crate) rtt: Rtt,
    pub(crate) congestion: CongestionControl,
    pub(crate) mtu: MtuDiscovery,
    pub(crate) replay_window: ReplayWindow,
    pending_ack: PendingAck,
    /// Consecutive probe timeouts.
    pto_count: u32,
    /// The start of the probe timeout: the last acknowledgement, or the first packet in flight.
    timer_started_at: Time,
    /// The next packet must contain a ping.
    pub(crate) wants_ping: bool,
    /// The packets that may be sent while the path is suspect.
    pub(crate) probe_packets: usize,
    /// The driver was notified that the path is live.
    pub(crate) is_up_reported: bool,
    /// Totals of acknowledged and lost bytes.
    pub(crate) totals: PathTotals,
}

/// Totals of a path since the group was established, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PathTotals {
    pub(crate) arrived_bytes: u64,
    pub(crate) lost_bytes: u64,
}

impl Path {
    pub(crate) fn new(
        now: Time,
        network_path: NetworkPath,
        send_keys: PathKeys,
        receive_keys: PathKeys,
        card_bytes: usize,
    ) -> Path {
        Path {
            network_path,
            send_keys,
            receive_keys,
            status: PathStatus::Dead { next: now, wait: PROBE_WAIT_MIN },
            sent_packets: SentPackets::new(),
            rtt: Rtt::new(),
            congestion: CongestionControl::new(),
            mtu: MtuDiscovery::new(card_bytes),
            replay_window: ReplayWindow::new(),
            pending_ack: PendingAck::default(),
            pto_count: 0,
            timer_started_at: now,
            wants_ping: true,
            probe_packets: 0,
            is_up_reported: false,
            totals: PathTotals::default(),
        }
    }

    pub(crate) fn is_live(&self) -> bool {
        self.status == PathStatus::Live
    }

    pub(crate) fn is_dead(&self) -> bool {
        matches!(self.status, PathStatus::Dead { .. })
    }

    /// Records a received packet.
    pub(crate) fn record_received(&mut self, now: Time, packet_number: u64, is_ack_eliciting: bool) {
        let is_newest = self.replay_window.largest().is_none_or(|largest| packet_number > largest);
        let is_next = self.replay_window.record(packet_number);
        if is_newest {
            self.pending_ack.newest_at = now;
        }
        if !is_ack_eliciting {
            return;
        }
        self.pending_ack.count += 1;
        let at_once = !is_next || self.pending_ack.count >= ACK_EVERY;
        let due = if at_once { now } else { now + ACK_DELAY_MAX };
        self.pending_ack.due = Some(self.pending_ack.due.map_or(due, |before| before.min(due)));
    }

    /// Makes a pending acknowledgement due at once.
    pub(crate) fn acknowledge_now(&mut self, now: Time) {
        self.pending_ack.due = self.pending_ack.due.map(|_| now);
    }

    pub(crate) fn has_pending_ack(&self) -> bool {
        self.pending_ack.due.is_some()
    }

    pub(crate) fn is_ack_due(&self, now: Time) -> bool {
        self.pending_ack.due.is_some_and(|due| due <= now)
    }

    /// Returns the ACK delay and the ACK ranges, and clears the pending acknowledgement.
    pub(crate) fn take_pending_ack(&mut self, now: Time) -> (Duration, impl Iterator<Item = (u64, u64)>) {
        self.pending_ack.count = 0;
        self.pending_ack.due = None;
        (now.since(self.pending_ack.newest_at), self.replay_window.ranges())
    }

    /// Restarts the probe timeout when the first packet in flight is sent.
    pub(crate) fn restart_timer(&mut self, now: Time) {
        self.timer_started_at = now;
    }

    /// Processes an acknowledgement. Returns whether the path became live.
    ///
    /// # Errors
    /// The peer acknowledged a packet that was never sent.
    pub(crate) fn acknowledge(
        &mut self,
        now: Time,
        ack: &Ack<'_>,
        report: &mut DeliveryReport,
    ) -> Result<bool, UnsentPacketAcked> {
        self.sent_packets.acknowledge(now, ack, &self.rtt, report)?;
        if !report.has_new_acks() {
            return Ok(false);
        }
        if let Some(measured) = report.rtt {
            self.rtt.add_sample(now, measured, ack.ack_delay);
        }
        self.pto_count = 0;
        self.probe_packets = 0;
        self.timer_started_at = now;
        self.update(now, report);
        let revives = !self.is_up_reported;
        self.status = PathStatus::Live;
        self.is_up_reported = true;
        Ok(revives)
    }

    /// Updates congestion control and MTU discovery.
    fn update(&mut self, now: Time, report: &mut DeliveryReport) {
        self.totals.arrived_bytes += report.arrived_bytes;
        self.totals.lost_bytes += report.lost_bytes;
        let in_flight = self.sent_packets.bytes_in_flight();
        let min_rtt = self.rtt.min_rtt();
        self.congestion.on_ack(
            now,
            report.arrived_bytes,
            report.lost_bytes,
            report.newest,
            in_flight,
            min_rtt,
        );
        self.update_mtu(now, report);
    }

    /// Updates MTU discovery once for a report.
    pub(crate) fn update_mtu(&mut self, now: Time, report: &mut DeliveryReport) {
        if let Some((bytes, arrived)) = report.mtu_probe.take() {
            self.mtu.on_probe_result(now, bytes as usize, arrived);
        }
        let (arrived, lost) =
            (std::mem::take(&mut report.has_large_arrived), std::mem::take(&mut report.large_lost));
        self.mtu.on_large_packets(now, arrived, lost);
    }

    /// Returns the time of the next probe.
    fn probe_at(&self) -> Time {
        match self.status {
            PathStatus::Dead { next, .. } => next,
            PathStatus::Live | PathStatus::Suspect if self.sent_packets.is_empty() => {
                self.timer_started_at + KEEPALIVE
            }
            PathStatus::Live | PathStatus::Suspect => {
                self.timer_started_at + self.rtt.probe_timeout_after(self.pto_count)
            }
        }
    }

    /// Returns the time of the next timer.
    pub(crate) fn deadline(&self) -> Time {
        let loss = self.sent_packets.loss_at();
        let mtu = self.mtu.deadline().filter(|_| self.is_live() && !self.sent_packets.is_full());
        [loss, self.pending_ack.due, mtu].into_iter().flatten().fold(self.probe_at(), Time::min)
    }

    /// Runs due timers. Returns whether the path died.
    pub(crate) fn tick(&mut self, now: Time, others_live: bool, report: &mut DeliveryReport) -> bool {
        if self.sent_packets.loss_at().is_some_and(|at| at <= now) {
            self.sent_packets.detect_losses(now, &self.rtt, report);
            self.update(now, report);
        }
        if self.probe_at() > now {
            return false;
        }
        let died = self.probe(now, others_live, report);
        self.update_mtu(now, report);
        died
    }

    /// Sends a probe. Returns whether the path died.
    fn probe(&mut self, now: Time, others_live: bool, report: &mut DeliveryReport) -> bool {
        self.wants_ping = true;
        self.timer_started_at = now;
        match self.status {
            PathStatus::Dead { wait, .. } => {
                self.sent_packets.declare_lost(usize::MAX, report);
                self.status = PathStatus::Dead { next: now + wait, wait: (wait * 2).min(PROBE_WAIT_MAX) };
                false
            }
            PathStatus::Live | PathStatus::Suspect if self.sent_packets.is_empty() => false,
            PathStatus::Live | PathStatus::Suspect => self.handle_timeout(now, others_live, report),
        }
    }

    /// Handles a probe timeout. Returns whether the path died.
    fn handle_timeout(&mut self, now: Time, others_live: bool, report: &mut DeliveryReport) -> bool {
        self.pto_count += 1;
        self.status = PathStatus::Suspect;
        if self.pto_count >= 2 {
            self.mtu.fall_back(now);
        }
        if self.pto_count >= PROBES_MAX {
            self.sent_packets.declare_lost(usize::MAX, report);
            self.congestion = CongestionControl::new();
            self.rtt = Rtt::new();
            self.probe_packets = 0;
            self.status = PathStatus::Dead { next: now + PROBE_WAIT_MIN, wait: PROBE_WAIT_MIN };
            return std::mem::replace(&mut self.is_up_reported, false);
        }
        let most = if others_live { usize::MAX } else { PROBE_PACKETS };
        self.sent_packets.declare_lost(most, report);
        self.probe_packets = PROBE_PACKETS;
        false
    }
}
