//! A group: all paths to one peer, and the circuits over them.

use std::time::Duration;

use bytes::Bytes;
use wirefs_op::Time;

use crate::address::{Class, GroupId, NodeKey, Number, Side, Way};
use crate::circuits::Circuits;
use crate::config::Card;
use crate::flight::Report;
use crate::handshake::Secrets;
use crate::limits::{
    CLOSING, CLOSING_WAIT, HANDSHAKE_WAIT_MAX, HANDSHAKE_WAIT_MIN, PACE_STEP, PATHS_MAX, SILENCE_MAX,
};
use crate::output::{Lost, PathState};
use crate::path::{Path, Standing};
use crate::seal::Secret;

mod receive;
mod send;

/// The last packet of the handshake, which is sent until the peer shows that it has it.
#[derive(Debug)]
struct Finish {
    way: Way,
    packet: Bytes,
    next: Time,
    wait: Duration,
}

/// A group that is over goes on saying so for a while.
#[derive(Clone, Copy, Debug)]
struct Closing {
    next: Time,
    until: Time,
}

/// What happened to a path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathChange {
    pub(crate) way: Way,
    pub(crate) is_up: bool,
}

#[derive(Debug)]
pub(crate) struct Group {
    side: Side,
    peer: NodeKey,
    /// What the peer calls it.
    remote: GroupId,
    ours: Secret,
    theirs: Secret,
    /// Up to the last that is known: they are gone through for each packet.
    paths: Vec<Option<Box<Path>>>,
    /// What was acknowledged: here so that its room is used again.
    report: Report,
    pub(crate) circuits: Circuits,
    finish: Option<Finish>,
    heard: Time,
    closing: Option<Closing>,
    lost: Option<Lost>,
    pub(crate) changes: Vec<PathChange>,
    /// The driver knows of it.
    pub(crate) is_told: bool,
    /// The path that the next circuit is at home on.
    turn: u8,
}

impl Group {
    fn new(now: Time, side: Side, peer: NodeKey, remote: GroupId, secrets: Secrets) -> Group {
        let (ours, theirs) = match side {
            Side::Dialler => (secrets.by_dialler, secrets.by_dialled),
            Side::Dialled => (secrets.by_dialled, secrets.by_dialler),
        };
        Group {
            side,
            peer,
            remote,
            ours,
            theirs,
            paths: Vec::new(),
            circuits: Circuits::new(side),
            report: Report::default(),
            finish: None,
            heard: now,
            closing: None,
            lost: None,
            changes: Vec::new(),
            is_told: false,
            turn: 0,
        }
    }

    /// The dialler's side: all ways are known, and the handshake came over number `path` of them.
    pub(crate) fn dialler(
        now: Time,
        peer: NodeKey,
        remote: GroupId,
        secrets: Secrets,
        ways: &[Way],
        path: usize,
        finish: Vec<u8>,
        cards: &[Card],
    ) -> Group {
        let mut group = Group::new(now, Side::Dialler, peer, remote, secrets);
        for (index, way) in ways.iter().enumerate() {
            group.add_path(now, index, *way, cards);
        }
        group.welcome(now, path);
        if let Some(way) = ways.get(path) {
            let next = now + HANDSHAKE_WAIT_MIN;
            group.finish = Some(Finish { way: *way, packet: finish.into(), next, wait: HANDSHAKE_WAIT_MIN });
        }
        group
    }

    /// The dialled side: one path is known, the others come as the dialler uses them.
    pub(crate) fn dialled(
        now: Time,
        peer: NodeKey,
        remote: GroupId,
        secrets: Secrets,
        way: Way,
        path: u8,
        cards: &[Card],
    ) -> Group {
        let mut group = Group::new(now, Side::Dialled, peer, remote, secrets);
        group.add_path(now, usize::from(path), way, cards);
        group.welcome(now, usize::from(path));
        group
    }

    fn new_path(&self, now: Time, index: u8, way: Way, cards: &[Card]) -> Option<Box<Path>> {
        let card = cards.get(usize::from(way.card.0))?;
        let (ours, theirs) = (self.ours.path(index), self.theirs.path(index));
        Some(Box::new(Path::new(now, way, ours, theirs, card.packet_bytes)))
    }

    fn add_path(&mut self, now: Time, index: usize, way: Way, cards: &[Card]) {
        // PATHS_MAX is at most 16.
        let path = self.new_path(now, index as u8, way, cards);
        if let Some(place) = self.place(index) {
            *place = path;
        }
    }

    /// The place of a path that may become known; none: there is no such path.
    fn place(&mut self, index: usize) -> Option<&mut Option<Box<Path>>> {
        if self.paths.len() <= index && index < PATHS_MAX {
            self.paths.resize_with(index + 1, || None);
        }
        self.paths.get_mut(index)
    }

    /// The path over which the handshake came lives.
    fn welcome(&mut self, now: Time, index: usize) {
        if let Some(path) = self.paths.get_mut(index).and_then(Option::as_mut) {
            path.standing = Standing::Live;
            path.is_told = true;
            path.asks(now);
            self.changes.push(PathChange { way: path.way, is_up: true });
        }
    }

    fn paths(&self) -> impl Iterator<Item = &Path> {
        self.paths.iter().flatten().map(|path| &**path)
    }

    /// A bit for each path that lives.
    fn live(&self) -> u16 {
        let live = |path: &Option<Box<Path>>| path.as_ref().is_some_and(|path| path.is_live());
        self.paths
            .iter()
            .enumerate()
            .filter(|(_, path)| live(path))
            .fold(0, |bits, (index, _)| bits | 1 << index)
    }

    /// The peer's key.
    pub(crate) fn peer(&self) -> NodeKey {
        self.peer
    }

    /// The ways of paths that live, and their measured rates in bytes a second.
    pub(crate) fn live_ways(&self) -> Vec<(Way, Option<u64>)> {
        self.paths().filter(|path| path.is_live()).map(|path| (path.way, path.rate.measured())).collect()
    }

    /// All paths, those that are down too.
    pub(crate) fn path_states(&self) -> Vec<PathState> {
        let state = |path: &Path| PathState {
            way: path.way,
            is_up: path.is_live(),
            rate: path.rate.measured(),
            rtt: path.rtt.measured(),
            arrived_bytes: path.fates.arrived_bytes,
            lost_bytes: path.fates.lost_bytes,
        };
        self.paths().map(state).collect()
    }

    /// The largest packet that each live path is known to carry, in bytes.
    pub(crate) fn packet_bytes(&self) -> Vec<(Way, usize)> {
        self.paths().filter(|path| path.is_live()).map(|path| (path.way, path.sizing.bytes())).collect()
    }

    /// Opens a circuit, at home on the live path whose turn it is.
    pub(crate) fn open(&mut self, class: Class) -> Option<Number> {
        if self.lost.is_some() {
            return None;
        }
        let live = self.live();
        let turns = (0..PATHS_MAX as u8).map(|step| (self.turn + step) % PATHS_MAX as u8);
        let home = turns.into_iter().find(|path| live & 1 << path != 0).unwrap_or(0);
        self.turn = (home + 1) % PATHS_MAX as u8;
        self.circuits.open(class, home)
    }

    /// Ends the group and tells the peer.
    pub(crate) fn close(&mut self, now: Time, why: Lost) {
        if self.lost.is_none() {
            self.lost = Some(why);
            self.closing = Some(Closing { next: now, until: now + CLOSING });
            self.finish = None;
            self.say_closing(now);
        }
    }

    /// Has each path say that the group is over, if that is due.
    fn say_closing(&mut self, now: Time) {
        let Some(closing) = self.closing.as_mut().filter(|closing| closing.next <= now) else {
            return;
        };
        closing.next = now + CLOSING_WAIT;
        self.paths.iter_mut().flatten().for_each(|path| path.wants_ping = true);
    }

    /// Why it is over; none while it stands.
    pub(crate) fn lost(&self) -> Option<Lost> {
        self.lost
    }

    /// Whether nothing of it is needed any more.
    pub(crate) fn is_gone(&self, now: Time) -> bool {
        self.lost.is_some() && self.closing.is_none_or(|closing| closing.until <= now)
    }

    /// When something happens of itself.
    pub(crate) fn deadline(&self) -> Time {
        if let Some(closing) = self.closing {
            return closing.next.min(closing.until);
        }
        let finish = self.finish.as_ref().map(|finish| finish.next);
        let silence = self.heard + SILENCE_MAX;
        let open = self.open_paths();
        let paced = self
            .paths
            .iter()
            .enumerate()
            .filter(|(index, _)| open & 1 << index != 0 && self.circuits.has_work(*index as u8, open));
        // Several packets at a time: to be called for each costs more than the packet.
        let paced = paced.filter_map(|(_, path)| path.as_ref()).map(|path| path.rate.next() + PACE_STEP);
        self.paths().map(Path::deadline).chain(finish).chain(paced).fold(silence, Time::min)
    }

    /// A bit for each path that lives and has room for more under way.
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
        let window = path.rate.window(path.rtt.shortest(), path.sizing.bytes());
        path.flight.flying_bytes() < window && !path.flight.is_full()
    }

    /// Whether a packet may be to leave now.
    pub(crate) fn has_packets(&self, now: Time) -> bool {
        if self.lost.is_some() || self.circuits.notices() > 0 {
            return true;
        }
        let is_probe_due = |path: &Path| path.is_live() && path.sizing.probe(now).is_some();
        let is_due = |path: &Path| path.wants_ping || path.owes_now(now) || is_probe_due(path);
        if self.paths().any(is_due) {
            return true;
        }
        let all = (1 << PATHS_MAX) - 1;
        (0..self.paths.len()).any(|index| self.circuits.has_work(index as u8, all))
    }

    /// Lets time pass.
    pub(crate) fn tick(&mut self, now: Time) {
        if self.lost.is_some() {
            self.say_closing(now);
            return;
        }
        if now.since(self.heard) >= SILENCE_MAX {
            self.lost = Some(Lost::Silent);
            return;
        }
        for index in 0..self.paths.len() {
            let others_live = self.live() & !(1 << index) != 0;
            let mut report = Report::default();
            let Some(path) = self.paths.get_mut(index).and_then(Option::as_mut) else {
                continue;
            };
            if path.tick(now, others_live, &mut report) {
                self.changes.push(PathChange { way: path.way, is_up: false });
            }
            self.settle(&mut report);
        }
    }

    /// Tells the circuits what became of packets.
    fn settle(&mut self, report: &mut Report) {
        // What arrived first: it need not be sent again then.
        report.arrived.drain(..).for_each(|content| self.circuits.arrived(content));
        report.lost.drain(..).for_each(|content| self.circuits.lost(content));
    }

    /// The handshake's last packet, if it has to be sent again.
    pub(crate) fn poll_finish(&mut self, now: Time) -> Option<(Way, Bytes)> {
        let finish = self.finish.as_mut().filter(|finish| finish.next <= now)?;
        finish.wait = (finish.wait * 2).min(HANDSHAKE_WAIT_MAX);
        finish.next = now + finish.wait;
        Some((finish.way, finish.packet.clone()))
    }

    /// Bytes held for users, peers and packets under way.
    pub(crate) fn held_bytes(&self) -> u64 {
        let flying: usize = self.paths().map(|path| path.flight.held()).sum();
        self.circuits.held_bytes() + (flying * size_of::<crate::flight::Contents>()) as u64
    }
}

#[cfg(test)]
mod tests;
