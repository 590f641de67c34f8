//! Unix sockets in the file system: private, replaced when stale, removed at the end.

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, Mode, fchmod, flock};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind as bind_socket, listen, socket_with,
};

use super::ListenError;
use crate::address::path_bytes;
use crate::socket::connect_unix;

/// The size of `sun_path` without its final NUL.
const PATH_BYTES_MAX: usize = 107;
const BACKLOG: i32 = 128;
/// A server that does not accept at once is busy, not dead.
const PROBE_TIME: Duration = Duration::from_millis(200);

/// Removes the file on drop, if it is still the one that this process made.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let ours = fs::symlink_metadata(&self.path)
            .is_ok_and(|found| found.dev() == self.device && found.ino() == self.inode);
        if ours {
            // Ignored: the next server replaces a stale file.
            let _gone = fs::remove_file(&self.path);
        }
    }
}

/// Makes a listening socket at `path` that only its owner may use.
pub(super) fn bind(path: &Path) -> Result<(UnixListener, SocketFile), ListenError> {
    if path_bytes(path).len() > PATH_BYTES_MAX {
        return Err(ListenError::PathTooLong { path: path.to_owned() });
    }
    let fail = |error| explain(path, error);
    // Two servers that start together must not both find the file stale and remove each other's.
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let guard = File::open(directory).map_err(fail)?;
    flock(&guard, FlockOperation::LockExclusive).map_err(|errno| fail(errno.into()))?;

    let socket = match try_bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            remove_stale(path)?;
            try_bind(path).map_err(fail)?
        }
        other => other.map_err(fail)?,
    };
    let found = fs::symlink_metadata(path).map_err(fail)?;
    let file = SocketFile { path: path.to_owned(), device: found.dev(), inode: found.ino() };
    let listener = UnixListener::from(socket);
    listener.set_nonblocking(true).map_err(fail)?;
    Ok((listener, file))
}

fn try_bind(path: &Path) -> io::Result<OwnedFd> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // On Linux the file gets the mode of the socket, so other users can never connect.
    fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    bind_socket(&socket, &SocketAddrUnix::new(path)?)?;
    listen(&socket, BACKLOG)?;
    Ok(socket)
}

/// Removes the socket at `path` if no process listens on it.
fn remove_stale(path: &Path) -> Result<(), ListenError> {
    let fail = |error| explain(path, error);
    if !fs::symlink_metadata(path).map_err(fail)?.file_type().is_socket() {
        return Err(ListenError::NotASocket { path: path.to_owned() });
    }
    match connect_unix(path, PROBE_TIME) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path).map_err(fail),
        Ok(_) | Err(_) => Err(ListenError::Busy { address: format!("unix://{}", path.display()) }),
    }
}

fn explain(path: &Path, error: io::Error) -> ListenError {
    let address = format!("unix://{}", path.display());
    match error.kind() {
        io::ErrorKind::AddrInUse => ListenError::Busy { address },
        io::ErrorKind::PermissionDenied => ListenError::Forbidden { address },
        _ => ListenError::Io { address, error },
    }
}
