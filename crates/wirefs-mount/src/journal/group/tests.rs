mod scripted_disk;

use super::*;
use scripted_disk::header;
pub(in super::super) use scripted_disk::{ScriptedDisk, segment};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};
use wirefs_journal::limits::{BACKLOG_SEGMENTS_MAX, SEGMENT_BYTES, WRITE_OUT_BYTES};

/// The time limit for a certain event.
const PATIENCE: Duration = Duration::from_secs(60);

fn group() -> (Arc<GroupThread>, ScriptedDisk) {
    let disk = ScriptedDisk::default();
    (Arc::new(GroupThread::start(disk.clone()).unwrap()), disk)
}

fn open(group: &Group, number: u64) {
    group.opened(number, &segment(number)).unwrap();
}

/// Waits until the thread is idle.
fn await_idle(group: &Group) {
    let until = Instant::now() + PATIENCE;
    let mut state = group.lock();
    while state.is_busy || state.durable.has_background_job() || state.durable.is_syncing() {
        assert!(Instant::now() < until);
        state = group.progress.wait_timeout(state, PATIENCE).unwrap().0;
    }
}

// S-96
#[test]
fn close_waits_for_one_segment_however_large_the_file_is() {
    for mib in [1, 16, 64, 100] {
        let (group, disk) = group();
        let mut last = 1;
        open(&group, last);
        let mut room = SEGMENT_BYTES;
        for _ in 0..mib {
            let bytes = (1 << 20) + 700;
            if room < bytes {
                last += 1;
                open(&group, last);
                room = SEGMENT_BYTES;
            }
            room -= bytes;
            group.wrote(bytes).unwrap();
        }
        await_idle(&group);
        assert_eq!((group.waits(), disk.own()), (0, vec![]), "who writes waits for nothing");
        let early: Vec<DiskJob> =
            disk.others().into_iter().filter(|job| matches!(job, DiskJob::SyncSegment(_))).collect();
        assert_eq!(early, (1..last).map(DiskJob::SyncSegment).collect::<Vec<_>>());
        group.sync_to(group.written()).unwrap();
        assert_eq!(disk.own(), [DiskJob::SyncSegment(last)], "{mib} MiB");
        group.sync_to(group.written()).unwrap();
        assert_eq!((group.waits(), disk.own()), (1, vec![]));
    }
}

#[test]
fn one_sync_serves_all_waiting_callers() {
    let (group, disk) = group();
    open(&group, 1);
    await_idle(&group);
    disk.hold(true);
    group.wrote(1).unwrap();
    let waiters: Vec<_> = (0..8).map(|_| syncs(&group)).collect();
    disk.wait_until(|does| !does.doing.is_empty());
    let until = Instant::now() + PATIENCE;
    while group.waits() < 8 {
        assert!(Instant::now() < until);
        thread::yield_now();
    }
    disk.hold(false);
    waiters.into_iter().for_each(|waiter| assert_eq!(waiter.recv_timeout(PATIENCE), Ok(true)));
    assert_eq!(disk.others(), [DiskJob::SyncNames(0), DiskJob::SyncSegment(1)]);
    group.wrote(1).unwrap();
    group.sync_to(group.written()).unwrap();
    group.sync_to(group.written()).unwrap();
    assert_eq!((group.waits(), disk.own()), (9, vec![DiskJob::SyncSegment(1)]));
}

#[test]
fn caller_waits_for_a_sync_in_progress() {
    let (group, disk) = group();
    open(&group, 1);
    await_idle(&group);
    disk.hold(true);
    open(&group, 2);
    disk.wait_until(|does| does.doing.len() == 1);
    let waiter = {
        let group = Arc::clone(&group);
        thread::spawn(move || group.sync_to(group.written()).map_err(|error| error.kind()))
    };
    assert_eq!(group.lock().durable.synced(), Point::default());
    disk.hold(false);
    assert_eq!(waiter.join().unwrap(), Ok(()));
    let done: Vec<DiskJob> = disk.lock().done.iter().map(|(_, job)| job.clone()).collect();
    assert_eq!(
        done,
        [DiskJob::SyncNames(0), DiskJob::SyncSegment(1), DiskJob::SyncNames(0), DiskJob::SyncSegment(2)]
    );
}

// S-96
#[test]
fn failed_early_sync_fails_all_later_waits_writes_and_opens() {
    let (group, disk) = group();
    disk.lock().fails = Some((DiskJob::SyncSegment(1), io::ErrorKind::Other));
    open(&group, 1);
    group.wrote(100).unwrap();
    let first = group.written();
    open(&group, 2);
    disk.wait_until(|does| does.done.iter().any(|(_, job)| *job == DiskJob::SyncSegment(1)));
    await_idle(&group);
    for point in [first, group.written()] {
        let error = group.sync_to(point).unwrap_err();
        assert!(error.to_string().contains("the disk has failed: "), "{error}");
    }
    assert!(group.wrote(1).is_err() && group.opened(3, &segment(3)).is_err());
    assert!(group.sync_to(group.written()).is_err(), "it is not believed again");
    assert_eq!(disk.own(), [], "nor asked");
}

#[test]
fn failed_sync_fails_its_waiting_caller() {
    let (group, disk) = group();
    open(&group, 1);
    await_idle(&group);
    disk.hold(true);
    disk.lock().fails = Some((DiskJob::SyncSegment(1), io::ErrorKind::Other));
    group.wrote(1).unwrap();
    let wait = |group: &Arc<GroupThread>| {
        let group = Arc::clone(group);
        thread::spawn(move || group.sync_to(group.written()).map_err(|error| error.kind()))
    };
    let leads = wait(&group);
    disk.wait_until(|does| does.doing == [DiskJob::SyncSegment(1)]);
    let waits = wait(&group);
    disk.hold(false);
    assert_eq!(
        (leads.join().unwrap(), waits.join().unwrap()),
        (Err(io::ErrorKind::Other), Err(io::ErrorKind::Other))
    );
}

#[test]
fn error_of_an_early_write_out_is_ignored() {
    let (group, disk) = group();
    open(&group, 1);
    let begin = DiskJob::WriteOut(1, 0..WRITE_OUT_BYTES);
    disk.lock().fails = Some((begin.clone(), io::ErrorKind::PermissionDenied));
    group.wrote(WRITE_OUT_BYTES).unwrap();
    await_idle(&group);
    assert!(disk.others().contains(&begin));
    group.sync_to(group.written()).unwrap();
    group.wrote(1).unwrap();
}

// S-97
#[test]
fn full_disk_is_used_again_after_everything_was_given_up() {
    for (kind, is_over) in [(io::ErrorKind::StorageFull, true), (io::ErrorKind::Other, false)] {
        let (group, disk) = group();
        open(&group, 1);
        await_idle(&group);
        disk.lock().fails = Some((DiskJob::Remove(1), kind));
        open(&group, 2);
        group.forget(2);
        await_idle(&group);
        assert_eq!(group.check().unwrap_err().kind(), kind, "before anybody asks for anything");
        assert_eq!(group.sync_to(group.written()).unwrap_err().kind(), kind);
        group.give_up();
        assert_eq!(group.check().is_ok(), is_over);
        assert_eq!(group.opened(3, &segment(3)).is_ok(), is_over);
        assert_eq!(group.sync_to(group.written()).is_ok(), is_over);
    }
}

#[test]
fn unneeded_segment_is_not_synced_and_the_thread_removes_it() {
    let (group, disk) = group();
    disk.hold(true);
    let mut descriptors = Vec::new();
    for number in 1..=4 {
        let file = segment(number);
        group.opened(number, &file).unwrap();
        group.wrote(2 * WRITE_OUT_BYTES).unwrap();
        descriptors.push(Arc::downgrade(&file));
    }
    group.forget(4);
    let are_open = || descriptors.iter().map(|file| file.strong_count() > 0).collect::<Vec<_>>();
    assert_eq!(are_open(), [true; 4], "who forgets closes nothing");
    let files = || group.lock().files.keys().copied().collect::<Vec<_>>();
    assert_eq!(files(), [1, 2, 3, 4]);
    disk.hold(false);
    group.tidy();
    assert_eq!(files(), [4]);
    await_idle(&group);
    assert_eq!(are_open(), [false, false, false, true]);
    let others = disk.others();
    assert_eq!(others.iter().filter(|job| matches!(job, DiskJob::Remove(_))).count(), 3);
    let forgotten = [1, 2, 3].map(DiskJob::SyncSegment);
    assert!(!others.iter().any(|job| forgotten.contains(job)), "{others:?}");
    assert_eq!((disk.own(), group.waits()), (vec![], 0));
}

/// Runs an action in a thread, and returns the receiver of its result.
fn run_in_thread<T: Send + 'static>(
    group: &Arc<GroupThread>,
    act: impl FnOnce(&GroupThread) -> T + Send + 'static,
) -> mpsc::Receiver<T> {
    let (group, (done, came)) = (Arc::clone(group), mpsc::channel());
    thread::spawn(move || done.send(act(&group)));
    came
}

fn syncs(group: &Arc<GroupThread>) -> mpsc::Receiver<bool> {
    let point = group.written();
    run_in_thread(group, move |group| group.sync_to(point).is_ok())
}

#[test]
fn wait_for_a_removal_returns_although_the_segment_is_being_synced() {
    for fails in [None, Some((DiskJob::SyncSegment(1), io::ErrorKind::Other))] {
        let (group, disk) = group();
        open(&group, 1);
        await_idle(&group);
        disk.hold(true);
        disk.lock().fails = fails.clone();
        group.wrote(1).unwrap();
        let leads = syncs(&group);
        disk.wait_until(|does| does.doing == [DiskJob::SyncSegment(1)]);
        open(&group, 2);
        group.wrote(1).unwrap();
        group.forget(2);
        let (waits, ends) = (syncs(&group), run_in_thread(&group, GroupThread::stop));
        while !group.lock().is_stopped {
            thread::yield_now();
        }
        disk.hold(false);
        ends.recv_timeout(PATIENCE).unwrap();
        assert_eq!(waits.recv_timeout(PATIENCE), Ok(fails.is_none()));
        let led = leads.recv_timeout(PATIENCE).unwrap();
        assert!(led || fails.is_some());
        assert_eq!(disk.has_done(&DiskJob::Remove(1)), fails.is_none());
    }
}

#[test]
fn waiting_caller_removes_segments_after_the_end() {
    let (group, disk) = group();
    open(&group, 1);
    await_idle(&group);
    group.stop();
    group.wrote(1).unwrap();
    open(&group, 2);
    group.wrote(1).unwrap();
    group.forget(2);
    assert_eq!(syncs(&group).recv_timeout(PATIENCE), Ok(true));
    let last: Vec<DiskJob> = disk.others().split_off(1);
    assert_eq!(last, [DiskJob::Remove(1), DiskJob::SyncNames(0), DiskJob::SyncSegment(2)]);
}

#[test]
fn wait_for_unneeded_data_returns_at_once() {
    let (group, disk) = group();
    disk.hold(true);
    open(&group, 1);
    disk.wait_until(|does| does.doing == [DiskJob::SyncNames(0)]);
    let waits = syncs(&group);
    open(&group, 2);
    group.forget(2);
    assert_eq!(waits.recv_timeout(PATIENCE), Ok(true));
    let waits = syncs(&group);
    group.give_up();
    assert_eq!(waits.recv_timeout(PATIENCE), Ok(true), "before the disk goes on");
    assert!(group.lock().files.is_empty());
    disk.hold(false);
    open(&group, 4);
    assert_eq!(syncs(&group).recv_timeout(PATIENCE), Ok(true));
}

#[test]
fn segment_without_space_uses_that_of_unneeded_ones() {
    let (group, disk) = group();
    open(&group, 1);
    open(&group, 2);
    await_idle(&group);
    disk.hold(true);
    disk.lock().is_full = true;
    group.forget(2);
    let maker = {
        let group = Arc::clone(&group);
        thread::spawn(move || group.make(&header()).map(drop).map_err(|error| error.kind()))
    };
    disk.wait_until(|does| does.refused == 1);
    disk.hold(false);
    assert_eq!(maker.join().unwrap(), Ok(()));
    disk.lock().is_full = true;
    assert_eq!(group.make(&header()).unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert_eq!(disk.lock().refused, 2, "there is nothing to wait for");
}

#[test]
fn fast_writer_waits_for_the_disk_and_the_journal_does_not() {
    let (group, disk) = group();
    disk.hold(true);
    let max = BACKLOG_SEGMENTS_MAX as u64;
    // The disk does nothing meanwhile, and a writer returns all the same.
    (1..=max + 2).for_each(|number| open(&group, number));
    assert!(group.is_behind() && disk.lock().done.is_empty());
    let waits = {
        let disk = disk.clone();
        run_in_thread(&group, move |group| {
            group.keep_pace();
            disk.has_done(&DiskJob::SyncSegment(2))
        })
    };
    disk.wait_until(|does| !does.doing.is_empty());
    disk.hold(false);
    assert_eq!(waits.recv_timeout(PATIENCE), Ok(true), "as much as it was behind");
    await_idle(&group);
    assert_eq!((group.is_behind(), group.lock().files.len()), (false, 1));
}

#[test]
fn wait_for_a_slow_disk_ends_with_its_failure_or_the_end() {
    for fails in [true, false] {
        let (group, disk) = group();
        disk.hold(true);
        disk.lock().fails = fails.then_some((DiskJob::SyncNames(0), io::ErrorKind::Other));
        (1..=BACKLOG_SEGMENTS_MAX as u64 + 2).for_each(|number| open(&group, number));
        let waits = run_in_thread(&group, |group| group.keep_pace());
        disk.wait_until(|does| !does.doing.is_empty());
        disk.hold(false);
        if !fails {
            group.stop();
        }
        waits.recv_timeout(PATIENCE).unwrap();
    }
}

#[test]
fn give_up_closes_all_descriptors_and_the_next_segment_follows() {
    let (group, disk) = group();
    (1..=3).for_each(|number| open(&group, number));
    group.forget(2);
    group.give_up();
    assert!(group.lock().files.is_empty());
    group.sync_to(group.written()).unwrap();
    assert_eq!(disk.own(), []);
    open(&group, 4);
    await_idle(&group);
    group.sync_to(group.written()).unwrap();
    assert_eq!(disk.own(), [DiskJob::SyncSegment(4)]);
}

#[test]
fn missing_directory_is_a_failed_disk() {
    let dir = std::env::temp_dir().join(format!("wirefs-group-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let group = GroupThread::start(super::super::disk::Local(dir.clone())).unwrap();
    let path = |number: u64| super::super::place::segment_path(&dir, number);
    let make = |number: u64| Arc::new(File::create(path(number)).unwrap());
    group.opened(1, &make(1)).unwrap();
    group.wrote(WRITE_OUT_BYTES).unwrap();
    group.sync_to(group.written()).unwrap();
    group.opened(2, &make(2)).unwrap();
    group.forget(2);
    group.tidy();
    assert!(!path(1).exists() && path(2).exists());
    await_idle(&group);
    std::fs::remove_dir_all(&dir).unwrap();
    let unnamed = group.opened(3, &segment(3));
    assert!(unnamed.is_ok() && group.sync_to(group.written()).is_err());
    std::fs::create_dir(&dir).unwrap();
    assert!(group.sync_to(group.written()).is_err());
    std::fs::remove_dir_all(dir).unwrap();
}
