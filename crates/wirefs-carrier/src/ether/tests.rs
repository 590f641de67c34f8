use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use wirefs_circuit::CardId;
use wirefs_lab::{Host, Lab};

use super::card::OutCard;
use super::engine::Engine;
use super::machine::Machine;
use super::node;
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
