use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use wirefs_blocks::id::WriterId;
use wirefs_blocks::store::{BlockStore, Wanted};
use wirefs_lab::Lab;

use super::*;

#[test]
fn quiet_store_is_woken_by_a_block_of_another_node() {
    let lab = Lab::new("woken").unwrap();
    let host = lab.host("host").unwrap();
    let wake = || {
        let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
        let store = EchoStore::open(EchoOptions::new(vec![address])).unwrap();
        let end = Instant::now() + Duration::from_secs(60);
        while !store.shared().lock().is_quiet {
            assert!(Instant::now() < end, "the store never becomes quiet");
            std::thread::sleep(Duration::from_millis(20));
        }
        let rested = store.shared().lock().last_use;
        assert!(store.accept(BlockId::new(1, WriterId(2)).unwrap(), &Bytes::from_static(b"block")));
        assert!(store.shared().lock().last_use > rested);
    };
    host.run(wake).unwrap();
}

/// Waits until a count has changed.
pub(crate) fn await_more(count: &AtomicUsize, before: usize, what: &str) {
    let end = Instant::now() + Duration::from_secs(30);
    while count.load(Ordering::SeqCst) == before {
        assert!(Instant::now() < end, "{what} has not announced its wait");
        std::thread::yield_now();
    }
}

#[test]
fn call_announces_its_wait_for_the_store_lock() {
    static ANNOUNCED: AtomicUsize = AtomicUsize::new(0);
    type Call = fn(&EchoStore);
    let calls: [(&str, Call); 9] = [
        ("register", |store| store.register(&[(id(2), Bytes::from_static(b"new"))]).unwrap()),
        ("retrieve", |store| store.retrieve(&Wanted::of([id(1)]), &mut |_, block| assert!(block.is_ok()))),
        ("is_gone", |store| assert!(!store.is_gone(id(1)))),
        ("deregister", |store| store.deregister(&[id(2)])),
        ("registered", |store| assert_eq!(store.registered(None, 9), [id(1)])),
        ("root", |store| assert_eq!(store.root(), Ok(None))),
        ("sync", |store| store.sync().unwrap()),
        ("room", |store| assert!(store.room().blocks_free > 0)),
        ("switch_root", |store| store.switch_root(id(1)).unwrap()),
    ];
    let lab = Lab::new("entered").unwrap();
    let run = || {
        let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
        let store = EchoStore::open(EchoOptions::new(vec![address])).unwrap();
        store.register(&[(id(1), Bytes::from_static(b"block"))]).unwrap();
        assert!(store.before_waiting(|| {
            ANNOUNCED.fetch_add(1, Ordering::SeqCst);
        }));
        for (name, call) in calls {
            std::thread::scope(|scope| {
                let core = store.shared().lock();
                let before = ANNOUNCED.load(Ordering::SeqCst);
                let store = &store;
                scope.spawn(move || call(store));
                await_more(&ANNOUNCED, before, name);
                drop(core);
            });
        }
    };
    lab.host("host").unwrap().run(run).unwrap();
}

fn id(counter: u64) -> BlockId {
    BlockId::new(counter, WriterId(0)).unwrap()
}
