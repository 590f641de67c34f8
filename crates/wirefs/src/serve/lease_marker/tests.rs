use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A temporary directory for markers.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        Scratch(std::env::temp_dir().join(format!("wirefs-markers-{}-{count}", std::process::id())))
    }

    fn markers(&self) -> usize {
        std::fs::read_dir(&self.0).unwrap().count()
    }

    fn open(&self, exported: &str) -> LeaseMarkers {
        LeaseMarkers::open_in(self.0.clone(), Path::new(exported)).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}

fn pending_sessions(sessions: &[u8]) -> Believers {
    let sessions = sessions.iter().map(|id| SessionId([*id; 16])).collect();
    Believers { sessions, is_recovering: false }
}

#[test]
fn clean_end_needs_no_wait() {
    let scratch = Scratch::new();
    let markers = scratch.open("/");
    markers.write_own(&pending_sessions(&[1])).unwrap();
    markers.write_own(&pending_sessions(&[1, 2])).unwrap();
    markers.finish(false);
    assert_eq!(scratch.markers(), 0);
    assert_eq!(scratch.open("/").recovery(), Duration::ZERO);
}

#[test]
fn running_server_needs_no_wait() {
    let scratch = Scratch::new();
    let markers = scratch.open("/");
    markers.write_own(&pending_sessions(&[1])).unwrap();
    assert_eq!(scratch.open("/").recovery(), Duration::ZERO);
}

#[test]
fn leases_of_a_killed_server_and_unreturned_leases_need_a_wait() {
    let scratch = Scratch::new();
    let killed = scratch.open("/");
    killed.write_own(&pending_sessions(&[1])).unwrap();
    drop(killed);
    let next = scratch.open("/");
    assert_eq!(next.recovery(), RECOVERY_PERIOD);
    assert_eq!(scratch.open("/tmp").recovery(), Duration::ZERO, "another directory");
    next.write_own(&pending_sessions(&[1])).unwrap();
    next.finish(true);
    assert_eq!(scratch.open("/").recovery(), RECOVERY_PERIOD);
}

#[test]
fn leases_from_before_the_boot_expire_soon_after_it() {
    let scratch = Scratch::new();
    let killed = scratch.open("/");
    killed.write_own(&pending_sessions(&[1])).unwrap();
    drop(killed);
    let next = scratch.open("/");
    let marker = next.stale.lock().unwrap().first().cloned().unwrap();
    std::fs::write(marker, "another run").unwrap();
    let uptime = Duration::try_from(rustix::time::clock_gettime(rustix::time::ClockId::Boottime)).unwrap();
    assert!(next.recovery() <= RECOVERY_PERIOD.saturating_sub(uptime));
}

// S-87
#[test]
fn next_server_knows_the_sessions_with_leases_of_a_killed_one() {
    let scratch = Scratch::new();
    let killed = scratch.open("/");
    killed.write_own(&pending_sessions(&[1])).unwrap();
    killed.write_own(&pending_sessions(&[1, 2])).unwrap();
    drop(killed);
    let next = scratch.open("/");
    assert_eq!(next.pending_sessions(), Some(pending_sessions(&[1, 2]).sessions));
    next.write_own(&Believers { is_recovering: true, ..pending_sessions(&[3]) }).unwrap();
    assert_eq!(scratch.markers(), 2, "leases of the first one may still be in use");
    drop(next);
    let third = scratch.open("/");
    assert_eq!(third.pending_sessions(), Some(pending_sessions(&[1, 2, 3]).sessions));
    third.write_own(&pending_sessions(&[4])).unwrap();
    assert_eq!(scratch.markers(), 1, "no lease is in use");
    drop(third);
    assert_eq!(scratch.open("/").pending_sessions(), Some(pending_sessions(&[4]).sessions));
}

#[test]
fn empty_marker_needs_no_wait_and_unreadable_marker_needs_one() {
    let scratch = Scratch::new();
    let killed = scratch.open("/");
    killed.write_own(&pending_sessions(&[1])).unwrap();
    killed.write_own(&pending_sessions(&[])).unwrap();
    drop(killed);
    let next = scratch.open("/");
    assert_eq!(
        (next.recovery(), next.pending_sessions()),
        (Duration::ZERO, Some(pending_sessions(&[]).sessions))
    );
    let marker = next.stale.lock().unwrap().first().cloned().unwrap();
    for text in ["", "session 01", "session 01\nend\n", "session\n"] {
        std::fs::write(&marker, [kernel_run(), text.into()].concat()).unwrap();
        let next = scratch.open("/");
        assert_eq!((next.recovery(), next.pending_sessions()), (RECOVERY_PERIOD, None), "{text}");
    }
}
