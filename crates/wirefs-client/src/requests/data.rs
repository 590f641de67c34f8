//! Data connections: further connections to the server that carry large reads. They are used if socket buffers limit
//! the first connection, or if there are several network paths.
//!
//! **Consistency.** Frames of different connections have no order. Only the first connection is authoritative: it carries recalls,
//! changes and their replies, and all new attributes. A data connection brings bytes, never news:
//! - it carries only reads that also ask for attributes, of a file whose version is known;
//! - a reply with another version than the one known *when it arrives*, or with none, is dropped, and the same read goes over the
//!   first connection. So programs see nothing before the first connection has reported it, and a recall that such a reply has
//!   overtaken finds no data from behind it;
//! - a reply that a recall or a newer version has overtaken finds that the contents' epoch has advanced (`Contents::epoch`), and
//!   its bytes are dropped, as on a single connection;
//! - a lease in such a reply counts only if the object was not recalled since the request was sent, over any connection
//!   ([`View::known`](crate::view::View::known)).
//!
//! A data connection is no sign of life: leases depend on the first connection, as at the server, and a silent first connection is
//! given up even if others bring data.

use super::Requests;
use super::connection::SILENCE_BEFORE_HANG_UP;
use super::shares::{Share, soonest};
use crate::output::{DataKey, Output, Outputs};
use crate::pending::Pending;
use std::collections::BTreeMap;
use std::time::Duration;
use wirefs_op::{FileId, Time};

/// Data connections, at most.
const CONNECTIONS_MAX: usize = 3;

/// A data connection without a request for this long is closed.
const IDLE_MAX: Duration = Duration::from_secs(30);

/// After a data connection fails or is lost, no other is opened for this long.
pub const DATA_RETRY_AFTER: Duration = Duration::from_secs(30);

/// Outstanding bytes that justify a connection over another path.
const SPREAD_BYTES_MIN: u64 = 1024 * 1024;

#[derive(Debug)]
struct DataConnection {
    is_open: bool,
    /// The time of the last request.
    asked: Time,
    /// The time of the last reply.
    replied: Time,
    share: Share,
}

impl DataConnection {
    fn new(now: Time, is_open: bool) -> DataConnection {
        DataConnection { is_open, asked: now, replied: now, share: Share::default() }
    }
}

/// The data connections.
#[derive(Debug, Default)]
pub(crate) struct DataConnections {
    connections: BTreeMap<DataKey, DataConnection>,
    /// How many were opened so far.
    begun: u64,
    /// How many the server allows.
    pub(super) most: usize,
    /// The number of network paths to the server, of which each connection takes one.
    pub(super) paths: usize,
    /// The share of the first connection.
    first: Share,
    /// No connection is opened before this time.
    not_before: Option<Time>,
}

impl DataConnections {
    /// The number of open connections.
    pub(crate) fn open(&self) -> usize {
        self.connections.values().filter(|connection| connection.is_open).count()
    }

    fn shares(&self) -> impl Iterator<Item = (Option<DataKey>, Share)> + Clone + '_ {
        let others = self.connections.iter().filter(|(_, connection)| connection.is_open);
        let others = others.map(|(key, connection)| (Some(*key), connection.share));
        std::iter::once((None, self.first)).chain(others)
    }

    fn share_mut(&mut self, over: Option<DataKey>) -> Option<&mut Share> {
        match over {
            None => Some(&mut self.first),
            Some(key) => self.connections.get_mut(&key).map(|connection| &mut connection.share),
        }
    }
}

impl Requests {
    /// Notes the number of network paths to the server.
    pub(crate) fn set_paths(&mut self, count: usize) {
        self.data.paths = count;
    }

    /// Notes how many data connections the server allows.
    pub(crate) fn allow_data_connections(&mut self, most: usize) {
        self.data.most = most;
    }

    /// Takes a new data connection into use. Returns false if it is not wanted any more.
    pub(crate) fn data_opened(&mut self, now: Time, key: DataKey) -> bool {
        let Some(connection) = self.data.connections.get_mut(&key) else { return false };
        *connection = DataConnection::new(now, true);
        // The first connection was not measured until now.
        self.data.first = Share::default();
        self.data.first.asks(now, 0);
        true
    }

    /// Forgets a lost data connection, and queues its requests again. Returns those that are of no more use; `None` if the
    /// connection was not in use.
    pub(crate) fn data_lost(&mut self, now: Time, key: DataKey) -> Option<Vec<Pending>> {
        self.data.connections.remove(&key)?;
        self.data.not_before = Some(now + DATA_RETRY_AFTER);
        Some(self.interrupted_over(key))
    }

    /// Closes all data connections, since the first connection is lost.
    pub(crate) fn close_data(&mut self, outputs: &mut Outputs) {
        for key in std::mem::take(&mut self.data.connections).into_keys() {
            outputs.push(Output::CloseData(key));
        }
        self.data.not_before = None;
        self.data.first = Share::default();
    }

    /// Notes a reply over a data connection. Returns false if the connection is not in use any more.
    pub(crate) fn data_replied(&mut self, now: Time, key: DataKey) -> bool {
        let connection = self.data.connections.get_mut(&key).filter(|connection| connection.is_open);
        connection.map(|connection| connection.replied = now).is_some()
    }

    /// Measures a large read: this many bytes arrived over a connection.
    pub(crate) fn bulk_arrived(&mut self, now: Time, over: Option<DataKey>, bytes: usize) {
        let to_come = self.bytes_to_come(over);
        let Some(share) = self.data.share_mut(over) else { return };
        share.brings(now, bytes);
        if to_come == 0 {
            share.rests();
        }
    }

    /// Opens as many data connections again, since the server reports that socket buffers limit it.
    pub(crate) fn data_limited(&mut self, now: Time, outputs: &mut Outputs) {
        self.open_data(now, self.data.connections.len() + 1, outputs);
    }

    /// The connection for the next request: a large read takes the one that will deliver it first. `None`: the first connection.
    /// `is_settled`: whether the cached contents of a file are of the version that is known.
    pub(super) fn next_connection(
        &mut self,
        now: Time,
        is_settled: impl Fn(FileId) -> bool,
        outputs: &mut Outputs,
    ) -> Option<DataKey> {
        self.spread(now, outputs);
        if self.data.connections.is_empty() {
            return None;
        }
        let next = self.next_bulk()?;
        let (id, count) = (next.target.id?, u64::from(next.count));
        // Data that arrives before the version of a file that is being opened would be dropped.
        if !is_settled(id) {
            return None;
        }
        let owed = self.data.shares().map(|(key, share)| (self.bytes_to_come(key), key, share));
        let over = match self.data.paths > 1 {
            true => soonest(owed.map(|(to_come, key, share)| (key, to_come, share.rate(now))), count)?,
            // Connections over one path have one rate, except by chance: each gets an equal share.
            false => owed.map(|(to_come, key, _)| (to_come, key)).min()?.1,
        };
        let to_come = self.bytes_to_come(over);
        if let Some(share) = self.data.share_mut(over) {
            share.asks(now, to_come);
        }
        if let Some(connection) = over.and_then(|key| self.data.connections.get_mut(&key)) {
            connection.asked = now;
        }
        over
    }

    /// Opens a connection over each network path if many bytes are outstanding.
    fn spread(&mut self, now: Time, outputs: &mut Outputs) {
        let missing = self.data.paths.saturating_sub(1 + self.data.connections.len());
        // Runs for each request, so the outstanding bytes are added up only where they decide.
        if missing == 0 || self.data_room(now) == 0 || self.next_bulk().is_none() {
            return;
        }
        let to_come = self.data.shares().map(|(key, _)| self.bytes_to_come(key));
        if to_come.sum::<u64>() >= SPREAD_BYTES_MIN {
            self.open_data(now, missing, outputs);
        }
    }

    /// The number of connections that may be opened now.
    fn data_room(&self, now: Time) -> usize {
        let is_opening = self.data.connections.values().any(|connection| !connection.is_open);
        let is_early = self.data.not_before.is_some_and(|time| now < time);
        if is_opening || is_early || !self.link.is_up() {
            return 0;
        }
        self.data.most.min(CONNECTIONS_MAX).saturating_sub(self.data.connections.len())
    }

    fn open_data(&mut self, now: Time, count: usize, outputs: &mut Outputs) {
        for _ in 0..count.min(self.data_room(now)) {
            let key = DataKey(self.data.begun);
            self.data.begun += 1;
            self.data.connections.insert(key, DataConnection::new(now, false));
            outputs.push(Output::OpenData(key));
        }
    }

    /// The data connections to close now, and whether each is silent though it owes replies; the others are idle. Time that the
    /// machine slept counts neither as silence nor as idleness.
    pub(crate) fn overdue_data(&mut self, now: Time, slept: Duration) -> Vec<(DataKey, bool)> {
        let keys: Vec<DataKey> = self.data.connections.keys().copied().collect();
        let mut overdue = Vec::new();
        for key in keys {
            let oldest = self.oldest_over(key);
            let Some(connection) = self.data.connections.get_mut(&key).filter(|it| it.is_open) else {
                continue;
            };
            match oldest {
                Some(sent) if slept > Duration::ZERO => {
                    connection.replied = now.min(sent.max(connection.replied) + slept);
                }
                Some(sent) if now >= sent.max(connection.replied) + SILENCE_BEFORE_HANG_UP => {
                    overdue.push((key, true));
                }
                None if now >= connection.asked.max(connection.replied) + IDLE_MAX => {
                    overdue.push((key, false))
                }
                Some(_) | None => {}
            }
        }
        overdue
    }

    /// Closes an idle data connection.
    pub(crate) fn close_idle(&mut self, key: DataKey, outputs: &mut Outputs) {
        outputs.push(Output::CloseData(key));
        self.data.connections.remove(&key);
    }
}
