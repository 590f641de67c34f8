use super::*;

#[test]
fn times_without_a_unit_are_milliseconds() {
    for (text, ms) in
        [("85", 85.0), ("85ms", 85.0), ("0.5 ms", 0.5), ("250us", 0.25), ("1s", 1e3), ("2min", 12e4)]
    {
        assert_eq!(duration(text), Ok(Duration::from_secs_f64(ms / 1e3)), "{text}");
    }
    for wrong in ["", "ms", "-5ms", "1h", "1e400"] {
        assert!(duration(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn rates_are_in_bits_and_sizes_in_bytes() {
    assert_eq!(rate_bits("100mbit"), Ok(100_000_000));
    assert_eq!(rate_bits("2.5Gbit/s"), Ok(2_500_000_000));
    assert_eq!(rate_bits("64000"), Ok(64_000));
    assert_eq!(bytes("256MiB"), Ok(256 << 20));
    assert_eq!(bytes("64k"), Ok(65_536));
    assert!(rate_bits("0").is_err() && rate_bits("10mb").is_err() && bytes("3 frames").is_err());
}

#[test]
fn probabilities_are_fractions_or_percentages() {
    assert_eq!(probability("1%"), Ok(Probability::percent(1)));
    assert_eq!(probability("0.25"), Ok(Probability::percent(25)));
    assert!(probability("101%").is_err() && probability("2").is_err() && probability("often").is_err());
}
