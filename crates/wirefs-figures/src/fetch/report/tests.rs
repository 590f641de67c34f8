use super::*;

fn plan(loads: &[u64]) -> FetchPlan {
    FetchPlan {
        rate_bits: 10_000_000,
        rtt: Duration::ZERO,
        runs: 3,
        loads: loads.to_vec(),
        sizes: 2,
        peers: vec![FetchPeer::Sshfs, FetchPeer::EtherTwoCards],
        missing: Vec::new(),
        wirefs: Default::default(),
        scratch: Default::default(),
        stop: Default::default(),
    }
}

fn sample(load: u64, size: usize, peer: FetchPeer, read_ms: u64) -> FetchSample {
    let (open, close) = (Duration::from_millis(2), Duration::from_millis(1));
    FetchSample {
        load,
        size,
        peer,
        fetch: FetchTimes { open, read: Duration::from_millis(read_ms), reads: 10, close },
    }
}

#[test]
fn tables_show_medians_and_the_source() {
    let mut samples = Vec::new();
    for load in [0, 20] {
        for read_ms in [47, 20, 97] {
            samples.push(sample(load, 0, FetchPeer::Sshfs, read_ms));
            samples.push(sample(load, 0, FetchPeer::EtherTwoCards, read_ms / 2));
        }
    }
    let section = to_section(&plan(&[0, 20]), &samples, "conditions");
    assert_eq!(section.heading, "Fetching a file over cards of 10 Mbit/s");
    for row in [
        "| file | sshfs | wirefs, ether, two cards | sshfs − two cards | source: NFS − PFS |",
        "| 10 K | 50.0 | 26.0 | 24.0 | 30 to 40 |",
        "| 10 K | 50.0 | 26.0 | 24.0 | 30 to 50 |",
        "| 50 K | – | – | – | 100 to 200 |",
        "| open | 2.000 | 2.000 | 2.4 | 1.5 |",
        "| read of 1 K | 5.467 | 2.700 | 10 | 6 |",
    ] {
        assert!(section.text.contains(row), "{row} is not in:\n{}", section.text);
    }
}

#[test]
fn missing_peer_has_a_column_that_says_not_installed() {
    let plan = FetchPlan { missing: vec![FetchPeer::Nfs], ..plan(&[0]) };
    let section = to_section(&plan, &[sample(0, 0, FetchPeer::Sshfs, 47)], "conditions");
    for row in [
        "| file | NFSv4, reads alone | sshfs | wirefs, ether, two cards |",
        "| 10 K | not installed | 50.0 | – |",
        "| read of 1 K | not installed | 4.700 | – |",
    ] {
        assert!(section.text.contains(row), "{row} is not in:\n{}", section.text);
    }
    assert_eq!(FetchPeer::Nfs.install_command(), "apt-get install nfs-ganesha nfs-ganesha-vfs libnfs-utils");
}
