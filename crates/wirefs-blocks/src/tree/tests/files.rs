//! Files, links and attributes at block borders and with large values, beyond the contract tests of trees.

use super::fixture::{PAYLOAD_BYTES, TreeFixture, at, bytes};
use crate::change::CopyRange;
use crate::tree::commit::{Purpose, no_announcement};
use crate::tree::serve::Failure;
use bytes::Bytes;
use wirefs_op::limits::XATTR_BYTES_MAX;
use wirefs_op::message::allocate::Tallocate;
use wirefs_op::message::copy::Tcopy;
use wirefs_op::message::put::{PutMode, Tput};
use wirefs_op::message::seek::Tseek;
use wirefs_op::message::version::BootId;
use wirefs_op::message::xattr::XattrAction;
use wirefs_op::wire::Data;
use wirefs_op::{Errno, FileId, Kind, Reply, Request, SetStat};

/// The sizes at which a file leaves its head, fills its first block, and fills its first run. In bytes.
const BORDERS: [usize; 5] = [1240, 1378, 2 * 1378, 32 * 1378, 33 * 1378];

#[test]
fn a_file_of_any_size_is_read_as_it_was_written() {
    let fixture = TreeFixture::new();
    for border in BORDERS {
        for size in [border - 1, border, border + 1] {
            let path = format!("f{size}");
            let data = bytes(size, size as u8);
            assert_eq!(fixture.create(&path, data.clone()).unwrap().size, size as u64);
            assert_eq!(fixture.read(&path), Ok(data));
        }
    }
    fixture.audit();
}

// S-130
#[test]
fn versions_differ_between_boots_and_the_version_before_a_write_is_the_reported_one() {
    let mut fixture = TreeFixture::new();
    fixture.mkdir("d").unwrap();
    fixture.create("d/f", bytes(100, 1)).unwrap();
    fixture.tree.create_checkpoint(b"one").unwrap();
    let mut versions = |boot: u64| {
        fixture = std::mem::replace(&mut fixture, TreeFixture::new()).rebooted(BootId(boot));
        ["", "d", "d/f", ".checkpoints"].map(|path| fixture.stat(path).unwrap().version)
    };
    let before = versions(1);
    assert_eq!(versions(1), before);
    let after = versions(2);
    assert!(before.iter().zip(after).all(|(before, after)| *before != after), "{before:?}, {after:?}");
    let (mode, data) = (PutMode::DATA, Data(bytes(9, 2)));
    let put = Tput { target: at("d/f"), mode, create: None, set: SetStat::default(), offset: 0, data };
    assert_eq!(fixture.put_fully(put).unwrap().before, after[2]);
    let listed = fixture.list("d").unwrap();
    assert_eq!(listed[0].stat, fixture.stat("d/f").unwrap());
}

#[test]
fn data_can_be_overwritten_at_any_offset() {
    let fixture = TreeFixture::of(PAYLOAD_BYTES, 1 << 20, 0);
    let size = 5000;
    let mut model = bytes(size, 1).to_vec();
    fixture.create("f", Bytes::from(model.clone())).unwrap();
    for (at_byte, len) in [(0, 1), (1377, 2), (1378, 1378), (1000, 3000), (4999, 1), (4990, 100), (0, 6000)] {
        let data = bytes(len, at_byte as u8);
        model.resize(model.len().max(at_byte + len), 0);
        model[at_byte..at_byte + len].copy_from_slice(&data);
        fixture.write(at("f"), at_byte as u64, data).unwrap();
        assert_eq!(fixture.read("f").unwrap(), model);
    }
    fixture.audit();
}

#[test]
fn truncated_data_does_not_reappear() {
    let fixture = TreeFixture::new();
    for size in [900, 1300, 3000, 60_000] {
        for cut in [0, 1, size / 2, size - 1, 1378, 2756] {
            fixture.create("f", bytes(size, 7)).unwrap();
            fixture.resize("f", cut as u64).unwrap();
            fixture.resize("f", size as u64 + 10).unwrap();
            let mut expected = bytes(size, 7)[..cut.min(size)].to_vec();
            expected.resize(size + 10, 0);
            assert_eq!(fixture.read("f").unwrap(), expected, "{size} cut to {cut}");
            fixture.remove("f").unwrap();
        }
    }
    fixture.collect();
    fixture.audit();
}

#[test]
fn sparse_file_uses_space_only_for_its_data() {
    let fixture = TreeFixture::new();
    let far = 1 << 40;
    fixture.create("f", Bytes::new()).unwrap();
    let stat = fixture.write(at("f"), far, bytes(10, 1)).unwrap();
    assert_eq!(stat.size, far + 10);
    assert!(stat.blocks * 512 < 3 * PAYLOAD_BYTES as u64, "{} sectors", stat.blocks);
    let seek = |offset, hole| match fixture.ask(Request::Seek(Tseek { target: at("f"), offset, hole })) {
        Ok(replies) => match replies.as_slice() {
            [Reply::Seek(seek)] => Ok(seek.offset),
            other => panic!("{other:?}"),
        },
        Err(errno) => Err(errno),
    };
    assert_eq!(seek(0, true), Ok(0));
    let data = seek(0, false).unwrap();
    assert!(data <= far && far - data < PAYLOAD_BYTES as u64);
    assert_eq!(seek(far, true), Ok(far + 10));
    assert_eq!(seek(far + 10, true), Err(Errno::NoSuchDevice));
}

#[test]
fn hole_after_much_data_is_found() {
    let fixture = TreeFixture::new();
    let size = 4 << 20;
    for part in 0..32 {
        let target =
            if part == 0 { fixture.create("f", Bytes::new()).map(|_| at("f")).unwrap() } else { at("f") };
        fixture.write(target, part * (size / 32), bytes(size as usize / 32, part as u8)).unwrap();
    }
    let request = Tseek { target: at("f"), offset: 5, hole: true };
    let replies = fixture.ask(Request::Seek(request)).unwrap();
    assert!(matches!(replies.as_slice(), [Reply::Seek(seek)] if seek.offset == size));
    fixture.audit();
}

#[test]
fn a_large_file_is_copied_punched_and_removed() {
    let fixture = TreeFixture::new();
    let part = 128 * 1024;
    fixture.create("f", Bytes::new()).unwrap();
    for number in 0..24 {
        fixture.write(at("f"), number * part, bytes(part as usize, number as u8)).unwrap();
    }
    let whole = fixture.read("f").unwrap();
    let copy = Tcopy { from: at("f"), from_offset: 0, to: at("g"), to_offset: 100, length: u64::MAX / 4 };
    fixture.create("g", Bytes::new()).unwrap();
    let replies = fixture.ask(Request::Copy(copy)).unwrap();
    assert!(matches!(replies.as_slice(), [Reply::Copy(copy)] if copy.count == 24 * part));
    assert_eq!(fixture.read("g").unwrap().slice(100..), whole);
    let (from, to) = (1000_usize, 3_000_000_usize);
    let punch = Tallocate { target: at("f"), mode: 3, offset: from as u64, length: (to - from) as u64 };
    fixture.ask(Request::Allocate(punch)).unwrap();
    let mut expected = whole.to_vec();
    expected[from..to].fill(0);
    assert_eq!(fixture.read("f").unwrap(), expected);
    fixture.audit();
    for path in ["f", "g"] {
        fixture.remove(path).unwrap();
    }
    fixture.collect();
    fixture.audit();
    assert!(fixture.store.all().len() < 10);
}

#[test]
fn holes_are_copied_as_holes() {
    let fixture = TreeFixture::new();
    fixture.create("f", bytes(2000, 1)).unwrap();
    fixture.write(at("f"), 1 << 40, bytes(2000, 2)).unwrap();
    fixture.create("g", Bytes::new()).unwrap();
    let copy = Tcopy { from: at("f"), from_offset: 0, to: at("g"), to_offset: 0, length: 1 << 25 };
    fixture.ask(Request::Copy(copy)).unwrap();
    assert_eq!(fixture.stat("g").unwrap().size, 1 << 25);
    assert!(fixture.stat("g").unwrap().blocks * 512 < 4 * PAYLOAD_BYTES as u64);
    assert_eq!(fixture.read("g").unwrap().slice(..2000), bytes(2000, 1));
}

#[test]
fn names_are_not_tied_to_blocks() {
    let fixture = TreeFixture::new();
    fixture.mkdir("a").unwrap();
    fixture.mkdir("b").unwrap();
    let made = fixture.create("a/f", bytes(3000, 4)).unwrap();
    fixture.link("a/f", "b/g").unwrap();
    let linked = fixture.stat("b/g").unwrap();
    assert_eq!((linked.id, linked.nlink), (made.id, 2));
    fixture.write(at("b/g"), 0, bytes(10, 9)).unwrap();
    assert_eq!(fixture.read("a/f"), fixture.read("b/g"));
    fixture.rename("a", "b/a", 0).unwrap();
    assert_eq!(fixture.stat("b/a/f").unwrap().id, made.id);
    fixture.remove("b/a/f").unwrap();
    assert_eq!(fixture.stat("b/g").unwrap().nlink, 1);
    let target = bytes(4095, 1).iter().map(|byte| byte % 26 + b'a').collect::<Bytes>();
    fixture.make("l", Kind::Symlink, target.clone()).unwrap();
    assert_eq!(fixture.read("l"), Ok(target));
    fixture.audit();
}

#[test]
fn attributes_of_any_size_are_stored() {
    let fixture = TreeFixture::new();
    fixture.create("f", Bytes::new()).unwrap();
    for len in [0, 256, 257, 5000, XATTR_BYTES_MAX] {
        let value = bytes(len, len as u8);
        fixture.xattr("f", XattrAction::Set, "user.v", value.clone()).unwrap();
        assert_eq!(fixture.xattr("f", XattrAction::Read, "user.v", Bytes::new()), Ok(value));
        fixture.audit();
    }
    for number in 0..100 {
        fixture.xattr("f", XattrAction::Set, &format!("user.{number}"), bytes(300, number)).unwrap();
    }
    let names = fixture.xattr("f", XattrAction::List, "", Bytes::new()).unwrap();
    assert_eq!(names.split(|byte| *byte == 0).filter(|name| !name.is_empty()).count(), 101);
    fixture.remove("f").unwrap();
    fixture.collect();
    fixture.audit();
}

#[test]
fn reading_an_acl_returns_no_data() {
    let fixture = TreeFixture::new();
    fixture.create("f", Bytes::new()).unwrap();
    let name = "system.posix_acl_access";
    assert_eq!(fixture.xattr("f", XattrAction::Read, name, Bytes::new()), Err(Errno::NoData));
    assert_eq!(fixture.xattr("f", XattrAction::Set, name, bytes(8, 1)), Err(Errno::NotSupported));
}

#[test]
fn copy_does_not_continue_in_files_with_reused_inode_numbers() {
    let fixture = TreeFixture::new();
    let from = fixture.create("from", bytes(5000, 1)).unwrap().id;
    let to = fixture.create("to", bytes(10, 2)).unwrap().id;
    let copy = |from, to| {
        let range = CopyRange { from, from_offset: 0, to, to_offset: 0, count: 5000 };
        fixture.tree.change(
            Purpose::Fill,
            &mut no_announcement,
            |change| change.copy(&range),
            |(copied, _)| copied,
        )
    };
    let other = |id: FileId| FileId { generation: id.generation + 1, ..id };
    assert_eq!(copy(other(from), to), Err(Failure::Errno(Errno::Stale)));
    assert_eq!(copy(from, other(to)), Err(Failure::Errno(Errno::Stale)));
    assert_eq!(fixture.read("to"), Ok(bytes(10, 2)));
    assert_eq!(copy(from, to), Ok(5000));
    assert_eq!(fixture.read("to"), Ok(bytes(5000, 1)));
}
