//! Data connections of a client: opened on request, with delays of their own, lost at any time.

use crate::wire::{Direction, Wire};
use crate::world::{Event, World};
use bytes::Bytes;
use std::time::Duration;
use wirefs_client::{DataKey, Lane};
use wirefs_op::limits::MESSAGE_BYTES_MAX;
use wirefs_op::message::version::{FEATURE_JOIN, Tversion, VERSION};
use wirefs_op::wire::Text;
use wirefs_op::{NOTAG, Reply, Request, Time};
use wirefs_server::{ConnectionKey, ServerInput};

/// The interval of faults of a client's connections.
const EVERY: Duration = Duration::from_millis(300);

/// The data connection of a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Data {
    pub(crate) key: DataKey,
    is_joined: bool,
}

impl World {
    /// Limits a connection by socket buffers, or cuts a data connection.
    pub(crate) fn narrows(&mut self) {
        if self.is_healed {
            return;
        }
        self.after(EVERY, Event::Narrow);
        let host = self.dice.below(self.hosts.len() as u64) as usize;
        let own: Vec<ConnectionKey> = self.wires_of(host).collect();
        let chosen = self.dice.below(own.len().max(1) as u64) as usize;
        let Some(connection) = own.get(chosen).copied().filter(|_| self.server.is_up) else { return };
        let is_data = self.wires.get(&connection).is_some_and(|wire| wire.data.is_some());
        if !is_data || self.dice.chance(5, 6) {
            return self.tell_server(ServerInput::Limited(connection));
        }
        self.counts.data_lost += 1;
        self.note(|| format!("client {host} loses data connection {}", connection.0));
        if self.plan.faults.cuts && self.dice.chance(1, 2) {
            self.cut(connection);
        } else {
            self.close(connection, Direction::Down);
            self.tell_server(ServerInput::Disconnected(connection));
        }
    }

    /// Returns all connections between a client and the server.
    fn wires_of(&self, host: usize) -> impl Iterator<Item = ConnectionKey> + '_ {
        let is_whole = move |wire: &Wire| wire.host == host && wire.at_host && wire.at_server;
        self.wires.iter().filter(move |(_, wire)| is_whole(wire)).map(|(key, _)| *key)
    }

    /// Returns the data connection with this key.
    pub(super) fn data_wire(&self, host: usize, key: DataKey) -> Option<ConnectionKey> {
        let is_it = |data: Data| data.key == key;
        let mut own = self.wires.iter().filter(|(_, wire)| wire.host == host && wire.at_host);
        own.find(|(_, wire)| wire.data.is_some_and(is_it)).map(|(connection, _)| *connection)
    }

    /// Opens a data connection for a client.
    pub(super) fn open_data(&mut self, index: usize, key: DataKey) {
        let Some(host) = self.hosts.get(index) else { return };
        let (session, life) = (host.session, host.life);
        if !self.server.is_up || self.is_line_stalled(index) {
            return self.drive(index, |client, now| client.data_lost(now, key)).unwrap_or_default();
        }
        let connection = self.server.new_connection();
        let data = Some(Data { key, is_joined: false });
        let mut wire = Wire::new(index, life);
        wire.data = data;
        self.wires.insert(connection, wire);
        self.counts.data_made += 1;
        self.note(|| format!("client {index} makes data connection {}", connection.0));
        self.tell_server(ServerInput::Connected(connection));
        let (msize, version) = (MESSAGE_BYTES_MAX as u32, Text::new(VERSION));
        let join = Request::Version(Tversion { msize, version, features: FEATURE_JOIN, session });
        self.send_up(connection, join.encode(NOTAG).to_body(), Lane::Data(key));
    }

    /// Closes a data connection of a client.
    pub(super) fn close_data(&mut self, index: usize, key: DataKey) {
        if let Some(connection) = self.data_wire(index, key) {
            self.close(connection, Direction::Up);
            self.tidy_wire(connection);
        }
    }

    /// Delivers a message over a data connection.
    pub(super) fn data_receives(&mut self, connection: ConnectionKey, index: usize, data: Data, body: Bytes) {
        let key = data.key;
        if data.is_joined {
            self.counts.data_replies += 1;
            let received = self.drive(index, |client, now| client.receive_data(now, key, body));
            if let Some(Err(blamed)) = received {
                self.fail(format!("client {index} blames an honest server: {blamed}"));
            }
            return;
        }
        match Reply::decode(body) {
            Ok((_, Reply::Version(_))) => {
                if let Some(wire) = self.wires.get_mut(&connection) {
                    wire.data = Some(Data { is_joined: true, ..data });
                }
                if self.drive(index, |client, now| client.data_opened(now, key)) != Some(true) {
                    self.close_data(index, key);
                }
            }
            // The session is not attached any more, or not yet again.
            Ok((_, Reply::Error(_))) => self.host_loses(connection),
            other => self.fail(format!("client {index} joins and gets {other:?}")),
        }
    }

    /// Ends a data connection.
    pub(super) fn data_is_lost(&mut self, connection: ConnectionKey, index: usize, key: DataKey) {
        self.close(connection, Direction::Up);
        self.tidy_wire(connection);
        self.note(|| format!("client {index} has lost data connection {}", connection.0));
        self.drive(index, |client, now| client.data_lost(now, key));
    }

    /// Records a message in the queue of a client's connection, to arrive `at`: counts which messages overtake others.
    pub(crate) fn note_order(&mut self, connection: ConnectionKey, is_recall: bool, at: Time) {
        let Some(wire) = self.wires.get(&connection) else { return };
        let (host, is_data) = (wire.host, wire.data.is_some());
        if is_recall {
            let is_late = |wire: &Wire| wire.data.is_some() && wire.last_down() > at;
            let is_overtaken = self.wires_of(host).any(|key| self.wires.get(&key).is_some_and(is_late));
            self.counts.data_behind += u64::from(is_overtaken);
        } else if is_data {
            let first = self.hosts.get(host).and_then(super::Host::connection);
            let recalled = first.and_then(|first| self.wires.get(&first)).map(Wire::last_recall);
            self.counts.data_before += u64::from(recalled.is_some_and(|recalled| recalled > at));
        }
    }
}
