//! Hosts are surveyed before use, and rejected with the reason.

use std::time::Duration;

use wirefs_blocks::store::BlockStore;
use wirefs_echo::Redundancy;
use wirefs_lab::{Lab, LinkProfile, Probability};
use wirefs_pingfs::{EchoStore, OpenError, SurveyError};

use crate::site::{LOOPBACK, on_a_host, open, options};

#[test]
fn silent_host_is_rejected() {
    on_a_host("silent", || {
        let silence = || std::fs::write("/proc/sys/net/ipv4/icmp_echo_ignore_all", "1");
        silence().unwrap();
        let refused = EchoStore::open(options(&[LOOPBACK], |_| {})).unwrap_err();
        assert!(refused.to_string().contains("does not answer pings"), "{refused}");
    });
}

#[test]
fn host_named_twice_is_rejected() {
    on_a_host("twice", || {
        let refused = EchoStore::open(options(&[LOOPBACK, LOOPBACK], |_| {})).unwrap_err();
        assert!(matches!(refused, OpenError::Twice(_)), "{refused}");
    });
}

#[test]
fn host_on_a_lossy_path_is_rejected_with_the_loss() {
    let lab = Lab::new("lossy").unwrap();
    let [near, far] = ["near", "far"].map(|name| lab.host(name).unwrap());
    let profile =
        LinkProfile::rtt(Duration::from_millis(4)).with(|lane| lane.loss = Probability::percent(60));
    let link = lab.link(&near, &far, profile).unwrap();
    let address = (link.address_b(), 0).into();
    let refused = near.run(|| EchoStore::open(options(&[address], |_| {}))).unwrap().unwrap_err();
    match refused {
        // At this loss even the first packets may not come through.
        OpenError::Survey(SurveyError::Lossy { .. } | SurveyError::Raw(_) | SurveyError::NotWhole { .. }) => {
        }
        other => panic!("{other}"),
    }
}

#[test]
fn host_with_a_small_mtu_is_rejected_for_blocks_and_accepted_for_pieces() {
    on_a_host("narrow", || {
        let status = std::process::Command::new("ip").args(["link", "set", "lo", "mtu", "700"]).status();
        assert!(status.unwrap().success());
        let refused = EchoStore::open(options(&[LOOPBACK], |_| {})).unwrap_err();
        let OpenError::Survey(SurveyError::NotWhole { payload_bytes, .. }) = refused else {
            panic!("{refused}")
        };
        assert_eq!(payload_bytes, 672);
        let pieces = Redundancy::Code { pieces: 3, extra: 1 };
        let store = open(&[LOOPBACK], |options| options.redundancy = pieces);
        assert_eq!(store.payload_bytes(), 3 * (672 - 56));
    });
}

#[test]
fn blocks_of_the_requested_size_must_fit() {
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
