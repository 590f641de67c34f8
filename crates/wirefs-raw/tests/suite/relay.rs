//! Pings with another host's source address: the reply goes to that host.

use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wirefs_lab::{Lab, LinkProfile};
use wirefs_raw::{EchoIdent, EchoRelay};

const IDENT: EchoIdent = EchoIdent(0x7769);

/// Waits for the next reply.
fn next(relay: &EchoRelay) -> Vec<u8> {
    let end = Instant::now() + Duration::from_secs(60);
    let mut room = Vec::new();
    while Instant::now() < end {
        if let Some(payload) = relay.receive(&mut room).unwrap() {
            return payload.to_vec();
        }
        let second = Timespec { tv_sec: 1, tv_nsec: 0 };
        poll(&mut [PollFd::new(relay, PollFlags::IN)], Some(&second)).unwrap();
    }
    panic!("no reply came");
}

/// ```text
///  one ──── host ──── two        one pings the host with the address of two; the host's reply goes to two
/// ```
#[test]
fn reply_goes_to_the_given_source_address() {
    let lab = Lab::new("relay").unwrap();
    let [one, host, two] = ["one", "host", "two"].map(|name| lab.host(name).unwrap());
    let profile = || LinkProfile::rtt(Duration::from_millis(2));
    let (left, right) =
        (lab.link(&host, &one, profile()).unwrap(), lab.link(&host, &two, profile()).unwrap());
    let (pinged, named) = (left.address_a(), right.address_b());
    let payload: Vec<u8> = (0..1_400).map(|place| place as u8).collect();
    let receiver = two.run(|| EchoRelay::open(IDENT, 1 << 20).unwrap()).unwrap();
    let sender = one.run(|| EchoRelay::open(IDENT, 1 << 20).unwrap()).unwrap();
    assert!(sender.send(named, pinged, &payload).unwrap());
    assert_eq!(next(&receiver), payload);
    // The sender gets none of it, but gets the replies to its own address.
    let own = left.address_b();
    assert!(sender.send(own, pinged, b"own").unwrap());
    assert_eq!(next(&sender), b"own");
}
