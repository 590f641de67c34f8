use super::*;

const WINDOW: Duration = Duration::from_nanos(100);
const LEASED: Freshness = Freshness { at: Time(50), leased: true };

fn at(now: u64) -> Coherency {
    Coherency {
        now: Time(now),
        window: Duration::ZERO,
        requested_after: None,
        leased_since: Some(Time(10)),
        leases_valid: true,
    }
}

#[test]
fn a_window_is_counted_from_the_request() {
    let coherency = |now| Coherency::within(Time(now), WINDOW);
    assert!(coherency(149).is_valid(Freshness::since(Time(50))));
    assert_eq!(coherency(149).ttl(Freshness::since(Time(50))), Duration::from_nanos(1));
    assert!(!coherency(150).is_valid(Freshness::since(Time(50))));
    assert_eq!(coherency(200).ttl(Freshness::since(Time(50))), Duration::ZERO);
    assert!(!coherency(200).is_valid(LEASED), "leases were not requested");
}

#[test]
fn leased_data_is_valid_while_leases_are_valid() {
    assert!(at(1_000_000).is_valid(LEASED));
    assert_eq!(at(1_000_000).ttl(LEASED), FOREVER);
    let suspended = Coherency { leases_valid: false, ..at(60) };
    assert!(!suspended.is_valid(LEASED) && suspended.is_leased(LEASED));
    assert_eq!(suspended.ttl(LEASED), Duration::ZERO);
    assert!(at(60).allows_caching() && !suspended.allows_caching());
    assert!(Coherency::within(Time(60), WINDOW).allows_caching());
}

#[test]
fn data_requested_before_a_recall_of_everything_is_not_leased() {
    let after = Coherency { leased_since: Some(Time(50)), ..at(60) };
    assert!(!after.is_leased(LEASED));
    assert!(after.is_leased(Freshness { at: Time(51), leased: true }));
}

#[test]
fn a_lease_remains_while_replies_stay_the_same() {
    let new = Freshness::since(Time(70));
    assert_eq!(at(80).renewed(Some(LEASED), new, true), Freshness { at: Time(70), leased: true });
    assert_eq!(at(80).renewed(Some(LEASED), new, false), new);
    assert_eq!(at(80).renewed(None, new, true), new);
    let after = Coherency { leased_since: Some(Time(60)), ..at(80) };
    assert_eq!(after.renewed(Some(LEASED), new, true), new);
}

#[test]
fn two_freshnesses_combine_to_the_weaker() {
    let both = LEASED.and(Freshness { at: Time(20), leased: true });
    assert_eq!(both, Freshness { at: Time(20), leased: true });
    assert_eq!(LEASED.and(Freshness::since(Time(90))), Freshness::since(Time(50)));
}

// S-53
#[test]
fn after_a_lock_file_only_data_requested_later_is_valid_within_the_window() {
    let locked = Coherency { requested_after: Some(Time(120)), ..Coherency::within(Time(140), WINDOW) };
    for (at, counts) in [(119, false), (120, false), (121, true)] {
        let freshness = Freshness::since(Time(at));
        assert_eq!(locked.is_valid(freshness), counts, "{at}");
        assert_eq!(locked.ttl(freshness).is_zero(), !counts, "{at}");
    }
    let leased = Coherency { requested_after: Some(Time(120)), ..at(140) };
    assert!(leased.is_valid(LEASED), "the server recalls changed objects");
}
