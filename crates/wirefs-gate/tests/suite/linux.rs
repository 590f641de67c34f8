//! 9P2000.L: each operation, and its effect on the directory.

use crate::client::{Client, ROOT, text};
use crate::gate::{Gate, Place};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use wirefs_ninep::attributes::{NineTime, SetAttributes};
use wirefs_ninep::message::{Fid, NineLock};
use wirefs_ninep::text::{Few, Tail};
use wirefs_ninep::{Rmessage, Tmessage};

const READ_WRITE: u32 = 2;
const TRUNCATE: u32 = 0o1000;
const EPERM: u32 = 1;
const ENOENT: u32 = 2;
const EBADF: u32 = 9;
const EEXIST: u32 = 17;
const EXDEV: u32 = 18;
const ENOTDIR: u32 = 20;
const EINVAL: u32 = 22;
const EROFS: u32 = 30;
const ENOTEMPTY: u32 = 39;
const ENODATA: u32 = 61;

fn stat_of(client: &mut Client, fid: Fid) -> wirefs_ninep::attributes::Attributes {
    match client.does(Tmessage::Getattr { fid, mask: 0x3fff }) {
        Rmessage::Getattr { attributes } => attributes,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_file_is_created_written_synced_read_and_removed() {
    let place = Place::new();
    let gate = Gate::serve(&place, &[]);
    let mut client = Client::linux(&gate);
    let fid = client.walk("");
    client.does(Tmessage::Lcreate { fid, name: text("new"), flags: READ_WRITE, mode: 0o640, gid: 0 });
    client.write(fid, 0, b"hello");
    client.write(fid, 5, b" world");
    assert_eq!(client.read(fid, 6, 100), b"world");
    assert_eq!(client.read(fid, 11, 100), b"");
    client.does(Tmessage::Fsync { fid, data_only: Tail(Some(0)) });
    assert_eq!(std::fs::read(place.tree("new")).unwrap(), b"hello world");
    assert_eq!(std::fs::metadata(place.tree("new")).unwrap().permissions().mode() & 0o7777, 0o640);
    client.clunk(fid);
    let fid = client.lopen("new", READ_WRITE | TRUNCATE);
    assert_eq!(client.read(fid, 0, 100), b"");
    client.clunk(fid);
    client.does(Tmessage::Unlinkat { dir: ROOT, name: text("new"), flags: 0 });
    assert!(!place.tree("new").exists());
}

#[test]
fn walks_stop_where_names_end_and_never_leave_the_root() {
    let place = Place::new();
    std::fs::create_dir_all(place.tree("a/b")).unwrap();
    std::fs::write(place.tree("a/f"), "f").unwrap();
    let gate = Gate::serve(&place, &[]);
    let mut client = Client::linux(&gate);
    let walk = |names: &[&str]| Tmessage::Walk {
        fid: ROOT,
        newfid: Fid(9),
        names: Few(names.iter().copied().map(text).collect()),
    };
    match client.does(walk(&["a", "none", "more"])) {
        Rmessage::Walk { qids } => assert_eq!(qids.0.len(), 1, "one name was found"),
        other => panic!("{other:?}"),
    }
    client.fails(Tmessage::Clunk { fid: Fid(9) }, EBADF);
    client.fails(walk(&["none"]), ENOENT);
    client.fails(walk(&["a/b"]), EINVAL);
    let (above, root) = (client.walk("a/../../.."), client.walk(""));
    assert_eq!(stat_of(&mut client, above).qid.path, stat_of(&mut client, root).qid.path);
    let file = client.walk("a/f");
    client.fails(Tmessage::Walk { fid: file, newfid: Fid(9), names: Few(vec![text("x")]) }, ENOTDIR);
    client.fails(Tmessage::Walk { fid: ROOT, newfid: file, names: Few(Vec::new()) }, EBADF);
    // Walked in place.
    client.does(Tmessage::Walk { fid: above, newfid: above, names: Few(vec![text("a"), text("f")]) });
    assert_eq!(stat_of(&mut client, above).qid.path, stat_of(&mut client, file).qid.path);
}

#[test]
fn listings_have_each_name_once_whatever_their_pieces() {
    let place = Place::new();
    let mut wanted: Vec<String> = (0..300).map(|number| format!("a file with number {number}")).collect();
    for name in &wanted {
        std::fs::write(place.tree(name), "").unwrap();
    }
    wanted.extend([".".to_owned(), "..".to_owned()]);
    wanted.sort();
    let gate = Gate::serve(&place, &[]);
    let mut client = Client::linux(&gate);
    for count in [100, 1000, 8168] {
        let mut names = client.names("", count);
        names.sort();
        assert_eq!(names, wanted, "in pieces of {count} bytes");
    }
    let fid = client.lopen("", 0);
    client.fails(Tmessage::Readdir { fid, offset: 0, count: 10 }, EINVAL);
}

#[test]
fn names_are_made_linked_renamed_and_removed() {
    let place = Place::new();
    std::fs::write(place.tree("f"), "contents").unwrap();
    let gate = Gate::serve(&place, &[]);
    let mut client = Client::linux(&gate);
    client.does(Tmessage::Mkdir { dir: ROOT, name: text("d"), mode: 0o750, gid: 0 });
    client.fails(Tmessage::Mkdir { dir: ROOT, name: text("d"), mode: 0o750, gid: 0 }, EEXIST);
    client.does(Tmessage::Symlink { dir: ROOT, name: text("s"), target: text("to/nowhere"), gid: 0 });
    let link = client.walk("s");
    assert_eq!(
        client.does(Tmessage::Readlink { fid: link }),
        Rmessage::Readlink { target: text("to/nowhere") }
    );
    let dir = client.walk("d");
    client.does(Tmessage::Mknod { dir, name: text("p"), mode: 0o10600, major: 0, minor: 0, gid: 0 });
    assert!(std::fs::metadata(place.tree("d/p")).unwrap().file_type().is_fifo());
    let file = client.walk("f");
    client.does(Tmessage::Link { dir, fid: file, name: text("hard") });
    assert_eq!(std::fs::metadata(place.tree("f")).unwrap().nlink(), 2);
    client.does(Tmessage::Renameat { dir: ROOT, name: text("f"), to_dir: dir, to_name: text("g") });
    assert!(!place.tree("f").exists());
    let file = client.walk("d/g");
    client.does(Tmessage::Rename { fid: file, dir: ROOT, name: text("h") });
    assert_eq!(std::fs::read(place.tree("h")).unwrap(), b"contents");
    // The fid stands for the new name.
    client.does(Tmessage::Remove { fid: file });
    assert!(!place.tree("h").exists() && place.tree("d/hard").exists());
    client.fails(Tmessage::Unlinkat { dir: ROOT, name: text("d"), flags: 0x200 }, ENOTEMPTY);
    for name in ["p", "hard"] {
        client.does(Tmessage::Unlinkat { dir, name: text(name), flags: 0 });
    }
    client.does(Tmessage::Unlinkat { dir: ROOT, name: text("d"), flags: 0x200 });
    assert!(!place.tree("d").exists());
}

// S-164
#[test]
fn clients_set_no_set_id_bits_make_no_devices_and_see_no_inner_mounts_unless_asked() {
    let place = Place::new();
    std::fs::write(place.tree("f"), "contents").unwrap();
    let gate = Gate::serve(&place, &[]);
    let mut client = Client::linux(&gate);
    let fid = client.walk("f");
    let set = SetAttributes { valid: 1, mode: 0o6711, ..SetAttributes::default() };
    client.does(Tmessage::Setattr { fid, set });
    let fid = client.walk("");
    client.does(Tmessage::Lcreate { fid, name: text("new"), flags: READ_WRITE, mode: 0o4755, gid: 0 });
    let mode = |name| std::fs::metadata(place.tree(name)).unwrap().permissions().mode() & 0o7777;
    assert_eq!([mode("f"), mode("new")], [0o711, 0o755]);
    let device = |name| Tmessage::Mknod { dir: ROOT, name, mode: 0o20666, major: 1, minor: 3, gid: 0 };
    client.fails(device(text("null")), EPERM);
    drop(gate);
    let gate = Gate::serve_source(&place, "/", &["--read-only"]);
    let mut client = Client::linux(&gate);
    let proc = |newfid| Tmessage::Walk { fid: ROOT, newfid, names: Few(vec![text("proc")]) };
    client.fails(proc(Fid(9)), EXDEV);
    drop(gate);
    let gate = Gate::serve_source(&place, "/", &["--read-only", "--cross-mounts"]);
    Client::linux(&gate).does(proc(Fid(9)));
}

#[test]
fn attributes_are_read_and_changed() {
    let place = Place::new();
    std::fs::write(place.tree("f"), "contents").unwrap();
    let gate = Gate::serve(&place, &["--suid"]);
    let mut client = Client::linux(&gate);
    let fid = client.walk("f");
    let before = stat_of(&mut client, fid);
    let local = std::fs::metadata(place.tree("f")).unwrap();
    assert_eq!((before.mode, before.sizes.size, before.qid.path), (local.mode(), 8, local.ino()));
    assert_eq!(before.mtime.secs, local.mtime() as u64);
    let set = SetAttributes {
        valid: 1 | 8 | 16 | 128 | 32 | 256,
        mode: 0o4711,
        size: 3,
        atime: NineTime { secs: 1000, nanos: 1 },
        mtime: NineTime { secs: 2000, nanos: 2 },
        ..SetAttributes::default()
    };
    client.does(Tmessage::Setattr { fid, set });
    let after = stat_of(&mut client, fid);
    assert_eq!((after.mode, after.sizes.size), (0o104_711, 3));
    assert_eq!((after.atime.secs, after.mtime), (1000, NineTime { secs: 2000, nanos: 2 }));
    assert_ne!(after.qid.version, before.qid.version);
    match client.does(Tmessage::Statfs { fid }) {
        Rmessage::Statfs { figures } => assert!(figures.blocks > 0 && figures.name_bytes_max == 255),
        other => panic!("{other:?}"),
    }
}

#[test]
fn extended_attributes_are_written_read_listed_and_removed() {
    let place = Place::new();
    std::fs::write(place.tree("f"), "").unwrap();
    let gate = Gate::serve(&place, &[]);
    let mut client = Client::linux(&gate);
    let set = |client: &mut Client, value: &[u8], flags| {
        let fid = client.walk("f");
        let size = value.len() as u64;
        client.does(Tmessage::Xattrcreate { fid, name: text("user.color"), size, flags });
        if !value.is_empty() {
            client.write(fid, 0, value);
        }
        client.clunk(fid);
    };
    set(&mut client, b"blue", 0);
    let (fid, value) = (client.walk("f"), client.new_fid());
    let reply = client.does(Tmessage::Xattrwalk { fid, newfid: value, name: text("user.color") });
    assert_eq!(reply, Rmessage::Xattrwalk { size: 4 });
    assert_eq!(client.read(value, 0, 100), b"blue");
    assert_eq!(client.read(value, 2, 1), b"u");
    let list = client.new_fid();
    client.does(Tmessage::Xattrwalk { fid, newfid: list, name: text("") });
    assert_eq!(client.read(list, 0, 100), b"user.color\0");
    set(&mut client, b"", 2);
    client.fails(Tmessage::Xattrwalk { fid, newfid: Fid(99), name: text("user.color") }, ENODATA);
    // Less than was announced.
    let fid = client.walk("f");
    client.does(Tmessage::Xattrcreate { fid, name: text("user.short"), size: 2, flags: 0 });
    client.fails(Tmessage::Clunk { fid }, EINVAL);
}

#[test]
fn locks_of_two_clients_exclude_each_other_until_the_fid_is_given_back() {
    let place = Place::new();
    std::fs::write(place.tree("f"), "contents").unwrap();
    let gate = Gate::serve(&place, &[]);
    let (mut one, mut two) = (Client::linux(&gate), Client::linux(&gate));
    let (first, second) = (one.lopen("f", READ_WRITE), two.lopen("f", READ_WRITE));
    let lock = |fid, kind, start, length| Tmessage::Lock {
        fid,
        kind,
        flags: 0,
        start,
        length,
        process: 7,
        client: text("host"),
    };
    assert_eq!(one.does(lock(first, 1, 0, 4)), Rmessage::Lock { status: 0 });
    assert_eq!(two.does(lock(second, 1, 2, 0)), Rmessage::Lock { status: 1 });
    assert_eq!(two.does(lock(second, 1, 4, 0)), Rmessage::Lock { status: 0 });
    let test = NineLock { kind: 1, start: 0, length: 0, process: 8, client: text("host") };
    let reply = two.does(Tmessage::Getlock { fid: second, lock: test.clone() });
    assert_eq!(reply, Rmessage::Getlock { lock: NineLock { length: 4, process: 7, ..test } });
    one.clunk(first);
    assert_eq!(two.does(lock(second, 1, 0, 4)), Rmessage::Lock { status: 0 });
    // A connection that ends gives its locks back too.
    drop(two);
    let third = one.lopen("f", READ_WRITE);
    let mut replies = (0..1000).map(|_| {
        std::thread::yield_now();
        one.does(lock(third, 1, 0, 0))
    });
    assert!(replies.any(|reply| reply == Rmessage::Lock { status: 0 }));
}

#[test]
fn a_read_only_gate_refuses_changes() {
    let place = Place::new();
    std::fs::write(place.tree("f"), "contents").unwrap();
    let gate = Gate::serve(&place, &["--read-only"]);
    let mut client = Client::linux(&gate);
    let fid = client.walk("f");
    client.fails(Tmessage::Lopen { fid, flags: READ_WRITE }, EROFS);
    client.fails(Tmessage::Mkdir { dir: ROOT, name: text("d"), mode: 0o755, gid: 0 }, EROFS);
    client.does(Tmessage::Lopen { fid, flags: 0 });
    assert_eq!(client.read(fid, 0, 3), b"con");
    client.fails(Tmessage::Write { fid, offset: 0, data: crate::client::data(b"x") }, EBADF);
}
