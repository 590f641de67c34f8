use super::*;
use std::collections::BTreeSet;
use std::sync::Arc;
use wirefs_cache::{Known, LongListing};
use wirefs_op::{DirEntry, FileId, Kind, Stat};

const DIR: NodeId = NodeId(7);
const NOW: Time = Time(1);

fn open(entries: usize) -> OpenDirectory {
    let stat = Stat::blank(FileId { fs: 0, ino: 9, generation: 1 }, Kind::File);
    let entry = |number| DirEntry { name: format!("{number:06}").into_bytes(), next: 1, stat };
    OpenDirectory {
        node: DIR,
        entries: LongListing::from(Arc::new((0..entries).map(entry).collect::<Vec<_>>())),
        listed: Known { at: NOW, leased: true },
        taken_at: NOW,
        doubted: BTreeSet::new(),
        is_kept: false,
        complete: true,
        error: None,
        read: false,
        waiting: Vec::new(),
    }
}

const ALL: Part = Part { number: None, thread: 1, is_last: true, is_promised: true };

fn unopened() -> Unopened {
    Unopened::within(64 * 1024 * 1024)
}

/// A thread is told all of a listing; which age that is of.
fn told(unopened: &mut Unopened, handle: u64, part: Part) -> u64 {
    unopened.lists(Handle(handle), open(3));
    unopened.tells(Handle(handle), part, NOW).unwrap().age
}

#[test]
fn positions_are_told_apart_and_those_of_a_first_reading_are_small() {
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
fn what_is_promised_is_whole_and_is_dropped_when_it_is_doubted() {
    let mut unopened = unopened();
    assert!(!unopened.doubt(DIR), "nothing was told");
    let age = told(&mut unopened, 1, ALL);
    assert_eq!(unopened.ends(DIR, age, 1), Ending::Whole);
    assert!(unopened.doubt(DIR));
    assert!(!unopened.doubt(DIR), "once");
    assert_eq!(unopened.ends(DIR, age, 1), Ending::Plain, "of an age that is over");
    assert_ne!(told(&mut unopened, 2, ALL), age);
}

#[test]
fn what_was_doubted_while_it_was_read_is_dropped_at_its_end() {
    let mut unopened = unopened();
    let age = told(&mut unopened, 1, ALL);
    assert!(!unopened.doubt(DIR), "the kernel does not call it whole");
    unopened.reads_on(DIR, 1);
    assert_eq!(unopened.ends(DIR, age, 1), Ending::Dropped);
    assert_eq!(unopened.ends(DIR, age, 1), Ending::Plain);
    let age = told(&mut unopened, 2, Part { is_promised: false, ..ALL });
    assert_eq!(unopened.ends(DIR, age, 1), Ending::Dropped, "it was not promised");
}

#[test]
fn while_another_may_be_told_the_beginning_the_kernel_concludes_nothing() {
    let mut unopened = unopened();
    let age = told(&mut unopened, 1, ALL);
    told(&mut unopened, 2, Part { thread: 2, ..ALL });
    unopened.doubt(DIR);
    unopened.reads_on(DIR, 1);
    assert_eq!(unopened.ends(DIR, age, 1), Ending::Plain);
    // Nobody reads while a name is changed here: who comes next ends what was left.
    assert_ne!(told(&mut unopened, 3, ALL), age);
    unopened.is_alone(DIR);
    assert_eq!(told(&mut unopened, 4, ALL), age);
    assert_eq!(unopened.ends(DIR, age, 1), Ending::Dropped);
    let last = told(&mut unopened, 5, ALL);
    assert_eq!(unopened.ends(DIR, last, 1), Ending::Whole);
}

#[test]
fn a_thread_that_is_not_known_may_be_any() {
    let mut unopened = unopened();
    let age = told(&mut unopened, 1, Part { thread: 0, is_promised: false, ..ALL });
    unopened.reads_on(DIR, 0);
    assert_eq!(unopened.ends(DIR, age, 0), Ending::Plain);
}

#[test]
fn what_is_whole_is_dropped_later_though_what_was_told_since_was_not_promised() {
    let mut unopened = unopened();
    let age = told(&mut unopened, 1, ALL);
    assert_eq!(unopened.ends(DIR, age, 1), Ending::Whole);
    told(&mut unopened, 2, Part { is_promised: false, ..ALL });
    told(&mut unopened, 3, Part { thread: 2, is_promised: false, ..ALL });
    assert_eq!(unopened.ends(DIR, age, 1), Ending::Plain);
    assert!(unopened.doubt(DIR));
}
