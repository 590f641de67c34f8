use super::*;

#[test]
fn only_numbers_between_zero_and_one_are_probabilities() {
    assert_eq!(Probability::new(0.25).map(Probability::value), Some(0.25));
    for wrong in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
        assert_eq!(Probability::new(wrong), None, "{wrong}");
    }
}

#[test]
fn default_queue_holds_a_round_trip_at_the_rate() {
    let lane = LaneProfile { delay: Duration::from_millis(42), ..LaneProfile::default() };
    assert_eq!(lane.queue_bytes_for(100_000_000), 1_050_000);
    assert_eq!(lane.queue_bytes_for(1_000), QUEUE_BYTES_FLOOR);
    let named = LaneProfile { queue_bytes: Some(3_000), ..lane };
    assert_eq!(named.queue_bytes_for(100_000_000), 3_000);
}

#[test]
fn invalid_profile_is_rejected_with_its_field() {
    let field = |profile: LinkProfile| match profile.check() {
        Err(LabError::Profile { field, .. }) => field,
        other => panic!("{other:?}"),
    };
    assert_eq!(field(LinkProfile::rtt(Duration::from_secs(200))), "delay");
    assert_eq!(field(LinkProfile { mtu: 100, ..LinkProfile::default() }), "mtu");
    assert_eq!(field(LinkProfile::default().with(|lane| lane.rate_bits = Some(0))), "rate_bits");
    assert!(LinkProfile::default().check().is_ok());
}
