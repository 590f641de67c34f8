//! A connected server: its extensions and limits.

use std::sync::Arc;

use bytes::Bytes;
use wirefs_carrier::DialError;
use wirefs_op::{Errno, FsStat};

use crate::attributes::Attributes;
use crate::dial::{SftpDial, SftpStream};
use crate::limits::{DATA_BYTES_USUAL, HANDLES_MAX, HANDLES_USUAL, PACKET_BYTES_MAX};
use crate::message::{self, Malformed, PacketReader, Request, Status};
use crate::wire::{Fault, Sent, Wire, receive_packet};

/// Room for the head of a packet with data, in bytes.
const HEAD_BYTES: u32 = 1024;

/// A server that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SftpError {
    /// There is no connection.
    #[error(transparent)]
    Dial(#[from] DialError),
    /// This machine has no thread left.
    #[error("this machine has no resources left for a connection: {0}")]
    Resources(std::io::Error),
    /// The connection ended while the directory was looked for.
    #[error("{host} ended the SFTP connection")]
    Lost {
        /// The host.
        host: String,
    },
    /// The directory cannot be used.
    #[error("{host} does not give access to {path}: {errno}")]
    Directory {
        /// The host.
        host: String,
        /// The path.
        path: String,
        /// The cause.
        errno: Errno,
    },
}

/// Extensions that a server offers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extensions {
    pub(crate) renames_over: bool,
    pub(crate) links: bool,
    pub(crate) sets_links: bool,
    pub(crate) syncs: bool,
    pub(crate) has_figures: bool,
    pub(crate) copies: bool,
    has_limits: bool,
}

impl Extensions {
    fn of(names: &[Bytes]) -> Extensions {
        let has = |name: &str| names.iter().any(|offered| offered == name.as_bytes());
        Extensions {
            renames_over: has("posix-rename@openssh.com"),
            links: has("hardlink@openssh.com"),
            sets_links: has("lsetstat@openssh.com"),
            syncs: has("fsync@openssh.com"),
            has_figures: has("statvfs@openssh.com"),
            copies: has("copy-data"),
            has_limits: has("limits@openssh.com"),
        }
    }
}

/// A connected server.
pub(crate) struct Remote {
    wire: Wire,
    pub(crate) extensions: Extensions,
    /// The data of one read, in bytes.
    pub(crate) read_max: u32,
    /// The data of one write, in bytes.
    pub(crate) write_max: u32,
    /// Handles that may be half open.
    pub(crate) handles_max: usize,
}

/// An open file or directory of the server, closed on drop.
pub(crate) struct Handle {
    remote: Arc<Remote>,
    bytes: Bytes,
}

impl Handle {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.remote.is_lost()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.remote.wire.send_without_reply(&Request::Close { handle: &self.bytes });
    }
}

impl Remote {
    /// Connects.
    ///
    /// # Errors
    /// The host is not reached, or does not speak SFTP.
    ///
    /// # Cost
    /// Two round trips beyond the login.
    pub(crate) fn connect(dial: &dyn SftpDial, is_interactive: bool) -> Result<Arc<Remote>, SftpError> {
        let SftpStream { mut source, mut sink, close, explain } = dial.dial(is_interactive)?;
        let greeted = sink.write_all(&message::init()).and_then(|()| receive_packet(source.as_mut()));
        let names = greeted.ok().and_then(|body| message::version(body).ok());
        let Some(names) = names else {
            close();
            return Err(explain().into());
        };
        let extensions = Extensions::of(&names);
        let wire = Wire::start(source, sink, close).map_err(SftpError::Resources)?;
        let mut remote = Remote {
            wire,
            extensions,
            read_max: DATA_BYTES_USUAL,
            write_max: DATA_BYTES_USUAL,
            handles_max: HANDLES_USUAL,
        };
        if extensions.has_limits {
            // A server that refuses has the usual limits.
            if let Ok(body) = remote.send(&Request::Limits).and_then(Sent::extended) {
                remote.take_limits(body);
            }
        }
        Ok(Arc::new(remote))
    }

    /// Takes over the limits that the server states; 0 is none.
    fn take_limits(&mut self, body: Bytes) {
        let mut reader = PacketReader(body);
        let mut next = || reader.long().ok().filter(|number| *number > 0);
        let (_packet, read, write, handles) = (next(), next(), next(), next());
        let bytes = |stated: Option<u64>| {
            let largest = u64::from(PACKET_BYTES_MAX as u32 - HEAD_BYTES);
            stated.map_or(DATA_BYTES_USUAL, |stated| stated.clamp(1024, largest) as u32)
        };
        (self.read_max, self.write_max) = (bytes(read), bytes(write));
        // Half of them: requests in progress open files too.
        let half = |stated: u64| usize::try_from(stated / 2).unwrap_or(HANDLES_MAX).min(HANDLES_MAX);
        self.handles_max = handles.map_or(HANDLES_USUAL, half);
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.wire.is_lost()
    }

    pub(crate) fn send(&self, request: &Request<'_>) -> Result<Sent, Fault> {
        self.wire.send(request)
    }

    pub(crate) fn lstat(&self, path: &[u8]) -> Result<Sent, Fault> {
        self.send(&Request::Lstat { path })
    }

    pub(crate) fn fstat(&self, handle: &Handle) -> Result<Sent, Fault> {
        self.send(&Request::Fstat { handle: &handle.bytes })
    }

    pub(crate) fn open(&self, path: &[u8], flags: u32) -> Result<Sent, Fault> {
        self.send(&Request::Open { path, flags, attributes: Attributes::default() })
    }

    /// Waits for the reply to an OPEN or OPENDIR.
    pub(crate) fn opened(self: &Arc<Self>, sent: Sent) -> Result<Handle, Fault> {
        Ok(Handle { remote: Arc::clone(self), bytes: sent.handle()? })
    }

    /// Sends all writes of some data.
    pub(crate) fn write(&self, handle: &Handle, offset: u64, data: &[u8]) -> Result<Vec<Sent>, Fault> {
        let pieces = data.chunks(self.write_max as usize).enumerate();
        let writes = pieces.map(|(number, piece)| {
            let offset = offset + number as u64 * u64::from(self.write_max);
            self.send(&Request::Write { handle: &handle.bytes, offset, data: piece })
        });
        writes.collect()
    }

    /// Returns an absolute path without links, as far as the server resolves them.
    pub(crate) fn realpath(&self, path: &[u8]) -> Result<Bytes, Fault> {
        let names = self.send(&Request::Realpath { path })?.names()?;
        names.into_iter().next().map(|entry| entry.name).ok_or(Fault::Refused(Status::NoSuchFile))
    }

    /// Returns the figures of the file system at a path; none if the server has no such extension.
    pub(crate) fn figures(&self, path: &[u8]) -> Result<Option<FsStat>, Fault> {
        if !self.extensions.has_figures {
            return Ok(None);
        }
        let body = self.send(&Request::Statvfs { path })?.extended()?;
        figures_of(body).map(Some).map_err(|Malformed| Fault::Lost)
    }
}

fn figures_of(body: Bytes) -> Result<FsStat, Malformed> {
    let mut reader = PacketReader(body);
    let (_preferred, unit) = (reader.long()?, reader.long()?);
    let (blocks, blocks_free, blocks_available) = (reader.long()?, reader.long()?, reader.long()?);
    let (files, files_free, _available) = (reader.long()?, reader.long()?, reader.long()?);
    let (_id, _flags, name_bytes_max) = (reader.long()?, reader.long()?, reader.long()?);
    Ok(FsStat {
        block_bytes: u32::try_from(unit).unwrap_or(4096),
        blocks,
        blocks_free,
        blocks_available,
        files,
        files_free,
        name_bytes_max: u32::try_from(name_bytes_max).unwrap_or(255),
    })
}
