//! The threads of data connections. Each dials, joins the session, receives, and ends.
//!
//! The core decides which replies use them, and when (`wirefs-client`, `data_connections.rs`).

use super::engine::Shared;
use super::handshake::{ConnectError, join};
use super::server_sink::ServerSink;
use std::sync::Arc;
use wirefs_carrier::{Carrier, Closer, SendQueue};
use wirefs_client::DataKey;

/// A data connection in use.
pub(super) struct DataConnection {
    pub(super) sink: ServerSink,
    pub(super) closer: Closer,
}

impl DataConnection {
    pub(super) fn close(&self) {
        self.sink.close();
        self.closer.close();
    }

    /// Closes a silent connection.
    pub(super) fn abort(&self) {
        self.closer.abort();
        self.sink.close();
    }
}

/// Opens the data connections that the core has requested.
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
    // The session id is a secret, so the server must be the same one.
    if carrier.peer.identity != engine.lock().peer.identity {
        carrier.closer.close();
        return Err(ConnectError::Refused("it has another key than the first connection".to_owned()));
    }
    join(carrier, engine.session)
}

/// Receives until the connection breaks, the server breaks the protocol, or the core closes the connection.
fn serve(engine: &Shared, key: DataKey, carrier: Carrier) {
    let Carrier { mut source, sink, closer, .. } = carrier;
    // The writer's loss also ends the receiver, which cleans up.
    let send_queue = SendQueue::start(sink, closer.clone(), |_| {});
    let connection = DataConnection { sink: ServerSink::Carrier(send_queue), closer: closer.clone() };
    let is_wanted = engine.drive(|state, now| {
        let is_wanted = !engine.is_stopped() && state.data.len() < DATA_CONNECTIONS_MAX;
        if is_wanted {
            // Before the core sends anything over it.
            state.data.insert(key, connection);
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
        if let Some(connection) = state.data.remove(&key) {
            connection.close();
        }
        state.client.data_lost(now, key);
    });
}

/// More than the core ever requests, including those that are about to end.
const DATA_CONNECTIONS_MAX: usize = 16;
