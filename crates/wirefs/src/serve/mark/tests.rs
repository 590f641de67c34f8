use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A directory that is gone afterwards, for marks.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        Scratch(std::env::temp_dir().join(format!("wirefs-marks-{}-{count}", std::process::id())))
    }

    fn marks(&self) -> usize {
        std::fs::read_dir(&self.0).unwrap().count()
    }

    fn open(&self, exported: &str) -> Marks {
        Marks::open_in(self.0.clone(), Path::new(exported)).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}

fn believers(sessions: &[u8]) -> Believers {
    let sessions = sessions.iter().map(|id| SessionId([*id; 16])).collect();
    Believers { sessions, is_recovering: false }
}

#[test]
fn nobody_waits_after_a_clean_end() {
    let scratch = Scratch::new();
    let marks = scratch.open("/");
    marks.leave(&believers(&[1])).unwrap();
    marks.leave(&believers(&[1, 2])).unwrap();
    marks.finish(false);
    assert_eq!(scratch.marks(), 0);
    assert_eq!(scratch.open("/").recovery(), Duration::ZERO);
}

#[test]
fn a_server_that_runs_is_waited_for_by_nobody() {
    let scratch = Scratch::new();
    let marks = scratch.open("/");
    marks.leave(&believers(&[1])).unwrap();
    assert_eq!(scratch.open("/").recovery(), Duration::ZERO);
}

#[test]
fn what_a_killed_server_has_promised_is_waited_for_and_so_is_what_could_not_be_taken_back() {
    let scratch = Scratch::new();
    let killed = scratch.open("/");
    killed.leave(&believers(&[1])).unwrap();
    drop(killed);
    let next = scratch.open("/");
    assert_eq!(next.recovery(), RECOVERY);
    assert_eq!(scratch.open("/tmp").recovery(), Duration::ZERO, "another directory");
    next.leave(&believers(&[1])).unwrap();
    next.finish(true);
    assert_eq!(scratch.open("/").recovery(), RECOVERY);
}

#[test]
fn promises_from_before_the_machine_started_are_over_soon_after() {
    let scratch = Scratch::new();
    let killed = scratch.open("/");
    killed.leave(&believers(&[1])).unwrap();
    drop(killed);
    let next = scratch.open("/");
    let mark = next.left.lock().unwrap().first().cloned().unwrap();
    std::fs::write(mark, "another run").unwrap();
    let uptime = Duration::try_from(rustix::time::clock_gettime(rustix::time::ClockId::Boottime)).unwrap();
    assert!(next.recovery() <= RECOVERY.saturating_sub(uptime));
}

// S-125
#[test]
fn the_next_server_knows_whom_a_killed_one_had_promised_something() {
    let scratch = Scratch::new();
    let killed = scratch.open("/");
    killed.leave(&believers(&[1])).unwrap();
    killed.leave(&believers(&[1, 2])).unwrap();
    drop(killed);
    let next = scratch.open("/");
    assert_eq!(next.believers(), Some(believers(&[1, 2]).sessions));
    next.leave(&Believers { is_recovering: true, ..believers(&[3]) }).unwrap();
    assert_eq!(scratch.marks(), 2, "somebody may believe still what the first one has promised");
    drop(next);
    let third = scratch.open("/");
    assert_eq!(third.believers(), Some(believers(&[1, 2, 3]).sessions));
    third.leave(&believers(&[4])).unwrap();
    assert_eq!(scratch.marks(), 1, "nobody does");
    drop(third);
    assert_eq!(scratch.open("/").believers(), Some(believers(&[4]).sessions));
}

#[test]
fn a_mark_that_names_nobody_is_waited_for_by_nobody_and_one_that_cannot_be_read_by_all() {
    let scratch = Scratch::new();
    let killed = scratch.open("/");
    killed.leave(&believers(&[1])).unwrap();
    killed.leave(&believers(&[])).unwrap();
    drop(killed);
    let next = scratch.open("/");
    assert_eq!((next.recovery(), next.believers()), (Duration::ZERO, Some(believers(&[]).sessions)));
    let mark = next.left.lock().unwrap().first().cloned().unwrap();
    for text in ["", "session 01", "session 01\nend\n", "session\n"] {
        std::fs::write(&mark, [kernel_run(), text.into()].concat()).unwrap();
        let next = scratch.open("/");
        assert_eq!((next.recovery(), next.believers()), (RECOVERY, None), "{text}");
    }
}
