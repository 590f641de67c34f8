//! Actions of another process on a mount: this binary again, with a role. A caller in the test's own process could
//! not be killed without the test.

use crate::sys::change_mapped;
use rustix::fs::FlockOperation;
use std::fs::OpenOptions;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const ROLE: &str = "WIREFS_FUSE_TEST_ROLE";
const PATH: &str = "WIREFS_FUSE_TEST_PATH";

/// Starts a process with a role on a path.
pub(crate) fn start(role: &str, path: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child::runs_the_given_role", "--nocapture"])
        .env(ROLE, role)
        .env(PATH, path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn runs_the_given_role() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let path = std::env::var_os(PATH).unwrap();
    let open = || OpenOptions::new().read(true).write(true).open(&path).unwrap();
    match role.as_str() {
        "flock" => rustix::fs::flock(open(), FlockOperation::LockExclusive).unwrap(),
        "fcntl" => rustix::fs::fcntl_lock(open(), FlockOperation::LockExclusive).unwrap(),
        "stat" => drop(std::fs::metadata(&path).unwrap()),
        "mmap" => change_mapped(&open(), 8192, |bytes| {
            assert_eq!(bytes[4096], b'a');
            bytes[4096] = b'B';
        }),
        other => panic!("no such role: {other}"),
    }
}
