//! A node: its cards, its groups, and the handshakes that create groups.

use std::collections::VecDeque;

use bytes::Bytes;
use ring::signature::KeyPair;
use wirefs_op::Time;

use crate::address::{CardAddress, CardId, CircuitClass, CircuitId, GroupId, NetworkPath, PeerKey};
use crate::circuits::Event;
use crate::config::{Card, CircuitConfig, PeerTrust};
use crate::cookie::CookieKey;
use crate::counters::{CircuitCounters, DropReason};
use crate::group::Group;
use crate::handshake::HandshakeKey;
use crate::limits::{CARD_BYTES_MIN, CARDS_MAX, KEYS_MAX, PACKET_BYTES_MAX, PATHS_MAX};
use crate::node::dialing::Dialing;
use crate::node::half_open::HalfOpen;
use crate::node::table::{Slot, Table};
use crate::output::{CircuitMisuse, CircuitOutput, CloseReason, OutgoingPacket, PathState, Read};
use crate::wire::header::{self, Kind};

mod dialing;
mod half_open;
mod table;

/// The maximum number of queued handshake packets.
const HANDSHAKES_MAX: usize = 64;

/// A node: one endpoint of circuits over all of its cards.
#[derive(Debug)]
pub struct CircuitNode {
    identity: ring::signature::Ed25519KeyPair,
    own: PeerKey,
    cookie_key: CookieKey,
    cards: Vec<Card>,
    trust: PeerTrust,
    /// Whether hellos of initiators are answered.
    is_accepting: bool,
    keys: Vec<HandshakeKey>,
    table: Table,
    handshakes: VecDeque<(NetworkPath, Bytes)>,
    outputs: VecDeque<CircuitOutput>,
    counters: CircuitCounters,
    /// The group that sends next (round-robin).
    next_slot: usize,
}

impl CircuitNode {
    /// Creates a node without peers.
    ///
    /// # Errors
    /// The number or the MTU of the cards is out of range.
    pub fn new(config: CircuitConfig) -> Result<CircuitNode, CircuitMisuse> {
        let mut cards = config.cards;
        if cards.is_empty()
            || cards.len() > CARDS_MAX
            || cards.iter().any(|card| card.packet_bytes < CARD_BYTES_MIN)
        {
            return Err(CircuitMisuse::Cards);
        }
        cards.iter_mut().for_each(|card| card.packet_bytes = card.packet_bytes.min(PACKET_BYTES_MAX));
        let own =
            PeerKey(config.identity.public_key().as_ref().try_into().map_err(|_| CircuitMisuse::Cards)?);
        let [low, high, ..] = config.secret;
        Ok(CircuitNode {
            identity: config.identity,
            own,
            cookie_key: CookieKey::new(&config.secret),
            cards,
            trust: config.trust,
            is_accepting: true,
            keys: Vec::with_capacity(KEYS_MAX),
            table: Table::new(u16::from_le_bytes([low, high])),
            handshakes: VecDeque::new(),
            outputs: VecDeque::new(),
            counters: CircuitCounters::default(),
            next_slot: 0,
        })
    }

    /// Returns how many ephemeral key pairs the node has space for.
    pub fn keys_wanted(&self) -> usize {
        KEYS_MAX - self.keys.len().min(KEYS_MAX)
    }

    /// Adds an ephemeral key pair, which is used once. Surplus ones are dropped.
    pub fn give_key(&mut self, key: HandshakeKey) {
        if self.keys_wanted() > 0 {
            self.keys.push(key);
        }
    }

    /// Replaces the set of accepted peers. Existing groups stay.
    pub fn set_trust(&mut self, trust: PeerTrust) {
        self.trust = trust;
    }

    /// Sets whether hellos of initiators are answered; the default is `true`. A node that only dials should
    /// disable this if another program of the machine serves on the same cards.
    pub fn set_accepting(&mut self, is_accepting: bool) {
        self.is_accepting = is_accepting;
    }

    /// Starts a handshake with a peer over these network paths. The peer must have the expected key, or else
    /// a trusted one. The result is [`CircuitOutput::Established`] or [`CircuitOutput::Failed`].
    ///
    /// # Errors
    /// A path uses an unknown card, the number of paths is out of range, or the group table is full.
    ///
    /// # Cost
    /// One and a half round trips until data can be sent.
    pub fn dial(
        &mut self,
        now: Time,
        network_paths: &[NetworkPath],
        expected: Option<PeerKey>,
    ) -> Result<GroupId, CircuitMisuse> {
        let is_over_card = |network_path: &NetworkPath| usize::from(network_path.card.0) < self.cards.len();
        if network_paths.is_empty()
            || network_paths.len() > PATHS_MAX
            || !network_paths.iter().all(is_over_card)
        {
            return Err(CircuitMisuse::Paths);
        }
        let group = self.table.take().ok_or(CircuitMisuse::Full)?;
        self.table.put(group, Slot::Dialing(Box::new(Dialing::new(now, network_paths, expected))));
        self.tick(now);
        Ok(group)
    }

    /// Processes a packet that a card received from `source`, without its Ethernet header. Decrypts it in
    /// place.
    pub fn receive(&mut self, now: Time, card: CardId, source: CardAddress, packet: &mut [u8]) {
        let result = self.dispatch(now, NetworkPath { card, remote: source }, packet);
        self.counters.count(result);
    }

    fn dispatch(
        &mut self,
        now: Time,
        network_path: NetworkPath,
        packet: &mut [u8],
    ) -> Result<(), DropReason> {
        let (kind, group) = header::decode(packet).ok_or(DropReason::Malformed)?;
        if usize::from(network_path.card.0) >= self.cards.len() {
            return Err(DropReason::Malformed);
        }
        match kind {
            Kind::Hello if !self.is_accepting => Err(DropReason::HandshakeRejected),
            Kind::Hello => self.take_hello(now, network_path, group, packet),
            Kind::Cookie => self.take_cookie(now, network_path, group, packet),
            Kind::Reply => self.take_reply(now, network_path, group, packet),
            Kind::Finish => self.take_finish(now, network_path, group, packet),
            Kind::Sealed { path } => {
                let established = self.table.group(group).ok_or(DropReason::UnknownGroup)?;
                let result = established.receive(now, path, network_path, packet, &self.cards);
                self.collect_outputs(group);
                result
            }
        }
    }

    /// Runs due timers.
    pub fn tick(&mut self, now: Time) {
        for id in self.table.ids() {
            match self.table.slot(id) {
                Some(Slot::Established(group)) => {
                    group.tick(now);
                    let finish = group.poll_finish(now);
                    let is_gone = group.is_gone(now);
                    if let Some((network_path, packet)) = finish {
                        self.queue(network_path, packet);
                    }
                    self.collect_outputs(id);
                    if is_gone {
                        self.table.vacate(id);
                    }
                }
                Some(Slot::Dialing(_)) => self.tick_dialing(now, id),
                Some(Slot::HalfOpen(half)) if half.until <= now => self.table.vacate(id),
                Some(Slot::HalfOpen(_) | Slot::Vacant) | None => {}
            }
        }
    }

    /// Returns when [`tick`](CircuitNode::tick) must be called next; `None`: not before another event.
    pub fn deadline(&self) -> Option<Time> {
        self.table.slots().filter_map(Slot::deadline).min()
    }

    /// Writes the next packet that can be sent on this card into `buffer`, which should have the size of the
    /// card's MTU. Returns `None` if there is nothing to send now.
    ///
    /// # Cost
    /// One copy of the data, and encryption in place.
    pub fn poll_packet(&mut self, now: Time, card: CardId, buffer: &mut [u8]) -> Option<OutgoingPacket> {
        let outgoing = self.poll_handshake(card, buffer).or_else(|| {
            let count = self.table.slots().len();
            (0..count).find_map(|step| {
                let slot = (self.next_slot + step) % count;
                let group = self.table.group_at(slot)?;
                let outgoing = group.poll_packet(now, card, buffer, &self.cards)?;
                self.next_slot = slot + 1;
                Some(outgoing)
            })
        });
        self.counters.sent += u64::from(outgoing.is_some());
        outgoing
    }

    /// Returns whether a packet may be ready to send. Does not consider pacing and keepalive.
    ///
    /// # Cost
    /// A tenth of that of [`poll_packet`](Self::poll_packet).
    pub fn has_packets(&self, now: Time) -> bool {
        let has = |slot: &Slot| match slot {
            Slot::Established(group) => group.has_packets(now),
            Slot::Vacant | Slot::HalfOpen(_) | Slot::Dialing(_) => false,
        };
        !self.handshakes.is_empty() || self.table.slots().any(has)
    }

    fn poll_handshake(&mut self, card: CardId, buffer: &mut [u8]) -> Option<OutgoingPacket> {
        let at = self.handshakes.iter().position(|(network_path, _)| network_path.card == card)?;
        let (network_path, packet) = self.handshakes.remove(at)?;
        buffer.get_mut(..packet.len())?.copy_from_slice(&packet);
        Some(OutgoingPacket { destination: network_path.remote, bytes: packet.len(), is_more: true })
    }

    /// Queues a handshake packet; drops it if the queue is full.
    fn queue(&mut self, network_path: NetworkPath, packet: Bytes) {
        if self.handshakes.len() < HANDSHAKES_MAX {
            self.handshakes.push_back((network_path, packet));
        }
    }

    /// Returns the next event.
    pub fn poll(&mut self) -> Option<CircuitOutput> {
        self.outputs.pop_front()
    }

    /// Moves the events of a group to the outputs.
    fn collect_outputs(&mut self, id: GroupId) {
        let Some(Slot::Established(group)) = self.table.slot(id) else {
            return;
        };
        let outputs = &mut self.outputs;
        if group.circuits.events.is_empty() && group.changes.is_empty() && group.close_reason().is_none() {
            return;
        }
        if !group.is_announced {
            group.circuits.events.clear();
            group.changes.clear();
            return;
        }
        for change in group.changes.drain(..) {
            let (group, path) = (id, change.network_path);
            outputs.push_back(match change.is_up {
                true => CircuitOutput::PathUp { group, path },
                false => CircuitOutput::PathDown { group, path },
            });
        }
        let circuit = |number| CircuitId { group: id, number };
        outputs.extend(group.circuits.events.drain(..).map(|event| match event {
            Event::Opened(number) => CircuitOutput::Opened(circuit(number)),
            Event::Readable(number) => CircuitOutput::Readable(circuit(number)),
            Event::Writable(number) => CircuitOutput::Writable(circuit(number)),
            Event::Finished(number) => CircuitOutput::Finished(circuit(number)),
            Event::Reset(number) => CircuitOutput::Reset(circuit(number)),
        }));
        if let Some(reason) = group.close_reason() {
            group.is_announced = false;
            outputs.push_back(CircuitOutput::Closed { group: id, reason });
        }
    }

    fn announced_group(&mut self, id: GroupId) -> Result<&mut Group, CircuitMisuse> {
        self.table.group(id).filter(|group| group.is_announced).ok_or(CircuitMisuse::Gone)
    }

    /// Opens a circuit.
    ///
    /// # Errors
    /// The group is closed, or its table is full.
    ///
    /// # Cost
    /// No packet: the peer learns of the circuit with the first data.
    pub fn open(&mut self, group: GroupId, class: CircuitClass) -> Result<CircuitId, CircuitMisuse> {
        let number = self.announced_group(group)?.open(class).ok_or(CircuitMisuse::Full)?;
        Ok(CircuitId { group, number })
    }

    /// Buffers bytes from the front of `bytes`, as many as fit, and returns their number. If some are left,
    /// [`CircuitOutput::Writable`] reports when there is space again.
    ///
    /// # Errors
    /// The circuit is closed.
    ///
    /// # Cost
    /// No copy: the bytes are shared until they are acknowledged.
    pub fn write(&mut self, circuit: CircuitId, bytes: &mut Bytes) -> Result<usize, CircuitMisuse> {
        self.announced_group(circuit.group)?.circuits.write(circuit.number, bytes).ok_or(CircuitMisuse::Gone)
    }

    /// Returns the number of bytes that were written to a circuit and never sent; `None` if it is closed.
    pub fn unsent_bytes(&mut self, circuit: CircuitId) -> Option<u64> {
        self.announced_group(circuit.group).ok()?.circuits.unsent_bytes(circuit.number)
    }

    /// Ends the send direction of a circuit; [`CircuitOutput::Finished`] reports when the peer has
    /// acknowledged all of it.
    ///
    /// # Errors
    /// The circuit is closed.
    pub fn finish(&mut self, circuit: CircuitId) -> Result<(), CircuitMisuse> {
        self.announced_group(circuit.group)?.circuits.finish(circuit.number).ok_or(CircuitMisuse::Gone)
    }

    /// Returns the next received data, in chunks as received.
    ///
    /// # Cost
    /// No copy; the data was copied once, out of its packet.
    pub fn read(&mut self, circuit: CircuitId) -> Read {
        let Ok(group) = self.announced_group(circuit.group) else {
            return Read::Gone;
        };
        let read = group.circuits.read(circuit.number);
        self.collect_outputs(circuit.group);
        read
    }

    /// Resets a circuit: aborts both directions. Unacknowledged data may be lost.
    ///
    /// # Errors
    /// The circuit is closed.
    pub fn reset(&mut self, circuit: CircuitId) -> Result<(), CircuitMisuse> {
        self.announced_group(circuit.group)?.circuits.reset(circuit.number).ok_or(CircuitMisuse::Gone)
    }

    /// Closes a group and its circuits, or cancels a dial. Data that is not
    /// [`Finished`](CircuitOutput::Finished) may be lost.
    pub fn close(&mut self, now: Time, group: GroupId) {
        match self.table.slot(group) {
            Some(Slot::Established(joined)) => {
                joined.close(now, CloseReason::Local);
                self.collect_outputs(group);
            }
            Some(Slot::Dialing(_)) => self.table.vacate(group),
            Some(Slot::HalfOpen(_) | Slot::Vacant) | None => {}
        }
    }

    /// Returns the key of the peer; `None` if there is no such group.
    pub fn peer(&mut self, group: GroupId) -> Option<PeerKey> {
        self.announced_group(group).ok().map(|group| group.peer())
    }

    /// Returns the live paths of a group with their estimated bandwidths in bytes per second, if measured.
    pub fn live_paths(&mut self, group: GroupId) -> Vec<(NetworkPath, Option<u64>)> {
        self.announced_group(group).map(|group| group.live_paths()).unwrap_or_default()
    }

    /// Returns the state of all paths of a group; empty if there is no such group.
    pub fn paths(&mut self, group: GroupId) -> Vec<PathState> {
        self.announced_group(group).map(|group| group.path_states()).unwrap_or_default()
    }

    /// Returns the path MTU of each live path, in bytes after the Ethernet header.
    pub fn packet_bytes(&mut self, group: GroupId) -> Vec<(NetworkPath, usize)> {
        self.announced_group(group).map(|group| group.packet_bytes()).unwrap_or_default()
    }

    /// Returns the number of circuits in the tables of a group.
    pub fn circuits(&mut self, group: GroupId) -> usize {
        self.announced_group(group).map(|group| group.circuits.count()).unwrap_or_default()
    }

    /// Returns the packet counters since the node was created.
    pub fn counters(&self) -> &CircuitCounters {
        &self.counters
    }

    /// Returns the memory of buffers and packets in flight, in bytes.
    pub fn held_bytes(&self) -> u64 {
        let held = |slot: &Slot| match slot {
            Slot::Established(group) => group.held_bytes(),
            Slot::Vacant | Slot::HalfOpen(_) | Slot::Dialing(_) => 0,
        };
        self.table.slots().map(held).sum()
    }
}
