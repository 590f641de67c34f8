use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use wirefs_circuit::{CardAddress, CardId, NetworkPath};
use wirefs_lab::{Host, Lab};

use super::card::CardSender;
use super::engine::{BLOCKED_RETRY, Engine};
use super::mux::{Leader, Mux};
use super::{background, node};
use crate::tls::Identity;

/// Longer than any healthy test.
const PATIENCE: Duration = Duration::from_secs(60);

fn run(host: &Host, program: &str, arguments: &str) {
    let status = host.command(program).args(arguments.split(' ')).status().unwrap();
    assert!(status.success(), "{program} {arguments}");
}

/// Returns a host with one card, and the host at the other end of its cable.
fn wired() -> (Lab, [Host; 2], String) {
    let lab = Lab::new("ether").unwrap();
    let hosts = ["near", "far"].map(|name| lab.host(name).unwrap());
    let device = lab.patch(&hosts[0], &hosts[1]).unwrap().device;
    (lab, hosts, device)
}

/// Returns a node over one card, without a thread that polls it.
fn engine(host: &Host, device: &str) -> Engine {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("wirefs-carrier-node-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let scratch = std::env::temp_dir().join(name);
    let identity = Identity::open(&scratch).unwrap();
    std::fs::remove_dir_all(&scratch).unwrap();
    let (out, signal, card) = host.run(|| CardSender::open(device, CardId(0)).unwrap()).unwrap();
    let node = node::node(&identity, vec![card]).unwrap();
    Engine::new(Mux::new(node, false), vec![out], vec![signal]).unwrap()
}

/// An unread error would make all further waits end at once.
#[test]
fn card_that_goes_down_is_ready_once() {
    let (_lab, hosts, device) = wired();
    let engine = engine(&hosts[0], &device);
    assert_eq!(engine.poll(&engine.wakeup, Duration::ZERO), 0);
    for _ in 0..2 {
        run(&hosts[0], "ip", &format!("link set {device} down"));
        assert_eq!(engine.poll(&engine.wakeup, PATIENCE), 1);
        assert_eq!(engine.poll(&engine.wakeup, Duration::ZERO), 0);
        run(&hosts[0], "ip", &format!("link set {device} up"));
        assert_eq!(engine.poll(&engine.wakeup, Duration::ZERO), 0);
    }
    run(&hosts[0], "ip", &format!("link set {device} down"));
    assert_eq!(engine.poll(&engine.wakeup, PATIENCE), 1);
    // A card that is down when it is opened.
    let second = super::tests::engine(&hosts[0], &device);
    assert_eq!(second.poll(&second.wakeup, PATIENCE), 1);
    assert_eq!(second.poll(&second.wakeup, Duration::ZERO), 0);
}

/// Sends a handshake to a peer that does not exist.
fn dial(engine: &Engine) {
    let path = NetworkPath { card: CardId(0), remote: CardAddress([2, 0, 0, 0, 0, 1]) };
    engine.with(|mux, now| mux.dial(now, &[path], None)).unwrap();
}

#[test]
fn blocked_card_is_retried_and_the_leader_is_notified() {
    let (_lab, hosts, device) = wired();
    let engine = engine(&hosts[0], &device);
    // A queue without room.
    run(&hosts[0], "tc", &format!("qdisc replace dev {device} root pfifo limit 0"));
    engine.asleep_until.store(u64::MAX, Ordering::SeqCst);
    dial(&engine);
    assert!(engine.cards[0].is_blocked());
    assert!(engine.due.load(Ordering::SeqCst) <= (engine.now() + BLOCKED_RETRY).0);
    assert!(engine.leader_notified.load(Ordering::SeqCst));
    // The waiting frames leave as soon as possible.
    run(&hosts[0], "tc", &format!("qdisc del dev {device} root"));
    let mux = engine.lock();
    let now = engine.now();
    engine.leave(mux, now);
    assert!(!engine.cards[0].is_blocked());
}

/// Led or watched, the shutdown is timed once: while it waits for a silent peer no other thread polls the node.
#[test]
fn shutdown_time_of_the_leading_background_thread_is_kept() {
    let (_lab, hosts, device) = wired();
    let engine = engine(&hosts[0], &device);
    dial(&engine);
    let mut mux = engine.lock();
    mux.is_ending = true;
    let term = mux.lead(Leader::Background);
    drop(mux);
    let mut end = None;
    background::run_leader(&engine, term, &mut end);
    assert!(!engine.lock().all_ended());
    assert!(end.is_some_and(|end| end <= Instant::now()));
}
