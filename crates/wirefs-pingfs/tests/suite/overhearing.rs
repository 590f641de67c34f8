//! Blocks that are named one after the other: when one arrives, the others have passed.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use wirefs_blocks::store::{BlockStore, Wanted};
use wirefs_echo::Redundancy;
use wirefs_lab::{Lab, LinkProfile};
use wirefs_pingfs::EchoStore;
use wirefs_pingfs::options::RateOption;

use crate::site::{content, id, open, store_blocks};

const BLOCKS: u64 = 40;

/// Reads all blocks one after the other. Returns how often each circulated meanwhile.
fn cycles_of_a_walk(store: &EchoStore) -> u64 {
    let before = store.status().counters.circulated;
    for counter in 1..=BLOCKS {
        store.retrieve(&Wanted::of([id(counter)]), &mut |got, block| {
            assert_eq!((got, block), (id(counter), Ok(content(counter, 500))));
        });
    }
    (store.status().counters.circulated - before) / BLOCKS
}

/// Repeats the walk until it takes at most `cycles_max`: a delay of a cycle discards the overheard blocks.
fn walk_within(name: &str, redundancy: Redundancy, cycles_max: u64) {
    let lab = Lab::new(name).unwrap();
    let [near, far] = ["near", "far"].map(|name| lab.host(name).unwrap());
    let link = lab.link(&near, &far, LinkProfile::rtt(Duration::from_millis(40))).unwrap();
    let address = SocketAddr::from((link.address_b(), 0));
    let walk = || {
        let store = open(&[address], |options| {
            options.redundancy = redundancy;
            options.rate = RateOption::Fixed(5_000);
        });
        store_blocks(&store, 1..=BLOCKS, 500);
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let cycles = cycles_of_a_walk(&store);
            if cycles <= cycles_max {
                break;
            }
            assert!(Instant::now() < end, "{cycles} cycles for {BLOCKS} blocks");
        }
        // After a delay of a cycle, blocks count as lost until they pass again.
        while store.status().blocks_lost > 0 {
            assert!(Instant::now() < end, "{:?}", store.status());
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    near.run(walk).unwrap();
}

#[test]
fn walk_over_named_blocks_takes_about_one_cycle() {
    walk_within("walk", Redundancy::Copies(1), 2);
}

#[test]
fn walk_with_copies_takes_a_part_of_a_cycle() {
    // The count includes all copies: four times as many per cycle.
    walk_within("copies-walk", Redundancy::Copies(4), 3);
}

#[test]
fn blocks_requested_ahead_are_read_within_about_a_cycle() {
    const COUNT: u64 = 2_000;
    crate::site::on_a_host("ahead", || {
        let store = open(&[crate::site::LOOPBACK], |_| {});
        store_blocks(&store, 1..=COUNT, 1_400);
        let walk = || {
            let before = store.status().counters.circulated;
            for step in 0..COUNT {
                // Not in the order in which they pass.
                let mut wanted = Wanted::of([id(1 + step * 701 % COUNT)]);
                if step == 0 {
                    wanted.hints.extend((2..=COUNT).map(id));
                }
                store.retrieve(&wanted, &mut |got, block| {
                    assert_eq!(block, Ok(content(got.counter(), 1_400)))
                });
            }
            (store.status().counters.circulated - before) / COUNT
        };
        // A machine that is delayed for a second lets them expire.
        let end = Instant::now() + Duration::from_secs(60);
        while walk() > 3 {
            assert!(Instant::now() < end, "{:?}", store.status());
        }
    });
}

#[test]
fn overheard_contents_expire_when_no_read_is_pending() {
    crate::site::on_a_host("forgotten", || {
        let store = open(&[crate::site::LOOPBACK], |_| {});
        store_blocks(&store, 1..=2_000, 1_400);
        store.retrieve(&Wanted::of([id(77)]), &mut |_, block| assert!(block.is_ok()));
        let end = Instant::now() + Duration::from_secs(60);
        while store.status().recent_bytes > 0 {
            assert!(Instant::now() < end, "{:?}", store.status());
            std::thread::sleep(Duration::from_millis(5));
        }
    });
}
