use super::*;

/// Probes a path with an MTU of `true_bytes`; returns the result and the number of probes.
fn found(most: usize, true_bytes: usize) -> (usize, usize) {
    let (mut mtu, mut probes) = (MtuDiscovery::new(most), 0);
    while let Some(bytes) = mtu.probe(Time(0)) {
        assert!(bytes > PACKET_BYTES_BASE && bytes <= most);
        mtu.sent();
        assert_eq!(mtu.probe(Time(0)), None, "one at a time");
        mtu.on_probe_result(Time(0), bytes, bytes <= true_bytes);
        probes += 1;
    }
    (mtu.bytes(), probes)
}

#[test]
fn path_mtu_is_found_by_probes() {
    assert_eq!(found(9_000, 9_000), (9_000, 1));
    assert_eq!(found(9_000, 4_500), (4_000, 7));
    assert_eq!(found(9_000, 1_500), (1_500, 12));
    assert_eq!(found(1_500, 1_500), (1_500, 0));
    assert_eq!(found(600, 1_500), (600, 0));
}

#[test]
fn larger_packets_are_probed_again_after_a_fallback() {
    let mut mtu = MtuDiscovery::new(9_000);
    mtu.sent();
    mtu.on_probe_result(Time(0), 9_000, true);
    mtu.fall_back(Time(5));
    assert_eq!((mtu.bytes(), mtu.probe(Time(5))), (1_500, None));
    assert_eq!(mtu.probe(Time(5) + MTU_RETRY_WAIT), Some(9_000));
}

#[test]
fn consecutive_losses_of_large_packets_cause_a_fallback() {
    let mut mtu = MtuDiscovery::new(9_000);
    mtu.on_probe_result(Time(0), 9_000, true);
    for _ in 0..10 {
        mtu.on_large_packets(Time(1), false, LARGE_LOST_MAX - 1);
        mtu.on_large_packets(Time(1), true, 1);
    }
    assert_eq!(mtu.bytes(), 9_000, "isolated losses are normal");
    (0..LARGE_LOST_MAX).for_each(|_| mtu.on_large_packets(Time(2), false, 1));
    assert_eq!(mtu.bytes(), PACKET_BYTES_BASE);
}
