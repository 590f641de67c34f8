use super::*;

fn party(number: usize) -> PartyKey {
    PartyKey(Bytes::from(number.to_string()))
}

// S-183
#[test]
fn penalty_doubles_and_is_forgotten_after_good_behavior() {
    let mut offenders = Offenders::default();
    let mut now = Time(0);
    let mut span = PENALTY;
    for _ in 0..10 {
        offenders.punish(now, party(1));
        offenders.punish(now, party(1));
        assert!(offenders.is_punished(now + (span - Duration::from_millis(1)), &party(1)));
        now = now + span;
        assert!(!offenders.is_punished(now, &party(1)), "{span:?}");
        span = (span * 2).min(PENALTY_MAX);
    }
    now = now + span * PENALTY_MEMORY;
    offenders.punish(now, party(1));
    assert!(!offenders.is_punished(now + PENALTY, &party(1)), "the first one again");
}

#[test]
fn table_is_bounded() {
    let mut offenders = Offenders::default();
    for number in 0..2 * OFFENDERS_MAX {
        offenders.punish(Time(number as u64), party(number));
    }
    assert_eq!(offenders.0.len(), OFFENDERS_MAX);
    assert!(offenders.is_punished(Time(0), &party(2 * OFFENDERS_MAX - 1)));
}
