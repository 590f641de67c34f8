//! Handles of a node and of its connections; the node ends when the last is dropped.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use wirefs_circuit::{CardId, GroupId};

use super::card::CardSender;
use super::connection::ReadOutcome;
use super::engine::Engine;
use super::error::EtherError;
use super::mux::Mux;
use super::sink::EtherSink;
use super::source::EtherSource;
use super::{background, node};
use crate::carrier::{Carrier, PeerInfo};
use crate::closer::Closer;
use crate::lost::CarrierLost;
use crate::tls::Identity;

/// A node that lives as long as it has an owner.
#[derive(Debug)]
pub(super) struct SharedNode {
    pub(super) engine: Arc<Engine>,
    background: Mutex<Option<JoinHandle<()>>>,
}

impl SharedNode {
    /// Opens the cards.
    pub(super) fn open(
        cards: &[String],
        identity: &Identity,
        is_accepting: bool,
    ) -> Result<Arc<SharedNode>, EtherError> {
        let (mut outs, mut rings, mut described) = (Vec::new(), Vec::new(), Vec::new());
        for (index, name) in cards.iter().enumerate() {
            let id = CardId(u8::try_from(index).map_err(|_| wirefs_circuit::CircuitMisuse::Cards)?);
            let (out, ring, card) = CardSender::open(name, id)?;
            outs.push(out);
            rings.push(ring);
            described.push(card);
        }
        let mut node = node::node(identity, described)?;
        node.set_accepting(is_accepting);
        let engine = Arc::new(Engine::new(Mux::new(node, is_accepting), outs, rings)?);
        let background = Mutex::new(Some(background::start(&engine)?));
        Ok(Arc::new(SharedNode { engine, background }))
    }
}

impl Drop for SharedNode {
    fn drop(&mut self) {
        self.engine.with(|mux, now| mux.end(now));
        self.engine.wake_leader();
        self.engine.background.notify_one();
        let background = self.background.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(background) = background {
            // The thread never panics; remaining messages were sent.
            let _ended = background.join();
        }
    }
}

/// One connection, owned by the ends of its carrier.
#[derive(Debug)]
pub(super) struct ConnectionHandle {
    pub(super) shared_node: Arc<SharedNode>,
    pub(super) group: GroupId,
}

impl ConnectionHandle {
    pub(super) fn engine(&self) -> &Engine {
        &self.shared_node.engine
    }

    /// Closes the connection on this side, and wakes its waiting threads.
    pub(super) fn close(&self) {
        self.engine().with(|mux, now| mux.close(now, self.group));
        self.engine().wake_leader();
    }

    /// Returns the carrier's ends.
    pub(super) fn into_carrier(
        self,
        source: impl FnOnce(Arc<ConnectionHandle>) -> EtherSource,
        peer: PeerInfo,
    ) -> Carrier {
        let handle = Arc::new(self);
        let closing = Arc::clone(&handle);
        Carrier {
            source: Box::new(source(Arc::clone(&handle))),
            sink: Box::new(EtherSink::new(handle)),
            closer: Closer::new(move || closing.close()),
            peer,
        }
    }

    /// Returns the result of a read that timed out.
    pub(super) fn timed_out() -> ReadOutcome {
        ReadOutcome::Lost(CarrierLost::Io(std::io::ErrorKind::TimedOut.into()))
    }
}

impl Drop for ConnectionHandle {
    fn drop(&mut self) {
        self.engine().with(|mux, now| mux.release(now, self.group));
        self.engine().wake_leader();
    }
}
