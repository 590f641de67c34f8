//! How TCP sockets are set up, on both sides.

use std::io;
use std::net::TcpStream;

use rustix::net::sockopt;

use crate::limits::{KEEPALIVE_IDLE, KEEPALIVE_STEP, NOTSENT_BYTES_MAX, TCP_SILENCE_MAX};
use crate::sys;

/// Small frames leave at once, a silent peer is found out, and little waits unsent in the kernel. Buffer sizes stay
/// with the kernel, whose tuning follows bandwidth × delay.
pub(crate) fn tune(socket: &TcpStream) -> io::Result<()> {
    socket.set_nodelay(true)?;
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_keepidle(socket, KEEPALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(socket, KEEPALIVE_STEP)?;
    sockopt::set_tcp_keepcnt(socket, 3)?;
    sockopt::set_tcp_user_timeout(socket, u32::try_from(TCP_SILENCE_MAX.as_millis()).unwrap_or(u32::MAX))?;
    sys::set_notsent_lowat(socket, NOTSENT_BYTES_MAX)
}
