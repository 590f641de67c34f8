//! Loss, corruption, cuts, and their counters.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use wirefs_lab::{Direction, LabError, LinkProfile, Probability, probe};

use crate::linked_hosts::{WAIT_MAX, linked_hosts, wait_until};

#[test]
fn seed_determines_the_lost_frames() {
    let survivors = |name, seed| {
        let profile =
            LinkProfile { seed, ..LinkProfile::default().with(|lane| lane.loss = Probability::percent(20)) };
        let w = linked_hosts(name, profile);
        let datagrams = w.datagrams();
        let survivors = datagrams.send_to_server(&w.link, 0..500);
        let counted = w.link.counters().b_to_a;
        assert_eq!(counted.offered_frames, 500);
        // 20 % of 500 is 100 with a standard deviation of 9.
        assert!((60..=140).contains(&counted.dropped_by_loss), "{counted:?}");
        assert_eq!(survivors.len() as u64, 500 - counted.dropped_by_loss);
        survivors
    };
    let first = survivors("loss1", 5);
    assert_eq!(first, survivors("loss2", 5));
    assert_ne!(first, survivors("loss3", 6));
}

#[test]
fn cut_link_drops_frames_until_it_is_restored() {
    let w = linked_hosts("cut", LinkProfile::default());
    let datagrams = w.datagrams();
    assert_eq!(datagrams.send_to_server(&w.link, 0..3), [0, 1, 2]);
    w.link.cut();
    assert!(datagrams.send_to_server(&w.link, 3..6).is_empty());
    w.link.heal();
    assert_eq!(datagrams.send_to_server(&w.link, 6..9), [6, 7, 8]);
    let counted = w.link.counters().b_to_a;
    assert_eq!((counted.offered_frames, counted.delivered_frames, counted.dropped_by_cut), (9, 6, 3));
}

#[test]
fn tcp_connection_survives_a_cut_of_one_direction() {
    let w = linked_hosts("half", LinkProfile::default());
    let address = w.link.address_a();
    let listener = w.server.run(|| TcpListener::bind((address, 0))).unwrap().unwrap();
    let at = listener.local_addr().unwrap();
    let mut client = w.client.run(|| TcpStream::connect(at)).unwrap().unwrap();
    let (mut server, _) = listener.accept().unwrap();
    server.set_read_timeout(Some(WAIT_MAX)).unwrap();

    w.link.cut_direction(Direction::BToA);
    let before = w.link.counters();
    client.write_all(b"after the cut").unwrap();
    wait_until(|| w.link.counters().since(&before).b_to_a.dropped_by_cut > 0);
    w.link.heal_direction(Direction::BToA);
    let mut got = [0; 13];
    server.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"after the cut");
}

#[test]
fn tcp_transfers_every_byte_over_a_faulty_link() {
    let w = linked_hosts(
        "bad",
        LinkProfile::rtt(std::time::Duration::from_millis(4)).with(|lane| {
            lane.loss = Probability::percent(1);
            lane.duplicate = Probability::percent(1);
            lane.reorder = Probability::percent(1);
            lane.corrupt = Probability::percent(1);
        }),
    );
    let run = probe::tcp_transfer(&w.server, &w.client, w.link.address_b(), 2_000_000).unwrap();
    assert_eq!(run.bytes, 2_000_000);
    let counted = w.link.counters().a_to_b;
    for (fault, count) in [
        ("loss", counted.dropped_by_loss),
        ("duplicate", counted.duplicated),
        ("reorder", counted.reordered),
        ("corrupt", counted.corrupted),
    ] {
        assert!(count > 0, "{fault}: {counted:?}");
    }
}

#[test]
fn running_link_rejects_changes_of_fixed_fields() {
    let w = linked_hosts("fixed", LinkProfile::default());
    let refused = |profile| match w.link.set_profile(profile) {
        Err(LabError::Profile { field, .. }) => field,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(LinkProfile { mtu: 9_000, ..w.link.profile() }), "mtu");
    assert_eq!(refused(LinkProfile { seed: 9, ..w.link.profile() }), "seed");
    assert_eq!(refused(LinkProfile::default().with(|lane| lane.rate_bits = Some(0))), "rate_bits");
}
