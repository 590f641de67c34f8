//! On lines that lose, duplicate, reorder and damage, reads return the registered contents.

use std::net::SocketAddr;
use std::time::Duration;

use wirefs_blocks::store::BlockStore;
use wirefs_echo::Redundancy;
use wirefs_lab::{Lab, LinkProfile, Probability};
use wirefs_pingfs::options::RateOption;
use wirefs_pingfs::{OpenError, limits};

use crate::site::{check, open, store_blocks};

const BLOCKS: u64 = 60;

fn bad(rtt: Duration) -> LinkProfile {
    LinkProfile::rtt(rtt).with(|lane| {
        lane.loss = Probability::new(0.002).unwrap();
        lane.duplicate = Probability::percent(1);
        lane.corrupt = Probability::new(0.002).unwrap();
        lane.reorder = Probability::percent(1);
    })
}

/// Keeps blocks on a bad line and reads them repeatedly.
fn live_on_a_bad_line(name: &str, redundancy: Redundancy) {
    let lab = Lab::new(name).unwrap();
    let [near, far] = ["near", "far"].map(|name| lab.host(name).unwrap());
    let link = lab.link(&near, &far, bad(Duration::from_millis(20))).unwrap();
    let address = SocketAddr::from((link.address_b(), 0));
    let live = || {
        let store = open(&[address], |options| {
            options.redundancy = redundancy;
            options.rate = RateOption::Fixed(8_000);
            options.parked_packets = Some(600);
        });
        store_blocks(&store, 1..=BLOCKS, 1_000);
        while store.status().counters.rebuilt < 10 {
            check(&store, 1..=BLOCKS, 1_000);
        }
        let status = store.status();
        assert_eq!(status.blocks_lost, 0, "{status:?}");
        assert!(status.counters.refused.replayed > 0 && status.hosts.iter().all(|host| host.dropped == 0));
    };
    near.run(live).unwrap();
}

#[test]
fn four_copies_survive_a_bad_line() {
    live_on_a_bad_line("copies", Redundancy::Copies(4));
}

#[test]
fn coded_pieces_survive_a_bad_line() {
    live_on_a_bad_line("code", Redundancy::Code { pieces: 4, extra: 4 });
}

#[test]
fn host_that_dies_loses_nothing_when_the_other_has_a_copy() {
    let lab = Lab::new("dies").unwrap();
    let [near, one, two] = ["near", "one", "two"].map(|name| lab.host(name).unwrap());
    let profile = || LinkProfile::rtt(Duration::from_millis(10));
    let failing = lab.link(&near, &one, profile()).unwrap();
    let remaining = lab.link(&near, &two, profile()).unwrap();
    let hosts = [failing.address_b(), remaining.address_b()].map(|address| SocketAddr::from((address, 0)));
    let live = || {
        let store = open(&hosts, |options| {
            options.redundancy = Redundancy::Copies(2);
            options.rate = RateOption::Fixed(5_000);
        });
        store_blocks(&store, 1..=BLOCKS, 1_000);
        check(&store, 1..=BLOCKS, 1_000);
        failing.cut();
        until("the living host has all", || {
            let hosts = store.status().hosts;
            hosts[0].packets == 0 && hosts[1].packets == 2 * BLOCKS
        });
        check(&store, 1..=BLOCKS, 1_000);
        assert_eq!(store.status().blocks_lost, 0);
    };
    near.run(live).unwrap();
}

/// A delay of some seconds, of the line or of this machine, is no lack of room.
#[test]
fn write_waits_while_the_only_host_is_silent_for_some_seconds() {
    let lab = Lab::new("held-up").unwrap();
    let [near, one] = ["near", "one"].map(|name| lab.host(name).unwrap());
    let link = lab.link(&near, &one, LinkProfile::rtt(Duration::from_millis(10))).unwrap();
    let live = || {
        let store = open(&[(link.address_b(), 0).into()], |options| options.parked_packets = Some(600));
        assert!(store.room().blocks_free > 0);
        link.cut();
        until("the host is silent", || store.status().capacity.packets_max == 0);
        std::thread::scope(|scope| {
            let writes = scope.spawn(|| store_blocks(&store, 1..=BLOCKS, 1_000));
            std::thread::sleep(limits::ROOM_WAIT + Duration::from_secs(1));
            link.heal();
            writes.join().unwrap();
        });
        check(&store, 1..=BLOCKS, 1_000);
    };
    near.run(live).unwrap();
}

#[test]
fn hosts_are_added_and_drained_while_blocks_circulate() {
    let lab = Lab::new("moves").unwrap();
    let [near, one, two] = ["near", "one", "two"].map(|name| lab.host(name).unwrap());
    let profile = || LinkProfile::rtt(Duration::from_millis(10));
    let first = lab.link(&near, &one, profile()).unwrap();
    let second = lab.link(&near, &two, profile()).unwrap();
    let live = || {
        let store = open(&[(first.address_b(), 0).into()], |options| options.rate = RateOption::Fixed(5_000));
        store_blocks(&store, 1..=BLOCKS, 1_000);
        let alone = store.drain_host(first.address_b().into());
        assert!(matches!(alone, Err(OpenError::NoRoom { packets: BLOCKS, room: 0, .. })), "{alone:?}");
        store.add_host((second.address_b(), 0).into()).unwrap();
        let again = store.add_host((second.address_b(), 0).into());
        assert!(matches!(again, Err(OpenError::Twice(_))), "{again:?}");
        let is_drained = || store.drain_host(first.address_b().into()).is_ok();
        until("the new host has room", is_drained);
        until("the old one is empty", || store.status().hosts.len() == 1);
        check(&store, 1..=BLOCKS, 1_000);
        let status = store.status();
        assert_eq!((status.hosts[0].host, status.hosts[0].packets), (second.address_b().into(), BLOCKS));
        assert_eq!(status.blocks_lost, 0);
    };
    near.run(live).unwrap();
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = std::time::Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(std::time::Instant::now() < end, "timed out: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
