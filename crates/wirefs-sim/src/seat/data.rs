//! Data connections of a client: made when it asks for them, each with delays of its own, lost at any moment.

use crate::wire::{Way, Wire};
use crate::world::{Event, World};
use bytes::Bytes;
use std::time::Duration;
use wirefs_client::{DataKey, Lane};
use wirefs_op::limits::MESSAGE_BYTES_MAX;
use wirefs_op::message::version::{FEATURE_JOIN, Tversion, VERSION};
use wirefs_op::wire::Text;
use wirefs_op::{NOTAG, Reply, Request, Time};
use wirefs_server::{ConnectionKey, Input};

/// As often something happens to the connections of a client.
const EVERY: Duration = Duration::from_millis(300);

/// What makes a wire one of a data connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Data {
    pub(crate) key: DataKey,
    is_joined: bool,
}

impl World {
    /// Socket buffers hold up a connection, or a data connection is lost.
    pub(crate) fn narrows(&mut self) {
        if self.is_healed {
            return;
        }
        self.after(EVERY, Event::Narrow);
        let seat = self.dice.below(self.seats.len() as u64) as usize;
        let own: Vec<ConnectionKey> = self.wires_of(seat).collect();
        let chosen = self.dice.below(own.len().max(1) as u64) as usize;
        let Some(connection) = own.get(chosen).copied().filter(|_| self.server.is_up) else { return };
        let is_data = self.wires.get(&connection).is_some_and(|wire| wire.data.is_some());
        if !is_data || self.dice.chance(5, 6) {
            return self.tell_server(Input::Limited(connection));
        }
        self.record.data_lost += 1;
        self.note(|| format!("client {seat} loses data connection {}", connection.0));
        if self.plan.troubles.cuts && self.dice.chance(1, 2) {
            self.cut(connection);
        } else {
            self.close(connection, Way::Down);
            self.tell_server(Input::Disconnected(connection));
        }
    }

    /// All connections that a client and the server have.
    fn wires_of(&self, seat: usize) -> impl Iterator<Item = ConnectionKey> + '_ {
        let is_whole = move |wire: &Wire| wire.seat == seat && wire.at_seat && wire.at_server;
        self.wires.iter().filter(move |(_, wire)| is_whole(wire)).map(|(key, _)| *key)
    }

    /// The data connection that a client calls so.
    pub(super) fn data_wire(&self, seat: usize, key: DataKey) -> Option<ConnectionKey> {
        let is_it = |data: Data| data.key == key;
        let mut own = self.wires.iter().filter(|(_, wire)| wire.seat == seat && wire.at_seat);
        own.find(|(_, wire)| wire.data.is_some_and(is_it)).map(|(connection, _)| *connection)
    }

    /// A client wants one.
    pub(super) fn open_data(&mut self, index: usize, key: DataKey) {
        let Some(seat) = self.seats.get(index) else { return };
        let (session, life) = (seat.session, seat.life);
        if !self.server.is_up || self.is_line_stalled(index) {
            return self.drive(index, |client, now| client.data_lost(now, key)).unwrap_or_default();
        }
        let connection = self.server.new_connection();
        let data = Some(Data { key, is_joined: false });
        let mut wire = Wire::new(index, life);
        wire.data = data;
        self.wires.insert(connection, wire);
        self.record.data_made += 1;
        self.note(|| format!("client {index} makes data connection {}", connection.0));
        self.tell_server(Input::Connected(connection));
        let (msize, version) = (MESSAGE_BYTES_MAX as u32, Text::new(VERSION));
        let join = Request::Version(Tversion { msize, version, features: FEATURE_JOIN, session });
        self.send_up(connection, join.encode(NOTAG).to_body(), Lane::Data(key));
    }

    /// A client wants one no more.
    pub(super) fn close_data(&mut self, index: usize, key: DataKey) {
        if let Some(connection) = self.data_wire(index, key) {
            self.close(connection, Way::Up);
            self.tidy_wire(connection);
        }
    }

    /// Something came over one.
    pub(super) fn data_receives(&mut self, connection: ConnectionKey, index: usize, data: Data, body: Bytes) {
        let key = data.key;
        if data.is_joined {
            self.record.data_replies += 1;
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
            Ok((_, Reply::Error(_))) => self.seat_loses(connection),
            other => self.fail(format!("client {index} joins and hears {other:?}")),
        }
    }

    /// One is gone.
    pub(super) fn data_is_lost(&mut self, connection: ConnectionKey, index: usize, key: DataKey) {
        self.close(connection, Way::Up);
        self.tidy_wire(connection);
        self.note(|| format!("client {index} has lost data connection {}", connection.0));
        self.drive(index, |client, now| client.data_lost(now, key));
    }

    /// A message stands in the queue of a client's connection, to be there `at`: tells what overtakes what.
    pub(crate) fn note_order(&mut self, connection: ConnectionKey, is_recall: bool, at: Time) {
        let Some(wire) = self.wires.get(&connection) else { return };
        let (seat, is_data) = (wire.seat, wire.data.is_some());
        if is_recall {
            let is_late = |wire: &Wire| wire.data.is_some() && wire.last_down() > at;
            let is_overtaken = self.wires_of(seat).any(|key| self.wires.get(&key).is_some_and(is_late));
            self.record.data_behind += u64::from(is_overtaken);
        } else if is_data {
            let first = self.seats.get(seat).and_then(super::Seat::connection);
            let recalled = first.and_then(|first| self.wires.get(&first)).map(Wire::last_recall);
            self.record.data_before += u64::from(recalled.is_some_and(|recalled| recalled > at));
        }
    }
}
