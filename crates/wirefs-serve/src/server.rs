//! A running server.

use super::options::ServeOptions;
use super::shared::Shared;
use super::status::ServeStatus;
use super::{line, listen, reader, relief};
use std::io;
use std::sync::Arc;
use wirefs_carrier::{Carrier, Listener};
use wirefs_op::message::attach::Watch;
use wirefs_server::Tree;

/// One running server: a tree, its clients, and the threads between.
///
/// Dropping it stops it.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
}

impl Server {
    /// Starts a server without clients.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(tree: Arc<dyn Tree>, options: ServeOptions) -> io::Result<Server> {
        let shared = Arc::new(Shared::new(tree, options));
        shared.begin_leasing();
        relief::start(&shared)?;
        Ok(Server { shared })
    }

    /// Serves one client, on a thread of its own, until it goes.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn connect(&self, carrier: Carrier) -> io::Result<()> {
        reader::start(&self.shared, carrier)
    }

    /// Serves one client on this thread until its connection ends.
    pub fn serve(&self, carrier: Carrier) {
        reader::run(&self.shared, carrier);
    }

    /// Joins a client of this process. It carries out most of its requests itself, in the thread that flushes them, as its
    /// carrier's [`direct`](wirefs_carrier::FrameSink::direct) way has it.
    ///
    /// # Errors
    /// The server stops, or the system gives no thread.
    pub fn join(&self) -> io::Result<Carrier> {
        line::join(&self.shared)
    }

    /// Takes connections from `listener` until the server stops. Handshakes are made on the connections' threads.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn listen(&self, listener: Listener) -> io::Result<()> {
        listen::start(&self.shared, listener)
    }

    /// What the server is doing.
    pub fn status(&self) -> ServeStatus {
        self.shared.status()
    }

    /// Which changes to the tree are noticed that are not made through this server; `None`: it leases nothing.
    pub fn watch(&self) -> Option<Watch> {
        self.shared.tree.leases()
    }

    /// Whether clients may believe still what this server has leased to them: after a stop, whoever serves the same tree
    /// next must wait until that is over ([`ServeOptions::recovery`]).
    pub fn are_leases_out(&self) -> bool {
        self.shared.core().sessions.are_leases_out()
    }

    /// Stops: takes nothing more, lets running requests finish for a while and takes leases back, ends all sessions, closes
    /// all connections. Returns whether everything had ended by then.
    ///
    /// # Cost
    /// Waits at most for `drain_max` and two more seconds.
    pub fn stop(&self) -> bool {
        self.shared.stop()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}
