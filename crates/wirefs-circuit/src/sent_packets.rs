//! The packets sent on a path, and loss detection.
//!
//! ```text
//! in flight ─ acknowledged ─> done
//!    └──── reordering or time threshold ─> lost ─ acknowledged after all (spurious) ─> done, raises the threshold
//! ```

use std::collections::VecDeque;
use std::time::Duration;

use wirefs_op::Time;

use crate::address::CircuitNumber;
use crate::congestion::RateSnapshot;
use crate::limits::{
    PACKET_BYTES_BASE, PACKET_THRESHOLD_MAX, PACKET_THRESHOLD_MIN, SENT_PACKETS_MAX, SENT_PARTS_MAX,
};
use crate::rtt::Rtt;
use crate::wire::part::Ack;

/// A part that must be retransmitted if its packet is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SentPart {
    Data { number: CircuitNumber, offset: u64, bytes: u64, is_last: bool },
    Credit(CircuitNumber),
    Reset(CircuitNumber),
    Free(CircuitNumber),
}

/// The retransmittable parts of a packet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SentParts([Option<SentPart>; SENT_PARTS_MAX]);

impl SentParts {
    pub(crate) fn is_full(&self) -> bool {
        self.0.iter().all(Option::is_some)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }

    pub(crate) fn push(&mut self, content: SentPart) {
        if let Some(free) = self.0.iter_mut().find(|slot| slot.is_none()) {
            *free = Some(content);
        }
    }

    fn iter(&self) -> impl Iterator<Item = SentPart> {
        self.0.iter().flatten().copied()
    }
}

/// The state of a sent packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SentState {
    InFlight,
    Lost,
    Done,
}

/// The kind of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Acknowledgements only; it is not acknowledged itself.
    AckOnly,
    /// Elicits an acknowledgement.
    AckEliciting,
    /// Probes the path MTU.
    MtuProbe,
}

/// A sent packet.
#[derive(Debug)]
struct Sent {
    at: Time,
    bytes: u64,
    fate: SentState,
    purpose: Purpose,
    contents: SentParts,
    snapshot: RateSnapshot,
}

fn is_large(bytes: u64) -> bool {
    bytes > PACKET_BYTES_BASE as u64
}

/// The effects of an acknowledgement or of loss detection.
#[derive(Debug, Default)]
pub(crate) struct DeliveryReport {
    /// Acknowledged parts.
    pub(crate) arrived: Vec<SentPart>,
    /// Parts to retransmit.
    pub(crate) lost: Vec<SentPart>,
    /// Bytes of acknowledged packets.
    pub(crate) arrived_bytes: u64,
    /// Bytes of lost packets, without MTU probes.
    pub(crate) lost_bytes: u64,
    /// The newest acknowledged packet: its send time and rate snapshot.
    pub(crate) newest: Option<(Time, RateSnapshot)>,
    /// The round-trip time, if the largest packet number is newly acknowledged.
    pub(crate) rtt: Option<Duration>,
    /// The size of an MTU probe, and whether it was acknowledged.
    pub(crate) mtu_probe: Option<(u64, bool)>,
    /// Whether a packet above the base size other than an MTU probe was acknowledged.
    pub(crate) has_large_arrived: bool,
    /// The number of lost packets above the base size.
    pub(crate) large_lost: u32,
}

impl DeliveryReport {
    /// Returns whether packets were newly acknowledged.
    pub(crate) fn has_new_acks(&self) -> bool {
        self.newest.is_some()
    }
}

/// An acknowledgement of a packet that was never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnsentPacketAcked;

/// The packets sent on one path.
#[derive(Debug)]
pub(crate) struct SentPackets {
    packets: VecDeque<Sent>,
    /// The number of the first packet in `packets`.
    first: u64,
    bytes_in_flight: u64,
    in_flight: usize,
    largest_acknowledged: Option<u64>,
    /// The reordering threshold of loss detection, in packets.
    packet_threshold: u64,
    /// When the next packet is lost by the time threshold.
    loss_at: Option<Time>,
}

impl SentPackets {
    pub(crate) fn new() -> SentPackets {
        SentPackets {
            packets: VecDeque::new(),
            first: 0,
            bytes_in_flight: 0,
            in_flight: 0,
            largest_acknowledged: None,
            packet_threshold: PACKET_THRESHOLD_MIN,
            loss_at: None,
        }
    }

    /// Returns the next packet number.
    pub(crate) fn next(&self) -> u64 {
        self.first + self.packets.len() as u64
    }

    pub(crate) fn bytes_in_flight(&self) -> u64 {
        self.bytes_in_flight
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.in_flight == 0
    }

    /// Returns whether no more ack-eliciting packets may be sent.
    pub(crate) fn is_full(&self) -> bool {
        self.packets.len() + 1 >= SENT_PACKETS_MAX
    }

    /// The number of entries, for memory accounting.
    pub(crate) fn held(&self) -> usize {
        self.packets.len()
    }

    pub(crate) fn loss_at(&self) -> Option<Time> {
        self.loss_at
    }

    /// Records a sent packet.
    pub(crate) fn push(
        &mut self,
        at: Time,
        bytes: u64,
        purpose: Purpose,
        contents: SentParts,
        snapshot: RateSnapshot,
        report: &mut DeliveryReport,
    ) {
        while self.packets.len() >= SENT_PACKETS_MAX {
            self.mark_lost(0, report);
            self.packets.pop_front();
            self.first += 1;
        }
        let fate = match purpose {
            Purpose::AckOnly => SentState::Done,
            Purpose::AckEliciting | Purpose::MtuProbe => {
                self.in_flight += 1;
                self.bytes_in_flight += bytes;
                SentState::InFlight
            }
        };
        self.packets.push_back(Sent { at, bytes, fate, purpose, contents, snapshot });
        self.trim(at, Duration::MAX);
    }

    /// Processes an acknowledgement.
    ///
    /// # Errors
    /// It covers a packet that was never sent.
    pub(crate) fn acknowledge(
        &mut self,
        now: Time,
        ack: &Ack<'_>,
        rtt: &Rtt,
        report: &mut DeliveryReport,
    ) -> Result<(), UnsentPacketAcked> {
        if ack.largest >= self.next() {
            return Err(UnsentPacketAcked);
        }
        for (first, last) in ack.ranges() {
            for packet_number in (first.max(self.first)..=last).rev() {
                self.mark_acknowledged(now, packet_number, packet_number == ack.largest, report);
            }
        }
        if report.has_new_acks() {
            self.largest_acknowledged = self.largest_acknowledged.max(Some(ack.largest));
            self.detect_losses(now, rtt, report);
        }
        self.trim(now, rtt.probe_timeout());
        Ok(())
    }

    fn mark_acknowledged(
        &mut self,
        now: Time,
        packet_number: u64,
        is_largest: bool,
        report: &mut DeliveryReport,
    ) {
        let next = self.next();
        let Some(sent) = self.packets.get_mut((packet_number - self.first) as usize) else {
            return;
        };
        match sent.fate {
            SentState::Done => return,
            SentState::InFlight => {
                self.in_flight -= 1;
                self.bytes_in_flight -= sent.bytes;
            }
            SentState::Lost => {
                self.packet_threshold =
                    (next - packet_number).clamp(self.packet_threshold, PACKET_THRESHOLD_MAX)
            }
        }
        sent.fate = SentState::Done;
        report.arrived.extend(sent.contents.iter());
        report.arrived_bytes += sent.bytes;
        if report.newest.is_none_or(|(at, _)| at < sent.at) {
            report.newest = Some((sent.at, sent.snapshot));
        }
        if is_largest {
            report.rtt = Some(now.since(sent.at));
        }
        match sent.purpose {
            Purpose::MtuProbe => report.mtu_probe = Some((sent.bytes, true)),
            Purpose::AckOnly | Purpose::AckEliciting => report.has_large_arrived |= is_large(sent.bytes),
        }
    }

    /// Detects lost packets.
    ///
    /// # Source
    /// RFC 9002, section 6.1: packet threshold and time threshold.
    pub(crate) fn detect_losses(&mut self, now: Time, rtt: &Rtt, report: &mut DeliveryReport) {
        self.loss_at = None;
        let Some(largest) = self.largest_acknowledged.filter(|largest| *largest >= self.first) else {
            return;
        };
        let loss_delay = rtt.loss_delay();
        for index in 0..=(largest - self.first) as usize {
            let Some(sent) = self.packets.get(index).filter(|sent| sent.fate == SentState::InFlight) else {
                continue;
            };
            let due = sent.at + loss_delay;
            if self.first + index as u64 + self.packet_threshold <= largest || due <= now {
                self.mark_lost(index, report);
            } else {
                self.loss_at = Some(self.loss_at.map_or(due, |at| at.min(due)));
            }
        }
        self.trim(now, rtt.probe_timeout());
    }

    fn mark_lost(&mut self, index: usize, report: &mut DeliveryReport) {
        let Some(sent) = self.packets.get_mut(index).filter(|sent| sent.fate == SentState::InFlight) else {
            return;
        };
        sent.fate = SentState::Lost;
        self.in_flight -= 1;
        self.bytes_in_flight -= sent.bytes;
        report.lost.extend(sent.contents.iter());
        match sent.purpose {
            Purpose::MtuProbe => report.mtu_probe = Some((sent.bytes, false)),
            Purpose::AckOnly | Purpose::AckEliciting => {
                report.lost_bytes += sent.bytes;
                report.large_lost += u32::from(is_large(sent.bytes));
            }
        }
    }

    /// Declares at most `most` of the oldest packets in flight lost.
    pub(crate) fn declare_lost(&mut self, most: usize, report: &mut DeliveryReport) {
        let mut left = most;
        for index in 0..self.packets.len() {
            if left == 0 {
                break;
            }
            if self.packets.get(index).is_some_and(|sent| sent.fate == SentState::InFlight) {
                self.mark_lost(index, report);
                left -= 1;
            }
        }
        if self.in_flight == 0 {
            self.loss_at = None;
        }
        self.trim(Time::default(), Duration::MAX);
    }

    /// Removes settled packets from the front. Lost ones stay for a while to detect spurious losses, unless
    /// they use up the space.
    fn trim(&mut self, now: Time, memory: Duration) {
        while let Some(sent) = self.packets.front() {
            let is_over = match sent.fate {
                SentState::Done => true,
                SentState::Lost => {
                    self.packets.len() > SENT_PACKETS_MAX / 2 || now.since(sent.at) / 2 > memory
                }
                SentState::InFlight => false,
            };
            if !is_over {
                break;
            }
            self.packets.pop_front();
            self.first += 1;
        }
    }
}

#[cfg(test)]
mod tests;
