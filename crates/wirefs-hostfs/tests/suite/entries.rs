//! Lookups of a name in the expected directory.

use crate::harness::{FIRST, World, at, get, path};
use wirefs_hostfs::HostOptions;
use wirefs_op::message::get::{GetMode, GotMode, Rget, Tget};
use wirefs_op::message::target::{NOFD, Target};
use wirefs_op::{Errno, FileId, Kind};

fn worlds() -> [World; 2] {
    let within_one = HostOptions { cross_mounts: false, ..HostOptions::all_rights() };
    [World::new(), World::with(within_one, |_| ())]
}

fn look_for(world: &World, name: &str, dir: Option<FileId>, mode: GetMode) -> Result<Rget, Errno> {
    let target = Target { path: path(name), fd: NOFD, id: dir };
    let request = Tget { count: 4096, ..get(target, mode.and(GetMode::ENTRY), 0, 0) };
    let mut got = world.get(FIRST, request)?;
    assert_eq!(got.len(), 1);
    Ok(got.remove(0))
}

fn id(world: &World, name: &str) -> Option<FileId> {
    Some(world.stat(FIRST, at(name)).unwrap().id)
}

#[test]
fn a_name_is_found_in_the_expected_directory() {
    for world in worlds() {
        std::fs::create_dir(world.host("d")).unwrap();
        std::fs::write(world.host("d/f"), "four").unwrap();
        std::os::unix::fs::symlink("f", world.host("d/link")).unwrap();
        let dir = id(&world, "d");
        let both = GetMode::STAT.and(GetMode::DATA);
        for (name, dir) in [("d/f", dir), ("d/f", None), ("d", id(&world, ""))] {
            let got = look_for(&world, name, dir, GetMode::STAT).unwrap();
            assert_eq!(got.stat.map(|stat| stat.id), id(&world, name));
            assert_eq!(got.mode, GotMode::LAST);
        }
        assert_eq!(&look_for(&world, "d/f", dir, both).unwrap().data.0[..], b"four");
        let link = look_for(&world, "d/link", dir, both).unwrap();
        assert_eq!((link.stat.unwrap().kind, &link.data.0[..]), (Kind::Symlink, &b"f"[..]));
        let kept = look_for(&world, "d/f", dir, GetMode::MORE).unwrap();
        assert_ne!(kept.fd, NOFD);
    }
}

#[test]
fn an_absent_name_is_an_answer() {
    for world in worlds() {
        std::fs::create_dir(world.host("d")).unwrap();
        for mode in [GetMode::STAT, GetMode::STAT.and(GetMode::DATA), GetMode::DATA.and(GetMode::MORE)] {
            for (name, dir) in [("d/none", id(&world, "d")), ("none", None)] {
                let got = look_for(&world, name, dir, mode).unwrap();
                assert_eq!(got.mode, GotMode::LAST.and(GotMode::ABSENT));
                assert_eq!((got.fd, got.stat, got.data.0.len()), (NOFD, None, 0));
            }
        }
    }
}

#[test]
fn a_name_in_another_directory_is_stale() {
    for world in worlds() {
        for dir in ["d", "other"] {
            std::fs::create_dir(world.host(dir)).unwrap();
            std::fs::write(world.host(dir).join("f"), dir).unwrap();
        }
        let meant = id(&world, "d");
        std::fs::rename(world.host("d"), world.host("moved")).unwrap();
        for (name, dir, errno) in [
            ("d/f", meant, Errno::Stale),
            ("d/f", None, Errno::NotFound),
            ("other/f", meant, Errno::Stale),
            ("other/f/g", None, Errno::NotDirectory),
            ("", None, Errno::Busy),
        ] {
            for mode in [GetMode::STAT, GetMode::DATA] {
                assert_eq!(look_for(&world, name, dir, mode).unwrap_err(), errno, "{name}");
            }
        }
        assert!(look_for(&world, "moved/f", meant, GetMode::STAT).unwrap().stat.is_some());
    }
}
