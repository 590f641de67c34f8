//! Checkpoints by magic files and by command.

use super::fixture::{TreeFixture, at, bytes};
use bytes::Bytes;
use wirefs_op::message::copy::Tcopy;
use wirefs_op::message::put::{PutMode, Tput};
use wirefs_op::message::xattr::XattrAction;
use wirefs_op::wire::Data;
use wirefs_op::{Errno, Kind, Request, SetStat, TreePath};

/// A tree with all kinds of objects.
fn filled() -> TreeFixture {
    let fixture = TreeFixture::new();
    for dir in ["a", "a/b", "c"] {
        fixture.mkdir(dir).unwrap();
    }
    for number in 0..20_u8 {
        fixture.create(&format!("a/{number}"), bytes(usize::from(number) * 100, number)).unwrap();
    }
    fixture.create("a/b/large", bytes(50_000, 3)).unwrap();
    fixture.link("a/b/large", "c/also").unwrap();
    fixture.make("c/link", Kind::Symlink, Bytes::from_static(b"../a/b")).unwrap();
    fixture.xattr("c", XattrAction::Set, "user.x", bytes(3000, 1)).unwrap();
    fixture
}

/// Changes many of its objects.
fn spoil(fixture: &TreeFixture) {
    fixture.write(at("a/b/large"), 20_000, bytes(9000, 8)).unwrap();
    fixture.rename("a/3", "c/three", 0).unwrap();
    fixture.remove("c/link").unwrap();
    fixture.xattr("c", XattrAction::Set, "user.x", bytes(10, 2)).unwrap();
    for number in 4..12 {
        fixture.remove(&format!("a/{number}")).unwrap();
    }
    fixture.rename("a", "renamed", 0).unwrap();
    fixture.create("new", bytes(5000, 6)).unwrap();
}

#[test]
fn removing_a_magic_file_restores_its_checkpoint() {
    let fixture = filled();
    let before = fixture.dump("");
    let files = fixture.tree.volume().root.files;
    fixture.create("a/__checkpoint_one", Bytes::new()).unwrap();
    spoil(&fixture);
    assert_ne!(fixture.dump(""), before);
    fixture.remove("renamed/__checkpoint_one").unwrap();
    // The root block is the same, so the whole tree is.
    assert_eq!(fixture.tree.volume().root.files, files);
    assert_eq!(fixture.dump(""), before);
    assert_eq!(fixture.tree.checkpoints(), []);
    fixture.collect();
    fixture.audit();
}

#[test]
fn restored_tree_is_writable() {
    let fixture = filled();
    fixture.create("__checkpoint_one", Bytes::new()).unwrap();
    spoil(&fixture);
    let other = fixture.create("c/afterwards", bytes(10, 1)).unwrap();
    fixture.remove("__checkpoint_one").unwrap();
    let made = fixture.create("c/afterwards", bytes(10, 2)).unwrap();
    assert_ne!(made.id, other.id, "an id was used for two objects");
    assert_ne!(made.version, other.version);
    spoil(&fixture);
    fixture.collect();
    fixture.audit();
}

#[test]
fn a_checkpoint_is_readable_and_does_not_change() {
    let fixture = filled();
    let before = fixture.dump("");
    fixture.tree.create_checkpoint(b"one").unwrap();
    spoil(&fixture);
    assert_eq!(fixture.dump(".checkpoints/one"), before);
    assert_eq!(fixture.names(".checkpoints"), ["one"]);
    assert!(fixture.names("").contains(&".checkpoints".into()));
    assert_ne!(fixture.stat(".checkpoints/one").unwrap().id, fixture.stat("").unwrap().id);
    let attached =
        fixture.tree.attach(7, &TreePath::from_names([&b".checkpoints"[..], b"one"]).unwrap()).unwrap();
    assert!(attached.is_read_only);
    fixture.audit();
}

#[test]
fn nothing_in_a_checkpoint_can_be_changed() {
    let fixture = filled();
    fixture.tree.create_checkpoint(b"one").unwrap();
    let inside = |path: &str| format!(".checkpoints/one/{path}");
    let file = inside("a/3");
    let refused = Err(Errno::ReadOnly);
    assert_eq!(fixture.create(&inside("a/new"), Bytes::new()).map(drop), refused);
    assert_eq!(fixture.create(&file, Bytes::new()).map(drop), refused);
    assert_eq!(fixture.write(at(&file), 0, bytes(1, 1)).map(drop), refused);
    assert_eq!(fixture.resize(&file, 0).map(drop), refused);
    assert_eq!(fixture.remove(&file), refused);
    assert_eq!(fixture.rmdir(&inside("a/b")), refused);
    assert_eq!(fixture.rename(&file, &inside("a/x"), 0), refused);
    assert_eq!(fixture.link(&file, &inside("a/x")), refused);
    assert_eq!(fixture.xattr(&file, XattrAction::Set, "user.y", Bytes::new()).map(drop), refused);
    assert_eq!(fixture.rename(&file, "a/x", 0), Err(Errno::CrossDevice));
    assert_eq!(fixture.link(&file, "a/x"), Err(Errno::CrossDevice));
    assert_eq!(fixture.mkdir(".checkpoints/two").map(drop), refused);
    assert_eq!(fixture.mkdir(".checkpoints").map(drop), Err(Errno::Exists));
    assert_eq!(fixture.rmdir(".checkpoints"), Err(Errno::NotPermitted));
    assert_eq!(fixture.rename("a", ".checkpoints", 0), Err(Errno::NotPermitted));
    let copy = Tcopy { from: at(&file), from_offset: 0, to: at("a/4"), to_offset: 0, length: 10 };
    assert_eq!(fixture.ask(Request::Copy(copy)).map(drop), Err(Errno::CrossDevice));
    let open_to_write = Tput {
        target: at(&file),
        mode: PutMode::MORE.and(PutMode::WRITE),
        create: None,
        set: SetStat::default(),
        offset: 0,
        data: Data::default(),
    };
    assert_eq!(fixture.ask(Request::Put(open_to_write)).map(drop), refused);
    let opened = fixture.open_file(&file).unwrap();
    assert_eq!(fixture.read_open(&opened), Ok(bytes(300, 3)));
}

#[test]
fn checkpoint_names_are_unique() {
    let fixture = filled();
    fixture.tree.create_checkpoint(b"one").unwrap();
    assert_eq!(fixture.tree.create_checkpoint(b"one"), Err(Errno::Exists));
    assert_eq!(fixture.create("a/__checkpoint_one", Bytes::new()).map(drop), Err(Errno::Exists));
    assert_eq!(fixture.stat("a/__checkpoint_one").map(drop), Err(Errno::NotFound));
    assert_eq!(fixture.tree.create_checkpoint(b"a/b"), Err(Errno::Invalid));
    assert_eq!(fixture.tree.drop_checkpoint(b"two"), Err(Errno::NotFound));
    assert_eq!(fixture.tree.restore_checkpoint(b"two"), Err(Errno::NotFound));
    // A directory with a magic name is a plain directory.
    fixture.mkdir("__checkpoint_dir").unwrap();
    fixture.create("__checkpoint_", Bytes::new()).unwrap();
    assert_eq!(fixture.tree.checkpoints().len(), 1);
    fixture.rmdir("__checkpoint_dir").unwrap();
    fixture.remove("__checkpoint_").unwrap();
    fixture.tree.drop_checkpoint(b"one").unwrap();
    fixture.create("a/__checkpoint_one", Bytes::new()).unwrap();
    // After a drop by command, the magic file is a plain file.
    fixture.tree.drop_checkpoint(b"one").unwrap();
    fixture.remove("a/__checkpoint_one").unwrap();
    assert!(fixture.stat("a/3").is_ok());
}

#[test]
fn checkpoints_are_listed_with_time_and_change_number() {
    let fixture = filled();
    fixture.tree.create_checkpoint(b"one").unwrap();
    fixture.create("x", Bytes::new()).unwrap();
    fixture.tree.create_checkpoint(b"two").unwrap();
    let listed = fixture.tree.checkpoints();
    assert_eq!(listed.iter().map(|kept| kept.name.as_slice()).collect::<Vec<_>>(), [b"one", b"two"]);
    assert!(listed[0].made < listed[1].made && listed[0].change < listed[1].change);
    let reopened = fixture.reopened(0);
    assert_eq!(reopened.tree.checkpoints(), listed);
}

#[test]
fn a_checkpoint_can_be_restored_more_than_once_and_others_stay() {
    let fixture = filled();
    fixture.tree.create_checkpoint(b"one").unwrap();
    let one = fixture.dump("");
    spoil(&fixture);
    fixture.tree.create_checkpoint(b"two").unwrap();
    let two = fixture.dump("");
    fixture.create("third", bytes(2000, 1)).unwrap();
    for _ in 0..2 {
        fixture.tree.restore_checkpoint(b"one").unwrap();
        assert_eq!(fixture.dump(""), one);
        spoil(&fixture);
        fixture.tree.restore_checkpoint(b"two").unwrap();
        assert_eq!(fixture.dump(""), two);
        fixture.create("third", bytes(2000, 1)).unwrap();
    }
    fixture.collect();
    fixture.audit();
    fixture.tree.drop_checkpoint(b"one").unwrap();
    fixture.tree.drop_checkpoint(b"two").unwrap();
    fixture.collect();
    fixture.audit();
    assert_eq!(fixture.read("third"), Ok(bytes(2000, 1)));
}

#[test]
fn dropping_a_checkpoint_whose_tree_is_live_loses_nothing() {
    let fixture = filled();
    fixture.tree.create_checkpoint(b"one").unwrap();
    fixture.tree.create_checkpoint(b"same").unwrap();
    let one = fixture.dump("");
    spoil(&fixture);
    fixture.tree.drop_checkpoint(b"one").unwrap();
    fixture.tree.restore_checkpoint(b"same").unwrap();
    fixture.tree.drop_checkpoint(b"same").unwrap();
    assert_eq!(fixture.dump(""), one);
    spoil(&fixture);
    fixture.collect();
    fixture.audit();
}

#[test]
fn open_files_survive_a_restore() {
    let fixture = filled();
    let kept = fixture.open_file("a/7").unwrap();
    fixture.tree.create_checkpoint(b"one").unwrap();
    fixture.create("late", bytes(100, 1)).unwrap();
    let late = fixture.open_file("late").unwrap();
    fixture.remove("a/7").unwrap();
    assert_eq!(fixture.read_open(&kept), Ok(bytes(700, 7)));
    fixture.tree.restore_checkpoint(b"one").unwrap();
    assert_eq!(fixture.read_open(&kept), Ok(bytes(700, 7)));
    assert_eq!(fixture.read_open(&late), Err(Errno::Stale));
    fixture.close(&kept).unwrap();
    assert_eq!(fixture.read("a/7"), Ok(bytes(700, 7)));
    fixture.collect();
    fixture.audit();
}

#[test]
fn checkpoint_limit_is_reported() {
    let fixture = TreeFixture::new();
    for number in 0..crate::limits::CHECKPOINTS_MAX {
        fixture.tree.create_checkpoint(format!("{number}").as_bytes()).unwrap();
    }
    assert_eq!(fixture.tree.create_checkpoint(b"more"), Err(Errno::NoSpace));
    fixture.tree.drop_checkpoint(b"7").unwrap();
    fixture.tree.create_checkpoint(b"more").unwrap();
    assert_eq!(fixture.list(".checkpoints").unwrap().len(), crate::limits::CHECKPOINTS_MAX);
    fixture.collect();
    fixture.audit();
}

#[test]
fn checkpoint_directory_exists_while_there_are_checkpoints() {
    let fixture = filled();
    let is_listed = || fixture.names("").contains(&".checkpoints".into());
    let absent = (fixture.stat(".checkpoints").map(drop), is_listed());
    assert_eq!(absent, (Err(Errno::NotFound), false));
    let version = || fixture.stat("").unwrap().version;
    let mut versions = vec![version()];
    fixture.create("a/__checkpoint_one", Bytes::new()).unwrap();
    versions.push(version());
    assert!(is_listed() && fixture.stat(".checkpoints").is_ok());
    assert!(!fixture.names(".checkpoints/one").contains(&".checkpoints".into()));
    fixture.tree.drop_checkpoint(b"one").unwrap();
    versions.push(version());
    assert_eq!((fixture.stat(".checkpoints").map(drop), is_listed()), absent);
    // The version of the root changes each time, so clients look its names up again.
    versions.dedup();
    assert_eq!(versions.len(), 3);
    assert_eq!(fixture.mkdir(".checkpoints").map(drop), Err(Errno::NotPermitted));
}

#[test]
fn checkpoint_commands_work_as_attributes() {
    let fixture = filled();
    let set = |path: &str, command: &'static [u8]| {
        fixture.xattr(path, XattrAction::Set, "wirefs.checkpoint", Bytes::from_static(command)).map(drop)
    };
    let read = |name: &str| {
        let value = fixture.xattr(".checkpoints", XattrAction::Read, name, Bytes::new())?;
        Ok::<String, Errno>(String::from_utf8(value.to_vec()).unwrap().replace('\0', "\n"))
    };
    let before = fixture.dump("");
    set("", b"create one").unwrap();
    assert_eq!(set("", b"create one"), Err(Errno::Exists));
    assert_eq!(set("", b"create"), Err(Errno::Invalid));
    assert_eq!(set("a", b"create two"), Err(Errno::NotSupported));
    fixture.remove("c/link").unwrap();
    fixture.create("new", Bytes::new()).unwrap();
    assert_eq!(read("wirefs.diff.0.one").unwrap(), "M \nM c\nR c/link\nA new\n");
    assert_eq!(read("wirefs.diff.2.one").unwrap(), "R c/link\nA new\n");
    set("", b"create a b").unwrap();
    assert_eq!(read("wirefs.diff.3.one/a b").unwrap(), "A new\n");
    assert_eq!(read("wirefs.diff.0.a b").unwrap(), "");
    assert_eq!(read("wirefs.diff.0.two"), Err(Errno::NotFound));
    let list = read("wirefs.checkpoints.0").unwrap();
    assert!(list.lines().count() == 2 && list.ends_with(" a b\n"), "{list}");
    assert_eq!(read("wirefs.checkpoints.2").unwrap(), "");
    assert_eq!(read("wirefs.other"), Err(Errno::NoData));
    set("", b"restore one").unwrap();
    assert_eq!(fixture.dump(""), before);
    set("", b"drop one").unwrap();
    assert_eq!(set("", b"drop one"), Err(Errno::NotFound));
    set("", b"drop a b").unwrap();
    assert_eq!(fixture.tree.checkpoints(), []);
    // The command leaves no attribute behind.
    assert_eq!(fixture.xattr("", XattrAction::List, "", Bytes::new()).unwrap(), Bytes::new());
}
