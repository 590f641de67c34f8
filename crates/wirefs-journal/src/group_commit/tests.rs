use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Executes all background jobs.
fn run_background_jobs(group_commit: &mut GroupCommit) -> Vec<DiskJob> {
    let jobs = std::iter::from_fn(|| {
        let job = group_commit.next_background_job()?;
        group_commit.done(&job);
        Some(job)
    });
    jobs.collect()
}

/// Executes the jobs of a waiting caller, with no other caller.
fn wait(group_commit: &mut GroupCommit) -> Vec<DiskJob> {
    let point = group_commit.written();
    let mut jobs = Vec::new();
    while let SyncRole::Lead(job) = group_commit.role(point) {
        group_commit.done(&job);
        jobs.push(job);
    }
    assert_eq!(group_commit.role(point), SyncRole::Durable);
    jobs
}

/// A journal of full segments and a last one with `bytes`.
fn written(segments: u64, bytes: u64) -> GroupCommit {
    let mut group_commit = GroupCommit::default();
    for number in 1..=segments {
        group_commit.created(number);
        group_commit.wrote(if number < segments { WRITE_OUT_BYTES * 4 } else { bytes });
    }
    group_commit
}

#[test]
fn waiting_caller_needs_one_sync_after_background_jobs() {
    for segments in [1, 4, 7, 60] {
        let mut group_commit = written(segments, 100);
        let next_background_job = run_background_jobs(&mut group_commit);
        let full = (1..segments).map(DiskJob::SyncSegment);
        assert_eq!(
            next_background_job,
            [DiskJob::SyncNames(segments)].into_iter().chain(full).collect::<Vec<_>>()
        );
        assert_eq!(wait(&mut group_commit), [DiskJob::SyncSegment(segments)]);
        assert_eq!(wait(&mut group_commit), []);
        assert_eq!(group_commit.next_background_job(), None);
    }
}

#[test]
fn waiting_caller_without_background_jobs_syncs_in_order() {
    let mut group_commit = written(3, 100);
    assert_eq!(
        wait(&mut group_commit),
        [DiskJob::SyncNames(3), DiskJob::SyncSegment(1), DiskJob::SyncSegment(2), DiskJob::SyncSegment(3)]
    );
}

#[test]
fn write_out_of_the_current_segment_starts_at_each_interval() {
    let mut group_commit = written(1, WRITE_OUT_BYTES - 1);
    assert_eq!(run_background_jobs(&mut group_commit), [DiskJob::SyncNames(1)]);
    group_commit.wrote(11);
    assert_eq!(run_background_jobs(&mut group_commit), [DiskJob::WriteOut(1, 0..WRITE_OUT_BYTES + 10)]);
    group_commit.wrote(WRITE_OUT_BYTES);
    assert_eq!(
        run_background_jobs(&mut group_commit),
        [DiskJob::WriteOut(1, WRITE_OUT_BYTES + 10..2 * WRITE_OUT_BYTES + 10)]
    );
    assert_eq!(wait(&mut group_commit), [DiskJob::SyncSegment(1)], "write-out makes nothing durable");
}

#[test]
fn no_segment_is_written_out_before_earlier_ones_are_durable() {
    let mut group_commit = written(2, 10 * WRITE_OUT_BYTES);
    assert_eq!(group_commit.next_background_job(), Some(DiskJob::SyncNames(2)));
    assert_eq!(group_commit.next_background_job(), None);
    group_commit.done(&DiskJob::SyncNames(2));
    assert_eq!(group_commit.next_background_job(), Some(DiskJob::SyncSegment(1)));
    assert_eq!(
        (group_commit.next_background_job(), group_commit.role(group_commit.written())),
        (None, SyncRole::Wait)
    );
    group_commit.done(&DiskJob::SyncSegment(1));
    assert_eq!(group_commit.next_background_job(), Some(DiskJob::WriteOut(2, 0..10 * WRITE_OUT_BYTES)));
}

#[test]
fn writes_during_a_sync_are_not_covered_by_it() {
    let mut group_commit = written(1, 100);
    run_background_jobs(&mut group_commit);
    let before = group_commit.written();
    let SyncRole::Lead(job) = group_commit.role(before) else { panic!("no other sync runs") };
    group_commit.wrote(100);
    let after = group_commit.written();
    assert_eq!((group_commit.role(before), group_commit.role(after)), (SyncRole::Wait, SyncRole::Wait));
    group_commit.done(&job);
    assert_eq!((group_commit.role(before), group_commit.synced()), (SyncRole::Durable, before));
    assert_eq!(group_commit.role(after), SyncRole::Lead(DiskJob::SyncSegment(1)));
}

#[test]
fn background_failure_is_reported_to_the_next_waiting_caller() {
    let mut group_commit = written(3, 100);
    let safe = Point(2);
    assert_eq!(run_background_jobs(&mut group_commit).len(), 3);
    group_commit.created(4);
    let job = group_commit.next_background_job().unwrap();
    assert_eq!(job, DiskJob::SyncSegment(3));
    group_commit.failed(&job);
    assert_eq!(
        (group_commit.role(group_commit.written()), group_commit.role(safe)),
        (SyncRole::Failed, SyncRole::Failed)
    );
    assert_eq!((group_commit.next_background_job(), group_commit.next_removal_job()), (None, None));
    group_commit.wrote(5);
    assert_eq!(group_commit.role(group_commit.written()), SyncRole::Failed, "for good");
}

#[test]
fn dropped_segments_are_removed_once_notes_are_durable() {
    let mut group_commit = written(5, 100);
    assert_eq!(run_background_jobs(&mut group_commit).len(), 5);
    group_commit.wrote(10);
    group_commit.forget(4);
    assert!(group_commit.needs_file(1) && group_commit.has_removals());
    assert_eq!(
        run_background_jobs(&mut group_commit),
        [DiskJob::SyncSegment(5), DiskJob::Remove(1), DiskJob::Remove(2), DiskJob::Remove(3)]
    );
    assert!(!group_commit.needs_file(1) && !group_commit.has_removals() && group_commit.needs_file(5));
}

#[test]
fn dropped_torn_segments_are_removed_before_later_segments_are_synced() {
    let mut group_commit = written(5, 100);
    group_commit.next_background_job();
    group_commit.done(&DiskJob::SyncNames(5));
    group_commit.forget(4);
    for number in 1..=3 {
        assert_eq!(
            group_commit.role(group_commit.written()),
            SyncRole::Wait,
            "a waiting caller removes nothing"
        );
        assert_eq!(group_commit.next_background_job(), Some(DiskJob::Remove(number)));
        group_commit.done(&DiskJob::Remove(number));
    }
    assert_eq!(
        wait(&mut group_commit),
        [DiskJob::SyncNames(5), DiskJob::SyncSegment(4), DiskJob::SyncSegment(5)]
    );
}

#[test]
fn segment_dropped_during_its_sync_stays_until_the_sync_ends() {
    let mut group_commit = written(2, 100);
    group_commit.next_background_job();
    group_commit.done(&DiskJob::SyncNames(2));
    assert_eq!(group_commit.next_background_job(), Some(DiskJob::SyncSegment(1)));
    group_commit.forget(2);
    assert_eq!(group_commit.next_background_job(), None);
    group_commit.done(&DiskJob::SyncSegment(1));
    assert_eq!(run_background_jobs(&mut group_commit), [DiskJob::Remove(1), DiskJob::SyncNames(2)]);
    assert_eq!(wait(&mut group_commit), [DiskJob::SyncSegment(2)]);
}

#[test]
fn unsynced_and_unremoved_segments_count_as_backlog() {
    let max = BACKLOG_SEGMENTS_MAX as u64;
    let mut group_commit = written(max, 100);
    assert!(!group_commit.is_backlogged());
    group_commit.created(max + 1);
    assert!(group_commit.is_backlogged());
    group_commit.forget(max);
    assert!(group_commit.is_backlogged(), "the segments are still present");
    assert_eq!(
        (group_commit.next_background_job(), group_commit.next_background_job()),
        (Some(DiskJob::SyncNames(max + 1)), Some(DiskJob::Remove(1)))
    );
    assert!(group_commit.is_backlogged());
    group_commit.done(&DiskJob::Remove(1));
    assert!(!group_commit.is_backlogged());

    let mut group_commit = written(max + 1, 100);
    for job in [DiskJob::SyncNames(max + 1), DiskJob::SyncSegment(1)] {
        assert!(group_commit.is_backlogged());
        assert_eq!(group_commit.next_background_job(), Some(job.clone()));
        group_commit.done(&job);
    }
    assert!(!group_commit.is_backlogged());
}

#[test]
fn discarded_segments_need_no_job() {
    let mut group_commit = written(3, 100);
    group_commit.forget(2);
    group_commit.discard_all();
    assert_eq!(
        (group_commit.next_background_job(), group_commit.role(group_commit.written())),
        (None, SyncRole::Durable)
    );
    assert!(!group_commit.needs_file(1) && !group_commit.needs_file(3));
    group_commit.created(4);
    assert_eq!(run_background_jobs(&mut group_commit), [DiskJob::SyncNames(4)]);
    assert_eq!(wait(&mut group_commit), [DiskJob::SyncSegment(4)]);
}

#[test]
fn segments_that_were_never_created_are_not_removed() {
    let mut group_commit = written(5, 100);
    run_background_jobs(&mut group_commit);
    group_commit.discard_all();
    group_commit.created(7);
    group_commit.created(8);
    assert_eq!(run_background_jobs(&mut group_commit), [DiskJob::SyncNames(8), DiskJob::SyncSegment(7)]);
    group_commit.forget(8);
    assert_eq!(run_background_jobs(&mut group_commit), [DiskJob::SyncSegment(8), DiskJob::Remove(7)]);
    assert!(!group_commit.has_removals());
}

#[test]
fn failure_ends_after_all_is_discarded() {
    let mut group_commit = written(2, 100);
    let job = group_commit.next_background_job().unwrap();
    group_commit.failed(&job);
    group_commit.discard_all();
    assert_eq!(group_commit.role(group_commit.written()), SyncRole::Failed);
    group_commit.reset_failure();
    assert_eq!(
        (group_commit.role(group_commit.written()), group_commit.next_background_job()),
        (SyncRole::Durable, None)
    );
    group_commit.created(3);
    group_commit.wrote(100);
    assert_eq!(wait(&mut group_commit), [DiskJob::SyncNames(3), DiskJob::SyncSegment(3)]);
}

#[derive(Clone, Debug)]
enum Step {
    Create,
    Wrote(u64),
    Forget(u64),
    DiscardAll(u64),
    Background,
    Wait,
    Done(prop::sample::Index),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        1 => Just(Step::Create),
        4 => (1..WRITE_OUT_BYTES).prop_map(Step::Wrote),
        1 => (0..6_u64).prop_map(Step::Forget),
        1 => (1..4_u64).prop_map(Step::DiscardAll),
        4 => Just(Step::Background),
        2 => Just(Step::Wait),
        4 => any::<prop::sample::Index>().prop_map(Step::Done),
    ];
    proptest::collection::vec(step, 0..200)
}

/// A disk with the writes before each sync, and a record of all writes.
#[derive(Default)]
struct Disk {
    segments: BTreeMap<u64, Written>,
    named_to: u64,
    first_needed: u64,
    /// The last point of dropped segments, and of the notes before the drop.
    dropped_to: u64,
    notes: u64,
    /// Segments that were not durable when they were dropped.
    torn: BTreeSet<u64>,
    /// Removed segments that a power loss may bring back.
    removed: BTreeMap<u64, Written>,
    in_flight: Vec<(DiskJob, u64)>,
}

/// The last point of a segment, and its last durable one.
#[derive(Clone, Copy)]
struct Written {
    last: u64,
    certain: u64,
}

impl Disk {
    /// Returns the point up to which all is durable or dropped.
    fn has(&self) -> u64 {
        let mut has = self.dropped_to;
        for (number, segment) in self.segments.range(self.first_needed..) {
            if *number > self.named_to {
                return has;
            }
            if segment.certain < segment.last {
                return has.max(segment.certain);
            }
            has = segment.last;
        }
        u64::MAX
    }

    /// Returns whether no segment before this one could be torn after a power loss.
    fn is_whole_before(&self, number: u64) -> bool {
        let all = self.removed.range(..number).chain(self.segments.range(..number));
        all.into_iter().all(|(_, segment)| segment.certain == segment.last)
    }

    fn takes(&mut self, job: DiskJob) -> Result<(), TestCaseError> {
        let is_sync = |job: &DiskJob| matches!(job, DiskJob::SyncSegment(_) | DiskJob::SyncNames(_));
        if is_sync(&job) {
            prop_assert!(!self.in_flight.iter().any(|(job, _)| is_sync(job)), "one sync at a time");
        }
        let in_flight = |job: &DiskJob| self.in_flight.iter().any(|(other, _)| other == job);
        let notes = match &job {
            DiskJob::SyncSegment(number) | DiskJob::WriteOut(number, _) => {
                prop_assert!(*number >= self.first_needed, "{job:?} is not needed");
                prop_assert!(self.is_whole_before(*number), "{job:?} follows a torn segment");
                self.segments[number].last
            }
            DiskJob::Remove(number) => {
                prop_assert!(
                    *number < self.first_needed
                        && !in_flight(&DiskJob::SyncSegment(*number))
                        && !in_flight(&job)
                );
                prop_assert!(self.segments.keys().next().is_none_or(|first| first >= number), "oldest first");
                let may_wait =
                    self.segments.range(..self.first_needed).all(|(number, _)| !self.torn.contains(number));
                prop_assert!(!may_wait || self.has() >= self.notes, "the notes are not durable yet");
                0
            }
            DiskJob::SyncNames(_) => self.segments.keys().next().copied().unwrap_or(0),
        };
        self.in_flight.push((job, notes));
        Ok(())
    }

    fn does(&mut self, at: usize) -> DiskJob {
        let (job, notes) = self.in_flight.remove(at);
        match &job {
            DiskJob::SyncSegment(number) => {
                if let Some(segment) = self.segments.get_mut(number) {
                    segment.certain = segment.certain.max(notes);
                }
            }
            DiskJob::SyncNames(up_to) => {
                self.named_to = self.named_to.max(*up_to);
                self.removed.retain(|number, _| *number >= notes);
            }
            DiskJob::WriteOut(..) => {}
            DiskJob::Remove(number) => {
                let removed = self.segments.remove(number);
                self.removed.extend(removed.map(|removed| (*number, removed)));
            }
        }
        job
    }
}

proptest! {
    #[test]
    fn any_order_of_jobs_reports_only_durable_points_and_syncs_all(steps in steps()) {
        let (mut group_commit, mut disk, mut created) = (GroupCommit::default(), Disk::default(), 0);
        for step in [Step::Create].into_iter().chain(steps) {
            match step {
                Step::Create if group_commit.is_backlogged() => {}
                Step::Create => {
                    created += 1;
                    group_commit.created(created);
                    disk.segments.insert(created, Written { last: group_commit.written().0, certain: 0 });
                }
                Step::Wrote(bytes) => {
                    group_commit.wrote(bytes);
                    disk.segments.get_mut(&created).unwrap().last = group_commit.written().0;
                }
                Step::Forget(back) => {
                    disk.first_needed = disk.first_needed.max(created.saturating_sub(back));
                    let removed = disk.segments.range(..disk.first_needed).next_back();
                    disk.dropped_to = removed.map_or(disk.dropped_to, |(_, segment)| segment.last);
                    disk.notes = group_commit.written().0;
                    let removed = disk.segments.range(..disk.first_needed);
                    let torn = removed.filter(|(_, segment)| segment.certain < segment.last);
                    disk.torn.extend(torn.map(|(number, _)| *number));
                    group_commit.forget(disk.first_needed);
                }
                Step::DiscardAll(skipped) => {
                    group_commit.discard_all();
                    disk.removed.append(&mut disk.segments);
                    (disk.dropped_to, disk.notes) = (group_commit.written().0, group_commit.written().0);
                    created += skipped;
                    disk.first_needed = created;
                    group_commit.created(created);
                    disk.segments.insert(created, Written { last: group_commit.written().0, certain: 0 });
                }
                Step::Background => {
                    if let Some(job) = group_commit.next_background_job() {
                        disk.takes(job)?;
                    }
                }
                Step::Wait => {
                    if let SyncRole::Lead(job) = group_commit.role(group_commit.written()) {
                        prop_assert!(!matches!(job, DiskJob::Remove(_) | DiskJob::WriteOut(..)));
                        disk.takes(job)?;
                    }
                }
                Step::Done(at) if !disk.in_flight.is_empty() => {
                    let job = disk.does(at.index(disk.in_flight.len()));
                    group_commit.done(&job);
                }
                Step::Done(_) => {}
            }
            prop_assert!(group_commit.synced().0 <= disk.has(), "{:?} and only {}", group_commit.synced(), disk.has());
        }
        while !disk.in_flight.is_empty() {
            let job = disk.does(0);
            group_commit.done(&job);
        }
        run_background_jobs(&mut group_commit);
        let jobs = wait(&mut group_commit);
        prop_assert!(jobs.len() <= 1, "{jobs:?} are pending for a waiting caller");
        run_background_jobs(&mut group_commit);
        prop_assert!(!group_commit.has_removals());
        prop_assert_eq!(group_commit.next_background_job(), None);
    }
}
