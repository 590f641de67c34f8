//! The threads of data connections: each dials, joins the session, receives, and ends.
//!
//! What may come over them, and when, is the core's affair (`wirefs-client`, `data_connections.rs`).

use super::engine::Shared;
use super::handshake::{ConnectError, join};
use super::outlet::Outlet;
use std::sync::Arc;
use wirefs_carrier::{Carrier, Closer, SendQueue};
use wirefs_client::DataKey;

/// A data connection in use.
pub(super) struct DataLink {
    pub(super) outlet: Outlet,
    pub(super) closer: Closer,
}

impl DataLink {
    pub(super) fn close(&self) {
        self.outlet.close();
        self.closer.close();
    }

    /// Closes what is silent.
    pub(super) fn give_up(&self) {
        self.closer.abort();
        self.outlet.close();
    }
}

/// Makes the data connections that the core has asked for since.
pub(super) fn open_wanted(engine: &Shared) {
    let wanted = std::mem::take(&mut engine.lock().wanted_data);
    for key in wanted {
        let shared = Arc::clone(engine);
        let started = std::thread::Builder::new().name("wirefs-data".into()).spawn(move || run(&shared, key));
        if started.is_err() {
            lost(engine, key);
        }
    }
}

fn run(engine: &Shared, key: DataKey) {
    if let Ok(carrier) = dial(engine) {
        serve(engine, key, carrier);
    }
    lost(engine, key);
}

fn dial(engine: &Shared) -> Result<Carrier, ConnectError> {
    let carrier = engine.dial.dial_additional()?;
    // The session is a secret between two: it is told to nobody else.
    if carrier.peer.identity != engine.lock().peer.identity {
        carrier.closer.close();
        return Err(ConnectError::Refused("it has another key than the first connection".to_owned()));
    }
    join(carrier, engine.session)
}

/// Receives until the connection breaks, the server breaks the protocol, or it is not wanted any more.
fn serve(engine: &Shared, key: DataKey, carrier: Carrier) {
    let Carrier { mut source, sink, closer, .. } = carrier;
    // A loss that the writer finds ends the receiver too, which sees to the rest.
    let outbox = SendQueue::start(sink, closer.clone(), |_| {});
    let link = DataLink { outlet: Outlet::Wire(outbox), closer: closer.clone() };
    let is_wanted = engine.drive(|state, now| {
        let is_wanted = !engine.is_stopped() && state.data.len() < DATA_LINKS_MAX;
        if is_wanted {
            // Before the core sends anything over it.
            state.data.insert(key, link);
        }
        is_wanted && state.client.data_opened(now, key)
    });
    while is_wanted && let Ok(Some(body)) = source.receive() {
        if engine.is_stopped()
            || engine.drive(|state, now| state.client.receive_data(now, key, body)).is_err()
        {
            break;
        }
    }
    closer.close();
}

fn lost(engine: &Shared, key: DataKey) {
    engine.drive(|state, now| {
        if let Some(link) = state.data.remove(&key) {
            link.close();
        }
        state.client.data_lost(now, key);
    });
}

/// More than the core ever asks for, those that are about to end counted.
const DATA_LINKS_MAX: usize = 16;
