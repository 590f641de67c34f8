use super::*;
use crate::entry::{EntryKind, Record, head};
use crate::header::tests::header;
use crate::outcome::ChangeOutcome;
use proptest::prelude::*;
use wirefs_op::FileId;

/// The bytes of a segment with these entries, and the offset of each; the last offset is their end.
pub(crate) fn written(number: u64, entries: &[Entry]) -> (Vec<u8>, Vec<usize>) {
    let mut segment = header(number).encode();
    let (_, _, salt) = Header::decode(&segment).unwrap();
    let mut starts = vec![segment.len()];
    for entry in entries {
        let (kind, number, body) = match entry {
            Entry::Change(record) => (EntryKind::Change, record.number, record.body.clone()),
            Entry::Answered(below) => (EntryKind::Answered, *below, Bytes::new()),
            Entry::Durable(below) => (EntryKind::Durable, *below, Bytes::new()),
            Entry::Exclusive(number) => (EntryKind::Exclusive, *number, Bytes::new()),
            Entry::LatestTime(nanos) => (EntryKind::LatestTime, *nanos, Bytes::new()),
            Entry::Outcome(number, outcome) => {
                (EntryKind::Outcome, *number, Bytes::copy_from_slice(&outcome.encode()))
            }
            Entry::Synced(below, file) => {
                (EntryKind::Synced, *below, Bytes::copy_from_slice(&file.to_bytes()))
            }
        };
        let spot = Spot { salt, offset: segment.len() as u64 };
        segment.extend_from_slice(&head(kind, number, &[&body], spot));
        segment.extend_from_slice(&body);
        starts.push(segment.len());
    }
    (segment, starts)
}

/// Returns an entry with a record.
pub(crate) fn record(number: u64, body: impl Into<Bytes>) -> Entry {
    Entry::Change(Record { number, body: body.into() })
}

fn outcome(number: u64) -> Entry {
    Entry::Outcome(number, ChangeOutcome { is_answered: true, is_rejected: true, ..ChangeOutcome::default() })
}

fn read(segment: Vec<u8>) -> Scan {
    scan(&Bytes::from(segment)).unwrap()
}

#[test]
fn preallocated_segment_is_decoded_again() {
    let entries = [
        record(1, "one"),
        Entry::Answered(2),
        record(2, ""),
        outcome(1),
        Entry::Exclusive(3),
        Entry::LatestTime(77),
        Entry::Synced(3, FileId { fs: 1, ino: 0x0102_0304_0506, generation: 9 }),
        Entry::Durable(2),
        record(9, vec![0; 5000]),
    ];
    let (mut segment, _) = written(4, &entries);
    for _ in 0..2 {
        let scan = read(segment.clone());
        assert_eq!((scan.header, scan.entries, scan.rest), (header(4), entries.to_vec(), Tail::Blank));
        segment.resize(segment.len() + 10_000, 0);
    }
}

#[test]
fn entries_behind_a_damaged_record_are_separate() {
    let entries = [record(1, "one"), record(2, "two"), record(3, "three"), Entry::Durable(1)];
    let (mut segment, starts) = written(1, &entries);
    segment[starts[1] + HEAD_BYTES] ^= 0x40;
    let scan = read(segment);
    assert_eq!(scan.entries, entries[..1]);
    assert_eq!(
        scan.rest,
        Tail::Corrupt { at: starts[1] as u64, after_damage: entries[2..].to_vec(), is_hole: false }
    );
}

#[test]
fn hole_differs_from_wrong_bytes() {
    let text = |number: u64| record(number, vec![b'x'; 3 * SECTOR_BYTES]);
    let entries = [text(1), text(2), text(3), text(4)];
    let (segment, starts) = written(1, &entries);
    let is_hole = |damaged: Vec<u8>| match read(damaged).rest {
        Tail::Corrupt { is_hole, after_damage, .. } if after_damage.last() == entries.last() => is_hole,
        rest => panic!("{rest:?}"),
    };
    let sectors = starts[1] / SECTOR_BYTES..starts[3] / SECTOR_BYTES;
    for (first, last) in sectors.clone().flat_map(|first| (first..sectors.end).map(move |last| (first, last)))
    {
        let mut holed = segment.clone();
        holed[first * SECTOR_BYTES..(last + 1) * SECTOR_BYTES].fill(0);
        assert!(is_hole(holed), "{first} to {last}");
    }
    for at in starts[0]..starts[3] {
        let mut wrong = segment.clone();
        wrong[at] ^= 1;
        assert!(!is_hole(wrong), "{at}");
    }
}

#[test]
fn segment_inside_a_record_does_not_count() {
    // A program that copies a journal into the mount writes its entries into a record.
    let (inner, _) = written(1, &[record(7, "of another one"), record(8, "of another one")]);
    let entries = [record(1, inner), record(2, "two")];
    let (mut segment, starts) = written(1, &entries);
    segment[starts[0]] ^= 1;
    let scan = read(segment);
    assert_eq!(
        scan.rest,
        Tail::Corrupt { at: starts[0] as u64, after_damage: entries[1..].to_vec(), is_hole: false }
    );
}

#[test]
fn entry_from_another_segment_does_not_count() {
    let (first, starts) = written(1, &[record(1, "one")]);
    let (mut second, _) = written(2, &[]);
    second.extend_from_slice(&first[starts[0]..]);
    let scan = read(second);
    assert_eq!((scan.entries.len(), scan.rest), (0, Tail::Torn { at: starts[0] as u64 }));
}

fn entries() -> impl Strategy<Value = Vec<Entry>> {
    let body = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..80),
        // Marks and zeros, at which the search for whole entries looks.
        proptest::collection::vec(prop_oneof![Just(0), proptest::sample::select(MARK.to_vec())], 0..80),
    ];
    let entry = prop_oneof![
        4 => (any::<u64>(), body).prop_map(|(number, body)| record(number, body)),
        1 => any::<u64>().prop_map(Entry::Answered),
        1 => any::<u64>().prop_map(Entry::Durable),
    ];
    proptest::collection::vec(entry, 0..12)
}

/// Returns the number of whole entries before this byte.
fn whole_before(starts: &[usize], at: usize) -> usize {
    starts.iter().skip(1).filter(|&&end| end <= at).count()
}

proptest! {
    #[test]
    fn a_segment_that_is_cut_anywhere_gives_what_was_whole(
        entries in entries(), cut in any::<prop::sample::Index>(), room in 0..100_usize,
    ) {
        let (mut segment, starts) = written(1, &entries);
        let cut = starts[0] + cut.index(segment.len() - starts[0] + 1);
        segment.truncate(cut);
        segment.resize(cut + room, 0);
        let scan = scan(&Bytes::from(segment)).unwrap();
        // Zeros that were cut off may be preallocated again.
        let whole = whole_before(&starts, cut);
        prop_assert!(scan.entries.len() >= whole);
        prop_assert!(entries.starts_with(&scan.entries));
        let is_corrupt = matches!(scan.rest, Tail::Corrupt { .. });
        prop_assert!(!is_corrupt);
    }

    #[test]
    fn a_segment_that_is_wrong_anywhere_gives_what_is_before_and_only_what_was_written(
        entries in entries(), at in any::<prop::sample::Index>(), wrong in 1..=255_u8,
    ) {
        let (mut segment, starts) = written(1, &entries);
        prop_assume!(segment.len() > starts[0]);
        let at = starts[0] + at.index(segment.len() - starts[0]);
        segment[at] ^= wrong;
        let scan = scan(&Bytes::from(segment)).unwrap();
        let whole = whole_before(&starts, at);
        prop_assert_eq!(&scan.entries, &entries[..whole]);
        let expected = &entries[whole + 1..];
        match scan.rest {
            Tail::Corrupt { at, after_damage, .. } => {
                prop_assert_eq!(at, starts[whole] as u64);
                prop_assert_eq!(after_damage, expected);
            }
            Tail::Torn { at } => {
                prop_assert_eq!(at, starts[whole] as u64);
                prop_assert!(expected.is_empty());
            }
            Tail::Blank => prop_assert!(false, "the wrong byte was overlooked"),
        }
    }

    #[test]
    fn bytes_of_any_kind_are_read_without_harm(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let mut segment = header(1).encode();
        let start = segment.len();
        segment.extend_from_slice(&bytes);
        let scan = scan(&Bytes::from(segment)).unwrap();
        prop_assert_eq!(scan.entries.len(), 0);
        if bytes.iter().any(|&byte| byte != 0) {
            prop_assert_eq!(scan.rest, Tail::Torn { at: start as u64 });
        }
    }
}
