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

    fn open(&self, exported: &str) -> Marks {
        Marks::open_in(self.0.clone(), Path::new(exported)).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn nobody_waits_after_a_clean_end() {
    let scratch = Scratch::new();
    let marks = scratch.open("/");
    marks.leave().unwrap();
    marks.leave().unwrap();
    marks.finish(false);
    assert_eq!(scratch.open("/").recovery(), Duration::ZERO);
}

#[test]
fn a_server_that_runs_is_waited_for_by_nobody() {
    let scratch = Scratch::new();
    let marks = scratch.open("/");
    marks.leave().unwrap();
    assert_eq!(scratch.open("/").recovery(), Duration::ZERO);
}

#[test]
fn what_a_killed_server_has_promised_is_waited_for_and_so_is_what_could_not_be_taken_back() {
    let scratch = Scratch::new();
    let killed = scratch.open("/");
    killed.leave().unwrap();
    drop(killed);
    let next = scratch.open("/");
    assert_eq!(next.recovery(), RECOVERY);
    assert_eq!(scratch.open("/tmp").recovery(), Duration::ZERO, "another directory");
    next.leave().unwrap();
    next.finish(true);
    assert_eq!(scratch.open("/").recovery(), RECOVERY);
}

#[test]
fn promises_from_before_the_machine_started_are_over_soon_after() {
    let scratch = Scratch::new();
    let killed = scratch.open("/");
    killed.leave().unwrap();
    drop(killed);
    let next = scratch.open("/");
    std::fs::write(next.left.first().unwrap(), "another run").unwrap();
    let uptime = Duration::try_from(rustix::time::clock_gettime(rustix::time::ClockId::Boottime)).unwrap();
    assert!(next.recovery() <= RECOVERY.saturating_sub(uptime));
}
