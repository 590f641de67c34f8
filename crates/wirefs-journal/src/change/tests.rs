use super::*;
use wirefs_op::message::lock::{LockAction, Tlock};
use wirefs_op::message::put::Create;
use wirefs_op::message::remove::Tremove;
use wirefs_op::message::target::{Fd, Place};
use wirefs_op::wire::Data;
use wirefs_op::{Cred, FileId, Kind, LockFamily, LockKind, LockRange, TreePath};

/// Returns the path with this text.
pub(crate) fn path(text: &str) -> TreePath {
    TreePath::from_bytes(Bytes::copy_from_slice(text.as_bytes())).unwrap()
}

/// A write to a file by name.
pub(crate) fn write(name: &str, data: &str) -> Tput {
    let id = Some(FileId { fs: 0, ino: 5, generation: 1 });
    Tput {
        target: Target { path: path(name), fd: Fd(9), id },
        mode: PutMode::DATA,
        create: None,
        set: SetStat::default(),
        offset: 7,
        data: Data(Bytes::copy_from_slice(data.as_bytes())),
    }
}

/// A removal of a name.
pub(crate) fn remove(name: &str) -> Request {
    Request::Remove(Tremove { place: Place { path: path(name), dir: None }, directory: false })
}

fn created(mode: PutMode) -> Tput {
    let create = Create { kind: Kind::File, mode: 0o644, rdev: 0, cred: Cred::default() };
    Tput { mode: PutMode::CREATE.and(mode), create: Some(create), ..write("dir/new", "") }
}

fn replayed_put(put: Tput) -> Option<Tput> {
    match replayed(Request::Put(put))? {
        Request::Put(put) => Some(put),
        other => panic!("{other:?}"),
    }
}

#[test]
fn replayed_change_opens_nothing() {
    let more = PutMode::MORE.and(PutMode::READ).and(PutMode::WRITE).and(PutMode::SYNC);
    let put = replayed_put(created(more)).unwrap();
    assert_eq!((put.mode, put.target.fd), (PutMode::CREATE, NOFD));
    assert_eq!(put.create, created(more).create);
    let opening = more.without(PutMode::SYNC);
    assert_eq!(replayed_put(Tput { mode: opening, ..write("dir/open", "") }), None);
    // A barrier stays a barrier for the changes after it.
    let put = replayed_put(Tput { mode: more, ..write("dir/open", "") }).unwrap();
    assert_eq!((put.mode, put.target.fd), (PutMode::SYNC, NOFD));
}

#[test]
fn nameless_file_stays_open_for_later_changes() {
    let put = replayed_put(created(PutMode::NAMELESS.and(PutMode::MORE))).unwrap();
    assert!(put.mode.has(PutMode::NAMELESS.and(PutMode::MORE)));
}

#[test]
fn lock_of_a_dead_program_is_not_replayed() {
    let range = LockRange { kind: LockKind::Write, start: 0, end: 0, pid: 1 };
    let lock = Tlock {
        target: Target::at(path("file")),
        action: LockAction::Set,
        family: LockFamily::Posix,
        owner: 1,
        range,
    };
    assert_eq!(replayed(Request::Lock(lock)), None);
}

#[test]
fn change_is_described_in_words() {
    let what = |request: Request| describe(&request).what;
    assert_eq!(what(Request::Put(write("file", "text"))), "write 4 bytes at 7");
    assert_eq!(what(Request::Put(created(PutMode::NONE))), "create file with mode 644");
    let set = SetStat { mode: Some(0o600), size: Some(3), ..SetStat::default() };
    let put = Tput { mode: PutMode::STAT, set, ..write("file", "") };
    assert_eq!(what(Request::Put(put)), "set mode, size");
    assert_eq!(what(remove("dir/old")), "remove");
    assert_eq!(describe(&remove("dir/old")).path, b"dir/old");
    assert_eq!(describe(&Request::Put(write("file", "text"))).data, "text");
}

#[test]
fn names_of_any_bytes_fit_on_one_line() {
    assert_eq!(shown("Grüße/a b".as_bytes()), "Grüße/a b");
    assert_eq!(shown(b"a\nb\\c\x1b"), "a\\nb\\\\c\\u{1b}");
    assert_eq!(shown(b"a\xffb"), "a\\xffb");
}
