use super::*;
use std::collections::BTreeSet;
use std::sync::Arc;
use wirefs_cache::{Freshness, LongListing};
use wirefs_op::{DirEntry, FileId, Kind, Stat};

const DIR: TreeNodeId = TreeNodeId(7);
const NOW: Time = Time(1);

pub(super) fn listing(entries: usize) -> Arc<Vec<DirEntry>> {
    let stat = Stat::blank(FileId { fs: 0, ino: 9, generation: 1 }, Kind::File);
    let entry = |number| DirEntry { name: format!("{number:06}").into_bytes(), next: 1, stat };
    Arc::new((0..entries).map(entry).collect())
}

/// Returns an open directory whose listing is complete.
pub(super) fn opened(node: TreeNodeId, entries: Arc<Vec<DirEntry>>) -> OpenDirectory {
    OpenDirectory {
        node,
        entries: LongListing::from(entries),
        before: Vec::new(),
        listed: Freshness { at: NOW, leased: true },
        taken_at: NOW,
        invalidated: BTreeSet::new(),
        is_kept: false,
        complete: true,
        error: None,
        read: false,
        waiting: Vec::new(),
    }
}

fn open(entries: usize) -> OpenDirectory {
    opened(DIR, listing(entries))
}

const ALL: Part = Part { number: None, thread: 1, is_last: true, is_promised: true };

fn stateless() -> StatelessListings {
    StatelessListings::within(64 * 1024 * 1024)
}

/// A thread that was told something comes to the end of what is of this age.
fn ends(stateless: &mut StatelessListings, age: u64, thread: u32) -> Ending {
    stateless.goes_on(thread);
    stateless.ends(DIR, age, thread)
}

/// Reads a whole listing in one thread. Returns its age.
fn read_whole(stateless: &mut StatelessListings, handle: u64, part: Part) -> u64 {
    stateless.lists(Handle(handle), open(3));
    stateless.tells(Handle(handle), part, NOW).unwrap().age
}

#[test]
fn positions_are_distinct_and_small_in_a_first_reading() {
    assert_eq!(Position::of(0), Position::Begin);
    assert_eq!(Position::At(0, 5).offset(), Some(5));
    for position in
        [Position::At(0, 1), Position::At(9, END - 1), Position::End(0), Position::End(NUMBERS_MAX - 1)]
    {
        let offset = position.offset().unwrap();
        assert!(offset <= i64::MAX as u64);
        assert_eq!(Position::of(offset), position);
    }
    assert_eq!(Position::At(0, END).offset(), None, "there is no such place");
    assert_eq!(Position::At(NUMBERS_MAX, 1).offset(), None, "there are no more");
    assert!(Position::End(100).offset().unwrap() < 1 << 31);
}

#[test]
fn kept_listing_is_complete_and_is_dropped_when_invalidated() {
    let mut stateless = stateless();
    assert!(!stateless.invalidate(DIR), "nothing was told");
    let age = read_whole(&mut stateless, 1, ALL);
    assert_eq!(ends(&mut stateless, age, 1), Ending::Whole);
    assert!(stateless.invalidate(DIR));
    assert!(!stateless.invalidate(DIR), "once");
    assert_eq!(ends(&mut stateless, age, 1), Ending::Plain, "of an age that is over");
    assert_ne!(read_whole(&mut stateless, 2, ALL), age);
}

#[test]
fn listing_invalidated_during_a_reading_is_dropped_at_its_end() {
    let mut stateless = stateless();
    let age = read_whole(&mut stateless, 1, ALL);
    assert!(!stateless.invalidate(DIR), "the kernel does not call it whole");
    assert_eq!(ends(&mut stateless, age, 1), Ending::Dropped);
    assert_eq!(ends(&mut stateless, age, 1), Ending::Plain);
    let age = read_whole(&mut stateless, 2, Part { is_promised: false, ..ALL });
    assert_eq!(ends(&mut stateless, age, 1), Ending::Dropped, "it was not promised");
}

#[test]
fn kernel_keeps_no_listing_while_another_reading_may_begin() {
    for is_invalidated in [false, true] {
        let mut stateless = stateless();
        let age = read_whole(&mut stateless, 1, ALL);
        read_whole(&mut stateless, 2, Part { thread: 2, ..ALL });
        if is_invalidated {
            stateless.invalidate(DIR);
        }
        let end = if is_invalidated { Ending::Dropped } else { Ending::Whole };
        assert_eq!(ends(&mut stateless, age, 1), Ending::Plain);
        // The last one ends it.
        assert_eq!(ends(&mut stateless, age, 2), end);
        // Nobody reads while a name is changed here: who comes next ends what was left.
        let age = read_whole(&mut stateless, 3, Part { is_promised: !is_invalidated, ..ALL });
        stateless.is_alone(DIR);
        assert_eq!(ends(&mut stateless, age, 3), end);
    }
}

#[test]
fn an_age_is_ended_once_and_nothing_of_it_begins_behind_that() {
    let mut stateless = stateless();
    let age = read_whole(&mut stateless, 1, ALL);
    read_whole(&mut stateless, 2, Part { thread: 2, ..ALL });
    stateless.goes_on(1);
    assert_eq!(ends(&mut stateless, age, 2), Ending::Whole);
    assert_eq!(ends(&mut stateless, age, 1), Ending::Plain, "that one's end may come late");
    // The same listing from its beginning has other positions and another end; who is in its midst has not.
    let again = stateless.tells(Handle(2), Part { thread: 3, ..ALL }, NOW).unwrap();
    assert_ne!(again.age, age);
    let on = Part { number: Some(1), thread: 4, ..ALL };
    assert_eq!(stateless.tells(Handle(2), on, NOW).unwrap().age, age);
    assert_ne!(again.number, 1);
}

#[test]
fn a_thread_that_is_not_known_may_be_any_and_is_waited_for() {
    let mut stateless = stateless();
    let age = read_whole(&mut stateless, 1, Part { thread: 0, is_promised: false, ..ALL });
    assert_eq!(ends(&mut stateless, age, 0), Ending::Plain);
    let until = stateless.awaits(DIR).unwrap();
    assert_eq!(stateless.awaits(DIR), None, "once");
    read_whole(&mut stateless, 2, Part { thread: 2, ..ALL });
    stateless.passed(DIR, until);
    assert_eq!(ends(&mut stateless, age, 0), Ending::Plain, "another was told since");
    let until = stateless.awaits(DIR).unwrap();
    stateless.passed(DIR, until);
    assert_eq!(stateless.awaits(DIR), None);
    assert_eq!(ends(&mut stateless, age, 0), Ending::Dropped);
}

#[test]
fn of_too_many_threads_some_are_not_known_any_more() {
    let mut stateless = stateless();
    let age = read_whole(&mut stateless, 1, ALL);
    for thread in 2..2000 {
        read_whole(&mut stateless, u64::from(thread), Part { thread, ..ALL });
    }
    assert_eq!(stateless.threads.len(), THREADS_MAX);
    (1..2000).for_each(|thread| stateless.goes_on(thread));
    assert_eq!(stateless.ends(DIR, age, 1), Ending::Plain);
    stateless.is_alone(DIR);
    assert_eq!(stateless.ends(DIR, age, 1), Ending::Whole);
}

#[test]
fn complete_listing_is_dropped_later_although_newer_entries_were_not_kept() {
    let mut stateless = stateless();
    let age = read_whole(&mut stateless, 1, ALL);
    assert_eq!(ends(&mut stateless, age, 1), Ending::Whole);
    let age = read_whole(&mut stateless, 2, Part { is_promised: false, ..ALL });
    read_whole(&mut stateless, 3, Part { thread: 2, is_promised: false, ..ALL });
    assert_eq!(ends(&mut stateless, age, 1), Ending::Plain);
    assert!(stateless.invalidate(DIR));
}
