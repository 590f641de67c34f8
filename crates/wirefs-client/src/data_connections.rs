//! Data connections: further connections to the server, over which contents of files come when the first one is limited by its
//! socket buffers, or where there are several ways to the server and each connection takes one.
//!
//! **How what is known stays right.** Frames of different connections have no order. The first connection alone says what is so: it
//! carries recalls, changes, their replies, and all attributes that are new. A data connection brings bytes, never news:
//! - only reads go over it that ask for attributes as well, of a file of which a version is known;
//! - a reply that tells of another version than the one known *when it comes*, or of none, is dropped whole, and the same is asked
//!   again over the first connection: so nobody sees by it what the first connection has not told, and a recall that it has
//!   overtaken finds nothing that came from behind it;
//! - a reply that is overtaken by a recall, or by a reply that told of a newer version, finds that the contents' epoch has gone on
//!   (`Contents::epoch`), and its bytes are dropped, as they are where replies of one connection overtake each other;
//! - what it says of a lease counts only if the object was not recalled since the request was sent, by whatever connection
//!   ([`Client::known`]).
//!
//! Nor is it a sign of life: leases are believed by what comes over the first connection (the server counts likewise), and that is
//! given up when it is silent, whatever others bring.

use crate::core::Client;
use crate::output::{DataKey, Output};
use crate::requests::Outstanding;
use crate::requests::connection::SILENCE_BEFORE_HANG_UP;
use crate::requests::data::{CONNECTIONS_MAX, DATA_RETRY_AFTER, DataConnection, IDLE_MAX, SPREAD_BYTES_MIN};
use crate::requests::shares::Share;
use crate::requests::shares::soonest;
use std::time::Duration;
use wirefs_op::{Errno, Reply, Request, Time};

impl Client {
    /// A data connection that was asked for ([`Output::OpenData`]) is there. False: it is not wanted any more, and is to be closed.
    pub fn data_opened(&mut self, now: Time, key: DataKey) -> bool {
        self.now = now;
        let Some(connection) = self.data.connections.get_mut(&key) else { return false };
        *connection = DataConnection::new(now, true);
        // Until now nobody looked at when it had nothing to bring.
        self.data.first = Share::default();
        self.data.first.asks(now, 0);
        self.send_waiting();
        true
    }

    /// A data connection is gone, or could not be made: what was asked over it is asked again over those that are left.
    pub fn data_lost(&mut self, now: Time, key: DataKey) {
        self.now = now;
        if self.data.connections.remove(&key).is_none() {
            return;
        }
        self.data.not_before = Some(now + DATA_RETRY_AFTER);
        for pending in self.requests.interrupted_over(key) {
            self.request_lost(pending, Errno::Io);
        }
        self.send_waiting();
    }

    /// The first connection is gone, and all others with it.
    pub(crate) fn data_end(&mut self) {
        for key in std::mem::take(&mut self.data.connections).into_keys() {
            self.output(Output::CloseData(key));
        }
        self.data.not_before = None;
        self.data.first = Share::default();
    }

    /// There are so many ways to the server that one connection each may take; more than one: much that is read goes over all of
    /// them.
    pub fn ways(&mut self, now: Time, count: usize) {
        self.now = now;
        self.data.ways = count;
    }

    /// The connection that the next request goes over: a read of much data goes where it will have come first. `None`: the first one.
    pub(crate) fn next_goes_over(&mut self) -> Option<DataKey> {
        self.spread();
        if self.data.connections.is_empty() {
            return None;
        }
        let next = self.requests.next_bulk()?;
        let (id, count) = (next.target.id?, u64::from(next.count));
        let known = self.names.node(self.names.of_file(id)?)?.stat;
        // Its version is still on its way to an opening: what came before that would be dropped.
        self.names.of_file(id).filter(|node| self.files.is_of(*node, known.version))?;
        let owed = self.data.shares().map(|(key, share)| (self.requests.bytes_to_come(key), key, share));
        let over = match self.data.ways > 1 {
            true => soonest(owed.map(|(to_come, key, share)| (key, to_come, share.rate(self.now))), count)?,
            // Connections of one line bring at one rate: what differs is chance, and each is to owe the same.
            false => owed.map(|(to_come, key, _)| (to_come, key)).min()?.1,
        };
        let to_come = self.requests.bytes_to_come(over);
        if let Some(share) = self.data.share_mut(over) {
            share.asks(self.now, to_come);
        }
        if let Some(connection) = over.and_then(|key| self.data.connections.get_mut(&key)) {
            connection.asked = self.now;
        }
        over
    }

    /// Where there are several ways to the server and much is to come, a connection is made over each.
    fn spread(&mut self) {
        let missing = self.data.ways.saturating_sub(1 + self.data.connections.len());
        // Asked at each request: what is to come is added up only where it decides.
        if missing == 0 || self.data_room() == 0 || self.requests.next_bulk().is_none() {
            return;
        }
        let to_come = self.data.shares().map(|(key, _)| self.requests.bytes_to_come(key));
        if to_come.sum::<u64>() >= SPREAD_BYTES_MIN {
            self.open_data(missing);
        }
    }

    /// A reply came over a data connection. False: that is not in use any more.
    pub(crate) fn data_heard(&mut self, key: DataKey) -> bool {
        let now = self.now;
        let connection = self.data.connections.get_mut(&key).filter(|connection| connection.is_open);
        connection.map(|connection| connection.heard = now).is_some()
    }

    /// Whether a first reply over a data connection tells of no other version than the one that is known.
    pub(crate) fn is_no_news(&self, request: &Request, reply: &Reply) -> bool {
        let (Request::Get(get), Reply::Get(got)) = (request, reply) else { return false };
        let node = get.target.id.and_then(|id| self.names.of_file(id));
        let known = node.and_then(|node| Some((node, self.names.node(node)?.stat)));
        match (known, got.stat) {
            (Some((node, known)), Some(told)) => {
                told.id == known.id && told.version == known.version && self.files.is_of(node, told.version)
            }
            (Some(_), None) | (None, _) => false,
        }
    }

    /// What comes over a data connection is not used: the same is asked over the first one.
    pub(crate) fn ask_first(&mut self, outstanding: Outstanding) {
        if let Some(pending) = self.requests.ask_first(self.now, outstanding) {
            self.request_lost(pending, Errno::Io);
        }
    }

    /// The server says that socket buffers hold it up: as many connections again are made.
    pub(crate) fn data_limited(&mut self) {
        self.open_data(self.data.connections.len() + 1);
    }

    /// How many more may be made now.
    fn data_room(&self) -> usize {
        let is_being_made = self.data.connections.values().any(|connection| !connection.is_open);
        let is_early = self.data.not_before.is_some_and(|time| self.now < time);
        if is_being_made || is_early || !self.link.is_up() {
            return 0;
        }
        let most = self.attachment.data_connections.min(CONNECTIONS_MAX);
        most.saturating_sub(self.data.connections.len())
    }

    /// Makes so many more, if that may be.
    fn open_data(&mut self, count: usize) {
        for _ in 0..count.min(self.data_room()) {
            let key = DataKey(self.data.begun);
            self.data.begun += 1;
            self.data.connections.insert(key, DataConnection::new(self.now, false));
            self.output(Output::OpenData(key));
        }
    }

    /// Lets time pass: closes those that are idle, and those that owe replies and are silent. What was slept through is no silence, as for
    /// the first one.
    pub(crate) fn watch_data(&mut self, slept: Duration) {
        let now = self.now;
        let mut over = Vec::new();
        for (key, connection) in self.data.connections.iter_mut().filter(|(_, it)| it.is_open) {
            match self.requests.oldest_over(*key) {
                Some(sent) if slept > Duration::ZERO => {
                    connection.heard = now.min(sent.max(connection.heard) + slept);
                }
                Some(sent) if now >= sent.max(connection.heard) + SILENCE_BEFORE_HANG_UP => {
                    over.push((*key, true))
                }
                None if now >= connection.asked.max(connection.heard) + IDLE_MAX => over.push((*key, false)),
                Some(_) | None => {}
            }
        }
        for (key, is_silent) in over {
            if is_silent {
                self.output(Output::HangUpData(key));
                self.data_lost(now, key);
            } else {
                self.output(Output::CloseData(key));
                self.data.connections.remove(&key);
            }
        }
    }
}
