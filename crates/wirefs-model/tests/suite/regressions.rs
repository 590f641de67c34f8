//! Where the model and the kernel once differed, kept as plain sequences.

use crate::scratch::Scratch;
use wirefs_model::operation::{How, OnFile, OnName, OnObject, Operation, Pattern};
use wirefs_model::run_operations;

const CREATE: How = How {
    read: true,
    write: true,
    create: true,
    exclusive: false,
    truncate: false,
    append: false,
    no_follow: false,
    directory: false,
};

fn agree(operations: &[Operation]) {
    let scratch = Scratch::within(&std::env::temp_dir());
    if let Err(mismatch) = run_operations(operations, &[scratch.path()]) {
        panic!("{mismatch}");
    }
}

fn mkdir(path: &str, mode: u32) -> Operation {
    Operation::Name(OnName::Mkdir { path: path.into(), mode })
}

fn file(path: &str) -> Operation {
    Operation::Open { slot: 0, path: path.into(), how: CREATE, mode: 0o644 }
}

fn symlink(target: &str, path: &str) -> Operation {
    Operation::Name(OnName::Symlink { target: target.into(), path: path.into() })
}

fn rename(from: &str, to: &str, flags: u32) -> Operation {
    Operation::Name(OnName::Rename { from: from.into(), to: to.into(), flags })
}

#[test]
fn a_new_directory_has_no_set_id_bits_of_its_own() {
    let chmod = |path: &str, mode| Operation::Object(path.into(), OnObject::Chmod { mode });
    agree(&[mkdir("d", 0o4755), mkdir("e", 0o2755), chmod("d", 0o2755), mkdir("d/e", 0o755)]);
}

#[test]
fn leaving_both_times_as_they_are_looks_at_nothing() {
    agree(&[Operation::Object("a/b".into(), OnObject::SetTimes { atime: None, mtime: None })]);
}

#[test]
fn a_link_without_a_target_fails_before_its_path_is_walked() {
    agree(&[file("a"), symlink("", "a/b"), symlink(&"t".repeat(4096), "a/b"), symlink("t", "a/b")]);
}

#[test]
fn both_directories_of_a_rename_are_walked_before_the_names_are_looked_up() {
    let long = "n".repeat(256);
    agree(&[file("a"), rename(&long, "a/e", 0), rename("missing", "a/e", 0), rename(&long, "e", 0)]);
}

#[test]
fn flags_of_a_rename_are_checked_first() {
    agree(&[file("a"), rename("a/b", "missing/c", 3)]);
}

#[test]
fn a_rename_onto_another_name_of_the_same_file_keeps_both() {
    let link = Operation::Name(OnName::Link { from: "a".into(), to: "b".into() });
    agree(&[file("a"), link, rename("a", "b", 0), rename("a", "b", 2), rename("a", "b", 1)]);
}

#[test]
fn a_file_without_a_name_lives_while_it_is_open() {
    let data = Pattern { len: 5000, seed: 9 };
    agree(&[
        file("a"),
        Operation::File(0, OnFile::Write { offset: 10, data }),
        Operation::Name(OnName::Unlink { path: "a".into() }),
        Operation::File(0, OnFile::Stat),
        file("b"),
        Operation::Open { slot: 1, path: "a".into(), how: CREATE, mode: 0o600 },
        Operation::File(0, OnFile::Read { offset: 0, count: 6000 }),
        Operation::File(1, OnFile::CopyFrom { from: 0, from_offset: 0, to_offset: 100, length: 9000 }),
    ]);
}

#[test]
fn a_dangling_link_is_created_through_unless_creation_is_exclusive() {
    let exclusive = How { exclusive: true, ..CREATE };
    let no_follow = How { no_follow: true, ..CREATE };
    let open = |how| Operation::Open { slot: 0, path: "l".into(), how, mode: 0o644 };
    agree(&[symlink("a", "l"), open(exclusive), open(no_follow), open(CREATE), Operation::stat("a")]);
}
