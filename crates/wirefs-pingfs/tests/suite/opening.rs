//! Hosts are measured before they are used, and refused with the reason.

use std::time::Duration;

use wirefs_blocks::store::BlockStore;
use wirefs_echo::Redundancy;
use wirefs_lab::{Lab, LinkProfile, Probability};
use wirefs_pingfs::{EchoStore, OpenError, Refused};

use crate::site::{LOOPBACK, on_a_host, open, options};

#[test]
fn host_that_does_not_answer_is_refused() {
    on_a_host("silent", || {
        let silence = || std::fs::write("/proc/sys/net/ipv4/icmp_echo_ignore_all", "1");
        silence().unwrap();
        let refused = EchoStore::open(options(&[LOOPBACK], |_| {})).unwrap_err();
        assert!(refused.to_string().contains("does not answer pings"), "{refused}");
    });
}

#[test]
fn host_named_twice_is_refused() {
    on_a_host("twice", || {
        let refused = EchoStore::open(options(&[LOOPBACK, LOOPBACK], |_| {})).unwrap_err();
        assert!(matches!(refused, OpenError::Twice(_)), "{refused}");
    });
}

#[test]
fn host_behind_a_lossy_way_is_refused_with_the_figure() {
    let lab = Lab::new("lossy").unwrap();
    let [near, far] = ["near", "far"].map(|name| lab.host(name).unwrap());
    let profile =
        LinkProfile::rtt(Duration::from_millis(4)).with(|lane| lane.loss = Probability::percent(60));
    let link = lab.link(&near, &far, profile).unwrap();
    let address = (link.address_b(), 0).into();
    let refused = near.run(|| EchoStore::open(options(&[address], |_| {}))).unwrap().unwrap_err();
    match refused {
        // So much is lost that often not even the first of all comes through.
        OpenError::Refused(Refused::Lossy { .. } | Refused::Raw(_) | Refused::NotWhole { .. }) => {}
        other => panic!("{other}"),
    }
}

#[test]
fn host_that_does_not_echo_a_whole_block_is_refused_and_pieces_fit_where_blocks_do_not() {
    on_a_host("narrow", || {
        let status = std::process::Command::new("ip").args(["link", "set", "lo", "mtu", "700"]).status();
        assert!(status.unwrap().success());
        let refused = EchoStore::open(options(&[LOOPBACK], |_| {})).unwrap_err();
        let OpenError::Refused(Refused::NotWhole { payload_bytes, .. }) = refused else {
            panic!("{refused}")
        };
        assert_eq!(payload_bytes, 672);
        let pieces = Redundancy::Code { pieces: 3, extra: 1 };
        let store = open(&[LOOPBACK], |options| options.redundancy = pieces);
        assert_eq!(store.payload_bytes(), 3 * (672 - 56));
    });
}

#[test]
fn blocks_of_a_size_that_was_asked_for_must_fit() {
    on_a_host("size", || {
        let store = open(&[LOOPBACK], |options| options.block_bytes = Some(1_300));
        assert_eq!(store.payload_bytes(), 1_300);
        let refused = EchoStore::open(options(&[LOOPBACK], |options| options.block_bytes = Some(2_000)));
        assert!(
            matches!(refused, Err(OpenError::BlockBytes { carried: 1_416, wanted: 2_000 })),
            "{refused:?}"
        );
    });
}
