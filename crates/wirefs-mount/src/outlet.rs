//! Where the client core's frames go: into a carrier's queue, or to a server of this process.

use std::sync::Arc;
use wirefs_carrier::{Class, InProcessPeer, SendQueue};
use wirefs_op::Frame;

/// The way to the server. Clones are the same way.
#[derive(Clone)]
pub(super) enum Outlet {
    /// Over a carrier, with a queue before it.
    Wire(SendQueue),
    /// To a server of this process, which is called.
    Here(Arc<dyn InProcessPeer>),
}

impl Outlet {
    /// Queues a frame; may be called under the core's lock.
    pub(super) fn push(&self, frame: Frame, class: Class) {
        match self {
            Outlet::Wire(outbox) => outbox.push(frame, class),
            // Nothing waits there for long, so nothing need overtake.
            Outlet::Here(server) => server.push(frame),
        }
    }

    /// Sends what is queued, without waiting for it to be carried out.
    pub(super) fn flush(&self) {
        match self {
            Outlet::Wire(outbox) => outbox.flush(),
            Outlet::Here(server) => server.flush(0),
        }
    }

    /// The server, where it is in this process.
    pub(super) fn here(&self) -> Option<&Arc<dyn InProcessPeer>> {
        match self {
            Outlet::Wire(_) => None,
            Outlet::Here(server) => Some(server),
        }
    }

    /// Drops what is queued.
    pub(super) fn close(&self) {
        match self {
            Outlet::Wire(outbox) => outbox.close(),
            // Its closer does.
            Outlet::Here(_) => {}
        }
    }
}

impl std::fmt::Debug for Outlet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Outlet::Wire(_) => "Wire",
            Outlet::Here(_) => "Here",
        })
    }
}
