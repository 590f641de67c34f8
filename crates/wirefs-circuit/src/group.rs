//! A group: all paths to one peer, and the circuits over them.

use std::time::Duration;

use bytes::Bytes;
use wirefs_op::Time;

use crate::address::{CircuitClass, CircuitNumber, GroupId, NetworkPath, PeerKey, Side};
use crate::circuits::Circuits;
use crate::config::Card;
use crate::handshake::TrafficSecrets;
use crate::limits::{
    CLOSING, CLOSING_WAIT, HANDSHAKE_WAIT_MAX, HANDSHAKE_WAIT_MIN, IDLE_TIMEOUT, PACING_STEP, PATHS_MAX,
};
use crate::output::{CloseReason, PathState};
use crate::path::{Path, PathStatus};
use crate::seal::TrafficSecret;
use crate::sent_packets::DeliveryReport;

mod receive;
mod send;

/// The last handshake packet, retransmitted until the peer sends a sealed packet.
#[derive(Debug)]
struct Finish {
    network_path: NetworkPath,
    packet: Bytes,
    next: Time,
    wait: Duration,
}

/// A closed group notifies its peer for a while.
#[derive(Clone, Copy, Debug)]
struct Closing {
    next: Time,
    until: Time,
}

/// A path that went up or down.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathChange {
    pub(crate) network_path: NetworkPath,
    pub(crate) is_up: bool,
}

/// All paths to one peer, and the circuits over them.
#[derive(Debug)]
pub(crate) struct Group {
    side: Side,
    peer: PeerKey,
    /// The id of the group at the peer.
    remote: GroupId,
    ours: TrafficSecret,
    theirs: TrafficSecret,
    /// Paths by number, up to the highest known one: they are iterated for each packet.
    paths: Vec<Option<Box<Path>>>,
    /// Reused to avoid allocations.
    report: DeliveryReport,
    pub(crate) circuits: Circuits,
    finish: Option<Finish>,
    last_received: Time,
    closing: Option<Closing>,
    close_reason: Option<CloseReason>,
    pub(crate) changes: Vec<PathChange>,
    /// The driver was notified of the group.
    pub(crate) is_announced: bool,
    /// The preferred path of the next circuit.
    next_preferred: u8,
}

impl Group {
    fn new(now: Time, side: Side, peer: PeerKey, remote: GroupId, secrets: TrafficSecrets) -> Group {
        let (ours, theirs) = match side {
            Side::Initiator => (secrets.initiator, secrets.responder),
            Side::Responder => (secrets.responder, secrets.initiator),
        };
        Group {
            side,
            peer,
            remote,
            ours,
            theirs,
            paths: Vec::new(),
            circuits: Circuits::new(side),
            report: DeliveryReport::default(),
            finish: None,
            last_received: now,
            closing: None,
            close_reason: None,
            changes: Vec::new(),
            is_announced: false,
            next_preferred: 0,
        }
    }

    /// Creates the group of the initiator: all paths are known; the handshake used the path with index
    /// `path`.
    pub(crate) fn initiator(
        now: Time,
        peer: PeerKey,
        remote: GroupId,
        secrets: TrafficSecrets,
        network_paths: &[NetworkPath],
        path: usize,
        finish: Vec<u8>,
        cards: &[Card],
    ) -> Group {
        let mut group = Group::new(now, Side::Initiator, peer, remote, secrets);
        for (index, network_path) in network_paths.iter().enumerate() {
            group.add_path(now, index, *network_path, cards);
        }
        group.validate_path(now, path);
        if let Some(network_path) = network_paths.get(path) {
            let next = now + HANDSHAKE_WAIT_MIN;
            group.finish = Some(Finish {
                network_path: *network_path,
                packet: finish.into(),
                next,
                wait: HANDSHAKE_WAIT_MIN,
            });
        }
        group
    }

    /// Creates the group of the responder: one path is known, others become known when the initiator uses
    /// them.
    pub(crate) fn responder(
        now: Time,
        peer: PeerKey,
        remote: GroupId,
        secrets: TrafficSecrets,
        network_path: NetworkPath,
        path: u8,
        cards: &[Card],
    ) -> Group {
        let mut group = Group::new(now, Side::Responder, peer, remote, secrets);
        group.add_path(now, usize::from(path), network_path, cards);
        group.validate_path(now, usize::from(path));
        group
    }

    fn new_path(&self, now: Time, index: u8, network_path: NetworkPath, cards: &[Card]) -> Option<Box<Path>> {
        let card = cards.get(usize::from(network_path.card.0))?;
        let (ours, theirs) = (self.ours.path(index), self.theirs.path(index));
        Some(Box::new(Path::new(now, network_path, ours, theirs, card.packet_bytes)))
    }

    fn add_path(&mut self, now: Time, index: usize, network_path: NetworkPath, cards: &[Card]) {
        // PATHS_MAX is at most 16.
        let path = self.new_path(now, index as u8, network_path, cards);
        if let Some(entry) = self.path_entry(index) {
            *entry = path;
        }
    }

    /// Returns the entry of a path; `None` if the index is out of range.
    fn path_entry(&mut self, index: usize) -> Option<&mut Option<Box<Path>>> {
        if self.paths.len() <= index && index < PATHS_MAX {
            self.paths.resize_with(index + 1, || None);
        }
        self.paths.get_mut(index)
    }

    /// Marks the path of the handshake as live.
    fn validate_path(&mut self, now: Time, index: usize) {
        if let Some(path) = self.paths.get_mut(index).and_then(Option::as_mut) {
            path.status = PathStatus::Live;
            path.is_up_reported = true;
            path.restart_timer(now);
            self.changes.push(PathChange { network_path: path.network_path, is_up: true });
        }
    }

    fn paths(&self) -> impl Iterator<Item = &Path> {
        self.paths.iter().flatten().map(|path| &**path)
    }

    /// Returns a bit for each live path.
    fn live(&self) -> u16 {
        let live = |path: &Option<Box<Path>>| path.as_ref().is_some_and(|path| path.is_live());
        self.paths
            .iter()
            .enumerate()
            .filter(|(_, path)| live(path))
            .fold(0, |bits, (index, _)| bits | 1 << index)
    }

    /// The key of the peer.
    pub(crate) fn peer(&self) -> PeerKey {
        self.peer
    }

    /// Returns the live paths and their estimated bandwidths in bytes per second.
    pub(crate) fn live_paths(&self) -> Vec<(NetworkPath, Option<u64>)> {
        self.paths()
            .filter(|path| path.is_live())
            .map(|path| (path.network_path, path.congestion.bandwidth()))
            .collect()
    }

    /// Returns the state of all paths.
    pub(crate) fn path_states(&self) -> Vec<PathState> {
        let state = |path: &Path| PathState {
            path: path.network_path,
            is_up: path.is_live(),
            rate: path.congestion.bandwidth(),
            rtt: path.rtt.measured(),
            arrived_bytes: path.totals.arrived_bytes,
            lost_bytes: path.totals.lost_bytes,
        };
        self.paths().map(state).collect()
    }

    /// Returns the path MTU of each live path, in bytes.
    pub(crate) fn packet_bytes(&self) -> Vec<(NetworkPath, usize)> {
        self.paths().filter(|path| path.is_live()).map(|path| (path.network_path, path.mtu.bytes())).collect()
    }

    /// Opens a circuit. Preferred paths are assigned round-robin.
    pub(crate) fn open(&mut self, class: CircuitClass) -> Option<CircuitNumber> {
        if self.close_reason.is_some() {
            return None;
        }
        let live = self.live();
        let candidates = (0..PATHS_MAX as u8).map(|step| (self.next_preferred + step) % PATHS_MAX as u8);
        let preferred_path = candidates.into_iter().find(|path| live & 1 << path != 0).unwrap_or(0);
        self.next_preferred = (preferred_path + 1) % PATHS_MAX as u8;
        self.circuits.open(class, preferred_path)
    }

    /// Closes the group and notifies the peer.
    pub(crate) fn close(&mut self, now: Time, reason: CloseReason) {
        if self.close_reason.is_none() {
            self.close_reason = Some(reason);
            self.closing = Some(Closing { next: now, until: now + CLOSING });
            self.finish = None;
            self.schedule_close(now);
        }
    }

    /// Schedules a close part on each path when due.
    fn schedule_close(&mut self, now: Time) {
        let Some(closing) = self.closing.as_mut().filter(|closing| closing.next <= now) else {
            return;
        };
        closing.next = now + CLOSING_WAIT;
        self.paths.iter_mut().flatten().for_each(|path| path.wants_ping = true);
    }

    /// Returns the reason for which the group closed; `None` while it is open.
    pub(crate) fn close_reason(&self) -> Option<CloseReason> {
        self.close_reason
    }

    /// Returns whether the slot of the group can be reused.
    pub(crate) fn is_gone(&self, now: Time) -> bool {
        self.close_reason.is_some() && self.closing.is_none_or(|closing| closing.until <= now)
    }

    /// Returns the time of the next timer.
    pub(crate) fn deadline(&self) -> Time {
        if let Some(closing) = self.closing {
            return closing.next.min(closing.until);
        }
        let finish = self.finish.as_ref().map(|finish| finish.next);
        let idle = self.last_received + IDLE_TIMEOUT;
        let open = self.open_paths();
        let paced = self
            .paths
            .iter()
            .enumerate()
            .filter(|(index, _)| open & 1 << index != 0 && self.circuits.has_work(*index as u8, open));
        // A coarse timer: one wake-up per packet would cost more than the packet.
        let paced = paced
            .filter_map(|(_, path)| path.as_ref())
            .map(|path| path.congestion.next_send_at() + PACING_STEP);
        self.paths().map(Path::deadline).chain(finish).chain(paced).fold(idle, Time::min)
    }

    /// Returns a bit for each live path with free window.
    fn open_paths(&self) -> u16 {
        let open = |path: &Option<Box<Path>>| {
            path.as_ref().is_some_and(|path| path.is_live() && self.has_window(path))
        };
        self.paths
            .iter()
            .enumerate()
            .filter(|(_, path)| open(path))
            .fold(0, |bits, (index, _)| bits | 1 << index)
    }

    fn has_window(&self, path: &Path) -> bool {
        let window = path.congestion.congestion_window(path.rtt.min_rtt(), path.mtu.bytes());
        path.sent_packets.bytes_in_flight() < window && !path.sent_packets.is_full()
    }

    /// Returns whether a packet may be ready to send.
    pub(crate) fn has_packets(&self, now: Time) -> bool {
        if self.close_reason.is_some() || self.circuits.control_parts() > 0 {
            return true;
        }
        let is_probe_due = |path: &Path| path.is_live() && path.mtu.probe(now).is_some();
        let is_due = |path: &Path| path.wants_ping || path.is_ack_due(now) || is_probe_due(path);
        if self.paths().any(is_due) {
            return true;
        }
        let all = (1 << PATHS_MAX) - 1;
        (0..self.paths.len()).any(|index| self.circuits.has_work(index as u8, all))
    }

    /// Runs due timers.
    pub(crate) fn tick(&mut self, now: Time) {
        if self.close_reason.is_some() {
            self.schedule_close(now);
            return;
        }
        if now.since(self.last_received) >= IDLE_TIMEOUT {
            self.close_reason = Some(CloseReason::IdleTimeout);
            return;
        }
        for index in 0..self.paths.len() {
            let others_live = self.live() & !(1 << index) != 0;
            let mut report = DeliveryReport::default();
            let Some(path) = self.paths.get_mut(index).and_then(Option::as_mut) else {
                continue;
            };
            if path.tick(now, others_live, &mut report) {
                self.changes.push(PathChange { network_path: path.network_path, is_up: false });
            }
            self.apply_report(&mut report);
        }
    }

    /// Passes acknowledged and lost parts to the circuits.
    fn apply_report(&mut self, report: &mut DeliveryReport) {
        // Acknowledged parts first: they need no retransmission.
        report.arrived.drain(..).for_each(|content| self.circuits.arrived(content));
        report.lost.drain(..).for_each(|content| self.circuits.lost(content));
    }

    /// Returns the last handshake packet when its retransmission is due.
    pub(crate) fn poll_finish(&mut self, now: Time) -> Option<(NetworkPath, Bytes)> {
        let finish = self.finish.as_mut().filter(|finish| finish.next <= now)?;
        finish.wait = (finish.wait * 2).min(HANDSHAKE_WAIT_MAX);
        finish.next = now + finish.wait;
        Some((finish.network_path, finish.packet.clone()))
    }

    /// The memory of buffers and packets in flight, in bytes.
    pub(crate) fn held_bytes(&self) -> u64 {
        let in_flight: usize = self.paths().map(|path| path.sent_packets.held()).sum();
        self.circuits.held_bytes() + (in_flight * size_of::<crate::sent_packets::SentParts>()) as u64
    }
}

#[cfg(test)]
mod tests;
