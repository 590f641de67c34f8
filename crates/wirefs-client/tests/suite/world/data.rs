//! Data connections: made when a client asks for them, each with delays of its own, lost at random.

use super::{Event, World};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::time::Duration;
use wirefs_client::DataKey;
use wirefs_op::message::version::{FEATURE_JOIN, Tversion, VERSION};
use wirefs_op::wire::Text;
use wirefs_op::{NOTAG, Reply, Request, Tag};
use wirefs_server::{ConnectionKey, ServerInput};
use wirefs_virtual::InOrder;

/// As often something happens to the connections of a seat.
const EVERY: Duration = Duration::from_millis(300);

/// One of them.
pub(crate) struct Data {
    seat: usize,
    key: DataKey,
    is_joined: bool,
    /// The order of frames to the server, and to the client.
    up: InOrder,
    down: InOrder,
}

/// All of them.
#[derive(Default)]
pub(crate) struct DataConnections {
    connections: BTreeMap<ConnectionKey, Data>,
    /// Replies that came over them.
    pub(crate) replies: u64,
    /// How many were lost while the first connection stood.
    pub(crate) lost: u64,
}

impl World {
    /// From now on socket buffers limit all connections, and data connections come and go.
    pub(crate) fn with_narrow_connections(&mut self) {
        for seat in 0..self.seats.len() {
            self.after(EVERY, Event::Narrow(seat));
        }
    }

    pub(super) fn is_narrow(&mut self, seat: usize) {
        self.after(EVERY, Event::Narrow(seat));
        let own: Vec<ConnectionKey> = self.data_of(seat).collect();
        let chosen = own.get(self.dice.below(4) as usize).copied();
        match (self.dice.chance(1, 6), chosen, self.seats[seat].connection) {
            (true, Some(lost), _) => self.lose_data(lost),
            (_, _, Some(first)) => self.handle(ServerInput::Limited(chosen.unwrap_or(first))),
            (_, _, None) => {}
        }
    }

    fn data_of(&self, seat: usize) -> impl Iterator<Item = ConnectionKey> + '_ {
        self.data.connections.iter().filter(move |(_, data)| data.seat == seat).map(|(key, _)| *key)
    }

    /// Cuts a data connection: what is on it is lost, in both directions, and both sides notice.
    fn lose_data(&mut self, connection: ConnectionKey) {
        let Some(Data { seat, key, .. }) = self.forget_data(connection) else { return };
        self.data.lost += 1;
        self.handle(ServerInput::Disconnected(connection));
        self.seats[seat].client.data_lost(self.now, key);
        self.outputs(seat);
    }

    /// The first connection is cut, and so are these; the client will hear of it by that.
    pub(super) fn cut_all_data(&mut self, seat: usize) {
        let all: Vec<ConnectionKey> = self.data_of(seat).collect();
        for connection in all {
            self.forget_data(connection);
            self.handle(ServerInput::Disconnected(connection));
        }
    }

    fn forget_data(&mut self, connection: ConnectionKey) -> Option<Data> {
        let data = self.data.connections.remove(&connection)?;
        self.events.retain(|event| match event {
            Event::Arrive(whose, _) | Event::DeliverData(whose, _) => *whose != connection,
            _ => true,
        });
        Some(data)
    }

    /// A client wants one.
    pub(super) fn open_data(&mut self, seat: usize, key: DataKey) {
        self.connections += 1;
        let connection = ConnectionKey(self.connections);
        let data = Data { seat, key, is_joined: false, up: InOrder::default(), down: InOrder::default() };
        self.data.connections.insert(connection, data);
        self.handle(ServerInput::Connected(connection));
        let session = self.seats[seat].session;
        let (msize, version) = (1 << 20, Text::new(VERSION));
        let join = Request::Version(Tversion { msize, version, features: FEATURE_JOIN, session });
        self.send_data(connection, join.encode(NOTAG).to_body());
    }

    /// A client wants one no more.
    pub(super) fn close_data(&mut self, seat: usize, key: DataKey) {
        let is_meant = |data: &Data| data.seat == seat && data.key == key;
        let connection = self.data.connections.iter().find(|(_, data)| is_meant(data)).map(|(key, _)| *key);
        if let Some(connection) = connection.filter(|connection| self.forget_data(*connection).is_some()) {
            self.handle(ServerInput::Disconnected(connection));
        }
    }

    /// The server closes one.
    pub(super) fn data_is_closed(&mut self, connection: ConnectionKey) -> bool {
        let Some(Data { seat, key, .. }) = self.forget_data(connection) else { return false };
        self.seats[seat].client.data_lost(self.now, key);
        self.outputs(seat);
        true
    }

    /// The connection by which a client sends over its data connection.
    pub(super) fn data_connection(&self, seat: usize, key: DataKey) -> Option<ConnectionKey> {
        let mut own = self.data.connections.iter().filter(|(_, data)| data.seat == seat && data.key == key);
        own.next().map(|(connection, _)| *connection)
    }

    pub(super) fn send_data(&mut self, connection: ConnectionKey, body: Bytes) {
        let delay = self.delay(self.delays.wire);
        let Some(data) = self.data.connections.get_mut(&connection) else { return };
        let at = data.up.arrives(self.now + delay);
        self.when(at, Event::Arrive(connection, body));
    }

    /// A reply over a data connection keeps its place there alone; false: it goes over another.
    pub(super) fn reply_data(&mut self, connection: ConnectionKey, tag: Tag, reply: &Reply) -> bool {
        if !self.data.connections.contains_key(&connection) {
            return false;
        }
        let delay = self.delay(self.delays.wire);
        let Some(data) = self.data.connections.get_mut(&connection) else { return false };
        let at = data.down.arrives(self.now + delay);
        self.when(at, Event::DeliverData(connection, reply.encode(tag).to_body()));
        true
    }

    pub(super) fn deliver_data(&mut self, connection: ConnectionKey, body: Bytes) {
        let now = self.now;
        let Some(data) = self.data.connections.get_mut(&connection) else { return };
        let (seat, key) = (data.seat, data.key);
        if std::mem::replace(&mut data.is_joined, true) {
            self.data.replies += 1;
            self.note_reply(seat, body.clone());
            let received = self.seats[seat].client.receive_data(now, key, body);
            received.expect("an honest server is not blamed");
        } else if matches!(Reply::decode(body), Ok((_, Reply::Version(_)))) {
            assert!(self.seats[seat].client.data_opened(now, key), "nobody wanted it");
        } else {
            // It is refused, and closed.
            self.forget_data(connection);
            self.seats[seat].client.data_lost(now, key);
        }
        self.outputs(seat);
    }
}
