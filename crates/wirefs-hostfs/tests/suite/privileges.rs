//! A hostile client with a key: what it may not leave on the server's disk.

use crate::harness::*;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use wirefs_hostfs::HostOptions;
use wirefs_op::message::allocate::Tallocate;
use wirefs_op::message::copy::Tcopy;
use wirefs_op::message::put::PutMode;
use wirefs_op::message::xattr::{Txattr, XattrAction};
use wirefs_op::wire::{Data, Text};
use wirefs_op::{Errno, Kind, Request, SetStat};

/// An export with a program that is set-user-id already.
fn limited() -> World {
    let options = HostOptions { allows_set_id: false, allows_devices: false, ..HostOptions::all_rights() };
    World::with(options, |dir| {
        for name in ["su", "data"] {
            std::fs::write(dir.join(name), "good").unwrap();
        }
        std::fs::set_permissions(dir.join("su"), std::fs::Permissions::from_mode(0o6755)).unwrap();
    })
}

fn mode(world: &World, name: &str) -> u32 {
    std::fs::metadata(world.host(name)).unwrap().mode() & 0o7777
}

fn mode_of(mode: u32) -> SetStat {
    SetStat { mode: Some(mode), ..SetStat::default() }
}

// S-184
#[test]
fn set_id_bits_are_left_out_of_new_files_and_changed_modes() {
    let world = limited();
    world.put(FIRST, create("new", Kind::File, 0o6755, PutMode::NONE)).unwrap();
    let mut created = create("other", Kind::File, 0o755, PutMode::STAT);
    created.set = mode_of(0o6755);
    assert_eq!(world.put(FIRST, created).unwrap().stat.unwrap().mode, 0o755);
    world.put(FIRST, set(at("data"), mode_of(0o4711))).unwrap();
    assert_eq!([mode(&world, "new"), mode(&world, "other"), mode(&world, "data")], [0o755, 0o755, 0o711]);
    // The group of a directory is inherited, which gives no rights.
    world.put(FIRST, create("dir", Kind::Directory, 0o2755, PutMode::NONE)).unwrap();
    world.put(FIRST, set(at("dir"), mode_of(0o2775))).unwrap();
    assert_eq!(mode(&world, "dir"), 0o2775);
}

// S-184
#[test]
fn set_id_bits_that_a_file_has_stay_until_its_contents_change() {
    let world = limited();
    world.put(FIRST, set(at("su"), mode_of(0o6711))).unwrap();
    assert_eq!(mode(&world, "su"), 0o6711);
    let again = || world.put(FIRST, set(at("su"), mode_of(0o6755)));
    let reset =
        || std::fs::set_permissions(world.host("su"), std::fs::Permissions::from_mode(0o6755)).unwrap();
    // The client asks for no removal, and for the bits with the write.
    let mut evil = write(at("su"), 0, b"evil");
    evil.mode = evil.mode.and(PutMode::STAT);
    evil.set = mode_of(0o6755);
    world.put(FIRST, evil).unwrap();
    assert_eq!(mode(&world, "su"), 0o755);
    again().unwrap();
    assert_eq!(mode(&world, "su"), 0o755, "they do not come back");
    reset();
    world.put(FIRST, set(at("su"), SetStat { size: Some(1), ..SetStat::default() })).unwrap();
    assert_eq!(mode(&world, "su"), 0o755);
    reset();
    let copy = Tcopy { from: at("data"), to: at("su"), from_offset: 0, to_offset: 0, length: 4 };
    world.ask_one(FIRST, Request::Copy(copy)).unwrap();
    assert_eq!(mode(&world, "su"), 0o755);
    reset();
    let hole = Tallocate { target: at("su"), mode: 0, offset: 0, length: 4096 };
    world.ask_one(FIRST, Request::Allocate(hole)).unwrap();
    assert_eq!(mode(&world, "su"), 0o755);
}

// S-184
#[test]
fn file_capabilities_and_devices_are_refused() {
    need_root();
    let world = limited();
    let value = Data(bytes::Bytes::from_static(&[0; 20]));
    let name = Text::new(b"security.capability");
    let set =
        Txattr { target: at("data"), action: XattrAction::Set, flags: 0, kill_sgid: false, name, value };
    assert_eq!(world.ask_one(FIRST, Request::Xattr(set)), Err(Errno::NotPermitted));
    for kind in [Kind::CharDevice, Kind::BlockDevice] {
        assert_eq!(world.put(FIRST, create("device", kind, 0o666, PutMode::NONE)), Err(Errno::NotPermitted));
        assert!(!world.host("device").exists());
        let open = World::new();
        open.put(FIRST, create("device", kind, 0o666, PutMode::NONE)).unwrap();
    }
    world.put(FIRST, create("fifo", Kind::Fifo, 0o666, PutMode::NONE)).unwrap();
}
