//! Connections: streams whose frames keep their order, are delayed or stalled, or are lost from some time on.

use crate::flaw::Flaw;
use crate::host::Data;
use crate::world::{Event, World};
use bytes::Bytes;
use std::collections::VecDeque;
use wirefs_client::Lane;
use wirefs_op::message::recall::Trecalled;
use wirefs_op::{NOTAG, Reply, Request, Tag, Time};
use wirefs_server::ConnectionKey;
use wirefs_virtual::{Span, TwoLanes};

/// The time until a side that receives nothing closes a connection: the other machine is gone, or all packets are lost.
const UNNOTICED: Span = (0, 30_000_000);
/// The usual time.
const NOTICED: Span = (0, 1_000_000);

/// An item on a connection.
#[derive(Clone, Debug)]
pub(crate) enum Packet {
    /// A message, and the change whose outcome it has.
    Frame(Bytes, Option<usize>),
    /// The sender has closed the connection.
    End,
}

/// The direction of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Up,
    Down,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) host: usize,
    pub(crate) life: u64,
    /// Present for a data connection.
    pub(crate) data: Option<Data>,
    /// Whether each side has it open.
    pub(crate) at_host: bool,
    pub(crate) at_server: bool,
    /// Later arrivals are lost.
    lost_from: Option<Time>,
    up: TwoLanes,
    down: TwoLanes,
    held_up: VecDeque<Packet>,
    held_down: VecDeque<Packet>,
}

impl Wire {
    pub(crate) fn new(host: usize, life: u64) -> Wire {
        Wire {
            host,
            life,
            data: None,
            at_host: true,
            at_server: true,
            lost_from: None,
            up: TwoLanes::default(),
            down: TwoLanes::default(),
            held_up: VecDeque::new(),
            held_down: VecDeque::new(),
        }
    }

    fn held(&mut self, direction: Direction) -> &mut VecDeque<Packet> {
        match direction {
            Direction::Up => &mut self.held_up,
            Direction::Down => &mut self.held_down,
        }
    }

    /// Returns the arrival of the server's last message.
    pub(crate) fn last_down(&self) -> Time {
        self.down.last_other()
    }

    /// Returns the arrival of the server's last recall.
    pub(crate) fn last_recall(&self) -> Time {
        self.down.last_urgent()
    }

    /// Returns whether neither side has it open.
    fn is_over(&self) -> bool {
        !self.at_host && !self.at_server
    }
}

impl World {
    /// Sends a client's frame.
    pub(crate) fn send_up(&mut self, connection: ConnectionKey, body: Bytes, lane: Lane) {
        if self.flaw == Some(Flaw::LosesNumbers)
            && matches!(Request::decode(body.clone()), Ok((_, Request::Number(_))))
        {
            return;
        }
        let delay = self.delay(self.plan.wire);
        let now = self.now;
        let Some(wire) = self.wires.get_mut(&connection).filter(|wire| wire.at_host) else { return };
        let at = wire.up.arrives(now + delay, lane == Lane::Queries);
        self.when(at, Event::Arrive(connection, Direction::Up, Packet::Frame(body, None)));
    }

    /// Sends a server's message. A recall overtakes queued messages, and later messages do not overtake it.
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
        self.when(at, Event::Arrive(connection, Direction::Down, packet));
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

    /// Acknowledges missed recalls itself, as a flaw.
    fn is_kept_from(&mut self, connection: ConnectionKey, reply: &Reply) -> bool {
        let Reply::Recall(recall) = reply else { return false };
        let mut hosts = self.hosts.iter();
        if self.flaw != Some(Flaw::LosesWhatWasMissed) || hosts.any(|host| host.uses(connection)) {
            return false;
        }
        let answer = Request::Recalled(Trecalled { serial: recall.serial }).encode(NOTAG);
        self.when(self.now, Event::Arrive(connection, Direction::Up, Packet::Frame(answer.to_body(), None)));
        true
    }

    /// Closes one side; the other one notices after all earlier messages.
    pub(crate) fn close(&mut self, connection: ConnectionKey, direction: Direction) {
        let delay = self.delay(self.plan.wire);
        let now = self.now;
        let Some(wire) = self.wires.get_mut(&connection) else { return };
        let lanes = match direction {
            Direction::Up => {
                wire.at_host = false;
                &mut wire.up
            }
            Direction::Down => {
                wire.at_server = false;
                &mut wire.down
            }
        };
        let at = lanes.arrives(now + delay, false);
        self.when(at, Event::Arrive(connection, direction, Packet::End));
    }

    /// Handles the arrival of a packet, unless the path is stalled.
    pub(crate) fn arrive(&mut self, connection: ConnectionKey, direction: Direction, packet: Packet) {
        let now = self.now;
        let Some(wire) = self.wires.get_mut(&connection) else { return };
        let is_stalled = self.paths.get(wire.host).is_some_and(|path| now < path.stalled_until(direction));
        if wire.lost_from.is_some_and(|from| from <= now) {
            return;
        }
        if is_stalled || !wire.held(direction).is_empty() {
            wire.held(direction).push_back(packet);
            return;
        }
        self.deliver(connection, direction, packet);
    }

    fn deliver(&mut self, connection: ConnectionKey, direction: Direction, packet: Packet) {
        match (direction, packet) {
            (Direction::Up, Packet::Frame(body, _)) => self.server_receives(connection, body),
            (Direction::Up, Packet::End) => self.server_loses(connection),
            (Direction::Down, Packet::Frame(body, change)) => self.host_receives(connection, body, change),
            (Direction::Down, Packet::End) => self.host_loses(connection),
        }
    }

    /// Delivers held packets, in order.
    pub(crate) fn release(&mut self, host: usize, direction: Direction) {
        let now = self.now;
        if self.paths.get(host).is_some_and(|path| now < path.stalled_until(direction)) {
            return;
        }
        let of_host = self.wires.iter().filter(|(_, wire)| wire.host == host);
        for connection in of_host.map(|(key, _)| *key).collect::<Vec<_>>() {
            while let Some(packet) =
                self.wires.get_mut(&connection).and_then(|wire| wire.held(direction).pop_front())
            {
                self.deliver(connection, direction, packet);
            }
        }
    }

    /// Cuts a connection: packets are lost from some time on, in both directions, and each side notices in its own time.
    pub(crate) fn cut(&mut self, connection: ConnectionKey) {
        let from = self.now + self.delay(self.plan.wire);
        let now = self.now;
        let Some(wire) = self.wires.get_mut(&connection) else { return };
        let first = wire.data.is_none().then_some(wire.host);
        // A stream has no gaps: if a held packet is lost, all later ones are too.
        let is_held = !wire.held_up.is_empty() || !wire.held_down.is_empty();
        let from = if is_held { now } else { from };
        wire.lost_from = Some(wire.lost_from.map_or(from, |before| before.min(from)));
        wire.held_up.clear();
        wire.held_down.clear();
        let spans = [(); 2].map(|()| if self.dice.chance(1, 3) { UNNOTICED } else { NOTICED });
        for (direction, span) in [Direction::Up, Direction::Down].into_iter().zip(spans) {
            let delay = self.delay(span);
            self.after(delay, Event::PeerSilent(connection, direction));
        }
        if let Some(index) = first {
            self.outcomes_lost(index);
        }
    }

    /// Records that outcomes under way to a client do not arrive over this connection.
    pub(crate) fn outcomes_lost(&mut self, index: usize) {
        if let Some(host) = self.hosts.get(index) {
            self.truth.outcomes_lost_of(index, host.life, self.now);
        }
    }

    /// Lets a machine vanish silently.
    pub(crate) fn vanish(&mut self, connection: ConnectionKey, direction: Direction) {
        let delay = self.delay(UNNOTICED);
        self.after(delay, Event::PeerSilent(connection, direction));
    }

    /// Lets the receiving side notice a lost connection.
    pub(crate) fn peer_silent(&mut self, connection: ConnectionKey, direction: Direction) {
        match direction {
            Direction::Up => self.server_loses(connection),
            Direction::Down => self.host_loses(connection),
        }
    }

    /// Drops a connection that both sides have closed.
    pub(crate) fn tidy_wire(&mut self, connection: ConnectionKey) {
        if self.wires.get(&connection).is_some_and(Wire::is_over) {
            self.wires.remove(&connection);
        }
    }

    /// Describes a client's request.
    pub(crate) fn note_request(&mut self, host: usize, body: &Bytes) {
        self.note(|| {
            let shown = Request::decode(body.clone()).map(|(tag, request)| format!("{} {request:?}", tag.0));
            format!("  client {host} sends {}", cut_short(&shown.unwrap_or_default()))
        });
    }

    /// Describes a reply to a client.
    pub(crate) fn note_reply(&mut self, host: usize, body: &Bytes) {
        self.note(|| {
            let shown = Reply::decode(body.clone()).map(|(tag, reply)| format!("{} {reply:?}", tag.0));
            format!("  client {host} hears {}", cut_short(&shown.unwrap_or_default()))
        });
    }
}

/// The network path between a client host and the server.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NetworkPath {
    pub(crate) stalled_up: Time,
    pub(crate) stalled_down: Time,
}

impl NetworkPath {
    fn stalled_until(&self, direction: Direction) -> Time {
        match direction {
            Direction::Up => self.stalled_up,
            Direction::Down => self.stalled_down,
        }
    }
}

fn cut_short(text: &str) -> String {
    text.chars().take(420).collect()
}
