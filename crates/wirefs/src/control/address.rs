//! Sockets with names of any length: an address of the system holds 107 bytes of a path, and a runtime directory in the
//! middle of a home, or a long mountpoint, has more.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};

/// `sun_path` of `unix(7)` without its final NUL.
const PATH_BYTES_MAX: usize = 107;

/// Makes a listening socket at `path`.
///
/// # Errors
/// As of `bind(2)`; the directory is not there; `path` ends in no name.
pub(crate) fn bind(path: &Path) -> io::Result<UnixListener> {
    reach(path, UnixListener::bind)
}

/// Connects to the socket at `path`.
///
/// # Errors
/// As of `connect(2)`; the directory is not there; `path` ends in no name.
pub(crate) fn connect(path: &Path) -> io::Result<UnixStream> {
    reach(path, UnixStream::connect)
}

/// Gives `act` a path that fits: a long one leads through an fd of the directory.
fn reach<T>(path: &Path, act: impl FnOnce(PathBuf) -> io::Result<T>) -> io::Result<T> {
    if path.as_os_str().len() <= PATH_BYTES_MAX {
        return act(path.to_owned());
    }
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    // Kept until `act` is done: its number is in the path.
    let directory = open(directory, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    act(PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd())).join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_whose_path_is_longer_than_an_address_is_made_and_reached() {
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
