//! The connections whose peers have not proved their keys yet.
//!
//! A full table makes room: it closes the oldest connection of the host that has the most. So a host that opens many
//! connections and says nothing takes the place of nobody but itself.

use std::collections::BTreeMap;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The table of one listener.
#[derive(Debug)]
pub(super) struct PendingTable {
    state: Mutex<State>,
    max: usize,
}

#[derive(Debug, Default)]
struct State {
    begun: u64,
    entries: BTreeMap<u64, Entry>,
    evicted: u64,
}

#[derive(Debug)]
struct Entry {
    host: String,
    /// The socket to close; `None` for a peer that needs no more time.
    socket: Option<TcpStream>,
}

impl PendingTable {
    pub(super) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), max })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters a connection. `socket` is the one of a peer that must prove its key.
    pub(super) fn enter(self: &Arc<Self>, host: String, socket: Option<&TcpStream>) -> Slot {
        let mut state = self.state();
        if state.entries.len() >= self.max {
            state.evict();
        }
        let number = state.begun;
        state.begun += 1;
        // Without a second descriptor the connection cannot be closed early, and its own deadline ends it.
        let socket = socket.and_then(|socket| socket.try_clone().ok());
        state.entries.insert(number, Entry { host, socket });
        Slot { table: Arc::clone(self), number }
    }

    /// Returns the number of connections that were closed to make room.
    pub(super) fn evicted(&self) -> u64 {
        self.state().evicted
    }
}

impl State {
    /// Closes the oldest connection of the host with the most.
    fn evict(&mut self) {
        let mut hosts: BTreeMap<&str, (usize, u64)> = BTreeMap::new();
        for (number, entry) in self.entries.iter().rev().filter(|(_, entry)| entry.socket.is_some()) {
            let (count, oldest) = hosts.entry(&entry.host).or_default();
            (*count, *oldest) = (*count + 1, *number);
        }
        let Some((_, oldest)) = hosts.into_values().max_by_key(|(count, oldest)| (*count, u64::MAX - oldest))
        else {
            return;
        };
        if let Some(Entry { socket: Some(socket), .. }) = self.entries.remove(&oldest) {
            self.evicted += 1;
            // Wakes its handshake. A peer that has closed needs no more.
            let _closed = socket.shutdown(Shutdown::Both);
        }
    }
}

/// The place of one connection; freed when its handshake has ended in any way.
#[derive(Debug)]
pub(super) struct Slot {
    table: Arc<PendingTable>,
    number: u64,
}

impl Drop for Slot {
    fn drop(&mut self) {
        let entry = self.table.state().entries.remove(&self.number);
        // Closed after the table is unlocked.
        drop(entry);
    }
}

#[cfg(test)]
mod tests;
