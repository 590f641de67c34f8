//! A node on its own, and its desk.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::AtomicUsize;

use bytes::Bytes;
use wirefs_blocks::id::BlockId;
use wirefs_blocks::store::BlockStore;
use wirefs_blocks::turns::Turns;
use wirefs_lab::Lab;

use super::*;
use crate::EchoOptions;
use crate::store::tests::await_more;

#[test]
fn who_waits_for_another_at_the_desk_says_so_before() {
    static SAID: AtomicUsize = AtomicUsize::new(0);
    type Call = fn(&CommonStore);
    let id = |counter| BlockId::new(counter, wirefs_blocks::id::NodeId(1)).unwrap();
    let (root, block) = (id(1), Bytes::from_static(b"block"));
    let calls: [(&str, Call); 4] = [
        ("begin", |store| assert_eq!(store.begin(), Ok(None))),
        ("end", |store| store.end()),
        ("deregister", |store| store.deregister(&[])),
        ("room", |store| assert!(store.room().blocks_free > 0)),
    ];
    let lab = Lab::new("desk").unwrap();
    let run = || {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let echo = Arc::new(EchoStore::open(EchoOptions::new(vec![address])).unwrap());
        let key = key_of(b"a secret of this node").unwrap();
        let store = CommonStore::open(echo, &NodeOptions { node: 1, peers: Vec::new(), key }).unwrap();
        assert!(store.before_waiting(|| {
            SAID.fetch_add(1, Ordering::SeqCst);
        }));
        let while_the_desk_is_held = |name: &str, call: &(dyn Fn(&CommonStore) + Sync)| {
            std::thread::scope(|scope| {
                let desk = store.commons.desk();
                let before = SAID.load(Ordering::SeqCst);
                let store = &store;
                scope.spawn(move || call(store));
                await_more(&SAID, before, name);
                drop(desk);
            });
        };
        for (name, call) in calls {
            while_the_desk_is_held(name, &call);
        }
        assert_eq!(store.begin(), Ok(None));
        while_the_desk_is_held("register", &|store| store.register(&[(root, block.clone())]).unwrap());
        while_the_desk_is_held("agree", &|store| assert_eq!(store.agree(root, &[]), Ok(true)));
        store.end();
    };
    lab.host("host").unwrap().run(run).unwrap();
}
