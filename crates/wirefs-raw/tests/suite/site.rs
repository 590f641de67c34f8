//! Network namespaces with IPv6, and sockets in them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wirefs_lab::{Host, Lab};
use wirefs_raw::{EchoIdent, EchoSequence, EchoSocket, PacketBatch};

pub(crate) const LOOPBACKS: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
pub(crate) const IDENT: EchoIdent = EchoIdent(0x7769);

/// Runs a test on a separate host, with IPv4 and IPv6 on loopback.
pub(crate) fn on_a_host(name: &str, test: impl FnOnce() + Send) {
    let lab = Lab::new(name).unwrap();
    let host = lab.host("host").unwrap();
    allow_ipv6(&host);
    host.run(test).unwrap();
}

pub(crate) fn allow_ipv6(host: &Host) {
    let write = || {
        for device in ["all", "default", "lo"] {
            // The addresses are unique, and duplicate address detection takes a second.
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

pub(crate) fn open(host: IpAddr, ident: EchoIdent) -> EchoSocket {
    EchoSocket::open(SocketAddr::new(host, 0), ident).unwrap()
}

/// Waits until a packet can be received, for at most a minute.
pub(crate) fn wait(socket: &EchoSocket) -> bool {
    let timeout = Timespec::try_from(Duration::from_secs(60)).unwrap();
    poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&timeout)).unwrap() > 0
}

/// Sends one packet for each payload, however long that takes.
pub(crate) fn send<'a>(socket: &EchoSocket, payloads: impl IntoIterator<Item = &'a [u8]>) {
    let longest = wirefs_raw::limits::PAYLOAD_BYTES_MAX;
    let mut batch = PacketBatch::new(longest);
    for payload in payloads {
        batch.clear();
        batch.push(|room| {
            room[..payload.len()].copy_from_slice(payload);
            Some((payload.len(), EchoSequence(7)))
        });
        while !batch.is_sent() {
            let departures = socket.send(&mut batch).unwrap();
            assert_eq!(departures.too_large, 0);
        }
    }
}

/// Receives the waiting packets.
pub(crate) fn receive_all(socket: &EchoSocket) -> Vec<Vec<u8>> {
    let mut batch = PacketBatch::new(wirefs_raw::limits::PAYLOAD_BYTES_MAX);
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
