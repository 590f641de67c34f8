//! Acting for callers: they own the objects that they create.

use crate::harness::{FIRST, World, at, create_as, keep, need_root, own_cred};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use wirefs_op::message::put::{PutMode, Tput};
use wirefs_op::{Cred, Kind, SetStat, TreePath};
use wirefs_server::{SessionKey, Tree};

const USER: Cred = Cred { uid: 1000, gid: 1001, umask: 0o022 };

const KINDS: [Kind; 6] =
    [Kind::File, Kind::Directory, Kind::Fifo, Kind::Socket, Kind::CharDevice, Kind::BlockDevice];

// S-61
#[test]
fn every_kind_is_owned_by_the_caller() {
    need_root();
    let world = World::new();
    assert!(world.tree.attach(SessionKey(9), &TreePath::root()).unwrap().acts_for_callers);
    for kind in KINDS {
        let name = format!("{kind:?}");
        let made = world.put(FIRST, create_as(&name, kind, 0o777, USER, PutMode::NONE)).unwrap();
        let stat = made.stat.unwrap();
        assert_eq!((stat.kind, stat.uid, stat.gid, stat.mode), (kind, 1000, 1001, 0o755));
    }
    let nameless = create_as("", Kind::File, 0o666, USER, keep().and(PutMode::NAMELESS));
    assert_eq!(world.put(FIRST, nameless).unwrap().stat.unwrap().uid, 1000);
    // The next creation of this thread is the server's own.
    let own = world.put(FIRST, create_as("own", Kind::File, 0o666, own_cred(0), PutMode::NONE)).unwrap();
    assert_eq!((own.stat.unwrap().uid, own.stat.unwrap().mode), (0, 0o666));
}

#[test]
fn the_callers_kernel_decides_where_it_may_create() {
    need_root();
    let world = World::new();
    // By its mode, only the owner may write; the caller's kernel may allow it because of another group.
    std::fs::create_dir(world.host("dir")).unwrap();
    std::fs::set_permissions(world.host("dir"), PermissionsExt::from_mode(0o700)).unwrap();
    world.put(FIRST, create_as("dir/file", Kind::File, 0o644, USER, PutMode::NONE)).unwrap();
}

// S-61
#[test]
fn a_set_group_id_directory_passes_on_its_group() {
    need_root();
    let world = World::new();
    let dir = world.host("shared");
    std::fs::create_dir(&dir).unwrap();
    chown(&dir, Some(0), Some(2000)).unwrap();
    std::fs::set_permissions(&dir, PermissionsExt::from_mode(0o2775)).unwrap();
    let file = world.put(FIRST, create_as("shared/file", Kind::File, 0o2775, USER, PutMode::NONE)).unwrap();
    let stat = file.stat.unwrap();
    // The caller is not in the group, so the set-group-id bit is cleared.
    assert_eq!((stat.uid, stat.gid, stat.mode), (1000, 2000, 0o755));
    let sub = world.put(FIRST, create_as("shared/sub", Kind::Directory, 0o777, USER, PutMode::NONE)).unwrap();
    let stat = sub.stat.unwrap();
    assert_eq!((stat.uid, stat.gid, stat.mode), (1000, 2000, 0o2755));
    let member = Cred { gid: 2000, ..USER };
    let file =
        world.put(FIRST, create_as("shared/members", Kind::File, 0o2775, member, PutMode::NONE)).unwrap();
    assert_eq!(file.stat.unwrap().mode, 0o2755);
}

/// The kernel's request for `creat(2)` by an ordinary user, without knowledge whether the file exists.
// S-61
#[test]
fn a_new_file_keeps_set_id_bits_and_a_truncated_one_loses_them() {
    need_root();
    let world = World::new();
    let creat = |mode| {
        let how = PutMode::STAT.and(PutMode::KILL_PRIVILEGES);
        let set = SetStat { size: Some(0), ..SetStat::default() };
        let request = Tput { set, ..create_as("file", Kind::File, mode, USER, how) };
        world.put(FIRST, request).unwrap().stat.unwrap().mode
    };
    assert_eq!(creat(0o6777), 0o6755);
    assert_eq!(creat(0o6777), 0o755);
}

#[test]
fn the_server_has_its_identity_again_after_a_failed_creation() {
    need_root();
    let world = World::new();
    std::fs::write(world.host("file"), "").unwrap();
    chown(world.host("file"), Some(1), Some(1)).unwrap();
    let run_test_in_child = world.put(FIRST, create_as("file", Kind::Directory, 0o755, USER, PutMode::NONE));
    assert!(run_test_in_child.is_err());
    let before = rustix::thread::capabilities(None).unwrap();
    assert!(before.effective.contains(rustix::thread::CapabilitySet::FSETID));
    std::fs::write(world.host("by-this-thread"), "").unwrap();
    assert_eq!(std::fs::metadata(world.host("by-this-thread")).unwrap().uid(), 0);
}

#[test]
fn threads_create_for_different_callers_at_once() {
    need_root();
    let world = World::new();
    for session in 0..4_u64 {
        world.tree.attach(SessionKey(100 + session), &TreePath::root()).unwrap();
    }
    std::thread::scope(|scope| {
        for user in 0..4_u32 {
            let world = &world;
            scope.spawn(move || {
                let cred = Cred { uid: 5000 + user, gid: 6000 + user, umask: 0o022 + user };
                for round in 0..200 {
                    let name = format!("file{user}.{round}");
                    let request = create_as(&name, Kind::File, 0o666, cred, PutMode::NONE);
                    let stat = world.put(SessionKey(100 + u64::from(user)), request).unwrap().stat.unwrap();
                    let expected = (cred.uid, cred.gid, 0o666 & !cred.umask);
                    assert_eq!((stat.uid, stat.gid, stat.mode), expected);
                }
            });
        }
    });
    assert_eq!(world.stat(FIRST, at("file3.199")).unwrap().uid, 5003);
}
