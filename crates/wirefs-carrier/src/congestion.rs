//! Congestion control of TCP carriers.
//!
//! BBR paces data at the bandwidth that it has measured. A connection that has sent little has measured little: at 85
//! ms RTT nine kilobytes and their reply take 100 ms instead of 85, each time (Linux, net/ipv4/tcp_bbr.c,
//! `bbr_init_pacing_rate_from_rtt`). So where BBR is the system default, a connection starts without it, and gets it
//! when the kernel's send buffer first fills. The control must be set before the connection is established: once BBR
//! has started, its pacing outlasts it.

use std::os::fd::AsFd;

use rustix::net::sockopt::{set_tcp_congestion, tcp_congestion};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

/// Every kernel has it, and every user may choose it.
const UNPACED: &str = "reno";

/// Returns the system's default, if that is BBR.
fn default_if_bbr() -> Option<String> {
    let fresh = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None).ok()?;
    tcp_congestion(&fresh).ok().filter(|choice| choice.starts_with("bbr"))
}

/// Prepares a socket that is going to connect or listen. Failure is harmless.
pub(crate) fn prepare(socket: impl AsFd) {
    if default_if_bbr().is_some() {
        let _unchanged = set_tcp_congestion(socket, UNPACED);
    }
}

/// Restores the system's default: more is to be sent over this socket than the kernel takes.
pub(crate) fn restore_default(socket: impl AsFd) {
    let is_unpaced = tcp_congestion(&socket).is_ok_and(|control| control == UNPACED);
    if let Some(choice) = default_if_bbr().filter(|_| is_unpaced) {
        let _unchanged = set_tcp_congestion(socket, &choice);
    }
}

#[cfg(test)]
mod tests;
