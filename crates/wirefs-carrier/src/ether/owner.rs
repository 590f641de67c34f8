//! Handles of a node and of its lanes: when the last is dropped, the node ends.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use wirefs_circuit::{CardId, GroupId};

use super::card::OutCard;
use super::engine::Engine;
use super::error::EtherError;
use super::lane::Taken;
use super::machine::Machine;
use super::sink::EtherSink;
use super::source::EtherSource;
use super::{keeper, node};
use crate::carrier::{Carrier, PeerInfo};
use crate::closer::Closer;
use crate::lost::CarrierLost;
use crate::tls::Identity;

/// A node that lives as long as somebody has it.
#[derive(Debug)]
pub(super) struct Owner {
    pub(super) engine: Arc<Engine>,
    keeper: Mutex<Option<JoinHandle<()>>>,
}

impl Owner {
    /// Opens these cards.
    pub(super) fn open(
        cards: &[String],
        identity: &Identity,
        is_accepting: bool,
    ) -> Result<Arc<Owner>, EtherError> {
        let (mut outs, mut rings, mut described) = (Vec::new(), Vec::new(), Vec::new());
        for (index, name) in cards.iter().enumerate() {
            let id = CardId(u8::try_from(index).map_err(|_| wirefs_circuit::CircuitMisuse::Cards)?);
            let (out, ring, card) = OutCard::open(name, id)?;
            outs.push(out);
            rings.push(ring);
            described.push(card);
        }
        let mut node = node::node(identity, described)?;
        node.set_accepting(is_accepting);
        let engine = Arc::new(Engine::new(Machine::new(node, is_accepting), outs, rings)?);
        let keeper = Mutex::new(Some(keeper::start(&engine)?));
        Ok(Arc::new(Owner { engine, keeper }))
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.engine.with(|machine, now| machine.end(now));
        self.engine.nudge();
        self.engine.keeper.notify_one();
        let keeper = self.keeper.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(keeper) = keeper {
            // It panics never; and what was to be said was said.
            let _ended = keeper.join();
        }
    }
}

/// One lane, held by the ends of its carrier.
#[derive(Debug)]
pub(super) struct Handle {
    pub(super) owner: Arc<Owner>,
    pub(super) group: GroupId,
}

impl Handle {
    pub(super) fn engine(&self) -> &Engine {
        &self.owner.engine
    }

    /// Ends the lane on this side, and wakes who waits for it.
    pub(super) fn close(&self) {
        self.engine().with(|machine, now| machine.close(now, self.group));
        self.engine().nudge();
    }

    /// Makes the ends of a carrier.
    pub(super) fn into_carrier(
        self,
        source: impl FnOnce(Arc<Handle>) -> EtherSource,
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

    /// What a wait for bytes came to when its time passed.
    pub(super) fn silent() -> Taken {
        Taken::Gone(CarrierLost::Io(std::io::ErrorKind::TimedOut.into()))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.engine().with(|machine, now| machine.release(now, self.group));
        self.engine().nudge();
    }
}
