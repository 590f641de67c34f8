//! No path leads outside the root.

use crate::harness::{FIRST, Scratch, World, at, create, get, path, place, put, set, write};
use rustix::fs::{CWD, RenameFlags};
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};
use wirefs_hostfs::HostOptions;
use wirefs_op::message::get::GetMode;
use wirefs_op::message::put::PutMode;
use wirefs_op::message::rename::{EXCHANGE, Trename};
use wirefs_op::{Errno, Kind, Request, SetStat};
use wirefs_server::{SessionKey, Tree};

fn with_secret() -> (Scratch, World) {
    let outside = Scratch::new();
    std::fs::write(outside.path().join("secret"), "secret").unwrap();
    let secret = outside.path().to_path_buf();
    let world = World::with(HostOptions::all_rights(), |dir| {
        symlink(&secret, dir.join("away")).unwrap();
        symlink(secret.join("secret"), dir.join("leak")).unwrap();
        std::fs::create_dir(dir.join("real")).unwrap();
        std::fs::write(dir.join("real/secret"), "public").unwrap();
    });
    (outside, world)
}

// S-57
#[test]
fn a_link_in_the_middle_of_a_path_is_not_followed() {
    let (_outside, world) = with_secret();
    assert_eq!(world.read(FIRST, at("away/secret"), 0, 100), Err(Errno::NotDirectory));
    let made = world.put(FIRST, create("away/new", Kind::File, 0o644, PutMode::NONE));
    assert_eq!(made, Err(Errno::NotDirectory));
    assert_eq!(world.remove(FIRST, "away/secret"), Err(Errno::NotDirectory));
}

#[test]
fn a_symlink_at_the_end_of_a_path_is_the_target_itself() {
    let (outside, world) = with_secret();
    let got = world.get(FIRST, get(at("leak"), GetMode::DATA.and(GetMode::STAT), 0, 4096)).unwrap();
    assert_eq!(got[0].stat.unwrap().kind, Kind::Symlink);
    assert_eq!(got[0].data.0, outside.path().join("secret").as_os_str().as_encoded_bytes());
    assert_eq!(world.put(FIRST, write(at("leak"), 0, b"x")), Err(Errno::Invalid));
    let truncate = SetStat { size: Some(0), ..SetStat::default() };
    assert_eq!(world.put(FIRST, set(at("leak"), truncate)), Err(Errno::Invalid));
    let chmod = SetStat { mode: Some(0o777), ..SetStat::default() };
    assert_eq!(world.put(FIRST, set(at("leak"), chmod)), Err(Errno::NotSupported));
    let run_test_in_child = world.put(FIRST, create("leak", Kind::File, 0o644, PutMode::NONE));
    assert_eq!(run_test_in_child, Err(Errno::Exists));
    let keep = world.put(FIRST, put(at("leak"), PutMode::MORE.and(PutMode::READ)));
    assert_eq!(keep.unwrap().fd, wirefs_op::message::target::NOFD);
    assert_eq!(std::fs::read(outside.path().join("secret")).unwrap(), b"secret");
}

#[test]
fn a_session_attached_to_a_subdirectory_sees_only_that() {
    let (_outside, world) = with_secret();
    let third = SessionKey(3);
    world.tree.attach(third, &path("real")).unwrap();
    assert_eq!(world.read(third, at("secret"), 0, 100).unwrap(), b"public");
    assert_eq!(world.read(third, at("real/secret"), 0, 100), Err(Errno::NotFound));
    assert_eq!(world.tree.attach(SessionKey(4), &path("away")), Err(Errno::NotDirectory));
    assert_eq!(world.tree.attach(SessionKey(4), &path("away/deeper")), Err(Errno::NotDirectory));
}

#[test]
fn a_session_that_did_not_attach_gets_nothing() {
    let world = World::new();
    assert_eq!(world.stat(SessionKey(9), at("")), Err(Errno::Protocol));
}

/// A directory and a symlink to the outside are exchanged repeatedly; no read, write or creation may reach the
/// outside.
// S-57
#[test]
fn swapping_a_directory_with_a_link_never_leads_outside() {
    let (outside, world) = with_secret();
    let (away, real) = (world.host("away"), world.host("real"));
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                rustix::fs::renameat_with(CWD, &away, CWD, &real, RenameFlags::EXCHANGE).unwrap();
            }
        });
        let mut inside = 0;
        for round in 0..20_000 {
            match world.read(FIRST, at("real/secret"), 0, 100) {
                Ok(data) => {
                    assert_eq!(data, b"public");
                    inside += 1;
                }
                Err(error) => assert!(matches!(error, Errno::NotDirectory | Errno::NotFound), "{error}"),
            }
            let name = format!("real/new{}", round % 8);
            let _ = world.put(FIRST, create(&name, Kind::File, 0o644, PutMode::NONE));
            let _ = world.put(FIRST, write(at("real/secret"), 0, b"public"));
            let rename = Trename {
                from: place(&name),
                to: place("real/moved"),
                flags: if round % 2 == 0 { 0 } else { EXCHANGE },
            };
            world.ask(FIRST, Request::Rename(rename));
            let _ = world.remove(FIRST, "real/moved");
        }
        over.store(true, Ordering::Relaxed);
        assert!(inside > 0, "the path was never whole");
    });
    assert_eq!(std::fs::read(outside.path().join("secret")).unwrap(), b"secret");
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
}

// S-185
#[test]
fn mounts_below_the_root_are_hidden_by_an_option() {
    let options = HostOptions { cross_mounts: false, ..HostOptions::all_rights() };
    crate::harness::need_root();
    let world = World::with(options, |dir| std::fs::create_dir(dir.join("mounted")).unwrap());
    let _mount = crate::full_disk::Tmpfs::mount(&world.host("mounted"), 1 << 20);
    std::fs::write(world.host("mounted/file"), "data").unwrap();
    assert_eq!(world.read(FIRST, at("mounted/file"), 0, 100), Err(Errno::CrossDevice));
}
