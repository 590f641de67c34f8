use super::*;
use wirefs_op::{FileId, Stat};

const PARENT: TreeNodeId = TreeNodeId(7);
const FOR_EVER: Duration = Duration::MAX;
const EXPIRES: NameInvalidation = NameInvalidation { drops: false, repeat_after: None };
const DROPS: NameInvalidation = NameInvalidation { drops: true, repeat_after: None };

fn found(kind: Kind, is_held: bool) -> Answer {
    let stat = Stat::blank(FileId { fs: 0, ino: 1, generation: 0 }, kind);
    Answer::Entry(Entry { node: TreeNodeId(8), stat, entry_ttl: FOR_EVER, attr_ttl: FOR_EVER, is_held })
}

fn validity(answer: &Answer) -> Duration {
    match answer {
        Answer::Entry(entry) => entry.entry_ttl,
        Answer::NoEntry(time) => *time,
        other => panic!("{other:?}"),
    }
}

/// Looks up a name with an immediate answer. Returns the validity of the answer.
fn look_up(lookups: &Lookups, name: &[u8], mut answer: Answer, now_ms: u64) -> Duration {
    let lookup = lookups.begin(PARENT, name);
    let answering = lookups.answering(lookup, &mut answer, now_ms);
    lookups.answered(answering, now_ms);
    validity(&answer)
}

#[test]
fn a_name_without_a_recent_lookup_expires() {
    let lookups = Lookups::default();
    for is_directory in [true, false] {
        assert_eq!(lookups.begin_invalidation(PARENT, b"a", is_directory, 10), EXPIRES);
    }
    look_up(&lookups, b"a", found(Kind::File, true), 10);
    assert_eq!(lookups.begin_invalidation(PARENT, b"a", false, 10 + TRANSIT_MS), EXPIRES, "long ago");
}

#[test]
fn a_file_whose_answer_may_be_in_transit_is_dropped() {
    let lookups = Lookups::default();
    assert_eq!(look_up(&lookups, b"a", found(Kind::File, false), 10), FOR_EVER);
    assert_eq!(lookups.begin_invalidation(PARENT, b"b", false, 20), EXPIRES, "these two have other slots");
    assert_eq!(lookups.begin_invalidation(PARENT, b"a", false, 20), DROPS);
    assert_eq!(look_up(&lookups, b"a", found(Kind::File, false), 30), FOR_EVER, "valid again at once");
}

#[test]
fn a_directory_without_a_cached_dentry_expires() {
    let lookups = Lookups::default();
    assert_eq!(look_up(&lookups, b"a", found(Kind::Directory, false), 10), FOR_EVER);
    assert_eq!(lookups.begin_invalidation(PARENT, b"a", true, 20), EXPIRES);
}

#[test]
fn a_directory_whose_answer_may_be_in_transit_expires_twice() {
    let lookups = Lookups::default();
    assert_eq!(look_up(&lookups, b"a", found(Kind::Directory, true), 10), FOR_EVER);
    let left = Duration::from_millis(TRANSIT_MS - 10);
    assert_eq!(
        lookups.begin_invalidation(PARENT, b"a", true, 20),
        NameInvalidation { drops: false, repeat_after: Some(left) }
    );
    assert_eq!(lookups.begin_invalidation(PARENT, b"a", true, 10 + TRANSIT_MS), EXPIRES);
    look_up(&lookups, b"a", found(Kind::File, true), 2000);
    assert_eq!(
        lookups.begin_invalidation(PARENT, b"a", true, 2000),
        EXPIRES,
        "for a file in the same slot neither"
    );
}

#[test]
fn an_answer_is_in_transit_while_it_is_being_written() {
    let lookups = Lookups::default();
    let mut answer = found(Kind::Directory, true);
    let lookup = lookups.begin(PARENT, b"a");
    let answering = lookups.answering(lookup, &mut answer, 10);
    let repeat_after = Some(Duration::from_millis(TRANSIT_MS));
    assert_eq!(
        lookups.begin_invalidation(PARENT, b"a", true, 10_000),
        NameInvalidation { drops: false, repeat_after }
    );
    lookups.answered(answering, 10_000);
    assert_eq!(lookups.begin_invalidation(PARENT, b"a", true, 10_000 + TRANSIT_MS), EXPIRES);
}

#[test]
fn a_lookup_during_the_invalidation_is_answered_without_validity() {
    let lookups = Lookups::default();
    for (answer, is_directory) in [
        (found(Kind::Directory, true), true),
        (found(Kind::File, true), false),
        (Answer::NoEntry(FOR_EVER), false),
    ] {
        let lookup = lookups.begin(PARENT, b"a");
        assert_eq!(lookups.begin_invalidation(PARENT, b"a", is_directory, 10), EXPIRES);
        let mut answer_in_flight = answer.clone();
        let answering = lookups.answering(lookup, &mut answer_in_flight, 20);
        lookups.answered(answering, 20);
        assert!(validity(&answer_in_flight).is_zero(), "{answer:?}");
    }
    assert_eq!(lookups.begin_invalidation(PARENT, b"a", true, 30), EXPIRES);
}

#[test]
fn a_recently_invalidated_directory_is_renewed_without_validity() {
    let lookups = Lookups::default();
    lookups.begin_invalidation(PARENT, b"a", true, 10);
    assert!(look_up(&lookups, b"a", found(Kind::Directory, true), 9 + QUIET_MS).is_zero());
    assert_eq!(
        lookups.begin_invalidation(PARENT, b"a", true, 10 + QUIET_MS),
        EXPIRES,
        "nothing is to be waited for"
    );
    assert_eq!(look_up(&lookups, b"a", found(Kind::Directory, false), 20 + QUIET_MS), FOR_EVER, "a new one");
    assert_eq!(look_up(&lookups, b"a", found(Kind::Directory, true), 10 + 2 * QUIET_MS), FOR_EVER);
}
