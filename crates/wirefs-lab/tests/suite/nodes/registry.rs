//! Nodes without multicast on their segment find each other in etcd.
//!
//! ```text
//! [linus1] ──┐
//! [linus2] ──┼── bridge that carries no multicast ── etcd on 10.77.0.254:2379
//! [linus3] ──┘
//! ```

use std::fs::File;
use std::process::{Child, Stdio};

use super::segment::{NodeSegment, wait_for};

const URL: &str = "etcd://10.77.0.254/lab";

/// A running etcd, killed on drop.
struct Etcd(Child);

impl Etcd {
    /// Starts etcd with the data of its previous run.
    fn start(segment: &NodeSegment) -> Etcd {
        let (data, log) = (segment.path("etcd"), File::create(segment.path("etcd.log")).unwrap());
        let mut command = segment.switch().command("etcd");
        let url = "http://10.77.0.254:2379";
        command.arg("--data-dir").arg(data).args([
            "--listen-client-urls",
            url,
            "--advertise-client-urls",
            url,
        ]);
        command.args(["--listen-peer-urls", "http://127.0.0.1:2380"]);
        let error = "etcd is missing; on Debian: apt-get install etcd-server";
        Etcd(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().expect(error))
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        // The process may have ended already.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn start(segment: &NodeSegment, number: usize) {
    let name = format!("linus{number}");
    segment.up_as(number, &name, &["--registry", URL]).succeeds();
}

fn wait_for_state(segment: &NodeSegment, here: usize, name: &str, state: &str) {
    wait_for("the list to say so", || segment.state(here, name) == state);
}

/// S-119: nodes without a common segment find each other in a registry. During its outage they keep working; a node that
/// starts then is found after the outage.
#[test]
fn nodes_find_each_other_in_etcd_and_work_during_its_outage() {
    let segment = NodeSegment::new("etcd", 3);
    segment.carry_no_multicast();
    segment.give_switch_an_address();
    let etcd = Etcd::start(&segment);
    for number in 1..=2 {
        start(&segment, number);
    }
    wait_for_state(&segment, 1, "linus2", "alive");
    wait_for_state(&segment, 2, "linus1", "alive");
    assert_eq!(segment.read(1, "linus2/file"), "of 2\n");
    wait_for("the list to say that it is registered", || {
        segment.node(1, &["list"]).succeeds().contains("registry etcd://10.77.0.254:2379/lab: registered")
    });
    drop(etcd);
    wait_for("the list to say that it is not reached", || {
        segment.node(1, &["list"]).succeeds().contains("NOT REACHED")
    });
    assert_eq!(segment.read(2, "linus1/file"), "of 1\n");
    start(&segment, 3);
    assert_eq!(segment.state(3, "linus1"), "unknown");
    let _etcd = Etcd::start(&segment);
    wait_for_state(&segment, 1, "linus3", "alive");
    assert_eq!(segment.read(3, "linus2/file"), "of 2\n");
    // The nodes detect the death long before its lease in etcd expires.
    segment.kill(2);
    wait_for_state(&segment, 1, "linus2", "dead");
    start(&segment, 2);
    wait_for_state(&segment, 3, "linus2", "alive");
}

/// Without a registry the nodes do not find each other; this verifies the setup of the bridge.
#[test]
fn nodes_do_not_find_each_other_without_multicast() {
    let segment = NodeSegment::new("apart", 2);
    segment.carry_no_multicast();
    for number in 1..=2 {
        segment.start(number);
    }
    for (here, there) in [(1, "linus2"), (2, "linus1")] {
        // Each has announced itself several times by then.
        wait_for("some periods to pass", || segment.periods(here) >= 8);
        assert_eq!(segment.state(here, there), "unknown");
    }
}
