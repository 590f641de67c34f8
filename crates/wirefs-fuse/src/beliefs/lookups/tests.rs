use super::*;
use wirefs_op::{FileId, Stat};

const PARENT: TreeNodeId = TreeNodeId(7);
const FOR_EVER: Duration = Duration::MAX;
const EXPIRES: TakenBack = TakenBack { drops: false, again: None };
const DROPS: TakenBack = TakenBack { drops: true, again: None };

fn found(kind: Kind, is_held: bool) -> Answer {
    let stat = Stat::blank(FileId { fs: 0, ino: 1, generation: 0 }, kind);
    Answer::Entry(Entry { node: TreeNodeId(8), stat, entry_ttl: FOR_EVER, attr_ttl: FOR_EVER, is_held })
}

fn told_for(answer: &Answer) -> Duration {
    match answer {
        Answer::Entry(entry) => entry.entry_ttl,
        Answer::NoEntry(time) => *time,
        other => panic!("{other:?}"),
    }
}

/// Looks a name up and answers at once; gives for how long it was told.
fn looks_up(lookups: &Lookups, name: &[u8], mut answer: Answer, now_ms: u64) -> Duration {
    let lookup = lookups.begin(PARENT, name);
    let answering = lookups.answering(lookup, &mut answer, now_ms);
    lookups.answered(answering, now_ms);
    told_for(&answer)
}

#[test]
fn a_name_that_nobody_looked_up_of_late_expires() {
    let lookups = Lookups::default();
    for is_directory in [true, false] {
        assert_eq!(lookups.take_back(PARENT, b"a", is_directory, 10), EXPIRES);
    }
    looks_up(&lookups, b"a", found(Kind::File, true), 10);
    assert_eq!(lookups.take_back(PARENT, b"a", false, 10 + ON_ITS_WAY_MS), EXPIRES, "long ago");
}

#[test]
fn a_file_whose_answer_may_be_on_its_way_is_dropped() {
    let lookups = Lookups::default();
    assert_eq!(looks_up(&lookups, b"a", found(Kind::File, false), 10), FOR_EVER);
    assert_eq!(lookups.take_back(PARENT, b"b", false, 20), EXPIRES, "these two have other slots");
    assert_eq!(lookups.take_back(PARENT, b"a", false, 20), DROPS);
    assert_eq!(looks_up(&lookups, b"a", found(Kind::File, false), 30), FOR_EVER, "it is told again at once");
}

#[test]
fn a_directory_that_the_kernel_did_not_hold_is_looked_up_under_a_lock_and_expires() {
    let lookups = Lookups::default();
    assert_eq!(looks_up(&lookups, b"a", found(Kind::Directory, false), 10), FOR_EVER);
    assert_eq!(lookups.take_back(PARENT, b"a", true, 20), EXPIRES);
}

#[test]
fn a_directory_whose_renewal_may_be_on_its_way_expires_twice_and_is_never_dropped() {
    let lookups = Lookups::default();
    assert_eq!(looks_up(&lookups, b"a", found(Kind::Directory, true), 10), FOR_EVER);
    let left = Duration::from_millis(ON_ITS_WAY_MS - 10);
    assert_eq!(lookups.take_back(PARENT, b"a", true, 20), TakenBack { drops: false, again: Some(left) });
    assert_eq!(lookups.take_back(PARENT, b"a", true, 10 + ON_ITS_WAY_MS), EXPIRES);
    looks_up(&lookups, b"a", found(Kind::File, true), 2000);
    assert_eq!(lookups.take_back(PARENT, b"a", true, 2000), EXPIRES, "for a file in the same slot neither");
}

#[test]
fn what_is_being_written_is_on_its_way_however_long_that_takes() {
    let lookups = Lookups::default();
    let mut answer = found(Kind::Directory, true);
    let lookup = lookups.begin(PARENT, b"a");
    let answering = lookups.answering(lookup, &mut answer, 10);
    let again = Some(Duration::from_millis(ON_ITS_WAY_MS));
    assert_eq!(lookups.take_back(PARENT, b"a", true, 10_000), TakenBack { drops: false, again });
    lookups.answered(answering, 10_000);
    assert_eq!(lookups.take_back(PARENT, b"a", true, 10_000 + ON_ITS_WAY_MS), EXPIRES);
}

#[test]
fn a_lookup_that_is_under_way_is_answered_for_no_time_and_then_nothing_is_on_its_way() {
    let lookups = Lookups::default();
    for (answer, is_directory) in [
        (found(Kind::Directory, true), true),
        (found(Kind::File, true), false),
        (Answer::NoEntry(FOR_EVER), false),
    ] {
        let lookup = lookups.begin(PARENT, b"a");
        assert_eq!(lookups.take_back(PARENT, b"a", is_directory, 10), EXPIRES);
        let mut told = answer.clone();
        let answering = lookups.answering(lookup, &mut told, 20);
        lookups.answered(answering, 20);
        assert!(told_for(&told).is_zero(), "{answer:?}");
    }
    assert_eq!(lookups.take_back(PARENT, b"a", true, 30), EXPIRES);
}

#[test]
fn a_directory_that_was_taken_back_of_late_is_renewed_for_no_time() {
    let lookups = Lookups::default();
    lookups.take_back(PARENT, b"a", true, 10);
    assert!(looks_up(&lookups, b"a", found(Kind::Directory, true), 9 + CALM_MS).is_zero());
    assert_eq!(lookups.take_back(PARENT, b"a", true, 10 + CALM_MS), EXPIRES, "nothing is to be waited for");
    assert_eq!(looks_up(&lookups, b"a", found(Kind::Directory, false), 20 + CALM_MS), FOR_EVER, "a new one");
    assert_eq!(looks_up(&lookups, b"a", found(Kind::Directory, true), 10 + 2 * CALM_MS), FOR_EVER);
}
