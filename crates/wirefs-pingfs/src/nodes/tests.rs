//! Tests of a single node and its local replica.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Weak;
use std::sync::atomic::AtomicUsize;

use bytes::Bytes;
use wirefs_blocks::id::BlockId;
use wirefs_blocks::store::BlockStore;
use wirefs_blocks::transactions::{RootFollower, Transactions};
use wirefs_echo::replication::{Replica, ReplicaId, ReplicaOutput, ReplicationTimers};
use wirefs_lab::Lab;

use super::*;
use crate::EchoOptions;
use crate::limits::{DEAD_AFTER, HEARTBEAT};
use crate::store::packed;
use crate::store::tests::await_more;

/// A tree that switches to each root.
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

fn alone() -> ReplicatedStore {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let echo = Arc::new(EchoStore::open(EchoOptions::new(vec![address])).unwrap());
    let key = key_of(b"a secret of this node").unwrap();
    ReplicatedStore::open(echo, &NodeOptions { node: 1, peers: Vec::new(), key }).unwrap()
}

#[test]
fn committed_change_is_shown_after_its_call_timed_out() {
    let lab = Lab::new("late").unwrap();
    let run = || {
        let store = alone();
        let tree = Arc::new(Followed::default());
        let follower: Weak<Followed> = Arc::downgrade(&tree);
        store.follow(follower);
        let root = BlockId::new(1, wirefs_blocks::id::WriterId(1)).unwrap();
        assert_eq!(store.begin(), Ok(None));
        store.register(&[(root, Bytes::from_static(b"block"))]).unwrap();
        assert_eq!(store.commit(root, &[]), Ok(true));
        store.end();
        assert_eq!(*tree.0.lock().unwrap(), None, "the tree itself switches to its own change");
        // As if the others accepted only after the call timed out.
        let mut replica = store.shared.replica();
        store.shared.execute(&mut replica, ReplicaOutput::Committed { root: packed(root) });
        drop(replica);
        assert_eq!(*tree.0.lock().unwrap(), Some(root));
    };
    lab.host("host").unwrap().run(run).unwrap();
}

/// Programs of a disconnected node queue: only the first waits as long as the others may take to return.
#[test]
fn transaction_after_a_timeout_fails_soon_until_the_token_returns() {
    let lab = Lab::new("cut-off").unwrap();
    let run = || {
        let store = alone();
        let timers = ReplicationTimers { heartbeat: HEARTBEAT, retry: HEARTBEAT, dead_after: DEAD_AFTER };
        let joining = Replica::join(ReplicaId(1), &[ReplicaId(2)], timers);
        let alone = std::mem::replace(&mut store.shared.replica().machine, joining);
        store.shared.replica().is_cut_off = true;
        assert!(store.begin().is_err());
        assert!(store.shared.replica().is_cut_off);
        store.shared.replica().machine = alone;
        assert_eq!(store.begin(), Ok(None));
        assert!(!store.shared.replica().is_cut_off);
        store.end();
    };
    lab.host("host").unwrap().run(run).unwrap();
}

#[test]
fn call_announces_its_wait_for_the_replica_lock() {
    static ANNOUNCED: AtomicUsize = AtomicUsize::new(0);
    type Call = fn(&ReplicatedStore);
    let id = |counter| BlockId::new(counter, wirefs_blocks::id::WriterId(1)).unwrap();
    let (root, block) = (id(1), Bytes::from_static(b"block"));
    let calls: [(&str, Call); 4] = [
        ("begin", |store| assert_eq!(store.begin(), Ok(None))),
        ("end", |store| store.end()),
        ("deregister", |store| store.deregister(&[])),
        ("room", |store| assert!(store.room().blocks_free > 0)),
    ];
    let lab = Lab::new("replica").unwrap();
    let run = || {
        let store = alone();
        assert!(store.before_waiting(|| {
            ANNOUNCED.fetch_add(1, Ordering::SeqCst);
        }));
        let while_the_replica_is_locked = |name: &str, call: &(dyn Fn(&ReplicatedStore) + Sync)| {
            std::thread::scope(|scope| {
                let replica = store.shared.replica();
                let before = ANNOUNCED.load(Ordering::SeqCst);
                let store = &store;
                scope.spawn(move || call(store));
                await_more(&ANNOUNCED, before, name);
                drop(replica);
            });
        };
        for (name, call) in calls {
            while_the_replica_is_locked(name, &call);
        }
        assert_eq!(store.begin(), Ok(None));
        while_the_replica_is_locked("register", &|store| store.register(&[(root, block.clone())]).unwrap());
        while_the_replica_is_locked("agree", &|store| assert_eq!(store.commit(root, &[]), Ok(true)));
        store.end();
    };
    lab.host("host").unwrap().run(run).unwrap();
}
