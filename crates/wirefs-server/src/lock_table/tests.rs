use super::*;

const FILE: FileId = FileId { fs: 0, ino: 5, generation: 1 };

fn table() -> LockTable {
    let table = LockTable::default();
    table.begin(SessionKey(1));
    table.begin(SessionKey(2));
    table
}

fn posix(session: u64, owner: u64) -> Holder {
    Holder::new(FILE, SessionKey(session), owner, LockFamily::Posix)
}

fn range(kind: LockKind, start: u64, end: u64) -> LockRange {
    LockRange { kind, start, end, pid: 9 }
}

#[test]
fn write_lock_excludes_others_from_its_range_only() {
    let table = table();
    table.lock(posix(1, 1), range(LockKind::Write, 10, 19)).unwrap();
    for other in [posix(2, 1), posix(1, 2)] {
        assert_eq!(table.lock(other, range(LockKind::Read, 19, 30)).err(), Some(Errno::WouldBlock));
        assert_eq!(
            table.test(other, range(LockKind::Read, 0, u64::MAX)),
            Some(range(LockKind::Write, 10, 19))
        );
        table.lock(other, range(LockKind::Read, 20, 30)).unwrap();
    }
    // A lock does not conflict with its own holder, with whole-file locks, or with locks on other files.
    assert_eq!(table.test(posix(1, 1), range(LockKind::Write, 10, 19)), None);
    let whole = Holder::new(FILE, SessionKey(2), 1, LockFamily::Flock);
    table.lock(whole, range(LockKind::Write, 0, 0)).unwrap();
    let elsewhere = Holder { id: FileId { ino: 6, ..FILE }, ..posix(2, 1) };
    table.lock(elsewhere, range(LockKind::Write, 10, 19)).unwrap();
}

#[test]
fn whole_file_locks_are_shared_or_exclusive() {
    let table = table();
    let of = |session| Holder::new(FILE, SessionKey(session), 1, LockFamily::Flock);
    table.lock(of(1), range(LockKind::Read, 3, 4)).unwrap();
    table.lock(of(2), range(LockKind::Read, 7, 8)).unwrap();
    assert_eq!(table.lock(of(1), range(LockKind::Write, 0, 0)).err(), Some(Errno::WouldBlock));
    table.unlock(of(2), range(LockKind::Unlock, 0, 0)).unwrap();
    table.lock(of(1), range(LockKind::Write, 0, 0)).unwrap();
}

#[test]
fn ended_session_holds_and_gets_no_locks() {
    let table = table();
    table.lock(posix(1, 1), range(LockKind::Write, 0, 9)).unwrap();
    table.end(SessionKey(1));
    assert_eq!(table.lock(posix(1, 1), range(LockKind::Write, 0, 9)).err(), Some(Errno::Protocol));
    table.lock(posix(2, 1), range(LockKind::Write, 0, 9)).unwrap();
}

#[test]
fn undelivered_lock_is_undone() {
    let table = table();
    table.lock(posix(1, 1), range(LockKind::Read, 0, 4)).unwrap();
    let before = table.lock(posix(1, 1), range(LockKind::Write, 0, 9)).unwrap();
    table.undo(posix(1, 1), range(LockKind::Write, 0, 9), &before);
    assert_eq!(table.test(posix(2, 1), range(LockKind::Write, 0, 9)), Some(range(LockKind::Read, 0, 4)));
    table.lock(posix(2, 1), range(LockKind::Write, 5, 9)).unwrap();
}

#[test]
fn a_session_has_a_bounded_number_of_holders() {
    let table = table();
    for owner in 0..HOLDERS_MAX as u64 {
        table.lock(posix(1, owner), range(LockKind::Read, 0, 0)).unwrap();
    }
    assert_eq!(table.lock(posix(1, u64::MAX), range(LockKind::Read, 0, 0)).err(), Some(Errno::NoLocks));
    table.lock(posix(1, 7), range(LockKind::Read, 5, 5)).unwrap();
    table.unlock(posix(1, 7), EVERYTHING).unwrap();
    table.lock(posix(1, u64::MAX), range(LockKind::Read, 0, 0)).unwrap();
}

#[test]
fn a_holder_has_a_bounded_number_of_ranges_whether_it_locks_or_releases() {
    let table = table();
    let count = || table.table().held[&posix(1, 1)].len();
    // Each release splits one range.
    table.lock(posix(1, 1), range(LockKind::Write, 0, u64::MAX)).unwrap();
    let last = RANGES_MAX as u64 - 1;
    for at in 1..=last {
        table.unlock(posix(1, 1), range(LockKind::Unlock, at * 10, at * 10)).unwrap();
    }
    assert_eq!(count(), RANGES_MAX);
    let within = |kind| range(kind, last * 10 + 5, last * 10 + 6);
    assert_eq!(table.unlock(posix(1, 1), within(LockKind::Unlock)), Err(Errno::NoLocks));
    assert_eq!(table.lock(posix(1, 1), within(LockKind::Read)).err(), Some(Errno::NoLocks));
    assert_eq!(count(), RANGES_MAX);
    let held = Some(range(LockKind::Write, last * 10 + 1, u64::MAX));
    assert_eq!(table.test(posix(2, 1), within(LockKind::Read)), held);
    // Operations that do not add ranges still work.
    table.lock(posix(1, 1), range(LockKind::Write, 10, 10)).unwrap();
    table.unlock(posix(1, 1), within(LockKind::Unlock)).unwrap();
    table.unlock(posix(1, 1), EVERYTHING).unwrap();
    assert!(table.table().held.is_empty());
}
