use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use std::sync::Arc;

#[derive(Clone, Debug)]
enum Step {
    Insert(u64, Vec<u8>),
    InsertMissing(u64, Vec<u8>),
    Remove(u64, u64),
    Truncate(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..60u64, proptest::collection::vec(any::<u8>(), 0..20))
            .prop_map(|(at, data)| Step::Insert(at, data)),
        (0..60u64, proptest::collection::vec(any::<u8>(), 0..20))
            .prop_map(|(at, data)| Step::InsertMissing(at, data)),
        (0..80u64, 0..80u64).prop_map(|(a, b)| Step::Remove(a, b)),
        (0..80u64).prop_map(Step::Truncate),
    ]
}

proptest! {
    #[test]
    fn ranges_behave_like_an_array_of_optional_bytes(steps in proptest::collection::vec(step(), 0..40), start in 0..80u64, len in 0..40u64) {
        let mut ranges = CachedRanges::default();
        let mut plain: Vec<Option<u8>> = vec![None; 200];
        for step in steps {
            match step {
                Step::Insert(at, data) => {
                    for (i, byte) in data.iter().enumerate() {
                        plain[at as usize + i] = Some(*byte);
                    }
                    ranges.insert(at, Bytes::from(data));
                }
                Step::InsertMissing(at, data) => {
                    for (i, byte) in data.iter().enumerate() {
                        plain[at as usize + i].get_or_insert(*byte);
                    }
                    ranges.insert_missing(at, &Bytes::from(data));
                }
                Step::Remove(a, b) => {
                    (a..b).for_each(|i| plain[i as usize] = None);
                    ranges.remove(a, b);
                }
                Step::Truncate(size) => {
                    plain[size as usize..].fill(None);
                    ranges.truncate(size);
                }
            }
        }
        prop_assert_eq!(ranges.bytes(), plain.iter().flatten().count());
        let wanted: Option<Vec<u8>> = plain[start as usize..(start + len) as usize].iter().copied().collect();
        prop_assert_eq!(ranges.read(start, start + len).map(|b| b.to_vec()), wanted);
        let freshness = (start..200).take_while(|i| plain[*i as usize].is_some()).count() as u64;
        prop_assert_eq!(ranges.cached_to(start, u64::MAX), start + freshness);
        prop_assert_eq!(ranges.cached_to(start, start + len), start + freshness.min(len));
        let gap = (start..start + len).find(|i| plain[*i as usize].is_none()).map(|from| {
            let to = (from..start + len).find(|i| plain[*i as usize].is_some()).unwrap_or(start + len);
            (from, to)
        });
        prop_assert_eq!(ranges.first_gap(start, start + len), gap);
    }
}

/// A buffer that reports when its last share is dropped.
struct Owner(Vec<u8>, #[expect(dead_code, reason = "it goes with the memory")] Arc<()>);

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

proptest! {
    #[test]
    fn parts_hold_at_most_twice_their_size_in_memory(
        steps in vec((0u64..200, 1usize..100, any::<bool>(), 0u64..200, 0u64..100), 1..20),
    ) {
        let mut ranges = CachedRanges::default();
        let mut owners = Vec::new();
        for (at, count, is_missing, cut, cut_count) in steps {
            let alive = Arc::new(());
            owners.push((count, Arc::downgrade(&alive)));
            let data = Bytes::from_owner(Owner(vec![1; count], alive));
            if is_missing { ranges.insert_missing(at, &data) } else { ranges.insert(at, data) }
            ranges.remove(cut, cut + cut_count);
        }
        let held: usize = owners.iter().filter(|(_, owner)| owner.strong_count() > 0).map(|(count, _)| count).sum();
        prop_assert!(held <= 2 * ranges.bytes(), "{} bytes hold {}", ranges.bytes(), held);
    }
}
