//! Namespaces to test in, with IPv6, and sockets in them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wirefs_lab::{Host, Lab};
use wirefs_raw::{Batch, EchoSocket, Ident, Sequence};

pub(crate) const LOOPBACKS: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
pub(crate) const IDENT: Ident = Ident(0x7769);

/// Runs a test on a host of its own, with a loopback that has both kinds of addresses.
pub(crate) fn on_a_host(name: &str, test: impl FnOnce() + Send) {
    let lab = Lab::new(name).unwrap();
    let host = lab.host("host").unwrap();
    allow_ipv6(&host);
    host.run(test).unwrap();
}

pub(crate) fn allow_ipv6(host: &Host) {
    let write = || {
        for device in ["all", "default", "lo"] {
            // Nobody else could have the addresses, and asking takes a second.
            for setting in ["accept_dad", "disable_ipv6"] {
                std::fs::write(format!("/proc/sys/net/ipv6/conf/{device}/{setting}"), "0").unwrap();
            }
        }
    };
    host.run(write).unwrap();
}

/// Runs `ip` on a host.
pub(crate) fn ip(host: &Host, arguments: &str) {
    let status = host.command("ip").args(arguments.split_whitespace()).status().unwrap();
    assert!(status.success(), "ip {arguments}");
}

pub(crate) fn open(host: IpAddr, ident: Ident) -> EchoSocket {
    EchoSocket::open(SocketAddr::new(host, 0), ident).unwrap()
}

/// Waits until something can be received, a minute at most.
pub(crate) fn wait(socket: &EchoSocket) -> bool {
    let timeout = Timespec::try_from(Duration::from_secs(60)).unwrap();
    poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&timeout)).unwrap() > 0
}

/// Sends one packet for each of these payloads, however long that takes.
pub(crate) fn send<'a>(socket: &EchoSocket, payloads: impl IntoIterator<Item = &'a [u8]>) {
    let longest = wirefs_raw::limits::PAYLOAD_BYTES_MAX;
    let mut batch = Batch::new(longest);
    for payload in payloads {
        batch.clear();
        batch.push(|room| {
            room[..payload.len()].copy_from_slice(payload);
            Some((payload.len(), Sequence(7)))
        });
        while !batch.is_sent() {
            let departures = socket.send(&mut batch).unwrap();
            assert_eq!(departures.too_large, 0);
        }
    }
}

/// Takes what there is now.
pub(crate) fn receive_all(socket: &EchoSocket) -> Vec<Vec<u8>> {
    let mut batch = Batch::new(wirefs_raw::limits::PAYLOAD_BYTES_MAX);
    let mut payloads = Vec::new();
    loop {
        let arrivals = socket.receive(&mut batch, 64).unwrap();
        batch.exchange(|payload, _| {
            payloads.push(payload.to_vec());
            None
        });
        if arrivals.is_drained {
            return payloads;
        }
    }
}
