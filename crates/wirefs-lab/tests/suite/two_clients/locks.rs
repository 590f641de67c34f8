//! Locks of one client, as seen by the other.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::fs::{FlockOperation, fcntl_lock, flock};
use rustix::io::Errno;

use super::TwoMounts;
use crate::site::{ChildGuard, ProgramResult, wait_for};

fn try_flock(file: &File) -> Result<(), Errno> {
    flock(file, FlockOperation::NonBlockingLockExclusive)
}

fn try_fcntl(file: &File) -> Result<(), Errno> {
    fcntl_lock(file, FlockOperation::NonBlockingLockExclusive)
}

/// Starts a process that holds a lock on the file: flock with a shell, or fcntl locks with sqlite3.
fn holder(command: &mut Command, input: &str) -> ChildGuard {
    let mut running = ChildGuard(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap());
    let mut stdin = running.0.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    let mut line = String::new();
    BufReader::new(running.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "held\n");
    // Keeps the standard input open: the process waits for input and holds its lock.
    running.0.stdin = Some(stdin);
    running
}

fn flock_holder(path: &Path) -> ChildGuard {
    let script = "exec 9>>\"$1\"; flock 9; echo held; read more";
    holder(Command::new("sh").args(["-c", script, "sh"]).arg(path), "")
}

#[test]
fn flock_blocks_the_other_client_and_ends_with_its_holder() {
    for mode in ["window", "strict"] {
        let mounts = TwoMounts::new("flock", mode);
        fs::write(mounts.a.join("f"), "").unwrap();
        let other = File::options().read(true).write(true).open(mounts.b.join("f")).unwrap();
        let mut killed = flock_holder(&mounts.a.join("f"));
        assert_eq!(try_flock(&other), Err(Errno::WOULDBLOCK));
        killed.kill();
        wait_for("the killed holder's lock", || try_flock(&other).is_ok());
        flock(&other, FlockOperation::Unlock).unwrap();

        let mut closing = flock_holder(&mounts.a.join("f"));
        assert_eq!(try_flock(&other), Err(Errno::WOULDBLOCK));
        drop(closing.0.stdin.take());
        wait_for("the ended holder's lock", || try_flock(&other).is_ok());
    }
}

#[test]
fn waiting_lock_is_granted_when_the_other_client_unlocks() {
    let mounts = TwoMounts::new("waiting", "window");
    fs::write(mounts.a.join("f"), "").unwrap();
    let [own, other] =
        [&mounts.a, &mounts.b].map(|at| File::options().read(true).write(true).open(at.join("f")).unwrap());
    for lock in [flock::<&File>, fcntl_lock::<&File>] {
        lock(&own, FlockOperation::LockExclusive).unwrap();
        assert!(lock(&other, FlockOperation::NonBlockingLockExclusive).is_err());
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| lock(&other, FlockOperation::LockExclusive));
            lock(&own, FlockOperation::Unlock).unwrap();
            waiting.join().unwrap().unwrap();
        });
        assert!(lock(&own, FlockOperation::NonBlockingLockExclusive).is_err());
        lock(&other, FlockOperation::Unlock).unwrap();
    }
}

#[test]
fn fcntl_locks_block_the_other_client_and_end_with_their_holder() {
    let mounts = TwoMounts::new("fcntl", "window");
    fs::write(mounts.a.join("f"), "").unwrap();
    let [own, other] =
        [&mounts.a, &mounts.b].map(|at| File::options().read(true).write(true).open(at.join("f")).unwrap());
    try_fcntl(&own).unwrap();
    assert!(matches!(try_fcntl(&other), Err(Errno::AGAIN | Errno::ACCESS)));
    // Closing any descriptor of the file releases the process's locks.
    drop(File::open(mounts.a.join("f")).unwrap());
    wait_for("the closed file's lock", || try_fcntl(&other).is_ok());

    let ask = |sql: &str| ProgramResult::of(mounts.site.command("sqlite3").arg(mounts.b.join("db")).arg(sql));
    ProgramResult::of(mounts.site.command("sqlite3").arg(mounts.a.join("db")).arg("create table t (x);"))
        .succeeds();
    let mut killed = holder(
        Command::new("sqlite3").arg(mounts.a.join("db")),
        "begin exclusive; insert into t values (1);\nselect 'held';\n",
    );
    let refused = ask("insert into t values (2);");
    assert!(refused.stderr.contains("locked"), "{refused:?}");
    killed.kill();
    wait_for("the killed holder's locks", || ask("insert into t values (3);").code == Some(0));
    assert_eq!(ask("select x from t; pragma integrity_check;").succeeds(), "3\nok\n");
}
