//! Creation: races, kinds, umask, default ACLs.

use crate::harness::{FIRST, World, at, create, create_as, keep, own_cred, write};
use crate::xattrs::{acl, set_xattr};
use bytes::Bytes;
use std::sync::Barrier;
use wirefs_op::message::put::{PutMode, Tput};
use wirefs_op::wire::Data;
use wirefs_op::{Errno, Kind, SetStat};
use wirefs_server::{SessionKey, Tree};

// S-50
#[test]
fn exactly_one_of_eight_exclusive_creators_wins() {
    const THREADS: u64 = 8;
    let world = World::new();
    for session in 0..THREADS {
        world.tree.attach(SessionKey(100 + session), &wirefs_op::TreePath::root()).unwrap();
    }
    for round in 0..50 {
        let name = format!("file{round}");
        let start = Barrier::new(THREADS as usize);
        let winners = std::thread::scope(|scope| {
            let creators: Vec<_> = (0..THREADS)
                .map(|session| {
                    let (world, name, start) = (&world, &name, &start);
                    scope.spawn(move || {
                        start.wait();
                        let request = create(name, Kind::File, 0o644, PutMode::EXCLUSIVE);
                        world.put(SessionKey(100 + session), request)
                    })
                })
                .collect();
            let outcomes = creators.into_iter().map(|creator| creator.join().unwrap());
            outcomes.filter(|outcome| *outcome != Err(Errno::Exists)).map(Result::unwrap).count()
        });
        assert_eq!(winners, 1);
    }
}

#[test]
fn one_request_creates_sets_attributes_writes_and_keeps_open() {
    let world = World::new();
    let mut request = create("file", Kind::File, 0o644, keep().and(PutMode::DATA).and(PutMode::STAT));
    request.set = SetStat { mode: Some(0o444), ..SetStat::default() };
    request.data = write(at(""), 0, b"contents").data;
    let made = world.put(FIRST, request).unwrap();
    let stat = made.stat.unwrap();
    assert_eq!((made.count, stat.size, stat.mode), (8, 8, 0o444));
    assert_eq!(made.dir.unwrap(), world.stat(FIRST, at("")).unwrap());
}

#[test]
fn creating_what_exists_opens_a_file_and_refuses_the_rest() {
    let world = World::new();
    std::fs::write(world.host("file"), "old").unwrap();
    std::fs::create_dir(world.host("dir")).unwrap();
    let opened = world.put(FIRST, create("file", Kind::File, 0o600, keep())).unwrap();
    assert_eq!((opened.stat.unwrap().size, opened.stat.unwrap().mode), (3, 0o644));
    assert_ne!(opened.before, 0);
    for (name, kind) in
        [("dir", Kind::File), ("dir", Kind::Directory), ("file", Kind::Fifo), ("", Kind::Directory)]
    {
        let run_test_in_child = world.put(FIRST, create(name, kind, 0o755, PutMode::NONE));
        assert_eq!(run_test_in_child, Err(Errno::Exists), "{name} as {kind:?}");
    }
    assert_eq!(world.put(FIRST, create("no/file", Kind::File, 0o644, PutMode::NONE)), Err(Errno::NotFound));
    assert_eq!(
        world.put(FIRST, create("file/file", Kind::File, 0o644, PutMode::NONE)),
        Err(Errno::NotDirectory)
    );
}

#[test]
fn every_kind_that_an_ordinary_user_may_make_is_made() {
    let world = World::new();
    for kind in [Kind::File, Kind::Directory, Kind::Fifo, Kind::Socket] {
        let name = format!("{kind:?}");
        let made = world.put(FIRST, create(&name, kind, 0o750, PutMode::NONE)).unwrap().stat.unwrap();
        assert_eq!((made.kind, made.mode), (kind, 0o750));
    }
    let link = Tput {
        data: Data(Bytes::from_static(b"../any where\n")),
        ..create("link", Kind::Symlink, 0o777, PutMode::NONE)
    };
    let made = world.put(FIRST, link).unwrap().stat.unwrap();
    assert_eq!((made.kind, made.size), (Kind::Symlink, 13));
    assert_eq!(world.read(FIRST, at("link"), 0, 4096).unwrap(), b"../any where\n");
}

// S-61
#[test]
fn the_callers_umask_applies_and_the_servers_does_not() {
    let world = World::new();
    for (umask, expected) in [(0o022, 0o644), (0, 0o666), (0o077, 0o600), (0o777, 0)] {
        let name = format!("file{umask:o}");
        let request = create_as(&name, Kind::File, 0o666, own_cred(umask), PutMode::NONE);
        assert_eq!(world.put(FIRST, request).unwrap().stat.unwrap().mode, expected);
    }
}

/// A default ACL replaces the umask (`acl(5)`).
// S-61
#[test]
fn a_default_acl_replaces_the_umask() {
    let world = World::new();
    std::fs::create_dir(world.host("dir")).unwrap();
    let value = acl(&[(1, 6), (2, 6), (4, 6), (0x10, 6), (0x20, 4)]);
    set_xattr(&world, "dir", "system.posix_acl_default", &value, false).unwrap();
    let request = create_as("dir/file", Kind::File, 0o666, own_cred(0o077), PutMode::NONE);
    let made = world.put(FIRST, request).unwrap().stat.unwrap();
    assert_eq!(made.mode, 0o664);
    assert!(!made.without_xattrs);
    let plain = create_as("file", Kind::File, 0o666, own_cred(0o077), PutMode::NONE);
    assert_eq!(world.put(FIRST, plain).unwrap().stat.unwrap().mode, 0o600);
}
