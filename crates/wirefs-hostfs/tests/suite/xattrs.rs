//! Extended attributes and ACLs.

use crate::harness::{FIRST, World, at, need_root, set};
use bytes::Bytes;
use wirefs_op::message::xattr::{Rxattr, Txattr, XattrAction};
use wirefs_op::wire::{Data, Text};
use wirefs_op::{Errno, Reply, Request, SetStat};

/// The tag of an ACL entry for one user.
const ACL_USER: u16 = 2;

/// The value of an ACL attribute: version 2, then entries of tag, permissions and id (of user 1000, or none).
pub(crate) fn acl(entries: &[(u16, u16)]) -> Vec<u8> {
    let mut value = 2_u32.to_le_bytes().to_vec();
    for (tag, permissions) in entries {
        value.extend_from_slice(&tag.to_le_bytes());
        value.extend_from_slice(&permissions.to_le_bytes());
        let id: u32 = if *tag == ACL_USER { 1000 } else { u32::MAX };
        value.extend_from_slice(&id.to_le_bytes());
    }
    value
}

fn xattr(
    world: &World,
    name: &str,
    action: XattrAction,
    attribute: &str,
    value: &[u8],
) -> Result<Rxattr, Errno> {
    ask(world, name, action, attribute, value, 0, false)
}

pub(crate) fn set_xattr(
    world: &World,
    name: &str,
    attribute: &str,
    value: &[u8],
    kill_sgid: bool,
) -> Result<Rxattr, Errno> {
    ask(world, name, XattrAction::Set, attribute, value, 0, kill_sgid)
}

fn ask(
    world: &World,
    name: &str,
    action: XattrAction,
    attribute: &str,
    value: &[u8],
    flags: u32,
    kill_sgid: bool,
) -> Result<Rxattr, Errno> {
    let request = Txattr {
        target: at(name),
        action,
        name: Text::new(attribute.as_bytes()),
        flags,
        kill_sgid,
        value: Data(Bytes::copy_from_slice(value)),
    };
    match world.ask_one(FIRST, Request::Xattr(request))? {
        Reply::Xattr(done) => Ok(done),
        reply => panic!("not an answer to Txattr: {reply:?}"),
    }
}

#[test]
fn attributes_are_set_read_listed_and_removed() {
    let world = World::new();
    std::fs::write(world.host("file"), "").unwrap();
    std::fs::create_dir(world.host("dir")).unwrap();
    for name in ["file", "dir"] {
        assert!(world.stat(FIRST, at(name)).unwrap().without_xattrs);
        let set = set_xattr(&world, name, "user.colour", b"red\0blue", false).unwrap();
        assert!(!set.stat.unwrap().without_xattrs);
        let read = xattr(&world, name, XattrAction::Read, "user.colour", b"").unwrap();
        assert_eq!(&read.value.0[..], b"red\0blue");
        let list = xattr(&world, name, XattrAction::List, "", b"").unwrap();
        assert_eq!(&list.value.0[..], b"user.colour\0");
        let removed = xattr(&world, name, XattrAction::Remove, "user.colour", b"").unwrap();
        assert!(removed.stat.unwrap().without_xattrs);
        assert_eq!(xattr(&world, name, XattrAction::Read, "user.colour", b""), Err(Errno::NoData));
    }
}

#[test]
fn create_and_replace_flags_apply() {
    let world = World::new();
    std::fs::write(world.host("file"), "").unwrap();
    let set = |flags| ask(&world, "file", XattrAction::Set, "user.a", b"1", flags, false).map(drop);
    assert_eq!(set(2), Err(Errno::NoData));
    assert_eq!(set(1), Ok(()));
    assert_eq!(set(1), Err(Errno::Exists));
    assert_eq!(set(2), Ok(()));
    let nothing = xattr(&world, "file", XattrAction::Read, "colour", b"");
    assert_eq!(nothing, Err(Errno::NotSupported));
}

#[test]
fn a_links_attributes_are_its_own() {
    need_root();
    let world = World::new();
    std::fs::write(world.host("file"), "").unwrap();
    std::os::unix::fs::symlink("file", world.host("link")).unwrap();
    set_xattr(&world, "link", "trusted.mine", b"link", false).unwrap();
    assert!(!world.stat(FIRST, at("link")).unwrap().without_xattrs);
    assert!(world.stat(FIRST, at("file")).unwrap().without_xattrs);
    let read = xattr(&world, "link", XattrAction::Read, "trusted.mine", b"").unwrap();
    assert_eq!(&read.value.0[..], b"link");
}

#[test]
fn an_acl_changes_the_mode_and_clears_the_set_group_id_bit_if_requested() {
    let world = World::new();
    std::fs::write(world.host("file"), "").unwrap();
    let mode = SetStat { mode: Some(0o2755), ..SetStat::default() };
    world.put(FIRST, set(at("file"), mode)).unwrap();
    let value = acl(&[(1, 7), (4, 5), (0x20, 0)]);
    let kept = set_xattr(&world, "file", "system.posix_acl_access", &value, false).unwrap();
    assert_eq!(kept.stat.unwrap().mode & 0o777, 0o750);
    let fallen = set_xattr(&world, "file", "system.posix_acl_access", &value, true).unwrap();
    assert_eq!(fallen.stat.unwrap().mode, 0o750);
}
