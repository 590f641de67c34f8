//! The server's handle of an open file.
//!
//! ```text
//!   None       requests name the file by its path        opened from the cache; the server forgot its fds
//!     |  a request asks for an fd          ^
//!     v                                    |  the request failed
//!   Requested  as None, and no request asks for another fd
//!     |  a reply brings the fd
//!     v
//!   Held(fd)   requests name the file by the fd, which also works without a path
//! ```

use wirefs_op::message::target::{Fd, NOFD};

/// The state of the server's handle for one open file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ServerHandle {
    /// The server holds nothing open for the file.
    #[default]
    None,
    /// A request in progress asks for an fd.
    Requested,
    /// The server's fd.
    Held(Fd),
}

impl ServerHandle {
    /// The handle with the fd of a reply; NOFD is none.
    pub(super) fn of(fd: Fd) -> ServerHandle {
        if fd == NOFD { ServerHandle::None } else { ServerHandle::Held(fd) }
    }

    /// The fd to name the file by, or NOFD.
    pub(crate) fn fd(self) -> Fd {
        match self {
            ServerHandle::None | ServerHandle::Requested => NOFD,
            ServerHandle::Held(fd) => fd,
        }
    }

    /// Notes that a request asks for an fd.
    pub(crate) fn request(&mut self) {
        if *self == ServerHandle::None {
            *self = ServerHandle::Requested;
        }
    }

    /// Notes that the request brought no fd.
    pub(crate) fn request_failed(&mut self) {
        if *self == ServerHandle::Requested {
            *self = ServerHandle::None;
        }
    }
}
