use super::*;

#[test]
fn modes_parse_as_users_write_them() {
    assert_eq!(Mode::parse("lease").unwrap(), Mode::default());
    assert_eq!(Mode::parse("window").unwrap().window(), Duration::from_secs(1));
    assert_eq!(Mode::parse("window=250ms").unwrap().window(), Duration::from_millis(250));
    assert_eq!(Mode::parse("window=2s").unwrap().to_string(), "window=2000ms");
    assert_eq!(Mode::parse("strict").unwrap().window(), Duration::ZERO);
}

#[test]
fn wrong_modes_are_explained() {
    assert!(Mode::parse("lax").unwrap_err().contains("lease, window, strict"));
    assert!(Mode::parse("window=2h").unwrap_err().contains("500ms"));
    assert!(Mode::parse("lease=1s").unwrap_err().contains("takes no value"));
    assert!(Mode::parse("strict=1s").unwrap_err().contains("takes no value"));
}

#[test]
fn a_lease_mode_believes_nothing_by_time_alone() {
    let lease = Mode::parse("lease").unwrap();
    assert!(lease.takes_leases() && lease.window().is_zero());
    assert!(!Mode::parse("window").unwrap().takes_leases() && !Mode::parse("strict").unwrap().takes_leases());
}
