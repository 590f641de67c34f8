use super::*;
use proptest::prelude::*;
use std::time::Duration;

fn cause() -> impl Strategy<Value = Cause> {
    (0..Cause::ALL.len()).prop_map(|index| Cause::ALL[index])
}

proptest! {
    // S-151
    #[test]
    fn causes_add_up_to_the_time_waited(
        begin in 0_u64..1000,
        ends in prop::collection::vec((0_u64..2000, cause()), 0..40),
        since in 0_u64..2000,
        length in 0_u64..2000,
    ) {
        let mut timeline = Timeline::starting(Time(begin), Cause::Queue);
        ends.into_iter().for_each(|(end, cause)| timeline.extend(Time(end), cause));
        let causes = timeline.causes(Time(since), Time(since + length));
        prop_assert_eq!(causes.total(), Duration::from_nanos(length));
    }
}

#[test]
fn time_outside_the_spans_has_its_cause_too() {
    let mut timeline = Timeline::starting(Time(100), Cause::Queue);
    timeline.extend(Time(150), Cause::Wire);
    let causes = timeline.causes(Time(90), Time(170));
    let nanos = |cause| causes.of(cause).as_nanos();
    assert_eq!((nanos(Cause::Queue), nanos(Cause::Wire), nanos(Cause::Local)), (10, 50, 20));
}

#[test]
fn only_the_part_within_the_call_counts() {
    let mut timeline = Timeline::starting(Time(0), Cause::Queue);
    timeline.extend(Time(100), Cause::Wire);
    timeline.extend(Time(200), Cause::Recall);
    let causes = timeline.causes(Time(60), Time(130));
    assert_eq!((causes.of(Cause::Wire).as_nanos(), causes.of(Cause::Recall).as_nanos()), (40, 30));
}

#[test]
fn oldest_spans_are_dropped_first() {
    let mut timeline = Timeline::starting(Time(0), Cause::Queue);
    for step in 1..=20 {
        timeline.extend(Time(step * 10), if step % 2 == 0 { Cause::Wire } else { Cause::Server });
    }
    let causes = timeline.causes(Time(80), Time(200));
    assert_eq!((causes.of(Cause::Wire).as_nanos(), causes.of(Cause::Server).as_nanos()), (60, 60));
    assert_eq!(timeline.causes(Time(0), Time(80)).of(Cause::Queue).as_nanos(), 80);
}
