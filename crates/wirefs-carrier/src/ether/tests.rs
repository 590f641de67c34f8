use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use wirefs_circuit::{CardAddress as Address, CardId, NetworkPath};
use wirefs_lab::{Host, Lab};

use super::card::OutCard;
use super::engine::{Engine, STUCK_WAIT};
use super::machine::{Leader, Machine};
use super::{keeper, node};
use crate::tls::Identity;

/// Longer than any healthy test.
const PATIENCE: Duration = Duration::from_secs(60);

fn run(host: &Host, program: &str, arguments: &str) {
    let status = host.command(program).args(arguments.split(' ')).status().unwrap();
    assert!(status.success(), "{program} {arguments}");
}

/// A host with one card, and what is at the other end of its cable.
fn wired() -> (Lab, [Host; 2], String) {
    let lab = Lab::new("ether").unwrap();
    let hosts = ["near", "far"].map(|name| lab.host(name).unwrap());
    let device = lab.patch(&hosts[0], &hosts[1]).unwrap().device;
    (lab, hosts, device)
}

/// A node over one card, that nobody turns.
fn engine(host: &Host, device: &str) -> Engine {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("wirefs-carrier-node-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let scratch = std::env::temp_dir().join(name);
    let identity = Identity::open(&scratch).unwrap();
    std::fs::remove_dir_all(&scratch).unwrap();
    let (out, ring, card) = host.run(|| OutCard::open(device, CardId(0)).unwrap()).unwrap();
    let node = node::node(&identity, vec![card]).unwrap();
    Engine::new(Machine::new(node, false), vec![out], vec![ring]).unwrap()
}

/// Each call that is not heard makes all further waits end at once.
#[test]
fn a_card_that_goes_down_calls_once() {
    let (_lab, hosts, device) = wired();
    let engine = engine(&hosts[0], &device);
    assert_eq!(engine.poll(&engine.bell, Duration::ZERO), 0);
    for _ in 0..2 {
        run(&hosts[0], "ip", &format!("link set {device} down"));
        assert_eq!(engine.poll(&engine.bell, PATIENCE), 1);
        assert_eq!(engine.poll(&engine.bell, Duration::ZERO), 0);
        run(&hosts[0], "ip", &format!("link set {device} up"));
        assert_eq!(engine.poll(&engine.bell, Duration::ZERO), 0);
    }
    run(&hosts[0], "ip", &format!("link set {device} down"));
    assert_eq!(engine.poll(&engine.bell, PATIENCE), 1);
    // One that is down when it is opened.
    let second = super::tests::engine(&hosts[0], &device);
    assert_eq!(second.poll(&second.bell, PATIENCE), 1);
    assert_eq!(second.poll(&second.bell, Duration::ZERO), 0);
}

/// Says hello to a peer that does not exist.
fn dial(engine: &Engine) {
    let way = NetworkPath { card: CardId(0), remote: Address([2, 0, 0, 0, 0, 1]) };
    engine.with(|machine, now| machine.dial(now, &[way], None)).unwrap();
}

#[test]
fn a_card_that_is_full_is_tried_again_soon_and_the_leader_is_told_so() {
    let (_lab, hosts, device) = wired();
    let engine = engine(&hosts[0], &device);
    // A queue that has room for nothing.
    run(&hosts[0], "tc", &format!("qdisc replace dev {device} root pfifo limit 0"));
    engine.asleep_until.store(u64::MAX, Ordering::SeqCst);
    dial(&engine);
    assert!(engine.cards[0].is_stuck());
    assert!(engine.due.load(Ordering::SeqCst) <= (engine.now() + STUCK_WAIT).0);
    assert!(engine.nudged.load(Ordering::SeqCst));
    // What waits for the card leaves as soon as it may.
    run(&hosts[0], "tc", &format!("qdisc del dev {device} root"));
    let machine = engine.lock();
    let now = engine.now();
    engine.leave(machine, now);
    assert!(!engine.cards[0].is_stuck());
}

/// Whether it leads or watches, the end comes once: while it waits for a peer that is silent nobody else turns the node.
#[test]
fn the_farewell_that_a_leading_keeper_began_is_over_when_it_leaves() {
    let (_lab, hosts, device) = wired();
    let engine = engine(&hosts[0], &device);
    dial(&engine);
    let mut machine = engine.lock();
    machine.is_ending = true;
    let term = machine.lead(Leader::Keeper);
    drop(machine);
    let mut end = None;
    keeper::keep(&engine, term, &mut end);
    assert!(!engine.lock().is_quiet());
    assert!(end.is_some_and(|end| end <= Instant::now()));
}
