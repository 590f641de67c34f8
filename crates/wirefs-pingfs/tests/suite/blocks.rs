//! Blocks are registered, circulate, are read and dropped.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use wirefs_blocks::store::{BlockStore, Lost, StoreFault, Wanted};
use wirefs_echo::Redundancy;
use wirefs_lab::{Lab, LinkProfile};
use wirefs_pingfs::limits::QUIET_PAUSE_MIN;
use wirefs_pingfs::options::KeepOption;

use crate::site::{LOOPBACK, LOOPBACK_6, check, content, id, on_a_host, open, read, store_blocks};

/// Waits until the store has sent this many packets again.
fn circulate(store: &wirefs_pingfs::EchoStore, packets: u64) {
    let end = Instant::now() + Duration::from_secs(60);
    let begun = store.status().counters.circulated;
    while store.status().counters.circulated < begun + packets {
        assert!(Instant::now() < end, "{:?}", store.status());
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn blocks_circulate_while_idle_and_are_read_over_both_protocols() {
    on_a_host("blocks", || {
        for keep in [KeepOption::Index, KeepOption::Root] {
            let store = open(&[LOOPBACK, LOOPBACK_6], |options| {
                options.keep = keep;
                options.redundancy = Redundancy::Copies(2);
            });
            let bytes = store.payload_bytes();
            assert_eq!(bytes, 1_472 - 56);
            store_blocks(&store, 1..=500, bytes);
            circulate(&store, 5_000);
            check(&store, 1..=500, bytes);
            let status = store.status();
            assert_eq!((status.blocks_lost, status.broken), (0, None));
            assert!(
                status.hosts.iter().all(|host| host.dropped == 0 && host.received_packets > 1_000),
                "{status:?}"
            );
            assert_eq!(status.counters.refused, Default::default());
            assert_eq!(status.blocks, (keep == KeepOption::Index).then_some(500));
        }
    });
}

#[test]
fn contents_are_in_memory_only_until_they_are_sent() {
    on_a_host("memory", || {
        let store = open(&[LOOPBACK], |_| {});
        store_blocks(&store, 1..=3_000, 1_400);
        store.sync().unwrap();
        let memory = store.status().memory;
        assert_eq!((memory.send_queue, memory.collected, memory.ram), (0, 0, 0));
        assert!(memory.index <= 3_000 * 32, "{memory:?}");
        check(&store, (1..=3_000).step_by(7), 1_400);
    });
}

#[test]
fn dropped_block_is_gone_and_its_room_is_free_again() {
    on_a_host("dropped", || {
        for keep in [KeepOption::Index, KeepOption::Root] {
            let store = open(&[LOOPBACK], |options| options.keep = keep);
            store_blocks(&store, 1..=10, 300);
            store.deregister(&[id(4), id(99)]);
            assert_eq!(read(&store, [4]), [(id(4), Err(Lost))]);
            check(&store, [1, 2, 3, 5, 6, 7, 8, 9, 10], 300);
            assert_eq!(store.registered(Some(id(3)), 3), [id(5), id(6), id(7)]);
            assert_eq!(store.registered(None, 100).len(), 9);
            if keep == KeepOption::Index {
                let room = store.room();
                assert_eq!(room.blocks - room.blocks_free, 9);
            }
        }
    });
}

#[test]
fn full_store_rejects_blocks_and_loses_none() {
    on_a_host("full", || {
        let store = open(&[LOOPBACK], |options| {
            options.rate = wirefs_pingfs::options::RateOption::Fixed(10_000);
            options.parked_packets = Some(100);
        });
        let room = store.room();
        assert!((100..110).contains(&room.blocks), "{room:?}");
        store_blocks(&store, 1..=60, 1_000);
        let more: Vec<_> = (61..=200).map(|counter| (id(counter), content(counter, 1_000))).collect();
        assert_eq!(store.register(&more), Err(StoreFault::Full));
        assert_eq!(store.room().blocks_free, room.blocks - 60, "no block of the batch was stored");
        check(&store, 1..=60, 1_000);
    });
}

#[test]
fn concurrent_reads_and_writes_are_consistent() {
    on_a_host("many", || {
        let store = Arc::new(open(&[LOOPBACK, LOOPBACK_6], |_| {}));
        store_blocks(&store, 1..=400, 900);
        std::thread::scope(|scope| {
            for reader in 0..6 {
                let store = &store;
                scope.spawn(move || {
                    for first in (1 + reader..380).step_by(20) {
                        check(store, first..first + 20, 900);
                    }
                });
            }
            let store = &store;
            scope.spawn(move || {
                for first in (1_000..2_000).step_by(50) {
                    store_blocks(store, first..first + 50, 700);
                    check(store, [first, first + 49], 700);
                    store.deregister(&(first..first + 50).map(id).collect::<Vec<_>>());
                }
            });
        });
        check(&store, 1..=400, 900);
        assert_eq!(store.status().blocks, Some(400));
    });
}

#[test]
fn retrieval_does_not_wait_for_hints() {
    on_a_host("hint", || {
        let store = open(&[LOOPBACK], |_| {});
        store_blocks(&store, 1..=20, 500);
        let mut wanted = Wanted::of([id(7)]);
        wanted.hints.extend([id(8), id(1_000)]);
        let mut got = Vec::new();
        store.retrieve(&wanted, &mut |id, block| got.push((id, block)));
        assert!(got.contains(&(id(7), Ok(content(7, 500)))));
        assert!(got.len() <= 3);
    });
}

#[test]
fn status_reports_the_age_of_the_oldest_block() {
    on_a_host("age", || {
        let store = open(&[LOOPBACK], |_| {});
        assert_eq!(store.status().oldest, None);
        store_blocks(&store, [1], 100);
        circulate(&store, 50);
        let oldest = store.status().oldest.unwrap();
        assert!(oldest > Duration::ZERO && oldest <= store.status().up);
    });
}

#[test]
fn read_from_a_far_host_announces_its_wait() {
    static ANNOUNCED: AtomicUsize = AtomicUsize::new(0);
    let lab = Lab::new("says").unwrap();
    let [near, far] = ["near", "far"].map(|name| lab.host(name).unwrap());
    let link = lab.link(&near, &far, LinkProfile::rtt(Duration::from_millis(40))).unwrap();
    let address = SocketAddr::from((link.address_b(), 0));
    let read_until_announced = || {
        let store = open(&[address], |_| {});
        store_blocks(&store, 1..=1, 500);
        assert!(store.before_waiting(|| {
            ANNOUNCED.fetch_add(1, Ordering::SeqCst);
        }));
        // A read needs no wait if the packet arrives at that moment.
        let end = Instant::now() + Duration::from_secs(60);
        while ANNOUNCED.load(Ordering::SeqCst) == 0 {
            assert!(Instant::now() < end, "no wait was announced");
            check(&store, [1], 500);
        }
    };
    near.run(read_until_announced).unwrap();
}

#[test]
fn read_that_polls_many_near_packets_announces_its_wait() {
    static ANNOUNCED: AtomicUsize = AtomicUsize::new(0);
    on_a_host("polls", || {
        let store = open(&[LOOPBACK], |_| {});
        store_blocks(&store, 1..=2_000, 100);
        assert!(store.before_waiting(|| {
            ANNOUNCED.fetch_add(1, Ordering::SeqCst);
        }));
        // Most of them are further behind than the packets taken without an announcement.
        let numbers = (1..=2_000).map(|number| number * 769 % 2_000 + 1);
        for number in numbers.take(50) {
            check(&store, [number], 100);
        }
        assert!(ANNOUNCED.load(Ordering::SeqCst) >= 10, "{ANNOUNCED:?}");
    });
}

#[test]
fn peeked_packets_are_sent_again_and_return() {
    on_a_host("peeked", || {
        for redundancy in [Redundancy::Copies(1), Redundancy::Copies(3)] {
            let store = open(&[LOOPBACK, LOOPBACK_6], |options| options.redundancy = redundancy);
            store_blocks(&store, 1..=8, 700);
            for _ in 0..300 {
                (1..=8).for_each(|number| check(&store, [number], 700));
            }
            let begun = store.status().counters.circulated;
            circulate(&store, 100);
            let status = store.status();
            assert!(status.counters.circulated > begun && status.blocks_lost == 0, "{status:?}");
            assert_eq!(status.counters.refused, Default::default());
        }
    });
}

#[test]
fn quiet_store_circulates_slowly_and_wakes_for_a_request() {
    on_a_host("quiet", || {
        let store = open(&[LOOPBACK], |_| {});
        store_blocks(&store, 1..=3, 700);
        // Each of its packets circulates once per keeper iteration, which are at most this many.
        let looks_max = |span: Duration| span.as_nanos() / QUIET_PAUSE_MIN.as_nanos() + 2;
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let (begun, before) = (Instant::now(), store.status().counters.circulated);
            circulate(&store, 12);
            let round = (store.status().counters.circulated - before).div_ceil(3);
            if u128::from(round) <= looks_max(begun.elapsed()) {
                break;
            }
            assert!(Instant::now() < end, "{:?}", store.status());
        }
        check(&store, 1..=3, 700);
    });
}
