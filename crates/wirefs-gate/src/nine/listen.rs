//! Addresses of 9P, and the threads that accept connections there.

use super::connection;
use super::stream::NineStream;
use anyhow::{Context, Result, bail};
use rustix::fs::Mode;
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;
use wirefs_ninep::{Files, NineUsers};

/// The connections of one gate, at most: each has up to nine threads.
const CONNECTIONS_MAX: usize = 1024;
/// The wait after an accept that failed for want of descriptors or memory.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

static CONNECTIONS: AtomicUsize = AtomicUsize::new(0);
static NUMBERS: AtomicU32 = AtomicU32::new(1);

/// An address to serve 9P on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NineAddress {
    /// A socket in the file system, for this user alone.
    Unix(PathBuf),
    /// A TCP port, as the user wrote it.
    Tcp(String),
}

/// A bound socket.
pub(crate) struct NineListener {
    socket: Socket,
    address: String,
}

enum Socket {
    Unix(UnixListener),
    Tcp(TcpListener),
}

impl NineAddress {
    /// Parses `unix:PATH`, `unix:///PATH` or `HOST:PORT`.
    pub(crate) fn parse(text: &str) -> Result<NineAddress, String> {
        match text.strip_prefix("unix:") {
            Some(path) => match path.strip_prefix("//").unwrap_or(path) {
                "" => Err("names no path; write unix:PATH".to_owned()),
                path => Ok(NineAddress::Unix(PathBuf::from(path))),
            },
            None if text
                .rsplit_once(':')
                .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok()) =>
            {
                Ok(NineAddress::Tcp(text.to_owned()))
            }
            None => Err("is no address; write unix:PATH, or HOST:PORT such as 127.0.0.1:5640".to_owned()),
        }
    }

    /// Binds the address.
    ///
    /// # Errors
    /// It is in use, cannot be bound, or is reached by other machines without `unprotected`.
    pub(crate) fn bind(&self, unprotected: bool) -> Result<NineListener> {
        match self {
            NineAddress::Unix(path) => {
                // A socket file that nobody serves is left by a gate that was killed.
                if UnixStream::connect(path)
                    .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
                {
                    let _taken = std::fs::remove_file(path);
                }
                let before = rustix::process::umask(Mode::RWXG | Mode::RWXO);
                let bound = UnixListener::bind(path);
                rustix::process::umask(before);
                let socket = bound.with_context(|| {
                    format!("cannot serve on {}; remove the file if nobody serves there", path.display())
                })?;
                Ok(NineListener { socket: Socket::Unix(socket), address: format!("unix:{}", path.display()) })
            }
            NineAddress::Tcp(text) => {
                let found = text.to_socket_addrs().with_context(|| format!("cannot find {text}"))?;
                let addresses: Vec<SocketAddr> = found.collect();
                if !unprotected && addresses.iter().any(|address| !address.ip().is_loopback()) {
                    bail!(
                        "{text} is reached by other machines, and 9P neither encrypts nor authenticates\n  next step: \
                         serve on 127.0.0.1 or unix:PATH, or add --unprotected if all of that network may read and write"
                    );
                }
                let socket =
                    TcpListener::bind(&addresses[..]).with_context(|| format!("cannot serve on {text}"))?;
                let address = socket.local_addr().map_or_else(|_| text.clone(), |bound| bound.to_string());
                Ok(NineListener { socket: Socket::Tcp(socket), address })
            }
        }
    }

    /// Removes the socket file, if it is one.
    pub(crate) fn remove(&self) {
        if let NineAddress::Unix(path) = self {
            // Gone already, perhaps.
            let _gone = std::fs::remove_file(path);
        }
    }
}

impl NineListener {
    /// The address, with the port that was bound.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Accepts connections on a thread of its own, until the program ends.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(crate) fn start(self, files: Arc<dyn Files>, users: NineUsers) -> io::Result<()> {
        let accept = move || {
            loop {
                match self.socket.accept() {
                    Ok(stream) => take(stream, &files, users),
                    // Descriptors are short for now, or the client is gone already.
                    Err(_) => thread::sleep(ACCEPT_RETRY),
                }
            }
        };
        thread::Builder::new().name("wirefs-9p-listen".into()).spawn(accept).map(drop)
    }
}

impl Socket {
    fn accept(&self) -> io::Result<NineStream> {
        match self {
            Socket::Unix(socket) => Ok(NineStream::Unix(socket.accept()?.0)),
            Socket::Tcp(socket) => {
                let stream = socket.accept()?.0;
                // Replies are small, and each is waited for.
                stream.set_nodelay(true)?;
                Ok(NineStream::Tcp(stream))
            }
        }
    }
}

/// Counted until it is dropped.
struct Counted;

impl Drop for Counted {
    fn drop(&mut self) {
        CONNECTIONS.fetch_sub(1, Ordering::Relaxed);
    }
}

fn take(stream: NineStream, files: &Arc<dyn Files>, users: NineUsers) {
    if CONNECTIONS.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS_MAX {
        drop(Counted);
        return;
    }
    let (counted, files) = (Counted, Arc::clone(files));
    let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
    let serve = move || {
        connection::serve(stream, files, users, number);
        drop(counted);
    };
    // Without a thread the connection ends, and the client sees that.
    let _none = thread::Builder::new().name("wirefs-9p-reader".into()).spawn(serve);
}
