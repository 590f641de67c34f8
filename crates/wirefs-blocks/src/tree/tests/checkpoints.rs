//! Checkpoints by magic names and by command.

use super::world::{World, at, bytes};
use bytes::Bytes;
use wirefs_op::message::copy::Tcopy;
use wirefs_op::message::put::{PutMode, Tput};
use wirefs_op::message::xattr::XattrAction;
use wirefs_op::wire::Data;
use wirefs_op::{Errno, Kind, Request, SetStat, TreePath};

/// A tree with something of everything.
fn filled() -> World {
    let world = World::new();
    for dir in ["a", "a/b", "c"] {
        world.mkdir(dir).unwrap();
    }
    for number in 0..20_u8 {
        world.create(&format!("a/{number}"), bytes(usize::from(number) * 100, number)).unwrap();
    }
    world.create("a/b/large", bytes(50_000, 3)).unwrap();
    world.link("a/b/large", "c/also").unwrap();
    world.make("c/link", Kind::Symlink, Bytes::from_static(b"../a/b")).unwrap();
    world.xattr("c", XattrAction::Set, "user.x", bytes(3000, 1)).unwrap();
    world
}

/// Changes much of it.
fn spoil(world: &World) {
    world.write(at("a/b/large"), 20_000, bytes(9000, 8)).unwrap();
    world.rename("a/3", "c/three", 0).unwrap();
    world.remove("c/link").unwrap();
    world.xattr("c", XattrAction::Set, "user.x", bytes(10, 2)).unwrap();
    for number in 4..12 {
        world.remove(&format!("a/{number}")).unwrap();
    }
    world.rename("a", "renamed", 0).unwrap();
    world.create("new", bytes(5000, 6)).unwrap();
}

#[test]
fn removing_a_magic_file_goes_back_to_where_it_was_made() {
    let world = filled();
    let before = world.dump("");
    let files = world.tree.volume().root.files;
    world.create("a/__checkpoint_one", Bytes::new()).unwrap();
    spoil(&world);
    assert_ne!(world.dump(""), before);
    world.remove("renamed/__checkpoint_one").unwrap();
    // Bit for bit: it is the same block, with all below it.
    assert_eq!(world.tree.volume().root.files, files);
    assert_eq!(world.dump(""), before);
    assert_eq!(world.tree.checkpoints(), []);
    world.collect();
    world.audit();
}

#[test]
fn a_restored_tree_is_worked_on_as_before() {
    let world = filled();
    world.create("__checkpoint_one", Bytes::new()).unwrap();
    spoil(&world);
    let other = world.create("c/afterwards", bytes(10, 1)).unwrap();
    world.remove("__checkpoint_one").unwrap();
    let made = world.create("c/afterwards", bytes(10, 2)).unwrap();
    assert_ne!(made.id, other.id, "an id was used for two objects");
    assert_ne!(made.version, other.version);
    spoil(&world);
    world.collect();
    world.audit();
}

#[test]
fn a_checkpoint_is_readable_and_does_not_change() {
    let world = filled();
    let before = world.dump("");
    world.tree.create_checkpoint(b"one").unwrap();
    spoil(&world);
    assert_eq!(world.dump(".checkpoints/one"), before);
    assert_eq!(world.names(".checkpoints"), ["one"]);
    assert!(world.names("").contains(&".checkpoints".into()));
    assert_ne!(world.stat(".checkpoints/one").unwrap().id, world.stat("").unwrap().id);
    let attached =
        world.tree.attach(7, &TreePath::from_names([&b".checkpoints"[..], b"one"]).unwrap()).unwrap();
    assert!(attached.is_read_only);
    world.audit();
}

#[test]
fn nothing_in_a_checkpoint_can_be_changed() {
    let world = filled();
    world.tree.create_checkpoint(b"one").unwrap();
    let inside = |path: &str| format!(".checkpoints/one/{path}");
    let file = inside("a/3");
    let refused = Err(Errno::ReadOnly);
    assert_eq!(world.create(&inside("a/new"), Bytes::new()).map(drop), refused);
    assert_eq!(world.create(&file, Bytes::new()).map(drop), refused);
    assert_eq!(world.write(at(&file), 0, bytes(1, 1)).map(drop), refused);
    assert_eq!(world.resize(&file, 0).map(drop), refused);
    assert_eq!(world.remove(&file), refused);
    assert_eq!(world.rmdir(&inside("a/b")), refused);
    assert_eq!(world.rename(&file, &inside("a/x"), 0), refused);
    assert_eq!(world.link(&file, &inside("a/x")), refused);
    assert_eq!(world.xattr(&file, XattrAction::Set, "user.y", Bytes::new()).map(drop), refused);
    assert_eq!(world.rename(&file, "a/x", 0), Err(Errno::CrossDevice));
    assert_eq!(world.link(&file, "a/x"), Err(Errno::CrossDevice));
    assert_eq!(world.mkdir(".checkpoints/two").map(drop), refused);
    assert_eq!(world.mkdir(".checkpoints").map(drop), Err(Errno::Exists));
    assert_eq!(world.rmdir(".checkpoints"), Err(Errno::NotPermitted));
    assert_eq!(world.rename("a", ".checkpoints", 0), Err(Errno::NotPermitted));
    let copy = Tcopy { from: at(&file), from_offset: 0, to: at("a/4"), to_offset: 0, length: 10 };
    assert_eq!(world.ask(Request::Copy(copy)).map(drop), Err(Errno::CrossDevice));
    let open_to_write = Tput {
        target: at(&file),
        mode: PutMode::MORE.and(PutMode::WRITE),
        create: None,
        set: SetStat::default(),
        offset: 0,
        data: Data::default(),
    };
    assert_eq!(world.ask(Request::Put(open_to_write)).map(drop), refused);
    let opened = world.open_file(&file).unwrap();
    assert_eq!(world.read_open(&opened), Ok(bytes(300, 3)));
}

#[test]
fn names_are_for_one_checkpoint_at_a_time() {
    let world = filled();
    world.tree.create_checkpoint(b"one").unwrap();
    assert_eq!(world.tree.create_checkpoint(b"one"), Err(Errno::Exists));
    assert_eq!(world.create("a/__checkpoint_one", Bytes::new()).map(drop), Err(Errno::Exists));
    assert_eq!(world.stat("a/__checkpoint_one").map(drop), Err(Errno::NotFound));
    assert_eq!(world.tree.create_checkpoint(b"a/b"), Err(Errno::Invalid));
    assert_eq!(world.tree.drop_checkpoint(b"two"), Err(Errno::NotFound));
    assert_eq!(world.tree.restore_checkpoint(b"two"), Err(Errno::NotFound));
    // What only looks like one is a file.
    world.mkdir("__checkpoint_dir").unwrap();
    world.create("__checkpoint_", Bytes::new()).unwrap();
    assert_eq!(world.tree.checkpoints().len(), 1);
    world.rmdir("__checkpoint_dir").unwrap();
    world.remove("__checkpoint_").unwrap();
    world.tree.drop_checkpoint(b"one").unwrap();
    world.create("a/__checkpoint_one", Bytes::new()).unwrap();
    // Dropped by command, it is a file like others.
    world.tree.drop_checkpoint(b"one").unwrap();
    world.remove("a/__checkpoint_one").unwrap();
    assert!(world.stat("a/3").is_ok());
}

#[test]
fn checkpoints_are_listed_with_what_is_known_of_them() {
    let world = filled();
    world.tree.create_checkpoint(b"one").unwrap();
    world.create("x", Bytes::new()).unwrap();
    world.tree.create_checkpoint(b"two").unwrap();
    let told = world.tree.checkpoints();
    assert_eq!(told.iter().map(|kept| kept.name.as_slice()).collect::<Vec<_>>(), [b"one", b"two"]);
    assert!(told[0].made < told[1].made && told[0].change < told[1].change);
    let reopened = world.reopened(0);
    assert_eq!(reopened.tree.checkpoints(), told);
}

#[test]
fn a_checkpoint_can_be_restored_more_than_once_and_others_stay() {
    let world = filled();
    world.tree.create_checkpoint(b"one").unwrap();
    let one = world.dump("");
    spoil(&world);
    world.tree.create_checkpoint(b"two").unwrap();
    let two = world.dump("");
    world.create("third", bytes(2000, 1)).unwrap();
    for _ in 0..2 {
        world.tree.restore_checkpoint(b"one").unwrap();
        assert_eq!(world.dump(""), one);
        spoil(&world);
        world.tree.restore_checkpoint(b"two").unwrap();
        assert_eq!(world.dump(""), two);
        world.create("third", bytes(2000, 1)).unwrap();
    }
    world.collect();
    world.audit();
    world.tree.drop_checkpoint(b"one").unwrap();
    world.tree.drop_checkpoint(b"two").unwrap();
    world.collect();
    world.audit();
    assert_eq!(world.read("third"), Ok(bytes(2000, 1)));
}

#[test]
fn a_checkpoint_that_is_dropped_while_its_tree_is_restored_again_loses_nothing() {
    let world = filled();
    world.tree.create_checkpoint(b"one").unwrap();
    world.tree.create_checkpoint(b"same").unwrap();
    let one = world.dump("");
    spoil(&world);
    world.tree.drop_checkpoint(b"one").unwrap();
    world.tree.restore_checkpoint(b"same").unwrap();
    world.tree.drop_checkpoint(b"same").unwrap();
    assert_eq!(world.dump(""), one);
    spoil(&world);
    world.collect();
    world.audit();
}

#[test]
fn open_files_live_through_a_restored_tree() {
    let world = filled();
    let kept = world.open_file("a/7").unwrap();
    world.tree.create_checkpoint(b"one").unwrap();
    world.create("late", bytes(100, 1)).unwrap();
    let late = world.open_file("late").unwrap();
    world.remove("a/7").unwrap();
    assert_eq!(world.read_open(&kept), Ok(bytes(700, 7)));
    world.tree.restore_checkpoint(b"one").unwrap();
    assert_eq!(world.read_open(&kept), Ok(bytes(700, 7)));
    assert_eq!(world.read_open(&late), Err(Errno::Stale));
    world.close(&kept).unwrap();
    assert_eq!(world.read("a/7"), Ok(bytes(700, 7)));
    world.collect();
    world.audit();
}

#[test]
fn the_tree_says_which_checkpoints_there_can_be_no_more_of() {
    let world = World::new();
    for number in 0..crate::limits::CHECKPOINTS_MAX {
        world.tree.create_checkpoint(format!("{number}").as_bytes()).unwrap();
    }
    assert_eq!(world.tree.create_checkpoint(b"more"), Err(Errno::NoSpace));
    world.tree.drop_checkpoint(b"7").unwrap();
    world.tree.create_checkpoint(b"more").unwrap();
    assert_eq!(world.list(".checkpoints").unwrap().len(), crate::limits::CHECKPOINTS_MAX);
    world.collect();
    world.audit();
}

#[test]
fn the_directory_of_checkpoints_is_there_while_there_are_any() {
    let world = filled();
    let is_listed = || world.names("").contains(&".checkpoints".into());
    let absent = (world.stat(".checkpoints").map(drop), is_listed());
    assert_eq!(absent, (Err(Errno::NotFound), false));
    let version = || world.stat("").unwrap().version;
    let mut versions = vec![version()];
    world.create("a/__checkpoint_one", Bytes::new()).unwrap();
    versions.push(version());
    assert!(is_listed() && world.stat(".checkpoints").is_ok());
    assert!(!world.names(".checkpoints/one").contains(&".checkpoints".into()));
    world.tree.drop_checkpoint(b"one").unwrap();
    versions.push(version());
    assert_eq!((world.stat(".checkpoints").map(drop), is_listed()), absent);
    // Whoever knows the root's names by its version asks again.
    versions.dedup();
    assert_eq!(versions.len(), 3);
    assert_eq!(world.mkdir(".checkpoints").map(drop), Err(Errno::NotPermitted));
}

#[test]
fn checkpoints_are_commanded_by_attributes() {
    let world = filled();
    let set = |path: &str, command: &'static [u8]| {
        world.xattr(path, XattrAction::Set, "wirefs.checkpoint", Bytes::from_static(command)).map(drop)
    };
    let told = |name: &str| {
        let value = world.xattr(".checkpoints", XattrAction::Read, name, Bytes::new())?;
        Ok::<String, Errno>(String::from_utf8(value.to_vec()).unwrap().replace('\0', "\n"))
    };
    let before = world.dump("");
    set("", b"create one").unwrap();
    assert_eq!(set("", b"create one"), Err(Errno::Exists));
    assert_eq!(set("", b"create"), Err(Errno::Invalid));
    assert_eq!(set("a", b"create two"), Err(Errno::NotSupported));
    world.remove("c/link").unwrap();
    world.create("new", Bytes::new()).unwrap();
    assert_eq!(told("wirefs.diff.0.one").unwrap(), "M \nM c\nR c/link\nA new\n");
    assert_eq!(told("wirefs.diff.2.one").unwrap(), "R c/link\nA new\n");
    set("", b"create a b").unwrap();
    assert_eq!(told("wirefs.diff.3.one/a b").unwrap(), "A new\n");
    assert_eq!(told("wirefs.diff.0.a b").unwrap(), "");
    assert_eq!(told("wirefs.diff.0.two"), Err(Errno::NotFound));
    let list = told("wirefs.checkpoints.0").unwrap();
    assert!(list.lines().count() == 2 && list.ends_with(" a b\n"), "{list}");
    assert_eq!(told("wirefs.checkpoints.2").unwrap(), "");
    assert_eq!(told("wirefs.other"), Err(Errno::NoData));
    set("", b"restore one").unwrap();
    assert_eq!(world.dump(""), before);
    set("", b"drop one").unwrap();
    assert_eq!(set("", b"drop one"), Err(Errno::NotFound));
    set("", b"drop a b").unwrap();
    assert_eq!(world.tree.checkpoints(), []);
    // No attribute stays behind.
    assert_eq!(world.xattr("", XattrAction::List, "", Bytes::new()).unwrap(), Bytes::new());
}
