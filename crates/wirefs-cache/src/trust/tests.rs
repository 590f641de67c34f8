use super::*;

const WINDOW: Duration = Duration::from_nanos(100);
const LEASED: Known = Known { at: Time(50), leased: true };

fn at(now: u64) -> Trust {
    Trust {
        now: Time(now),
        window: Duration::ZERO,
        asked_after: None,
        leased_since: Some(Time(10)),
        is_valid: true,
    }
}

#[test]
fn a_window_ends_so_long_after_the_question() {
    let trust = |now| Trust::within(Time(now), WINDOW);
    assert!(trust(149).believes(Known::since(Time(50))));
    assert_eq!(trust(149).ttl(Known::since(Time(50))), Duration::from_nanos(1));
    assert!(!trust(150).believes(Known::since(Time(50))));
    assert_eq!(trust(200).ttl(Known::since(Time(50))), Duration::ZERO);
    assert!(!trust(200).believes(LEASED), "nobody asked for leases");
}

#[test]
fn what_is_leased_is_believed_for_ever_while_leases_are_valid() {
    assert!(at(1_000_000).believes(LEASED));
    assert_eq!(at(1_000_000).ttl(LEASED), FOREVER);
    let suspended = Trust { is_valid: false, ..at(60) };
    assert!(!suspended.believes(LEASED) && suspended.holds(LEASED));
    assert_eq!(suspended.ttl(LEASED), Duration::ZERO);
    assert!(at(60).may_last() && !suspended.may_last());
    assert!(Trust::within(Time(60), WINDOW).may_last());
}

#[test]
fn what_was_asked_for_before_everything_was_taken_back_is_not_leased() {
    let after = Trust { leased_since: Some(Time(50)), ..at(60) };
    assert!(!after.holds(LEASED));
    assert!(after.holds(Known { at: Time(51), leased: true }));
}

#[test]
fn a_promise_goes_on_while_what_is_heard_stays_the_same() {
    let new = Known::since(Time(70));
    assert_eq!(at(80).renewed(Some(LEASED), new, true), Known { at: Time(70), leased: true });
    assert_eq!(at(80).renewed(Some(LEASED), new, false), new);
    assert_eq!(at(80).renewed(None, new, true), new);
    let after = Trust { leased_since: Some(Time(60)), ..at(80) };
    assert_eq!(after.renewed(Some(LEASED), new, true), new);
}

#[test]
fn of_two_things_together_the_weaker_counts() {
    let both = LEASED.and(Known { at: Time(20), leased: true });
    assert_eq!(both, Known { at: Time(20), leased: true });
    assert_eq!(LEASED.and(Known::since(Time(90))), Known::since(Time(50)));
}

// S-155
#[test]
fn after_a_lock_by_a_name_only_what_is_asked_for_later_counts_within_the_window() {
    let locked = Trust { asked_after: Some(Time(120)), ..Trust::within(Time(140), WINDOW) };
    for (at, counts) in [(119, false), (120, false), (121, true)] {
        let known = Known::since(Time(at));
        assert_eq!(locked.believes(known), counts, "{at}");
        assert_eq!(locked.ttl(known).is_zero(), !counts, "{at}");
    }
    let leased = Trust { asked_after: Some(Time(120)), ..at(140) };
    assert!(leased.believes(LEASED), "the server recalls what changed");
}
