use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use wirefs_blocks::id::NodeId;
use wirefs_lab::Lab;

use super::*;

#[test]
fn store_that_rests_is_woken_by_what_another_node_sends() {
    let lab = Lab::new("woken").unwrap();
    let host = lab.host("host").unwrap();
    let wake = || {
        let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
        let store = EchoStore::open(EchoOptions::new(vec![address])).unwrap();
        let end = Instant::now() + Duration::from_secs(60);
        while !store.shared().lock().is_quiet {
            assert!(Instant::now() < end, "it never rests");
            std::thread::sleep(Duration::from_millis(20));
        }
        let rested = store.shared().lock().stirred;
        assert!(store.accept(BlockId::new(1, NodeId(2)).unwrap(), &Bytes::from_static(b"block")));
        assert!(store.shared().lock().stirred > rested);
    };
    host.run(wake).unwrap();
}
