//! Changes of attributes.

use crate::harness::{FIRST, World, at, create, keep, need_root, open_as, put, set, write};
use wirefs_hostfs::HostOptions;
use wirefs_op::message::commit::{CommitScope, Tcommit};
use wirefs_op::message::put::PutMode;
use wirefs_op::message::version::BootId;
use wirefs_op::{Errno, Kind, Reply, Request, SetStat, SetTime, Stat, Timestamp};

fn change(world: &World, name: &str, set_stat: SetStat) -> Result<Stat, Errno> {
    world.put(FIRST, set(at(name), set_stat)).map(|put| put.stat.unwrap())
}

// S-64
#[test]
fn all_attributes_change_in_one_request() {
    let world = World::new();
    std::fs::write(world.host("file"), "some text").unwrap();
    let before = world.stat(FIRST, at("file")).unwrap();
    let long_ago = Timestamp { secs: -1, nanos: 999_999_999 };
    let all = SetStat {
        mode: Some(0o400),
        uid: Some(before.uid),
        gid: Some(before.gid),
        size: Some(4),
        atime: Some(SetTime::At(long_ago)),
        mtime: Some(SetTime::At(long_ago)),
    };
    let stat = change(&world, "file", all).unwrap();
    assert_eq!((stat.mode, stat.size), (0o400, 4));
    assert_eq!((stat.atime, stat.mtime), (long_ago, long_ago));
    assert_ne!(stat.version, before.version);
    let now = SetStat { mtime: Some(SetTime::Now), ..SetStat::default() };
    let stat = change(&world, "file", now).unwrap();
    assert_eq!(stat.atime, long_ago);
    assert!(stat.mtime > long_ago);
}

// S-130
#[test]
fn versions_differ_between_boots_and_stay_over_a_restart_of_the_server() {
    let mut world = World::new();
    std::fs::write(world.host("file"), "text").unwrap();
    let mut versions = |boot: u64| {
        world.restart(HostOptions { boot: BootId(boot), ..HostOptions::all_rights() });
        ["", "file"].map(|name| world.stat(FIRST, at(name)).unwrap().version)
    };
    let before = versions(1);
    assert_eq!(versions(1), before);
    let after = versions(2);
    assert!(before.iter().zip(after).all(|(before, after)| *before != after), "{before:?}, {after:?}");
    let found = world.stat(FIRST, at("file")).unwrap();
    assert_eq!(world.put(FIRST, write(at("file"), 0, b"more")).unwrap().before, found.version);
}

// S-64
#[test]
fn times_and_owners_of_a_link_are_its_own() {
    need_root();
    let world = World::new();
    std::fs::write(world.host("file"), "").unwrap();
    std::os::unix::fs::symlink("file", world.host("link")).unwrap();
    let file = world.stat(FIRST, at("file")).unwrap();
    let then = Timestamp { secs: 1, nanos: 2 };
    let new = SetStat { uid: Some(7), gid: Some(8), mtime: Some(SetTime::At(then)), ..SetStat::default() };
    let link = change(&world, "link", new).unwrap();
    assert_eq!((link.uid, link.gid, link.mtime), (7, 8, then));
    assert_eq!(world.stat(FIRST, at("file")).unwrap(), file);
}

#[test]
fn directories_have_modes_and_no_size_to_set() {
    let world = World::new();
    std::fs::create_dir(world.host("dir")).unwrap();
    let mode = SetStat { mode: Some(0o1755), ..SetStat::default() };
    assert_eq!(change(&world, "dir", mode).unwrap().mode, 0o1755);
    let size = SetStat { size: Some(0), ..SetStat::default() };
    assert_eq!(change(&world, "dir", size), Err(Errno::IsDirectory));
    let nobody = SetStat { uid: Some(u32::MAX), ..SetStat::default() };
    assert_eq!(change(&world, "dir", nobody), Err(Errno::Invalid));
}

#[test]
fn an_open_file_changes_after_its_name_is_gone() {
    let world = World::new();
    let made = world.put(FIRST, create("file", Kind::File, 0o644, keep())).unwrap();
    world.remove(FIRST, "file").unwrap();
    let request = set(
        open_as("file", made.fd, made.stat.unwrap().id),
        SetStat {
            mode: Some(0o600),
            size: Some(1 << 33),
            mtime: Some(SetTime::At(Timestamp::default())),
            ..SetStat::default()
        },
    );
    let stat = world.put(FIRST, request).unwrap().stat.unwrap();
    assert_eq!((stat.mode, stat.size, stat.mtime), (0o600, 1 << 33, Timestamp::default()));
}

#[test]
fn privileges_are_removed_with_a_write_if_requested() {
    let world = World::new();
    std::fs::write(world.host("file"), "").unwrap();
    for (before, after) in [(0o6755, 0o755), (0o4644, 0o644), (0o2644, 0o2644)] {
        let mode = SetStat { mode: Some(before), ..SetStat::default() };
        assert_eq!(change(&world, "file", mode).unwrap().mode, before);
        let mut request = write(at("file"), 0, b"new program");
        request.mode = request.mode.and(PutMode::KILL_PRIVILEGES);
        assert_eq!(world.put(FIRST, request).unwrap().stat.unwrap().mode, after);
    }
}

#[test]
fn privileges_are_removed_if_the_request_sets_no_mode() {
    let world = World::new();
    std::fs::write(world.host("file"), "").unwrap();
    let set_id = SetStat { mode: Some(0o4755), ..SetStat::default() };
    change(&world, "file", set_id).unwrap();
    let mut request = write(at("file"), 0, b"new program");
    request.mode = request.mode.and(PutMode::KILL_PRIVILEGES);
    request.set = set_id;
    assert_eq!(world.put(FIRST, request).unwrap().stat.unwrap().mode, 0o755);
}

// S-18
#[test]
fn commits_of_every_scope_and_kind_return_the_boot_id() {
    let world = World::new();
    let made = world.put(FIRST, create("file", Kind::File, 0o644, keep())).unwrap();
    world.put(FIRST, create("pipe", Kind::Fifo, 0o644, PutMode::NONE)).unwrap();
    let open = open_as("file", made.fd, made.stat.unwrap().id);
    for target in [at("file"), at(""), at("pipe"), open] {
        for scope in [CommitScope::Data, CommitScope::File, CommitScope::Filesystem] {
            let request = Tcommit { target: target.clone(), scope };
            let reply = world.ask_one(FIRST, Request::Commit(request)).unwrap();
            assert!(matches!(reply, Reply::Commit(done) if done.boot == Default::default()));
        }
    }
    world.put(FIRST, put(at("file"), PutMode::SYNC)).unwrap();
}
