//! A running server.

use super::connection::Connection;
use super::options::{PeerRights, ServeOptions};
use super::shared::Shared;
use super::status::ServeStatus;
use super::{in_process, listen, reader, watchdog};
use std::io;
use std::sync::Arc;
use wirefs_carrier::{Carrier, Listener, PeerInfo};
use wirefs_op::message::attach::Watch;
use wirefs_op::message::version::SessionId;
use wirefs_server::{ServerInput, Tree};

/// A running server: a tree, its clients and its threads. Dropping it stops it.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
}

impl Server {
    /// Starts a server without clients.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(tree: Arc<dyn Tree>, options: ServeOptions) -> io::Result<Server> {
        let shared = Arc::new(Shared::new(tree, options));
        shared.begin_leasing();
        watchdog::start(&shared)?;
        Ok(Server { shared })
    }

    /// Serves one client, in a new thread, until its connection ends.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn connect(&self, carrier: Carrier) -> io::Result<()> {
        reader::start(&self.shared, carrier)
    }

    /// Serves one client in the calling thread, until its connection ends.
    pub fn serve(&self, carrier: Carrier) {
        reader::run(&self.shared, carrier, PeerRights::default());
    }

    /// The same with these rights.
    pub fn serve_with(&self, carrier: Carrier, rights: PeerRights) {
        reader::run(&self.shared, carrier, rights);
    }

    /// Returns whether this session exists, with or without a connection.
    pub fn has_session(&self, session: &SessionId) -> bool {
        self.shared.core().sessions.has_session(session)
    }

    /// Ends the sessions of all connected peers for which `keeps` returns false.
    pub fn review(&self, keeps: &dyn Fn(&PeerInfo, PeerRights) -> bool) {
        let connections: Vec<Arc<Connection>> = self.shared.core().connections.values().cloned().collect();
        for connection in connections.iter().filter(|it| !keeps(&it.peer, it.rights)) {
            self.shared.handle(ServerInput::Revoked(connection.key));
        }
    }

    /// Connects a client in the same process. The client's threads execute most requests themselves, when they flush
    /// them ([`FrameSink::in_process`](wirefs_carrier::FrameSink::in_process)).
    ///
    /// # Errors
    /// The server stops, or no thread can be started.
    pub fn join(&self) -> io::Result<Carrier> {
        in_process::join(&self.shared)
    }

    /// Accepts connections from `listener` until the server stops. Each connection's thread performs its handshake.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn listen(&self, listener: Listener) -> io::Result<()> {
        listen::start(&self.shared, listener)
    }

    /// Returns the server's status.
    pub fn status(&self) -> ServeStatus {
        self.shared.status()
    }

    /// Returns which changes by server programs are noticed; `None` if no leases are granted.
    pub fn watch(&self) -> Option<Watch> {
        self.shared.tree.leases()
    }

    /// Returns whether clients may still use leases of this server. After a stop, the next server of the tree must then
    /// wait until they have expired ([`ServeOptions::recovery`]).
    pub fn are_leases_out(&self) -> bool {
        self.shared.core().sessions.has_leases_out()
    }

    /// Stops: accepts nothing more, waits for running requests, recalls leases, ends all sessions and closes all
    /// connections. Returns whether all of it ended in time.
    ///
    /// # Cost
    /// Waits at most `drain_max` and two more seconds.
    pub fn stop(&self) -> bool {
        self.shared.stop()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}
