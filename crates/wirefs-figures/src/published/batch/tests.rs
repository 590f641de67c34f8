use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command};
use std::sync::atomic::AtomicUsize;

use super::*;

const PIECES: usize = 8;

/// A process that does nothing, and the file that is written.
struct Bench {
    victim: Child,
    path: PathBuf,
}

impl Bench {
    fn new() -> Bench {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name =
            format!("wirefs-figures-batch-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let victim = Command::new("sleep").arg("infinity").spawn().unwrap();
        Bench { victim, path: std::env::temp_dir().join(name) }
    }

    fn write(&self, crash: Crash) -> Written {
        let victim = Some(Pid::from_child(&self.victim).as_raw_nonzero().get());
        let written = Batch { path: self.path.clone(), pieces: PIECES, crash, victim }.run().unwrap();
        assert_eq!(fs::read(&self.path).unwrap(), content(PIECES));
        assert_eq!(Written::parse(&written.to_line()), Some(written));
        written
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.victim.kill().ok();
        self.victim.wait().ok();
        fs::remove_file(&self.path).ok();
    }
}

#[test]
fn a_crash_during_writes_comes_when_half_is_written() {
    let mut bench = Bench::new();
    let written = bench.write(Crash::Writes);
    assert_eq!((written.before, written.after), (PIECES / 2, PIECES / 2));
    assert!(written.is_as_meant(Crash::Writes, PIECES) && !written.is_as_meant(Crash::Commit, PIECES));
    assert_eq!(bench.victim.wait().unwrap().signal(), Some(Signal::KILL.as_raw()));
}

#[test]
fn a_crash_that_comes_when_the_commit_is_over_is_not_one_during_the_commit() {
    let written = Bench::new().write(Crash::Commit);
    // This file waits for nobody: where it was killed in time all the same, fsync was under way.
    assert_eq!(written.is_as_meant(Crash::Commit, PIECES), written.in_commit);
    let late = Written { in_commit: false, ..written };
    assert!(!late.is_as_meant(Crash::Commit, PIECES) && !late.is_as_meant(Crash::None, PIECES));
}

#[test]
fn without_a_crash_nobody_is_killed() {
    let mut bench = Bench::new();
    assert!(bench.write(Crash::None).is_as_meant(Crash::None, PIECES));
    assert!(bench.victim.try_wait().unwrap().is_none());
}
