//! Socket setup, for both sides.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::io::{Errno, ioctl_fionbio};
use rustix::net::sockopt::{self, Timeout};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, getpeername, socket_with,
};

use crate::limits::{KEEPALIVE_IDLE, KEEPALIVE_STEP, NOTSENT_BYTES_MAX, TCP_SILENCE_MAX};
use crate::stream::wait;
use crate::{congestion, sys};

/// Sets `TCP_NODELAY`, keepalive, `TCP_USER_TIMEOUT` and a low unsent limit. The kernel tunes the buffer sizes, since
/// its tuning follows bandwidth × delay.
pub(crate) fn tune(socket: &TcpStream) -> io::Result<()> {
    socket.set_nodelay(true)?;
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_keepidle(socket, KEEPALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(socket, KEEPALIVE_STEP)?;
    sockopt::set_tcp_keepcnt(socket, 3)?;
    sockopt::set_tcp_user_timeout(socket, u32::try_from(TCP_SILENCE_MAX.as_millis()).unwrap_or(u32::MAX))?;
    sys::set_notsent_lowat(socket, NOTSENT_BYTES_MAX)
}

/// Connects to an address, within `timeout`, as [`std::net::TcpStream::connect_timeout`] does.
pub(crate) fn connect_tcp(address: &SocketAddr, timeout: Duration) -> io::Result<TcpStream> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    congestion::prepare(&socket);
    match connect(&socket, address) {
        Ok(()) => {}
        Err(Errno::INPROGRESS) => await_connected(&socket, Instant::now() + timeout)?,
        Err(errno) => return Err(errno.into()),
    }
    ioctl_fionbio(&socket, false)?;
    Ok(socket.into())
}

fn await_connected(socket: &OwnedFd, deadline: Instant) -> io::Result<()> {
    // A wait ended by a signal means nothing.
    while getpeername(socket).is_err() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || !wait(socket, PollFlags::OUT, None, Some(left))? {
            return Err(io::ErrorKind::TimedOut.into());
        }
        sockopt::socket_error(socket)??;
    }
    Ok(())
}

/// Connects to a unix socket. Fails with `WouldBlock` if the listener accepts no connection within `timeout`.
pub(crate) fn connect_unix(path: &Path, timeout: Duration) -> io::Result<OwnedFd> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // On Linux this also limits the wait for room in the listener's backlog.
    sockopt::set_socket_timeout(&socket, Timeout::Send, Some(timeout))?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    sockopt::set_socket_timeout(&socket, Timeout::Send, None)?;
    Ok(socket)
}
