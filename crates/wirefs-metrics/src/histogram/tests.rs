use super::*;
use proptest::prelude::*;

#[test]
fn buckets_follow_each_other_without_gaps() {
    for bucket in 0..BUCKETS - 1 {
        let end = end_of(bucket);
        assert_eq!((bucket_of(end - 1), bucket_of(end)), (bucket, bucket + 1), "{end}");
    }
    assert_eq!((bucket_of(0), bucket_of(u64::MAX)), (0, BUCKETS - 1));
}

#[test]
fn empty_histogram_has_no_quantile() {
    assert_eq!(Histogram::default().counts().quantile(0.5), None);
}

#[test]
fn difference_has_the_later_values_only() {
    let histogram = Histogram::default();
    histogram.add(Duration::from_millis(1));
    let before = histogram.counts();
    histogram.add(Duration::from_millis(100));
    let later = histogram.counts().since(&before);
    assert_eq!((later.count(), later.sum()), (1, Duration::from_millis(100)));
    assert!(later.quantile(0.0) >= Some(Duration::from_millis(100)));
}

#[test]
fn cumulative_counts_end_with_all_finite_values() {
    let histogram = Histogram::default();
    [1, 5_000, 1 << 35, u64::MAX].into_iter().for_each(|nanos| histogram.add(Duration::from_nanos(nanos)));
    let counts = histogram.counts();
    let cumulative = counts.cumulative();
    assert_eq!(cumulative.first(), Some(&(Duration::from_nanos(1 << 10), 1)));
    assert_eq!(cumulative.last(), Some(&(Duration::from_nanos(1 << 36), 3)));
    assert_eq!(counts.count(), 4);
    assert!(cumulative.is_sorted());
}

proptest! {
    #[test]
    fn quantile_is_at_most_an_eighth_above_the_value(
        mut nanos in prop::collection::vec(1_u64 << 10..1 << 36, 1..50),
        share in 0.0..1.0_f64,
    ) {
        let histogram = Histogram::default();
        nanos.iter().for_each(|nanos| histogram.add(Duration::from_nanos(*nanos)));
        nanos.sort_unstable();
        let rank = ((nanos.len() as f64 * share).ceil() as usize).clamp(1, nanos.len());
        let (exact, found) = (nanos[rank - 1], histogram.counts().quantile(share).unwrap().as_nanos() as u64);
        prop_assert!(exact < found && found <= exact + exact / 8 + 1, "{exact} {found}");
    }
}
