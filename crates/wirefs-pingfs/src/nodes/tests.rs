//! A node on its own, and its desk.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Weak;
use std::sync::atomic::AtomicUsize;

use bytes::Bytes;
use wirefs_blocks::id::BlockId;
use wirefs_blocks::store::BlockStore;
use wirefs_blocks::transactions::{RootFollower, Transactions};
use wirefs_echo::together::{NodeId, Output, Pulse, Together};
use wirefs_lab::Lab;

use super::*;
use crate::EchoOptions;
use crate::limits::{BEAT, DEAD_AFTER};
use crate::store::packed;
use crate::store::tests::await_more;

/// A tree that goes over to each root that it is told of.
#[derive(Default)]
struct Followed(Mutex<Option<BlockId>>);

impl RootFollower for Followed {
    fn prepare(&self, _: BlockId) -> bool {
        true
    }

    fn switch_to(&self, root: BlockId) -> bool {
        *self.0.lock().unwrap() = Some(root);
        true
    }
}

fn alone() -> CommonStore {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let echo = Arc::new(EchoStore::open(EchoOptions::new(vec![address])).unwrap());
    let key = key_of(b"a secret of this node").unwrap();
    CommonStore::open(echo, &NodeOptions { node: 1, peers: Vec::new(), key }).unwrap()
}

#[test]
fn a_change_that_counts_when_nobody_waits_for_it_any_more_is_shown() {
    let lab = Lab::new("late").unwrap();
    let run = || {
        let store = alone();
        let tree = Arc::new(Followed::default());
        let follower: Weak<Followed> = Arc::downgrade(&tree);
        store.follow(follower);
        let root = BlockId::new(1, wirefs_blocks::id::TreeNodeId(1)).unwrap();
        assert_eq!(store.begin(), Ok(None));
        store.register(&[(root, Bytes::from_static(b"block"))]).unwrap();
        assert_eq!(store.commit(root, &[]), Ok(true));
        store.end();
        assert_eq!(*tree.0.lock().unwrap(), None, "to its own change the tree goes over by itself");
        // As where the others say so only after the call gave up.
        let mut desk = store.commons.desk();
        store.commons.obey(&mut desk, Output::Settled { root: packed(root) });
        drop(desk);
        assert_eq!(*tree.0.lock().unwrap(), Some(root));
    };
    lab.host("host").unwrap().run(run).unwrap();
}

/// Programs of a node that is cut off wait one after the other: only the first one as long as it takes the others to come back.
#[test]
fn who_comes_behind_a_change_that_waited_in_vain_hears_so_soon_until_there_is_a_turn_again() {
    let lab = Lab::new("cut-off").unwrap();
    let run = || {
        let store = alone();
        let pulse = Pulse { beat: BEAT, retry: BEAT, dead: DEAD_AFTER };
        let joining = Together::join(NodeId(1), &[NodeId(2)], pulse);
        let alone = std::mem::replace(&mut store.commons.desk().machine, joining);
        store.commons.desk().is_cut_off = true;
        assert!(store.begin().is_err());
        assert!(store.commons.desk().is_cut_off);
        store.commons.desk().machine = alone;
        assert_eq!(store.begin(), Ok(None));
        assert!(!store.commons.desk().is_cut_off);
        store.end();
    };
    lab.host("host").unwrap().run(run).unwrap();
}

#[test]
fn who_waits_for_another_at_the_desk_says_so_before() {
    static SAID: AtomicUsize = AtomicUsize::new(0);
    type Call = fn(&CommonStore);
    let id = |counter| BlockId::new(counter, wirefs_blocks::id::TreeNodeId(1)).unwrap();
    let (root, block) = (id(1), Bytes::from_static(b"block"));
    let calls: [(&str, Call); 4] = [
        ("begin", |store| assert_eq!(store.begin(), Ok(None))),
        ("end", |store| store.end()),
        ("deregister", |store| store.deregister(&[])),
        ("room", |store| assert!(store.room().blocks_free > 0)),
    ];
    let lab = Lab::new("desk").unwrap();
    let run = || {
        let store = alone();
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
        while_the_desk_is_held("agree", &|store| assert_eq!(store.commit(root, &[]), Ok(true)));
        store.end();
    };
    lab.host("host").unwrap().run(run).unwrap();
}
