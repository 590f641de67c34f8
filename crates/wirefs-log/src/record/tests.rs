use super::*;
use crate::{Crc32c, HalfSha256};
use proptest::prelude::*;

const MARK: &[u8] = &[0xa7, 0x0d];
const UNCOUNTED_BYTES: usize = 3;

/// Returns the records up to the end or the first bytes that are none, and these.
fn read_all<'a, S: Checksum>(
    form: &Form<S>,
    mut log: &'a [u8],
    seed: &S,
) -> (Vec<&'a [u8]>, ReadOutcome<'a>) {
    let mut records = Vec::new();
    loop {
        match form.read(log, seed.clone()) {
            ReadOutcome::Record { contents, rest, .. } => {
                assert_eq!(form.head_bytes() + contents.len() + rest.len(), log.len());
                records.push(contents);
                log = rest;
            }
            end => return (records, end),
        }
    }
}

/// Returns a log, and the end of each record.
fn written<S: Checksum>(form: &Form<S>, records: &[Vec<u8>], seed: &S) -> (Vec<u8>, Vec<usize>) {
    let (mut log, mut ends) = (Vec::new(), vec![0]);
    for contents in records {
        let (front, back) = contents.split_at(contents.len() / 2);
        form.put_head(&mut log, seed.clone(), [front, back].into_iter());
        log.extend_from_slice(contents);
        ends.push(log.len());
    }
    (log, ends)
}

fn log_of(form: &Form<Crc32c>, contents: &[u8]) -> Vec<u8> {
    let mut log = Vec::new();
    form.append(&mut log, &[contents]);
    log
}

/// Checks a log that is cut, followed by zeros, or wrong in one byte.
fn check<S: Checksum>(form: &Form<S>, seed: &S, records: &[Vec<u8>], at: usize, wrong: u8) {
    let (log, ends) = written(form, records, seed);
    assert_eq!(
        read_all(form, &log, seed),
        (records.iter().map(Vec::as_slice).collect(), ReadOutcome::Incomplete)
    );

    let cut = at % (log.len() + 1);
    let whole = ends.iter().filter(|end| **end <= cut).count() - 1;
    let (found, end) = read_all(form, &log[..cut], seed);
    assert_eq!((found, end), (records[..whole].iter().map(Vec::as_slice).collect(), ReadOutcome::Incomplete));

    // Zeros at the end of a cut record may be its own.
    let zeros = [&log[..cut], &[0; 300]].concat();
    let (found, end) = read_all(form, &zeros, seed);
    assert!(found.len() >= whole && records.iter().zip(&found).all(|(record, found)| record == found));
    assert!(found.len() <= records.len() && end != ReadOutcome::Incomplete);

    if let Some(byte) = log.len().checked_sub(1).map(|last| at % (last + 1)) {
        let mut log = log.clone();
        log[byte] ^= wrong;
        let before = ends.iter().filter(|end| **end <= byte).count() - 1;
        let (found, _) = read_all(form, &log, seed);
        assert_eq!(
            found,
            records[..before].iter().map(Vec::as_slice).collect::<Vec<_>>(),
            "the byte at {byte}"
        );
    }
}

proptest! {
    #[test]
    fn log_that_is_cut_or_wrong_anywhere_gives_the_records_before(
        records in proptest::collection::vec(
            prop_oneof![
                proptest::collection::vec(any::<u8>(), UNCOUNTED_BYTES..60),
                // Marks and zeros.
                proptest::collection::vec(prop_oneof![Just(0), proptest::sample::select(MARK)], UNCOUNTED_BYTES..60),
            ],
            0..8,
        ),
        at in any::<u32>(), wrong in 1..=255_u8, salt in any::<[u8; 4]>(),
    ) {
        let (at, mut salted) = (at as usize, Crc32c::default());
        salted.add(&salt);
        check(&Form::new(60), &Crc32c::default(), &records, at, wrong);
        check(&Form::new(60).marked(MARK, UNCOUNTED_BYTES), &salted, &records, at, wrong);
        check(&Form::new(60).without_length_in_sum(), &HalfSha256::default(), &records, at, wrong);
    }

    #[test]
    fn record_of_another_seed_does_not_count(contents in proptest::collection::vec(any::<u8>(), 0..60)) {
        let form = Form::<Crc32c>::new(60);
        let mut seed = Crc32c::default();
        seed.add(b"another place");
        let log = log_of(&form, &contents);
        prop_assert_eq!(form.read(&log, seed), ReadOutcome::Damaged);
    }
}

#[test]
fn record_above_the_limit_does_not_count() {
    let record = log_of(&Form::<Crc32c>::new(5), b"12345");
    assert!(matches!(Form::<Crc32c>::new(5).read(&record, Crc32c::default()), ReadOutcome::Record { .. }));
    assert_eq!(Form::<Crc32c>::new(4).read(&record, Crc32c::default()), ReadOutcome::Damaged);
    // Also before its sum is there.
    assert_eq!(Form::<Crc32c>::new(4).read(&record[..4], Crc32c::default()), ReadOutcome::Damaged);
}
