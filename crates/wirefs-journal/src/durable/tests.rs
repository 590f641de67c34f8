use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Does all that there is to do before anybody waits.
fn run_early(durable: &mut Durable) -> Vec<Job> {
    let jobs = std::iter::from_fn(|| {
        let job = durable.early()?;
        durable.done(&job);
        Some(job)
    });
    jobs.collect()
}

/// What somebody does who waits, with nobody beside.
fn waits(durable: &mut Durable) -> Vec<Job> {
    let point = durable.written();
    let mut jobs = Vec::new();
    while let Turn::Lead(job) = durable.turn(point) {
        durable.done(&job);
        jobs.push(job);
    }
    assert_eq!(durable.turn(point), Turn::Durable);
    jobs
}

/// A journal in whose last segment so many bytes are; the others are full.
fn written(segments: u64, bytes: u64) -> Durable {
    let mut durable = Durable::default();
    for number in 1..=segments {
        durable.made(number);
        durable.wrote(if number < segments { BEGUN_BYTES * 4 } else { bytes });
    }
    durable
}

#[test]
fn who_waits_waits_for_one_sync_however_much_was_written_before() {
    for segments in [1, 4, 7, 60] {
        let mut durable = written(segments, 100);
        let early = run_early(&mut durable);
        let full = (1..segments).map(Job::Sync);
        assert_eq!(early, [Job::Names(segments)].into_iter().chain(full).collect::<Vec<_>>());
        assert_eq!(waits(&mut durable), [Job::Sync(segments)]);
        assert_eq!(waits(&mut durable), []);
        assert_eq!(durable.early(), None);
    }
}

#[test]
fn who_waits_before_anything_was_early_has_all_done_in_order() {
    let mut durable = written(3, 100);
    assert_eq!(waits(&mut durable), [Job::Names(3), Job::Sync(1), Job::Sync(2), Job::Sync(3)]);
}

#[test]
fn the_segment_that_is_written_to_is_begun_each_time_enough_was_written() {
    let mut durable = written(1, BEGUN_BYTES - 1);
    assert_eq!(run_early(&mut durable), [Job::Names(1)]);
    durable.wrote(11);
    assert_eq!(run_early(&mut durable), [Job::Begin(1, 0..BEGUN_BYTES + 10)]);
    durable.wrote(BEGUN_BYTES);
    assert_eq!(run_early(&mut durable), [Job::Begin(1, BEGUN_BYTES + 10..2 * BEGUN_BYTES + 10)]);
    assert_eq!(waits(&mut durable), [Job::Sync(1)], "nobody relies on what was begun");
}

#[test]
fn nothing_of_a_segment_is_handed_to_the_disk_before_all_of_those_before_it_are_there() {
    let mut durable = written(2, 10 * BEGUN_BYTES);
    assert_eq!(durable.early(), Some(Job::Names(2)));
    assert_eq!(durable.early(), None);
    durable.done(&Job::Names(2));
    assert_eq!(durable.early(), Some(Job::Sync(1)));
    assert_eq!((durable.early(), durable.turn(durable.written())), (None, Turn::Wait));
    durable.done(&Job::Sync(1));
    assert_eq!(durable.early(), Some(Job::Begin(2, 0..10 * BEGUN_BYTES)));
}

#[test]
fn who_comes_while_somebody_syncs_waits_and_what_was_written_meanwhile_is_not_taken_for_there() {
    let mut durable = written(1, 100);
    run_early(&mut durable);
    let before = durable.written();
    let Turn::Lead(job) = durable.turn(before) else { panic!("nobody else syncs") };
    durable.wrote(100);
    let after = durable.written();
    assert_eq!((durable.turn(before), durable.turn(after)), (Turn::Wait, Turn::Wait));
    durable.done(&job);
    assert_eq!((durable.turn(before), durable.synced()), (Turn::Durable, before));
    assert_eq!(durable.turn(after), Turn::Lead(Job::Sync(1)));
}

#[test]
fn a_failure_that_nobody_waited_for_is_told_to_whoever_waits_next() {
    let mut durable = written(3, 100);
    let safe = Point(2);
    assert_eq!(run_early(&mut durable).len(), 3);
    durable.made(4);
    let job = durable.early().unwrap();
    assert_eq!(job, Job::Sync(3));
    durable.failed(&job);
    assert_eq!((durable.turn(durable.written()), durable.turn(safe)), (Turn::Failed, Turn::Failed));
    assert_eq!((durable.early(), durable.tidy()), (None, None));
    durable.wrote(5);
    assert_eq!(durable.turn(durable.written()), Turn::Failed, "for good");
}

#[test]
fn what_nobody_needs_is_removed_once_the_disk_has_what_was_noted() {
    let mut durable = written(5, 100);
    assert_eq!(run_early(&mut durable).len(), 5);
    durable.wrote(10);
    durable.forget(4);
    assert!(durable.holds(1) && durable.has_unneeded());
    assert_eq!(run_early(&mut durable), [Job::Sync(5), Job::Remove(1), Job::Remove(2), Job::Remove(3)]);
    assert!(!durable.holds(1) && !durable.has_unneeded() && durable.holds(5));
}

#[test]
fn what_nobody_needs_and_the_disk_never_had_is_not_synced_and_gone_before_anything_behind_it_is() {
    let mut durable = written(5, 100);
    durable.early();
    durable.done(&Job::Names(5));
    durable.forget(4);
    for number in 1..=3 {
        assert_eq!(durable.turn(durable.written()), Turn::Wait, "who waits removes nothing");
        assert_eq!(durable.early(), Some(Job::Remove(number)));
        durable.done(&Job::Remove(number));
    }
    assert_eq!(waits(&mut durable), [Job::Names(5), Job::Sync(4), Job::Sync(5)]);
}

#[test]
fn a_segment_that_is_forgotten_while_it_is_synced_stays_until_that_is_over() {
    let mut durable = written(2, 100);
    durable.early();
    durable.done(&Job::Names(2));
    assert_eq!(durable.early(), Some(Job::Sync(1)));
    durable.forget(2);
    assert_eq!(durable.early(), None);
    durable.done(&Job::Sync(1));
    assert_eq!(run_early(&mut durable), [Job::Remove(1), Job::Names(2)]);
    assert_eq!(waits(&mut durable), [Job::Sync(2)]);
}

#[test]
fn the_disk_is_behind_with_what_it_does_not_have_and_with_what_it_has_yet_to_remove() {
    let max = BEHIND_SEGMENTS_MAX as u64;
    let mut durable = written(max, 100);
    assert!(!durable.is_behind());
    durable.made(max + 1);
    assert!(durable.is_behind());
    durable.forget(max);
    assert!(durable.is_behind(), "they are there still");
    assert_eq!((durable.early(), durable.early()), (Some(Job::Names(max + 1)), Some(Job::Remove(1))));
    assert!(durable.is_behind());
    durable.done(&Job::Remove(1));
    assert!(!durable.is_behind());

    let mut durable = written(max + 1, 100);
    for job in [Job::Names(max + 1), Job::Sync(1)] {
        assert!(durable.is_behind());
        assert_eq!(durable.early(), Some(job.clone()));
        durable.done(&job);
    }
    assert!(!durable.is_behind());
}

#[test]
fn what_was_let_go_of_is_nobodys_job() {
    let mut durable = written(3, 100);
    durable.forget(2);
    durable.let_go();
    assert_eq!((durable.early(), durable.turn(durable.written())), (None, Turn::Durable));
    assert!(!durable.holds(1) && !durable.holds(3));
    durable.made(4);
    assert_eq!(run_early(&mut durable), [Job::Names(4)]);
    assert_eq!(waits(&mut durable), [Job::Sync(4)]);
}

#[test]
fn segments_that_were_never_made_are_not_removed() {
    let mut durable = written(5, 100);
    run_early(&mut durable);
    durable.let_go();
    durable.made(7);
    durable.made(8);
    assert_eq!(run_early(&mut durable), [Job::Names(8), Job::Sync(7)]);
    durable.forget(8);
    assert_eq!(run_early(&mut durable), [Job::Sync(8), Job::Remove(7)]);
    assert!(!durable.has_unneeded());
}

#[test]
fn what_failed_is_over_once_all_was_let_go_of_and_what_follows_is_synced() {
    let mut durable = written(2, 100);
    let job = durable.early().unwrap();
    durable.failed(&job);
    durable.let_go();
    assert_eq!(durable.turn(durable.written()), Turn::Failed);
    durable.mended();
    assert_eq!((durable.turn(durable.written()), durable.early()), (Turn::Durable, None));
    durable.made(3);
    durable.wrote(100);
    assert_eq!(waits(&mut durable), [Job::Names(3), Job::Sync(3)]);
}

#[derive(Clone, Debug)]
enum Step {
    Made,
    Wrote(u64),
    Forget(u64),
    LetGo(u64),
    Early,
    Waits,
    Done(prop::sample::Index),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        1 => Just(Step::Made),
        4 => (1..BEGUN_BYTES).prop_map(Step::Wrote),
        1 => (0..6_u64).prop_map(Step::Forget),
        1 => (1..4_u64).prop_map(Step::LetGo),
        4 => Just(Step::Early),
        2 => Just(Step::Waits),
        4 => any::<prop::sample::Index>().prop_map(Step::Done),
    ];
    proptest::collection::vec(step, 0..200)
}

/// A disk that has what was there when it was told to sync, and writes down what was written where.
#[derive(Default)]
struct Disk {
    segments: BTreeMap<u64, Written>,
    named: u64,
    needed: u64,
    /// The last point of what nobody needs, and of what was noted before that.
    forgotten: u64,
    noted: u64,
    /// Those that it did not have when nobody needed them any more.
    torn: BTreeSet<u64>,
    /// Removed, and whether the disk may have it all the same when its machine loses power.
    removed: BTreeMap<u64, Written>,
    under_way: Vec<(Job, u64)>,
}

/// The last point that a segment has, and the last of these that is certain.
#[derive(Clone, Copy)]
struct Written {
    last: u64,
    certain: u64,
}

impl Disk {
    /// Up to which point all is there for certain, or not needed.
    fn has(&self) -> u64 {
        let mut has = self.forgotten;
        for (number, segment) in self.segments.range(self.needed..) {
            if *number > self.named {
                return has;
            }
            if segment.certain < segment.last {
                return has.max(segment.certain);
            }
            has = segment.last;
        }
        u64::MAX
    }

    /// Whether nothing that may be there when the machine loses power is torn, before this segment.
    fn is_whole_before(&self, number: u64) -> bool {
        let all = self.removed.range(..number).chain(self.segments.range(..number));
        all.into_iter().all(|(_, segment)| segment.certain == segment.last)
    }

    fn takes(&mut self, job: Job) -> Result<(), TestCaseError> {
        let is_sync = |job: &Job| matches!(job, Job::Sync(_) | Job::Names(_));
        if is_sync(&job) {
            prop_assert!(!self.under_way.iter().any(|(job, _)| is_sync(job)), "one at a time");
        }
        let under_way = |job: &Job| self.under_way.iter().any(|(other, _)| other == job);
        let noted = match &job {
            Job::Sync(number) | Job::Begin(number, _) => {
                prop_assert!(*number >= self.needed, "{job:?} is needed by nobody");
                prop_assert!(self.is_whole_before(*number), "{job:?} comes behind a torn one");
                self.segments[number].last
            }
            Job::Remove(number) => {
                prop_assert!(*number < self.needed && !under_way(&Job::Sync(*number)) && !under_way(&job));
                prop_assert!(
                    self.segments.keys().next().is_none_or(|first| first >= number),
                    "from the front"
                );
                let may_wait =
                    self.segments.range(..self.needed).all(|(number, _)| !self.torn.contains(number));
                prop_assert!(!may_wait || self.has() >= self.noted, "what was noted is not there yet");
                0
            }
            Job::Names(_) => self.segments.keys().next().copied().unwrap_or(0),
        };
        self.under_way.push((job, noted));
        Ok(())
    }

    fn does(&mut self, at: usize) -> Job {
        let (job, noted) = self.under_way.remove(at);
        match &job {
            Job::Sync(number) => {
                if let Some(segment) = self.segments.get_mut(number) {
                    segment.certain = segment.certain.max(noted);
                }
            }
            Job::Names(up_to) => {
                self.named = self.named.max(*up_to);
                self.removed.retain(|number, _| *number >= noted);
            }
            Job::Begin(..) => {}
            Job::Remove(number) => {
                let gone = self.segments.remove(number);
                self.removed.extend(gone.map(|gone| (*number, gone)));
            }
        }
        job
    }
}

proptest! {
    #[test]
    fn whatever_happens_nothing_is_taken_for_there_that_is_not_and_all_gets_there(steps in steps()) {
        let (mut durable, mut disk, mut made) = (Durable::default(), Disk::default(), 0);
        for step in [Step::Made].into_iter().chain(steps) {
            match step {
                Step::Made if durable.is_behind() => {}
                Step::Made => {
                    made += 1;
                    durable.made(made);
                    disk.segments.insert(made, Written { last: durable.written().0, certain: 0 });
                }
                Step::Wrote(bytes) => {
                    durable.wrote(bytes);
                    disk.segments.get_mut(&made).unwrap().last = durable.written().0;
                }
                Step::Forget(back) => {
                    disk.needed = disk.needed.max(made.saturating_sub(back));
                    let gone = disk.segments.range(..disk.needed).next_back();
                    disk.forgotten = gone.map_or(disk.forgotten, |(_, segment)| segment.last);
                    disk.noted = durable.written().0;
                    let gone = disk.segments.range(..disk.needed);
                    let torn = gone.filter(|(_, segment)| segment.certain < segment.last);
                    disk.torn.extend(torn.map(|(number, _)| *number));
                    durable.forget(disk.needed);
                }
                Step::LetGo(skipped) => {
                    durable.let_go();
                    disk.removed.append(&mut disk.segments);
                    (disk.forgotten, disk.noted) = (durable.written().0, durable.written().0);
                    made += skipped;
                    disk.needed = made;
                    durable.made(made);
                    disk.segments.insert(made, Written { last: durable.written().0, certain: 0 });
                }
                Step::Early => {
                    if let Some(job) = durable.early() {
                        disk.takes(job)?;
                    }
                }
                Step::Waits => {
                    if let Turn::Lead(job) = durable.turn(durable.written()) {
                        prop_assert!(!matches!(job, Job::Remove(_) | Job::Begin(..)));
                        disk.takes(job)?;
                    }
                }
                Step::Done(at) if !disk.under_way.is_empty() => {
                    let job = disk.does(at.index(disk.under_way.len()));
                    durable.done(&job);
                }
                Step::Done(_) => {}
            }
            prop_assert!(durable.synced().0 <= disk.has(), "{:?} and only {}", durable.synced(), disk.has());
        }
        while !disk.under_way.is_empty() {
            let job = disk.does(0);
            durable.done(&job);
        }
        run_early(&mut durable);
        let waits = waits(&mut durable);
        prop_assert!(waits.len() <= 1, "{waits:?} are left for whoever waits");
        run_early(&mut durable);
        prop_assert!(!durable.has_unneeded());
        prop_assert_eq!(durable.early(), None);
    }
}
