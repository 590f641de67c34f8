//! A read-only export refuses changes.

use crate::harness::{FIRST, World, at, create, get, place, put, set, write};
use wirefs_hostfs::HostOptions;
use wirefs_op::message::allocate::Tallocate;
use wirefs_op::message::copy::Tcopy;
use wirefs_op::message::get::GetMode;
use wirefs_op::message::link::Tlink;
use wirefs_op::message::put::PutMode;
use wirefs_op::message::remove::Tremove;
use wirefs_op::message::rename::Trename;
use wirefs_op::message::xattr::{Txattr, XattrAction};
use wirefs_op::wire::{Data, Text};
use wirefs_op::{Errno, Kind, Request, SetStat, TreePath};
use wirefs_server::{SessionKey, Tree};

// S-63
#[test]
fn every_change_is_refused_and_reads_work() {
    let options = HostOptions { read_only: true, ..HostOptions::all_rights() };
    let world = World::with(options, |dir| std::fs::write(dir.join("file"), "data").unwrap());
    assert!(world.tree.attach(SessionKey(3), &TreePath::root()).unwrap().read_only);
    let xattr = |action| Txattr {
        target: at("file"),
        action,
        name: Text::new(b"user.a"),
        flags: 0,
        kill_sgid: false,
        value: Data::default(),
    };
    let copy = Tcopy { from: at("file"), from_offset: 0, to: at("file"), to_offset: 10, length: 1 };
    let allocate = Tallocate { target: at("file"), mode: 0, offset: 0, length: 1 };
    let changes = [
        Request::Put(create("new", Kind::File, 0o644, PutMode::NONE)),
        Request::Put(write(at("file"), 0, b"x")),
        Request::Put(set(at("file"), SetStat::default())),
        Request::Put(put(at("file"), PutMode::MORE.and(PutMode::WRITE))),
        Request::Put(put(at("file"), PutMode::REMOVE)),
        Request::Remove(Tremove { place: place("file"), directory: false }),
        Request::Rename(Trename { from: place("file"), to: place("new"), flags: 0 }),
        Request::Link(Tlink { target: at("file"), to: place("new") }),
        Request::Xattr(xattr(XattrAction::Set)),
        Request::Xattr(xattr(XattrAction::Remove)),
        Request::Allocate(allocate),
        Request::Copy(copy),
    ];
    for change in changes {
        let name = change.name();
        assert_eq!(world.ask_one(FIRST, change), Err(Errno::ReadOnly), "{name}");
    }
    assert_eq!(world.read(FIRST, at("file"), 0, 9).unwrap(), b"data");
    world.put(FIRST, put(at("file"), PutMode::MORE.and(PutMode::READ))).unwrap();
    world.get(FIRST, get(at(""), GetMode::DATA, 0, 1000)).unwrap();
    assert_eq!(world.ask_one(FIRST, Request::Xattr(xattr(XattrAction::Read))), Err(Errno::NoData));
}
