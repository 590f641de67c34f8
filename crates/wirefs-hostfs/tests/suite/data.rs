//! Data: reading, writing, appending, holes.

use crate::harness::{FIRST, SECOND, World, at, create, get, keep, open_as, write};
use std::os::unix::fs::FileExt;
use wirefs_op::limits::DATA_BYTES_MAX;
use wirefs_op::message::allocate::Tallocate;
use wirefs_op::message::get::{GetMode, GotMode, Tget};
use wirefs_op::message::put::{PutMode, Tput};
use wirefs_op::message::seek::Tseek;
use wirefs_op::{Errno, Kind, Reply, Request};
use wirefs_server::SessionKey;

/// Beyond 32 bits.
const FAR: u64 = 5 << 30;

#[test]
fn a_file_comes_in_pieces_with_its_end_marked() {
    let world = World::new();
    let bytes: Vec<u8> = (0..DATA_BYTES_MAX * 2 + 10).map(|index| index as u8).collect();
    std::fs::write(world.host("file"), &bytes).unwrap();
    let mode = GetMode::DATA.and(GetMode::STAT);
    let got = world.get(FIRST, get(at("file"), mode, 0, u32::MAX)).unwrap();
    let modes: Vec<_> = got.iter().map(|got| got.mode).collect();
    let more = GotMode::DATA.and(GotMode::MORE);
    assert_eq!(modes, [more, more, GotMode::DATA.and(GotMode::LAST)]);
    assert!(got[0].stat.is_some() && got[1].stat.is_none());
    let all: Vec<u8> = got.iter().flat_map(|got| got.data.0.to_vec()).collect();
    assert!(all == bytes);
    let request = Tget { nmsgs: 1, ..get(at("file"), mode, 1, u32::MAX) };
    let one = world.get(FIRST, request).unwrap();
    assert_eq!((one.len(), one[0].data.0.len()), (1, DATA_BYTES_MAX));
    assert_eq!(one[0].mode, more.and(GotMode::LAST));
    let past = world.get(FIRST, get(at("file"), mode, FAR, 10)).unwrap();
    assert_eq!((past[0].mode, past[0].data.0.len()), (GotMode::DATA.and(GotMode::LAST), 0));
}

#[test]
fn a_read_up_to_the_end_needs_no_further_reply() {
    let world = World::new();
    std::fs::write(world.host("file"), vec![7; DATA_BYTES_MAX]).unwrap();
    let count = DATA_BYTES_MAX as u32;
    let got = world.get(FIRST, get(at("file"), GetMode::DATA, 0, count)).unwrap();
    assert_eq!((got.len(), got[0].mode), (1, GotMode::DATA.and(GotMode::LAST)));
    let part = world.get(FIRST, get(at("file"), GetMode::DATA, 0, count - 1)).unwrap();
    assert_eq!(part[0].mode, GotMode::DATA.and(GotMode::MORE).and(GotMode::LAST));
}

#[test]
fn whole_returns_small_files_and_only_attributes_of_large_ones() {
    let world = World::new();
    std::fs::write(world.host("small"), "small").unwrap();
    std::fs::write(world.host("large"), vec![1; 5000]).unwrap();
    let mode = GetMode::DATA.and(GetMode::STAT).and(GetMode::WHOLE);
    let small = world.get(FIRST, get(at("small"), mode, 0, 4096)).unwrap();
    assert_eq!((&small[0].data.0[..], small[0].mode), (&b"small"[..], GotMode::DATA.and(GotMode::LAST)));
    let large = world.get(FIRST, get(at("large"), mode, 0, 4096)).unwrap();
    assert_eq!((large.len(), large[0].data.0.len(), large[0].stat.unwrap().size), (1, 0, 5000));
    assert!(!large[0].mode.has(GotMode::DATA));
}

// S-59
#[test]
fn pipes_and_devices_are_never_opened() {
    let world = World::new();
    world.put(FIRST, create("pipe", Kind::Fifo, 0o644, PutMode::NONE)).unwrap();
    // Opening a pipe without a writer would block.
    let mode = GetMode::DATA.and(GetMode::STAT).and(GetMode::MORE);
    let got = world.get(FIRST, get(at("pipe"), mode, 0, 100)).unwrap();
    assert_eq!((got[0].mode, got[0].stat.unwrap().kind), (GotMode::LAST, Kind::Fifo));
    assert_eq!(world.put(FIRST, write(at("pipe"), 0, b"x")), Err(Errno::Invalid));
}

// S-68
#[test]
fn a_sparse_file_of_more_than_4_gib_is_read_written_and_searched_for_holes() {
    let world = World::new();
    world.put(FIRST, create("file", Kind::File, 0o644, PutMode::NONE)).unwrap();
    let wrote = world.put(FIRST, write(at("file"), FAR, b"far")).unwrap();
    assert_eq!((wrote.count, wrote.offset, wrote.stat.unwrap().size), (3, FAR, FAR + 3));
    assert_eq!(world.read(FIRST, at("file"), FAR - 2, 10).unwrap(), b"\0\0far");
    let seek = |offset, hole| {
        let request = Tseek { target: at("file"), offset, hole };
        match world.ask_one(FIRST, Request::Seek(request)) {
            Ok(Reply::Seek(found)) => Ok(found.offset),
            Ok(reply) => panic!("not an answer to Tseek: {reply:?}"),
            Err(errno) => Err(errno),
        }
    };
    assert_eq!(seek(0, true), Ok(0));
    let data = seek(0, false).unwrap();
    assert!(data > 4 << 30 && data <= FAR, "{data}");
    assert_eq!(seek(FAR, true), Ok(FAR + 3));
    assert_eq!(seek(FAR + 3, false), Err(Errno::NoSuchDevice));
    assert_eq!(seek(u64::MAX, false), Err(Errno::NoSuchDevice));
    assert!(world.stat(FIRST, at("file")).unwrap().blocks < 1000);
}

#[test]
fn offsets_beyond_the_largest_file_are_refused() {
    let world = World::new();
    std::fs::write(world.host("file"), "data").unwrap();
    assert_eq!(world.put(FIRST, write(at("file"), u64::MAX - 1, b"xyz")), Err(Errno::FileTooBig));
    assert_eq!(world.put(FIRST, write(at("file"), 1 << 63, b"x")), Err(Errno::FileTooBig));
    assert_eq!(world.read(FIRST, at("file"), u64::MAX, 10), Err(Errno::Invalid));
}

/// Two clients append concurrently: each line is whole, none is lost, and each reply has its offset.
// S-48
#[test]
fn appends_of_two_sessions_never_overwrite_each_other() {
    const LINES: u32 = 2000;
    let world = World::new();
    std::fs::write(world.host("log"), "").unwrap();
    let append = |session: SessionKey, word: u8| {
        let id = world.stat(session, at("log")).unwrap().id;
        let mut fd = wirefs_op::message::target::NOFD;
        let mut places = Vec::new();
        for _ in 0..LINES {
            let mut request = write(open_as("log", fd, id), 0, &[word; 7]);
            request.mode = request.mode.and(PutMode::APPEND).and(keep());
            let wrote = world.put(session, request).unwrap();
            fd = wrote.fd;
            places.push((wrote.offset, word));
        }
        places
    };
    let places: Vec<_> = std::thread::scope(|scope| {
        let first = scope.spawn(|| append(FIRST, b'a'));
        let second = scope.spawn(|| append(SECOND, b'b'));
        first.join().unwrap().into_iter().chain(second.join().unwrap()).collect()
    });
    let log = std::fs::read(world.host("log")).unwrap();
    assert_eq!(log.len(), 2 * LINES as usize * 7);
    for (offset, word) in places {
        let at = offset as usize;
        assert_eq!(log[at..at + 7], [word; 7]);
    }
}

// S-68
#[test]
fn space_is_allocated_and_holes_are_punched() {
    let world = World::new();
    std::fs::write(world.host("file"), vec![1; 1 << 20]).unwrap();
    let allocate = |mode, offset, length| {
        let request = Tallocate { target: at("file"), mode, offset, length };
        match world.ask_one(FIRST, Request::Allocate(request)) {
            Ok(Reply::Allocate(done)) => Ok(done.stat.unwrap()),
            Ok(reply) => panic!("not an answer to Tallocate: {reply:?}"),
            Err(errno) => Err(errno),
        }
    };
    assert_eq!(allocate(0, 0, 2 << 20).unwrap().size, 2 << 20);
    let punch = (libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE) as u32;
    let punched = allocate(punch, 0, 512 << 10).unwrap();
    assert_eq!(punched.size, 2 << 20);
    assert_eq!(world.read(FIRST, at("file"), (512 << 10) - 1, 2).unwrap(), [0, 1]);
    assert_eq!(allocate(0, 0, 0), Err(Errno::Invalid));
}

#[test]
fn a_write_returns_the_version_before_it() {
    let world = World::new();
    let made = world.put(FIRST, create("file", Kind::File, 0o644, PutMode::NONE)).unwrap();
    assert_eq!(made.before, 0);
    let wrote = world.put(FIRST, write(at("file"), 0, b"one")).unwrap();
    assert_eq!(wrote.before, made.stat.unwrap().version);
    assert_ne!(wrote.before, wrote.stat.unwrap().version);
    let file = std::fs::OpenOptions::new().write(true).open(world.host("file")).unwrap();
    file.write_all_at(b"elsewhere", 0).unwrap();
    let run_test_in_child = world.put(FIRST, write(at("file"), 0, b"two")).unwrap();
    assert_ne!(run_test_in_child.before, wrote.stat.unwrap().version);
}

#[test]
fn synced_writes_and_creations_succeed() {
    let world = World::new();
    let mut request: Tput = create("file", Kind::File, 0o644, PutMode::SYNC.and(PutMode::DATA));
    request.data = write(at("file"), 0, b"safe").data;
    let wrote = world.put(FIRST, request).unwrap();
    assert_eq!((wrote.count, wrote.stat.unwrap().size), (4, 4));
    for kind in [Kind::Directory, Kind::Fifo] {
        let name = format!("{kind:?}");
        world.put(FIRST, create(&name, kind, 0o755, PutMode::SYNC)).unwrap();
    }
}
