//! Unix sockets with paths of any length: a socket address holds 107 bytes, and a runtime directory or a mountpoint can
//! have a longer path.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};

/// The size of `sun_path` (`unix(7)`) without its final NUL.
const PATH_BYTES_MAX: usize = 107;

/// Creates a listening socket at `path`.
///
/// # Errors
/// As `bind(2)`; also if the directory is missing, or `path` has no file name.
pub(crate) fn bind(path: &Path) -> io::Result<UnixListener> {
    with_short_path(path, UnixListener::bind)
}

/// Connects to the socket at `path`.
///
/// # Errors
/// As `connect(2)`; also if the directory is missing, or `path` has no file name.
pub(crate) fn connect(path: &Path) -> io::Result<UnixStream> {
    with_short_path(path, UnixStream::connect)
}

/// Calls `act` with a path that fits: a long one goes through a file descriptor of the directory.
fn with_short_path<T>(path: &Path, act: impl FnOnce(PathBuf) -> io::Result<T>) -> io::Result<T> {
    if path.as_os_str().len() <= PATH_BYTES_MAX {
        return act(path.to_owned());
    }
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    // Open until `act` is done: its number is in the path.
    let directory = open(directory, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    act(PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd())).join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn socket_with_a_long_path_is_created_and_connected() {
        let above = std::env::temp_dir().join(format!("wirefs-address-{}", std::process::id()));
        let directory = above.join("d".repeat(120));
        std::fs::create_dir_all(&directory).unwrap();
        for name in ["short.sock".to_owned(), format!("{}.sock", "n".repeat(80))] {
            let path = directory.join(name);
            let listener = bind(&path).unwrap();
            assert!(std::fs::symlink_metadata(&path).is_ok());
            let client = connect(&path).unwrap();
            drop(listener.accept().unwrap());
            drop(client);
        }
        std::fs::remove_dir_all(&above).unwrap();
    }
}
