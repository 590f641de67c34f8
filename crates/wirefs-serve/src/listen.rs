//! The thread that accepts connections.

use super::shared::Shared;
use super::{log, reader};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use wirefs_carrier::{AcceptError, Listener};

/// The maximum time of a peer's handshake.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);

/// Starts a thread that accepts connections until the server stops.
pub(super) fn start(shared: &Arc<Shared>, listener: Listener) -> io::Result<()> {
    if !shared.add_listener(listener.closer()) {
        return Ok(());
    }
    let shared = Arc::clone(shared);
    std::thread::Builder::new()
        .name("wirefs-listen".into())
        .spawn(move || accept(&shared, &listener))
        .map(drop)
}

fn accept(shared: &Arc<Shared>, listener: &Listener) {
    loop {
        let pending = match listener.accept() {
            Ok(pending) => pending,
            Err(AcceptError::Closed) => return,
            Err(error) => {
                log::line(format_args!("{}: {error}", listener.address()));
                return;
            }
        };
        let shared = Arc::clone(shared);
        let serve = move || match pending.finish(HANDSHAKE_MAX) {
            Ok(carrier) => reader::run(&shared, carrier),
            Err(error) => log::line(format_args!("{error}")),
        };
        if let Err(error) = std::thread::Builder::new().name("wirefs-reader".into()).spawn(serve) {
            log::line(format_args!("no thread for a connection: {error}"));
        }
    }
}
