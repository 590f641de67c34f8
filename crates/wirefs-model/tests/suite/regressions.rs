//! Former differences between the model and the kernel, as fixed sequences.

use crate::scratch::Scratch;
use wirefs_model::operation::{FileCall, NameCall, ObjectCall, OpenFlags, Operation, Pattern};
use wirefs_model::run_operations;

const CREATE: OpenFlags = OpenFlags {
    read: true,
    write: true,
    create: true,
    exclusive: false,
    truncate: false,
    append: false,
    no_follow: false,
    directory: false,
};

fn compare(operations: &[Operation]) {
    let scratch = Scratch::within(&std::env::temp_dir());
    if let Err(mismatch) = run_operations(operations, &[scratch.path()]) {
        panic!("{mismatch}");
    }
}

fn mkdir(path: &str, mode: u32) -> Operation {
    Operation::Name(NameCall::Mkdir { path: path.into(), mode })
}

fn file(path: &str) -> Operation {
    Operation::Open { slot: 0, path: path.into(), open_flags: CREATE, mode: 0o644 }
}

fn symlink(target: &str, path: &str) -> Operation {
    Operation::Name(NameCall::Symlink { target: target.into(), path: path.into() })
}

fn rename(from: &str, to: &str, flags: u32) -> Operation {
    Operation::Name(NameCall::Rename { from: from.into(), to: to.into(), flags })
}

#[test]
fn new_directory_has_no_set_id_bits() {
    let chmod = |path: &str, mode| Operation::Object(path.into(), ObjectCall::Chmod { mode });
    compare(&[mkdir("d", 0o4755), mkdir("e", 0o2755), chmod("d", 0o2755), mkdir("d/e", 0o755)]);
}

#[test]
fn setting_no_time_checks_nothing() {
    compare(&[Operation::Object("a/b".into(), ObjectCall::SetTimes { atime: None, mtime: None })]);
}

#[test]
fn symlink_without_target_fails_before_path_resolution() {
    compare(&[file("a"), symlink("", "a/b"), symlink(&"t".repeat(4096), "a/b"), symlink("t", "a/b")]);
}

#[test]
fn rename_resolves_both_directories_before_name_lookups() {
    let long = "n".repeat(256);
    compare(&[file("a"), rename(&long, "a/e", 0), rename("missing", "a/e", 0), rename(&long, "e", 0)]);
}

#[test]
fn rename_checks_flags_first() {
    compare(&[file("a"), rename("a/b", "missing/c", 3)]);
}

#[test]
fn rename_between_two_names_of_one_file_keeps_both() {
    let link = Operation::Name(NameCall::Link { from: "a".into(), to: "b".into() });
    compare(&[file("a"), link, rename("a", "b", 0), rename("a", "b", 2), rename("a", "b", 1)]);
}

#[test]
fn file_without_a_name_survives_while_open() {
    let data = Pattern { len: 5000, seed: 9 };
    compare(&[
        file("a"),
        Operation::File(0, FileCall::Write { offset: 10, data }),
        Operation::Name(NameCall::Unlink { path: "a".into() }),
        Operation::File(0, FileCall::Stat),
        file("b"),
        Operation::Open { slot: 1, path: "a".into(), open_flags: CREATE, mode: 0o600 },
        Operation::File(0, FileCall::Read { offset: 0, count: 6000 }),
        Operation::File(1, FileCall::CopyFrom { from: 0, from_offset: 0, to_offset: 100, length: 9000 }),
    ]);
}

#[test]
fn dangling_symlink_is_created_through_unless_exclusive() {
    let exclusive = OpenFlags { exclusive: true, ..CREATE };
    let no_follow = OpenFlags { no_follow: true, ..CREATE };
    let open = |open_flags| Operation::Open { slot: 0, path: "l".into(), open_flags, mode: 0o644 };
    compare(&[symlink("a", "l"), open(exclusive), open(no_follow), open(CREATE), Operation::stat("a")]);
}
