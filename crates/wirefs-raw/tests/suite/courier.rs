//! Pings in another's name: the host between answers whoever is named.

use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wirefs_lab::{Lab, LinkProfile};
use wirefs_raw::{Courier, Ident};

const IDENT: Ident = Ident(0x7769);

/// Waits for the next reply.
fn next(courier: &Courier) -> Vec<u8> {
    let end = Instant::now() + Duration::from_secs(60);
    let mut room = Vec::new();
    while Instant::now() < end {
        if let Some(payload) = courier.receive(&mut room).unwrap() {
            return payload.to_vec();
        }
        let second = Timespec { tv_sec: 1, tv_nsec: 0 };
        poll(&mut [PollFd::new(courier, PollFlags::IN)], Some(&second)).unwrap();
    }
    panic!("no reply came");
}

/// ```text
///  one ──── host ──── two        one pings the host as two; the host's reply goes to two
/// ```
#[test]
fn reply_to_a_ping_in_anothers_name_goes_to_the_other() {
    let lab = Lab::new("courier").unwrap();
    let [one, host, two] = ["one", "host", "two"].map(|name| lab.host(name).unwrap());
    let profile = || LinkProfile::rtt(Duration::from_millis(2));
    let (left, right) =
        (lab.link(&host, &one, profile()).unwrap(), lab.link(&host, &two, profile()).unwrap());
    let (pinged, named) = (left.address_a(), right.address_b());
    let payload: Vec<u8> = (0..1_400).map(|place| place as u8).collect();
    let receiver = two.run(|| Courier::open(IDENT, 1 << 20).unwrap()).unwrap();
    let sender = one.run(|| Courier::open(IDENT, 1 << 20).unwrap()).unwrap();
    assert!(sender.send(named, pinged, &payload).unwrap());
    assert_eq!(next(&receiver), payload);
    // Nothing of it comes back to who sent it, and what it pings in its own name does.
    let own = left.address_b();
    assert!(sender.send(own, pinged, b"own").unwrap());
    assert_eq!(next(&sender), b"own");
}
