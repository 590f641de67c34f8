//! Blocks that are named one after the other: by the time that one came, the others passed.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use wirefs_blocks::store::{BlockStore, Wanted};
use wirefs_echo::Redundancy;
use wirefs_lab::{Lab, LinkProfile};
use wirefs_pingfs::EchoStore;
use wirefs_pingfs::options::Pace;

use crate::site::{content, id, keep, open};

const BLOCKS: u64 = 40;

/// Reads all blocks, each after the one before; how often each went round meanwhile.
fn laps_of_a_walk(store: &EchoStore) -> u64 {
    let before = store.status().counters.circulated;
    for counter in 1..=BLOCKS {
        store.retrieve(&Wanted::of([id(counter)]), &mut |got, block| {
            assert_eq!((got, block), (id(counter), Ok(content(counter, 500))));
        });
    }
    (store.status().counters.circulated - before) / BLOCKS
}

/// Walks until one walk took no more laps than that: whoever is held up for a lap has forgotten what passed.
fn walk_within(name: &str, redundancy: Redundancy, laps_max: u64) {
    let lab = Lab::new(name).unwrap();
    let [near, far] = ["near", "far"].map(|name| lab.host(name).unwrap());
    let link = lab.link(&near, &far, LinkProfile::rtt(Duration::from_millis(40))).unwrap();
    let address = SocketAddr::from((link.address_b(), 0));
    let walk = || {
        let store = open(&[address], |options| {
            options.redundancy = redundancy;
            options.pace = Pace::Fixed(5_000);
        });
        keep(&store, 1..=BLOCKS, 500);
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let laps = laps_of_a_walk(&store);
            if laps <= laps_max {
                break;
            }
            assert!(Instant::now() < end, "{laps} laps for {BLOCKS} blocks");
        }
        // Whoever is held up for a lap takes blocks for lost until they pass again.
        while store.status().blocks_lost > 0 {
            assert!(Instant::now() < end, "{:?}", store.status());
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    near.run(walk).unwrap();
}

#[test]
fn blocks_that_are_named_one_by_one_take_no_more_laps_than_one() {
    walk_within("walk", Redundancy::Copies(1), 2);
}

#[test]
fn with_copies_they_take_a_part_of_a_lap() {
    // Counted are the packets of all copies: four times as many in one lap.
    walk_within("copies-walk", Redundancy::Copies(4), 3);
}

#[test]
fn contents_that_passed_are_forgotten_when_nobody_waits_any_more() {
    crate::site::on_a_host("forgotten", || {
        let store = open(&[crate::site::LOOPBACK], |_| {});
        keep(&store, 1..=2_000, 1_400);
        store.retrieve(&Wanted::of([id(77)]), &mut |_, block| assert!(block.is_ok()));
        let end = Instant::now() + Duration::from_secs(60);
        while store.status().recent_bytes > 0 {
            assert!(Instant::now() < end, "{:?}", store.status());
            std::thread::sleep(Duration::from_millis(5));
        }
    });
}
