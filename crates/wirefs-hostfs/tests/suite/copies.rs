//! Copies at the server.

use crate::harness::{FIRST, World, at, need_root};
use wirefs_op::message::copy::Tcopy;
use wirefs_op::{Errno, Reply, Request};

fn copy(world: &World, from: (&str, u64), to: (&str, u64), length: u64) -> Result<u64, Errno> {
    let request = Tcopy { from: at(from.0), from_offset: from.1, to: at(to.0), to_offset: to.1, length };
    match world.ask_one(FIRST, Request::Copy(request))? {
        Reply::Copy(done) => Ok(done.count),
        reply => panic!("not an answer to Tcopy: {reply:?}"),
    }
}

fn with_files() -> (World, Vec<u8>) {
    let world = World::new();
    let bytes: Vec<u8> = (0..300_000_u32).map(|index| (index / 7) as u8).collect();
    std::fs::write(world.host("from"), &bytes).unwrap();
    std::fs::write(world.host("to"), "").unwrap();
    (world, bytes)
}

// S-69
#[test]
fn a_range_is_copied_up_to_the_end_of_the_file() {
    let (world, bytes) = with_files();
    assert_eq!(copy(&world, ("from", 10), ("to", 0), 1000), Ok(1000));
    assert_eq!(std::fs::read(world.host("to")).unwrap(), bytes[10..1010]);
    assert_eq!(copy(&world, ("from", 0), ("to", 0), 1 << 40), Ok(300_000));
    assert!(std::fs::read(world.host("to")).unwrap() == bytes);
    assert_eq!(copy(&world, ("from", 300_000), ("to", 0), 10), Ok(0));
}

#[test]
fn within_one_file_ranges_must_not_overlap() {
    let (world, bytes) = with_files();
    assert_eq!(copy(&world, ("from", 0), ("from", 999), 1000), Err(Errno::Invalid));
    assert_eq!(copy(&world, ("from", 0), ("from", 1000), 1000), Ok(1000));
    assert_eq!(std::fs::read(world.host("from")).unwrap()[1000..2000], bytes[..1000]);
    assert_eq!(copy(&world, ("from", 0), ("to", u64::MAX), 10), Err(Errno::Overflow));
}

// S-69
#[test]
fn within_one_file_a_copy_ends_where_the_file_ended_before() {
    let (world, bytes) = with_files();
    assert_eq!(copy(&world, ("from", 299_000), ("from", 299_999), 2000), Err(Errno::Invalid));
    assert_eq!(copy(&world, ("from", 299_000), ("from", 300_000), 1 << 30), Ok(1000));
    assert_eq!(copy(&world, ("from", 301_000), ("from", 301_000), 10), Ok(0));
    let after = std::fs::read(world.host("from")).unwrap();
    assert!(after == [&bytes[..], &bytes[299_000..]].concat());
}

#[test]
fn a_directory_is_not_copied_even_with_length_zero() {
    let (world, _) = with_files();
    std::fs::create_dir(world.host("dir")).unwrap();
    for length in [0, 10] {
        assert_eq!(copy(&world, ("dir", 0), ("to", 0), length), Err(Errno::IsDirectory));
    }
}

#[test]
fn copies_between_file_systems_use_reads_and_writes() {
    need_root();
    let (world, bytes) = with_files();
    std::fs::create_dir(world.host("other")).unwrap();
    let _mount = crate::full_disk::Tmpfs::mount(&world.host("other"), 1 << 20);
    std::fs::write(world.host("other/to"), "").unwrap();
    assert_eq!(copy(&world, ("from", 0), ("other/to", 0), 300_000), Ok(300_000));
    assert!(std::fs::read(world.host("other/to")).unwrap() == bytes);
}
