//! Two hosts with a link, and numbered datagrams.
//!
//! ```text
//! server 10.99.1.1 ── link ── 10.99.1.2 client
//! ```

use std::net::UdpSocket;
use std::time::Duration;

use wirefs_lab::{Host, Lab, LinkHandle, LinkProfile};

/// The timeout of every wait; only a failing test reaches it.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(30);

pub(crate) struct LinkedHosts {
    pub(crate) link: LinkHandle,
    pub(crate) server: Host,
    pub(crate) client: Host,
    pub(crate) lab: Lab,
}

pub(crate) fn linked_hosts(name: &str, profile: LinkProfile) -> LinkedHosts {
    let lab = Lab::new(name).unwrap();
    let (server, client) = (lab.host("server").unwrap(), lab.host("client").unwrap());
    let link = lab.link(&server, &client, profile).unwrap();
    LinkedHosts { link, server, client, lab }
}

/// Connected datagram sockets, one on each host.
pub(crate) struct Datagrams {
    pub(crate) server: UdpSocket,
    pub(crate) client: UdpSocket,
}

impl LinkedHosts {
    pub(crate) fn datagrams(&self) -> Datagrams {
        let bind = |host: &Host, address| host.run(|| UdpSocket::bind((address, 0))).unwrap().unwrap();
        let server = bind(&self.server, self.link.address_a());
        let client = bind(&self.client, self.link.address_b());
        server.connect(client.local_addr().unwrap()).unwrap();
        client.connect(server.local_addr().unwrap()).unwrap();
        for socket in [&server, &client] {
            socket.set_read_timeout(Some(WAIT_MAX)).unwrap();
        }
        Datagrams { server, client }
    }
}

impl Datagrams {
    /// Sends numbers from client to server one by one, each after the counters show the fate of the previous one;
    /// returns the delivered numbers.
    pub(crate) fn send_to_server(&self, link: &LinkHandle, numbers: std::ops::Range<u32>) -> Vec<u32> {
        numbers.filter_map(|number| self.send_one_to_server(link, number)).collect()
    }

    fn send_one_to_server(&self, link: &LinkHandle, number: u32) -> Option<u32> {
        let before = link.counters().b_to_a;
        let since = || link.counters().b_to_a.since(&before);
        self.client.send(&number.to_le_bytes()).unwrap();
        wait_until(|| {
            let counted = since();
            counted.delivered_frames + counted.dropped_by_loss + counted.dropped_by_cut > 0
        });
        let mut received = [0; 4];
        (since().delivered_frames > 0).then(|| {
            self.server.recv(&mut received).unwrap();
            u32::from_le_bytes(received)
        })
    }
}

/// Waits for a condition; panics after a timeout.
pub(crate) fn wait_until(condition: impl Fn() -> bool) {
    let end = std::time::Instant::now() + WAIT_MAX;
    while !condition() {
        assert!(std::time::Instant::now() < end, "timeout");
        std::thread::yield_now();
    }
}
