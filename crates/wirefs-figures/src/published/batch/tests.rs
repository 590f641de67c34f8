use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command};
use std::sync::atomic::AtomicUsize;

use super::*;

const PIECES: usize = 8;

/// A `sleep` process in place of the server, and the written file.
struct SleepingServer {
    process: Child,
    path: PathBuf,
}

impl SleepingServer {
    fn new() -> SleepingServer {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name =
            format!("wirefs-figures-batch-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let process = Command::new("sleep").arg("infinity").spawn().unwrap();
        SleepingServer { process, path: std::env::temp_dir().join(name) }
    }

    fn write(&self, crash: CrashPoint) -> BatchOutcome {
        let server_pid = Some(Pid::from_child(&self.process).as_raw_nonzero().get());
        let written =
            BatchWriter { path: self.path.clone(), pieces: PIECES, crash, server_pid }.run().unwrap();
        assert_eq!(fs::read(&self.path).unwrap(), content(PIECES));
        assert_eq!(BatchOutcome::parse(&written.to_line()), Some(written));
        written
    }
}

impl Drop for SleepingServer {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
        fs::remove_file(&self.path).ok();
    }
}

#[test]
fn crash_during_writes_kills_after_half_of_the_pieces() {
    let mut server = SleepingServer::new();
    let written = server.write(CrashPoint::Writes);
    assert_eq!((written.before, written.after), (PIECES / 2, PIECES / 2));
    assert!(
        written.has_crashed_at(CrashPoint::Writes, PIECES)
            && !written.has_crashed_at(CrashPoint::Commit, PIECES)
    );
    assert_eq!(server.process.wait().unwrap().signal(), Some(Signal::KILL.as_raw()));
}

#[test]
fn crash_after_the_commit_is_not_a_crash_during_the_commit() {
    let written = SleepingServer::new().write(CrashPoint::Commit);
    // `fsync` of a local file does not wait for a server; the kill may or may not fall into it.
    assert_eq!(written.has_crashed_at(CrashPoint::Commit, PIECES), written.in_commit);
    let late = BatchOutcome { in_commit: false, ..written };
    assert!(
        !late.has_crashed_at(CrashPoint::Commit, PIECES) && !late.has_crashed_at(CrashPoint::Never, PIECES)
    );
}

#[test]
fn without_a_crash_the_server_survives() {
    let mut server = SleepingServer::new();
    assert!(server.write(CrashPoint::Never).has_crashed_at(CrashPoint::Never, PIECES));
    assert!(server.process.try_wait().unwrap().is_none());
}
