//! Connections: streams whose frames keep their order, come late, stop for a while, or are lost from some moment on.

use crate::flaw::Flaw;
use crate::seat::Data;
use crate::world::{Event, World};
use bytes::Bytes;
use std::collections::VecDeque;
use wirefs_client::Lane;
use wirefs_op::message::recall::Trecalled;
use wirefs_op::{NOTAG, Reply, Request, Tag, Time};
use wirefs_server::ConnectionKey;

/// How long a side that hears nothing keeps a connection at most: the other one's machine is gone, or all that was sent is lost.
const UNNOTICED: (u64, u64) = (0, 30_000_000);
/// How long it usually takes to notice.
const NOTICED: (u64, u64) = (0, 1_000_000);

/// What travels.
#[derive(Clone, Debug)]
pub(crate) enum Packet {
    /// A message, and which change it tells the outcome of.
    Frame(Bytes, Option<usize>),
    /// The sender has closed.
    End,
}

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Up,
    Down,
}

/// When the last of each lane arrives. The first lane overtakes the second, never the other way round.
#[derive(Clone, Copy, Debug, Default)]
struct Lanes {
    first: Time,
    second: Time,
}

impl Lanes {
    fn arrives(&mut self, at: Time, is_first: bool) -> Time {
        let at = if is_first { at.max(self.first) } else { at.max(self.first).max(self.second) };
        if is_first {
            self.first = at;
        } else {
            self.second = at;
        }
        at
    }
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) seat: usize,
    pub(crate) life: u64,
    /// It is a data connection.
    pub(crate) data: Option<Data>,
    /// Whether each side has it open.
    pub(crate) at_seat: bool,
    pub(crate) at_server: bool,
    /// What arrives from then on is lost.
    lost_from: Option<Time>,
    up: Lanes,
    down: Lanes,
    held_up: VecDeque<Packet>,
    held_down: VecDeque<Packet>,
}

impl Wire {
    pub(crate) fn new(seat: usize, life: u64) -> Wire {
        Wire {
            seat,
            life,
            data: None,
            at_seat: true,
            at_server: true,
            lost_from: None,
            up: Lanes::default(),
            down: Lanes::default(),
            held_up: VecDeque::new(),
            held_down: VecDeque::new(),
        }
    }

    fn held(&mut self, way: Way) -> &mut VecDeque<Packet> {
        match way {
            Way::Up => &mut self.held_up,
            Way::Down => &mut self.held_down,
        }
    }

    /// When the last message of the server arrives.
    pub(crate) fn last_down(&self) -> Time {
        self.down.second
    }

    /// When its last recall does.
    pub(crate) fn last_recall(&self) -> Time {
        self.down.first
    }

    /// Nothing is on it, and nobody holds it.
    fn is_over(&self) -> bool {
        !self.at_seat && !self.at_server
    }
}

impl World {
    /// A client's frame.
    pub(crate) fn send_up(&mut self, connection: ConnectionKey, body: Bytes, lane: Lane) {
        if self.flaw == Some(Flaw::LosesNumbers)
            && matches!(Request::decode(body.clone()), Ok((_, Request::Number(_))))
        {
            return;
        }
        let delay = self.delay(self.plan.wire);
        let now = self.now;
        let Some(wire) = self.wires.get_mut(&connection).filter(|wire| wire.at_seat) else { return };
        let at = wire.up.arrives(now + delay, lane == Lane::Queries);
        self.when(at, Event::Arrive(connection, Way::Up, Packet::Frame(body, None)));
    }

    /// A server's message. A recall overtakes what waits, and is not overtaken by what comes after it.
    pub(crate) fn send_down(
        &mut self,
        connection: ConnectionKey,
        tag: Tag,
        reply: &Reply,
        change: Option<usize>,
    ) {
        let delay = self.delay(self.plan.wire);
        let now = self.now;
        let is_recall = matches!(reply, Reply::Recall(_));
        if self.is_lost_by_flaw(reply) || self.is_kept_from(connection, reply) {
            return;
        }
        let Some(wire) = self.wires.get_mut(&connection).filter(|wire| wire.at_server) else { return };
        let at = wire.down.arrives(now + delay, is_recall);
        let packet = Packet::Frame(reply.encode(tag).to_body(), change);
        self.when(at, Event::Arrive(connection, Way::Down, packet));
        if self.plan.is_narrow {
            self.note_order(connection, is_recall, at);
        }
    }

    fn is_lost_by_flaw(&mut self, reply: &Reply) -> bool {
        let is_recall = matches!(reply, Reply::Recall(_));
        let is_handshake = matches!(reply, Reply::Version(_) | Reply::Attach(_));
        match self.flaw {
            Some(Flaw::LosesARecall) => is_recall && self.dice.chance(1, 10),
            Some(Flaw::LosesAReply) => !is_recall && !is_handshake && self.dice.chance(1, 100),
            _ => false,
        }
    }

    /// Built wrongly: what a client missed is as good as told.
    fn is_kept_from(&mut self, connection: ConnectionKey, reply: &Reply) -> bool {
        let Reply::Recall(recall) = reply else { return false };
        let mut seats = self.seats.iter();
        if self.flaw != Some(Flaw::LosesWhatWasMissed) || seats.any(|seat| seat.uses(connection)) {
            return false;
        }
        let answer = Request::Recalled(Trecalled { serial: recall.serial }).encode(NOTAG);
        self.when(self.now, Event::Arrive(connection, Way::Up, Packet::Frame(answer.to_body(), None)));
        true
    }

    /// One side closes; the other hears of it behind what was sent before.
    pub(crate) fn close(&mut self, connection: ConnectionKey, way: Way) {
        let delay = self.delay(self.plan.wire);
        let now = self.now;
        let Some(wire) = self.wires.get_mut(&connection) else { return };
        let lanes = match way {
            Way::Up => {
                wire.at_seat = false;
                &mut wire.up
            }
            Way::Down => {
                wire.at_server = false;
                &mut wire.down
            }
        };
        let at = lanes.arrives(now + delay, false);
        self.when(at, Event::Arrive(connection, way, Packet::End));
    }

    /// A packet is there, unless nothing comes through just now.
    pub(crate) fn arrive(&mut self, connection: ConnectionKey, way: Way, packet: Packet) {
        let now = self.now;
        let Some(wire) = self.wires.get_mut(&connection) else { return };
        let is_stalled = self.lines.get(wire.seat).is_some_and(|line| now < line.stalled_until(way));
        if wire.lost_from.is_some_and(|from| from <= now) {
            return;
        }
        if is_stalled || !wire.held(way).is_empty() {
            wire.held(way).push_back(packet);
            return;
        }
        self.deliver(connection, way, packet);
    }

    fn deliver(&mut self, connection: ConnectionKey, way: Way, packet: Packet) {
        match (way, packet) {
            (Way::Up, Packet::Frame(body, _)) => self.server_receives(connection, body),
            (Way::Up, Packet::End) => self.server_loses(connection),
            (Way::Down, Packet::Frame(body, change)) => self.seat_receives(connection, body, change),
            (Way::Down, Packet::End) => self.seat_loses(connection),
        }
    }

    /// What was held up comes through, in its order.
    pub(crate) fn release(&mut self, seat: usize, way: Way) {
        let now = self.now;
        if self.lines.get(seat).is_some_and(|line| now < line.stalled_until(way)) {
            return;
        }
        let of_seat = self.wires.iter().filter(|(_, wire)| wire.seat == seat);
        for connection in of_seat.map(|(key, _)| *key).collect::<Vec<_>>() {
            while let Some(packet) =
                self.wires.get_mut(&connection).and_then(|wire| wire.held(way).pop_front())
            {
                self.deliver(connection, way, packet);
            }
        }
    }

    /// A connection breaks: what is on the wire is lost from some moment on, in both directions; each side notices in its own
    /// time.
    pub(crate) fn cut(&mut self, connection: ConnectionKey) {
        let from = self.now + self.delay(self.plan.wire);
        let now = self.now;
        let Some(wire) = self.wires.get_mut(&connection) else { return };
        let first = wire.data.is_none().then_some(wire.seat);
        // A stream has no hole: where something is lost that was held up, nothing that was sent behind it arrives.
        let is_held = !wire.held_up.is_empty() || !wire.held_down.is_empty();
        let from = if is_held { now } else { from };
        wire.lost_from = Some(wire.lost_from.map_or(from, |before| before.min(from)));
        wire.held_up.clear();
        wire.held_down.clear();
        let spans = [(); 2].map(|()| if self.dice.chance(1, 3) { UNNOTICED } else { NOTICED });
        for (way, span) in [Way::Up, Way::Down].into_iter().zip(spans) {
            let delay = self.delay(span);
            self.after(delay, Event::Unheard(connection, way));
        }
        if let Some(index) = first {
            self.hears_nothing(index);
        }
    }

    /// What a client was still to be told of its changes does not come over this connection any more, whether it knows or not.
    pub(crate) fn hears_nothing(&mut self, index: usize) {
        if let Some(seat) = self.seats.get(index) {
            self.truth.tells_nothing(index, seat.life, self.now);
        }
    }

    /// A machine is gone and says nothing.
    pub(crate) fn falls_silent(&mut self, connection: ConnectionKey, way: Way) {
        let delay = self.delay(UNNOTICED);
        self.after(delay, Event::Unheard(connection, way));
    }

    /// The side at the end of this way finds out that nothing comes any more.
    pub(crate) fn unheard(&mut self, connection: ConnectionKey, way: Way) {
        match way {
            Way::Up => self.server_loses(connection),
            Way::Down => self.seat_loses(connection),
        }
    }

    /// Forgets a connection that both sides have closed.
    pub(crate) fn tidy_wire(&mut self, connection: ConnectionKey) {
        if self.wires.get(&connection).is_some_and(Wire::is_over) {
            self.wires.remove(&connection);
        }
    }

    /// What a client sends, in words.
    pub(crate) fn note_request(&mut self, seat: usize, body: &Bytes) {
        self.note(|| {
            let shown = Request::decode(body.clone()).map(|(tag, request)| format!("{} {request:?}", tag.0));
            format!("  client {seat} sends {}", cut_short(&shown.unwrap_or_default()))
        });
    }

    /// What a client hears, in words.
    pub(crate) fn note_reply(&mut self, seat: usize, body: &Bytes) {
        self.note(|| {
            let shown = Reply::decode(body.clone()).map(|(tag, reply)| format!("{} {reply:?}", tag.0));
            format!("  client {seat} hears {}", cut_short(&shown.unwrap_or_default()))
        });
    }
}

/// The line between one client's machine and the server's.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Line {
    pub(crate) stalled_up: Time,
    pub(crate) stalled_down: Time,
}

impl Line {
    fn stalled_until(&self, way: Way) -> Time {
        match way {
            Way::Up => self.stalled_up,
            Way::Down => self.stalled_down,
        }
    }
}

fn cut_short(text: &str) -> String {
    text.chars().take(420).collect()
}
