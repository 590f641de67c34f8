//! The status of a server.

use super::shared::Shared;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use wirefs_carrier::PeerInfo;

/// The state of a server at one moment.
#[derive(Clone, Debug)]
pub struct ServeStatus {
    /// The connected clients.
    pub clients: Vec<ClientStatus>,
    /// The number of sessions, including those without a connection.
    pub sessions: usize,
    /// Requests that run or wait for the write slot.
    pub running: usize,
    /// Requests since the start, by kind.
    pub requests: BTreeMap<&'static str, u64>,
    /// Bytes received since the start, over all connections.
    pub received_bytes: u64,
    /// Bytes sent since the start, over all connections.
    pub sent_bytes: u64,
    /// Worker threads.
    pub workers: usize,
}

/// One connected client.
#[derive(Clone, Debug)]
pub struct ClientStatus {
    /// The peer and its carrier.
    pub peer: PeerInfo,
    /// Bytes received from it.
    pub received_bytes: u64,
    /// Bytes sent to it.
    pub sent_bytes: u64,
    /// Bytes of replies in the send queue.
    pub queued_bytes: usize,
}

impl Shared {
    pub(super) fn status(&self) -> ServeStatus {
        let core = self.core();
        let clients: Vec<ClientStatus> = core
            .connections
            .values()
            .map(|connection| ClientStatus {
                peer: connection.peer.clone(),
                received_bytes: connection.received_bytes.load(Ordering::Relaxed),
                sent_bytes: connection.send_queue.sent().1,
                queued_bytes: connection.send_queue.queued_bytes(),
            })
            .collect();
        let (received, sent) = core.past_bytes;
        ServeStatus {
            sessions: core.sessions.sessions(),
            running: core.sessions.jobs(),
            requests: core.requests.clone(),
            received_bytes: received + clients.iter().map(|client| client.received_bytes).sum::<u64>(),
            sent_bytes: sent + clients.iter().map(|client| client.sent_bytes).sum::<u64>(),
            workers: self.pool.threads(),
            clients,
        }
    }
}
