//! The sink of the client core's frames: a carrier's send queue, or a server in this process.

use std::sync::Arc;
use wirefs_carrier::{Class, InProcessPeer, SendQueue};
use wirefs_op::Frame;

/// The sink of a connection. Clones share it.
#[derive(Clone)]
pub(super) enum ServerSink {
    /// A carrier, with a send queue.
    Carrier(SendQueue),
    /// A server in this process, which is called.
    InProcess(Arc<dyn InProcessPeer>),
}

impl ServerSink {
    /// Queues a frame; may be called under the core's lock.
    pub(super) fn push(&self, frame: Frame, class: Class) {
        match self {
            ServerSink::Carrier(send_queue) => send_queue.push(frame, class),
            // No frame waits there for long, so none must overtake.
            ServerSink::InProcess(server) => server.push(frame),
        }
    }

    /// Sends the queued frames, without waiting for their execution.
    pub(super) fn flush(&self) {
        match self {
            ServerSink::Carrier(send_queue) => send_queue.flush(),
            ServerSink::InProcess(server) => server.flush(0),
        }
    }

    /// Returns the in-process server, if any.
    pub(super) fn in_process(&self) -> Option<&Arc<dyn InProcessPeer>> {
        match self {
            ServerSink::Carrier(_) => None,
            ServerSink::InProcess(server) => Some(server),
        }
    }

    /// Drops the queued frames.
    pub(super) fn close(&self) {
        match self {
            ServerSink::Carrier(send_queue) => send_queue.close(),
            // The carrier's closer closes it.
            ServerSink::InProcess(_) => {}
        }
    }
}

impl std::fmt::Debug for ServerSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            ServerSink::Carrier(_) => "Carrier",
            ServerSink::InProcess(_) => "InProcess",
        })
    }
}
