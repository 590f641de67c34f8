//! The data connections, and the share of each.

use crate::output::DataKey;
use crate::requests::shares::Share;
use std::collections::BTreeMap;
use std::time::Duration;
use wirefs_op::Time;

/// Data connections at a time.
pub(crate) const CONNECTIONS_MAX: usize = 3;

/// One over which nothing was asked for so long is closed.
pub(crate) const IDLE_MAX: Duration = Duration::from_secs(30);

/// After a data connection that could not be made, or was lost, no other is tried for so long.
pub const DATA_RETRY_AFTER: Duration = Duration::from_secs(30);

/// What is to come is worth a connection over another way, in bytes.
pub(crate) const SPREAD_BYTES_MIN: u64 = 1024 * 1024;

#[derive(Debug)]
pub(crate) struct DataConnection {
    pub(crate) is_open: bool,
    /// When something was last asked over it.
    pub(crate) asked: Time,
    pub(crate) heard: Time,
    pub(crate) share: Share,
}

impl DataConnection {
    pub(crate) fn new(now: Time, is_open: bool) -> DataConnection {
        DataConnection { is_open, asked: now, heard: now, share: Share::default() }
    }
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct DataConnections {
    pub(crate) connections: BTreeMap<DataKey, DataConnection>,
    pub(crate) begun: u64,
    /// Ways to the server that one connection each may take, as far as is known.
    pub(crate) ways: usize,
    /// That of the first connection.
    pub(crate) first: Share,
    /// None is made before.
    pub(crate) not_before: Option<Time>,
}

impl DataConnections {
    /// How many are in use.
    pub(crate) fn open(&self) -> usize {
        self.connections.values().filter(|connection| connection.is_open).count()
    }

    pub(crate) fn shares(&self) -> impl Iterator<Item = (Option<DataKey>, Share)> + Clone + '_ {
        let others = self.connections.iter().filter(|(_, connection)| connection.is_open);
        let others = others.map(|(key, connection)| (Some(*key), connection.share));
        std::iter::once((None, self.first)).chain(others)
    }

    pub(crate) fn share_mut(&mut self, over: Option<DataKey>) -> Option<&mut Share> {
        match over {
            None => Some(&mut self.first),
            Some(key) => self.connections.get_mut(&key).map(|connection| &mut connection.share),
        }
    }

    /// Bytes of a read of much data have come over a connection, and so many are still to come over it.
    pub(crate) fn brings(&mut self, now: Time, over: Option<DataKey>, bytes: usize, to_come: u64) {
        let Some(share) = self.share_mut(over) else { return };
        share.brings(now, bytes);
        if to_come == 0 {
            share.rests();
        }
    }
}
