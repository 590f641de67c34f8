use super::*;
use std::time::Duration;

#[test]
fn call_counts_for_its_operation_and_its_causes_only() {
    let times = CallLatencies::default();
    let mut causes = Causes::default();
    causes.add(Cause::Wire, Duration::from_millis(80));
    causes.add(Cause::Recall, Duration::from_millis(20));
    times.add(CallKind::Open, &causes);
    times.add(CallKind::Open, &causes);
    assert_eq!((times.of(CallKind::Open).count(), times.of(CallKind::Read).count()), (2, 0));
    assert_eq!(times.of(CallKind::Open).sum(), Duration::from_millis(200));
    assert_eq!(times.caused(CallKind::Open, Cause::Recall).sum(), Duration::from_millis(40));
    assert_eq!(times.caused(CallKind::Open, Cause::Lock).count(), 0);
}

#[test]
fn names_are_unique_and_indices_dense() {
    let mut names: Vec<_> = CallKind::ALL.map(CallKind::name).into();
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
    for (index, cause) in Cause::ALL.into_iter().enumerate() {
        assert_eq!(cause as usize, index, "{}", cause.name());
    }
    for (index, operation) in CallKind::ALL.into_iter().enumerate() {
        assert_eq!(operation as usize, index, "{}", operation.name());
    }
}
