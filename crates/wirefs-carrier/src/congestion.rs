//! Which congestion control a TCP carrier has.
//!
//! BBR spreads what is sent over the bandwidth that it has measured. A line on which little was sent so far has shown little: at 85 ms
//! nine kilobytes and their answer take 100 ms instead of 85, each time (Linux, net/ipv4/tcp_bbr.c, `bbr_init_pacing_rate_from_rtt`).
//! So where BBR is the machine's choice a connection begins without it, and gets it when more is to be sent than the kernel takes.
//! To be set before the connection stands: once BBR has begun, its pacing stays whatever follows it.

use std::os::fd::AsFd;

use rustix::net::sockopt::{set_tcp_congestion, tcp_congestion};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

/// Every kernel has it, and everybody may choose it.
const UNPACED: &str = "reno";

/// What the machine chooses, where that is BBR.
fn paced_choice() -> Option<String> {
    let fresh = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None).ok()?;
    tcp_congestion(&fresh).ok().filter(|choice| choice.starts_with("bbr"))
}

/// A socket that is going to connect or listen. Nothing depends on its success.
pub(crate) fn begin(socket: impl AsFd) {
    if paced_choice().is_some() {
        let _unchanged = set_tcp_congestion(socket, UNPACED);
    }
}

/// More is to be sent over this socket than the kernel takes: from now on it goes as the machine chooses.
pub(crate) fn crowded(socket: impl AsFd) {
    let is_unpaced = tcp_congestion(&socket).is_ok_and(|control| control == UNPACED);
    if let Some(choice) = paced_choice().filter(|_| is_unpaced) {
        let _unchanged = set_tcp_congestion(socket, &choice);
    }
}

#[cfg(test)]
mod tests;
