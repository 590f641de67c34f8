//! Stores on separate hosts, and their blocks.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use bytes::Bytes;
use wirefs_blocks::id::{BlockId, WriterId};
use wirefs_blocks::store::{BlockStore, Lost, Wanted};
use wirefs_lab::Lab;
use wirefs_pingfs::{EchoOptions, EchoStore};

pub(crate) const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
pub(crate) const LOOPBACK_6: SocketAddr = SocketAddr::new(IpAddr::V6(Ipv6Addr::LOCALHOST), 0);

/// Runs a test on a separate host, with IPv4 and IPv6 on loopback.
pub(crate) fn on_a_host(name: &str, test: impl FnOnce() + Send) {
    let lab = Lab::new(name).unwrap();
    let host = lab.host("host").unwrap();
    let allow_ipv6 = || {
        for device in ["all", "default", "lo"] {
            std::fs::write(format!("/proc/sys/net/ipv6/conf/{device}/disable_ipv6"), "0").unwrap();
        }
    };
    host.run(allow_ipv6).unwrap();
    host.run(test).unwrap();
}

pub(crate) fn options(hosts: &[SocketAddr], change: impl FnOnce(&mut EchoOptions)) -> EchoOptions {
    let mut options = EchoOptions::new(hosts.to_vec());
    change(&mut options);
    options
}

pub(crate) fn open(hosts: &[SocketAddr], change: impl FnOnce(&mut EchoOptions)) -> EchoStore {
    EchoStore::open(options(hosts, change)).unwrap()
}

pub(crate) fn id(counter: u64) -> BlockId {
    BlockId::new(counter, WriterId(0)).unwrap()
}

/// Returns the contents of a block, unique to its number.
pub(crate) fn content(counter: u64, bytes: usize) -> Bytes {
    counter.to_le_bytes().into_iter().cycle().take(bytes).collect()
}

pub(crate) fn store_blocks(store: &EchoStore, counters: impl IntoIterator<Item = u64>, bytes: usize) {
    let blocks: Vec<_> = counters.into_iter().map(|counter| (id(counter), content(counter, bytes))).collect();
    for batch in blocks.chunks(64) {
        store.register(batch).unwrap();
    }
}

pub(crate) fn read(
    store: &EchoStore,
    counters: impl IntoIterator<Item = u64>,
) -> Vec<(BlockId, Result<Bytes, Lost>)> {
    let mut got = Vec::new();
    store.retrieve(&Wanted::of(counters.into_iter().map(id)), &mut |id, block| got.push((id, block)));
    got.sort_by_key(|(id, _)| *id);
    got
}

/// Reads blocks all at once and compares them with the registered contents.
pub(crate) fn check(store: &EchoStore, counters: impl IntoIterator<Item = u64> + Clone, bytes: usize) {
    let got = read(store, counters.clone());
    let expected = counters.into_iter().map(|counter| (id(counter), Ok(content(counter, bytes))));
    assert_eq!(got, expected.collect::<Vec<_>>());
}
