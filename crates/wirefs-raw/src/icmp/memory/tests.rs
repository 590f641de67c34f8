use super::*;

#[test]
fn charge_of_an_ethernet_packet_matches_the_measurement() {
    assert_eq!(charge_bytes(64), 832);
    assert_eq!(charge_bytes(1_472), 2_304);
    assert_eq!(charge_bytes(8_972), 16_640);
    assert!((65_832..67_000).contains(&charge_bytes(65_000)));
}

#[test]
fn charge_never_falls_with_size() {
    let charges: Vec<usize> = (0..=PAYLOAD_BYTES_MAX).map(charge_bytes).collect();
    assert!(charges.is_sorted());
    assert!(charges.iter().enumerate().all(|(payload, &charge)| charge > payload));
}
