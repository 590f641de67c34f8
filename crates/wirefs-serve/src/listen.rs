//! The thread that accepts connections.

use super::options::PeerRights;
use super::shared::Shared;
use super::{log, reader};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use wirefs_carrier::{AcceptError, Carrier, Listener};

/// The maximum time of a peer's handshake.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);

/// Starts a thread that accepts connections until the server stops.
pub(super) fn start(shared: &Arc<Shared>, listener: Listener) -> io::Result<()> {
    if !shared.add_listener(listener.closer()) {
        return Ok(());
    }
    let shared = Arc::clone(shared);
    accept_all(listener, move |carrier| reader::run(&shared, carrier, PeerRights::default()))
}

/// Starts a thread that accepts connections until the listener is closed. `serve` runs in a thread for each.
pub(super) fn accept_all(
    listener: Listener,
    serve: impl Fn(Carrier) + Clone + Send + 'static,
) -> io::Result<()> {
    std::thread::Builder::new()
        .name("wirefs-listen".into())
        .spawn(move || accept(&listener, &serve))
        .map(drop)
}

fn accept(listener: &Listener, serve: &(impl Fn(Carrier) + Clone + Send + 'static)) {
    loop {
        let pending = match listener.accept() {
            Ok(pending) => pending,
            Err(AcceptError::Closed) => return,
            Err(error) => {
                log::line(format_args!("{}: {error}", listener.address()));
                return;
            }
        };
        let serve = serve.clone();
        let connection = move || match pending.finish(HANDSHAKE_MAX) {
            Ok(carrier) => serve(carrier),
            Err(error) => log::peer(format_args!("{error}")),
        };
        if let Err(error) = std::thread::Builder::new().name("wirefs-reader".into()).spawn(connection) {
            log::line(format_args!("no thread for a connection: {error}"));
        }
    }
}
