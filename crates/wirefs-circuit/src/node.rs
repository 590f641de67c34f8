//! A node: its cards, its groups, and the handshakes that make them.

use std::collections::VecDeque;

use bytes::Bytes;
use ring::signature::KeyPair;
use wirefs_op::Time;

use crate::address::{Address, CardId, CircuitId, Class, GroupId, NodeKey, Way};
use crate::circuits::Event;
use crate::config::{Card, Config, Trust};
use crate::cookie::Baker;
use crate::counters::{Counters, Refused};
use crate::group::Group;
use crate::handshake::HandshakeKey;
use crate::limits::{CARD_BYTES_MIN, CARDS_MAX, KEYS_MAX, PACKET_BYTES_MAX, PATHS_MAX};
use crate::node::dialling::Dialling;
use crate::node::half_open::HalfOpen;
use crate::node::table::{Slot, Table};
use crate::output::{Departure, Lost, Misuse, Output, PathState, Read};
use crate::wire::header::{self, Kind};

mod dialling;
mod half_open;
mod table;

/// Handshake packets that wait for a card.
const HANDSHAKES_MAX: usize = 64;

/// A node.
#[derive(Debug)]
pub struct Node {
    identity: ring::signature::Ed25519KeyPair,
    own: NodeKey,
    baker: Baker,
    cards: Vec<Card>,
    trust: Trust,
    /// Strangers are answered.
    is_accepting: bool,
    keys: Vec<HandshakeKey>,
    table: Table,
    handshakes: VecDeque<(Way, Bytes)>,
    outputs: VecDeque<Output>,
    counters: Counters,
    /// The group whose turn it is to send.
    turn: usize,
}

impl Node {
    /// Makes a node without peers.
    ///
    /// # Errors
    /// The cards are not what a node can have.
    pub fn new(config: Config) -> Result<Node, Misuse> {
        let mut cards = config.cards;
        if cards.is_empty()
            || cards.len() > CARDS_MAX
            || cards.iter().any(|card| card.packet_bytes < CARD_BYTES_MIN)
        {
            return Err(Misuse::Cards);
        }
        cards.iter_mut().for_each(|card| card.packet_bytes = card.packet_bytes.min(PACKET_BYTES_MAX));
        let own = NodeKey(config.identity.public_key().as_ref().try_into().map_err(|_| Misuse::Cards)?);
        let [low, high, ..] = config.secret;
        Ok(Node {
            identity: config.identity,
            own,
            baker: Baker::new(&config.secret),
            cards,
            trust: config.trust,
            is_accepting: true,
            keys: Vec::with_capacity(KEYS_MAX),
            table: Table::new(u16::from_le_bytes([low, high])),
            handshakes: VecDeque::new(),
            outputs: VecDeque::new(),
            counters: Counters::default(),
            turn: 0,
        })
    }

    /// Key pairs for handshakes that the node would like to have; it has room for that many.
    pub fn keys_wanted(&self) -> usize {
        KEYS_MAX - self.keys.len().min(KEYS_MAX)
    }

    /// Gives it one, which is used once; more than wanted are dropped.
    pub fn give_key(&mut self, key: HandshakeKey) {
        if self.keys_wanted() > 0 {
            self.keys.push(key);
        }
    }

    /// Changes who may be its peer from now on; groups that stand are not touched.
    pub fn set_trust(&mut self, trust: Trust) {
        self.trust = trust;
    }

    /// Says whether strangers are answered, as they are at first. One that only dials need not, and should not where another
    /// program of its machine serves over the same cards.
    pub fn set_accepting(&mut self, is_accepting: bool) {
        self.is_accepting = is_accepting;
    }

    /// Begins to join a peer over these ways, who must have the expected key, or one that is trusted.
    /// [`Output::Joined`] or [`Output::Failed`] tells how it ended.
    ///
    /// # Errors
    /// The ways are not over cards of the node, or all groups are taken.
    ///
    /// # Cost
    /// One and a half round trips until the first data may be sent.
    pub fn dial(&mut self, now: Time, ways: &[Way], expected: Option<NodeKey>) -> Result<GroupId, Misuse> {
        let is_over_card = |way: &Way| usize::from(way.card.0) < self.cards.len();
        if ways.is_empty() || ways.len() > PATHS_MAX || !ways.iter().all(is_over_card) {
            return Err(Misuse::Ways);
        }
        let group = self.table.take().ok_or(Misuse::Full)?;
        self.table.put(group, Slot::Dialling(Box::new(Dialling::new(now, ways, expected))));
        self.tick(now);
        Ok(group)
    }

    /// Takes a packet that a card received from `source`, without its Ethernet header. It is changed in place.
    pub fn receive(&mut self, now: Time, card: CardId, source: Address, packet: &mut [u8]) {
        let result = self.sort(now, Way { card, remote: source }, packet);
        self.counters.count(result);
    }

    fn sort(&mut self, now: Time, way: Way, packet: &mut [u8]) -> Result<(), Refused> {
        let (kind, group) = header::decode(packet).ok_or(Refused::Malformed)?;
        if usize::from(way.card.0) >= self.cards.len() {
            return Err(Refused::Malformed);
        }
        match kind {
            Kind::Hello if !self.is_accepting => Err(Refused::Unwelcome),
            Kind::Hello => self.take_hello(now, way, group, packet),
            Kind::Cookie => self.take_cookie(now, way, group, packet),
            Kind::Reply => self.take_reply(now, way, group, packet),
            Kind::Finish => self.take_finish(now, way, group, packet),
            Kind::Sealed { path } => {
                let place = self.table.group(group).ok_or(Refused::Unknown)?;
                let result = place.receive(now, path, way, packet, &self.cards);
                self.listen(group);
                result
            }
        }
    }

    /// Lets time pass.
    pub fn tick(&mut self, now: Time) {
        for id in self.table.ids() {
            match self.table.slot(id) {
                Some(Slot::Joined(group)) => {
                    group.tick(now);
                    let finish = group.poll_finish(now);
                    let is_gone = group.is_gone(now);
                    if let Some((way, packet)) = finish {
                        self.queue(way, packet);
                    }
                    self.listen(id);
                    if is_gone {
                        self.table.vacate(id);
                    }
                }
                Some(Slot::Dialling(_)) => self.tick_dialling(now, id),
                Some(Slot::HalfOpen(half)) if half.until <= now => self.table.vacate(id),
                Some(Slot::HalfOpen(_) | Slot::Vacant) | None => {}
            }
        }
    }

    /// The next time at which [`tick`](Node::tick) has something to do; none: never.
    pub fn deadline(&self) -> Option<Time> {
        self.table.slots().filter_map(Slot::deadline).min()
    }

    /// Writes the next packet that is to leave over this card now into `buffer`, which should have room for as many bytes
    /// as the card carries. None: nothing now.
    ///
    /// # Cost
    /// One copy of the data, and its sealing in place.
    pub fn poll_packet(&mut self, now: Time, card: CardId, buffer: &mut [u8]) -> Option<Departure> {
        let departure = self.poll_handshake(card, buffer).or_else(|| {
            let count = self.table.slots().len();
            (0..count).find_map(|step| {
                let slot = (self.turn + step) % count;
                let group = self.table.group_at(slot)?;
                let departure = group.poll_packet(now, card, buffer, &self.cards)?;
                self.turn = slot + 1;
                Some(departure)
            })
        });
        self.counters.sent += u64::from(departure.is_some());
        departure
    }

    /// Whether a packet may be to leave now. It is not said of data that a pace holds back, and of keeping a path alive.
    ///
    /// # Cost
    /// A tenth of asking for the packet.
    pub fn has_packets(&self, now: Time) -> bool {
        let has = |slot: &Slot| match slot {
            Slot::Joined(group) => group.has_packets(now),
            Slot::Vacant | Slot::HalfOpen(_) | Slot::Dialling(_) => false,
        };
        !self.handshakes.is_empty() || self.table.slots().any(has)
    }

    fn poll_handshake(&mut self, card: CardId, buffer: &mut [u8]) -> Option<Departure> {
        let at = self.handshakes.iter().position(|(way, _)| way.card == card)?;
        let (way, packet) = self.handshakes.remove(at)?;
        buffer.get_mut(..packet.len())?.copy_from_slice(&packet);
        Some(Departure { destination: way.remote, bytes: packet.len(), is_more: true })
    }

    /// Queues a handshake packet; when too many wait, it is as if it were lost.
    fn queue(&mut self, way: Way, packet: Bytes) {
        if self.handshakes.len() < HANDSHAKES_MAX {
            self.handshakes.push_back((way, packet));
        }
    }

    /// What happened since the last call.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Passes on what a group has to tell.
    fn listen(&mut self, id: GroupId) {
        let Some(Slot::Joined(group)) = self.table.slot(id) else {
            return;
        };
        let outputs = &mut self.outputs;
        if group.circuits.events.is_empty() && group.changes.is_empty() && group.lost().is_none() {
            return;
        }
        if !group.is_told {
            group.circuits.events.clear();
            group.changes.clear();
            return;
        }
        for change in group.changes.drain(..) {
            let (group, way) = (id, change.way);
            outputs.push_back(match change.is_up {
                true => Output::PathUp { group, way },
                false => Output::PathDown { group, way },
            });
        }
        let circuit = |number| CircuitId { group: id, number };
        outputs.extend(group.circuits.events.drain(..).map(|event| match event {
            Event::Opened(number) => Output::Opened(circuit(number)),
            Event::Readable(number) => Output::Readable(circuit(number)),
            Event::Writable(number) => Output::Writable(circuit(number)),
            Event::Finished(number) => Output::Finished(circuit(number)),
            Event::Reset(number) => Output::Reset(circuit(number)),
        }));
        if let Some(why) = group.lost() {
            group.is_told = false;
            outputs.push_back(Output::Lost { group: id, why });
        }
    }

    fn told(&mut self, id: GroupId) -> Result<&mut Group, Misuse> {
        self.table.group(id).filter(|group| group.is_told).ok_or(Misuse::Gone)
    }

    /// Opens a circuit.
    ///
    /// # Errors
    /// The group is over, or has no place left: some other circuit must end first.
    ///
    /// # Cost
    /// No packet: the peer learns of it by the first data.
    pub fn open(&mut self, group: GroupId, class: Class) -> Result<CircuitId, Misuse> {
        let number = self.told(group)?.open(class).ok_or(Misuse::Full)?;
        Ok(CircuitId { group, number })
    }

    /// Takes bytes from the front of `bytes`, as many as there is room for, and returns how many; when some are left,
    /// [`Output::Writable`] tells when to come again.
    ///
    /// # Errors
    /// The circuit is over.
    ///
    /// # Cost
    /// No copy: the bytes are shared until they are acknowledged.
    pub fn write(&mut self, circuit: CircuitId, bytes: &mut Bytes) -> Result<usize, Misuse> {
        self.told(circuit.group)?.circuits.write(circuit.number, bytes).ok_or(Misuse::Gone)
    }

    /// Bytes that were written to a circuit and were never sent; none: it is over.
    pub fn unsent_bytes(&mut self, circuit: CircuitId) -> Option<u64> {
        self.told(circuit.group).ok()?.circuits.unsent_bytes(circuit.number)
    }

    /// Says that no more is written; [`Output::Finished`] tells when the peer has everything.
    ///
    /// # Errors
    /// The circuit is over.
    pub fn finish(&mut self, circuit: CircuitId) -> Result<(), Misuse> {
        self.told(circuit.group)?.circuits.finish(circuit.number).ok_or(Misuse::Gone)
    }

    /// Reads what arrived, in the pieces in which it came.
    ///
    /// # Cost
    /// No copy; the bytes were copied once, out of their packet.
    pub fn read(&mut self, circuit: CircuitId) -> Read {
        let Ok(group) = self.told(circuit.group) else {
            return Read::Gone;
        };
        let read = group.circuits.read(circuit.number);
        self.listen(circuit.group);
        read
    }

    /// Ends a circuit at once, both ways; what was written may be lost.
    ///
    /// # Errors
    /// The circuit is over.
    pub fn reset(&mut self, circuit: CircuitId) -> Result<(), Misuse> {
        self.told(circuit.group)?.circuits.reset(circuit.number).ok_or(Misuse::Gone)
    }

    /// Ends a group, or the dialling of one, and all its circuits; what was written and is not
    /// [`Finished`](Output::Finished) may be lost.
    pub fn close(&mut self, now: Time, group: GroupId) {
        match self.table.slot(group) {
            Some(Slot::Joined(joined)) => {
                joined.close(now, Lost::Closed);
                self.listen(group);
            }
            Some(Slot::Dialling(_)) => self.table.vacate(group),
            Some(Slot::HalfOpen(_) | Slot::Vacant) | None => {}
        }
    }

    /// The peer's key; none: no such group stands.
    pub fn peer(&mut self, group: GroupId) -> Option<NodeKey> {
        self.told(group).ok().map(|group| group.peer())
    }

    /// The ways of a group that carry data now, each with its measured rate in bytes a second, if that was measured.
    pub fn live_ways(&mut self, group: GroupId) -> Vec<(Way, Option<u64>)> {
        self.told(group).map(|group| group.live_ways()).unwrap_or_default()
    }

    /// All paths of a group, those that are down too; none: no such group stands.
    pub fn paths(&mut self, group: GroupId) -> Vec<PathState> {
        self.told(group).map(|group| group.path_states()).unwrap_or_default()
    }

    /// The largest packets that were found to pass over each live way, in bytes behind the Ethernet header.
    pub fn packet_bytes(&mut self, group: GroupId) -> Vec<(Way, usize)> {
        self.told(group).map(|group| group.packet_bytes()).unwrap_or_default()
    }

    /// Circuits of a group that have a place in one of its tables.
    pub fn circuits(&mut self, group: GroupId) -> usize {
        self.told(group).map(|group| group.circuits.taken()).unwrap_or_default()
    }

    /// What was counted since the node was made.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Bytes held for users, peers and packets under way.
    pub fn held_bytes(&self) -> u64 {
        let held = |slot: &Slot| match slot {
            Slot::Joined(group) => group.held_bytes(),
            Slot::Vacant | Slot::HalfOpen(_) | Slot::Dialling(_) => 0,
        };
        self.table.slots().map(held).sum()
    }
}
