//! Strategies for values within messages, including extreme ones.

use bytes::Bytes;
use proptest::prelude::*;
use wirefs_op::find_listing::{FindDirectory, FindEntry, FindRecord};
use wirefs_op::limits::{DATA_BYTES_MAX, NAME_BYTES_MAX, PATH_BYTES_MAX, XATTR_BYTES_MAX};
use wirefs_op::message::target::{Fd, NOFD, Place, Target};
use wirefs_op::wire::{Data, Text};
use wirefs_op::{
    Cred, DirEntry, Errno, FileId, FsStat, Kind, LockFamily, LockKind, LockRange, SetStat, SetTime, Stat,
    Timestamp, TreePath,
};

pub(crate) mod message;

pub(crate) fn word() -> impl Strategy<Value = u32> {
    prop_oneof![Just(0), Just(u32::MAX), any::<u32>()]
}

pub(crate) fn long() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(u64::MAX), any::<u64>()]
}

pub(crate) fn name() -> impl Strategy<Value = Vec<u8>> {
    let byte = any::<u8>().prop_map(|byte| if matches!(byte, 0 | b'/') { b'x' } else { byte });
    prop_oneof![
        prop::collection::vec(byte, 1..=NAME_BYTES_MAX)
            .prop_filter("dots", |name| name != b"." && name != b".."),
        Just(vec![b'n'; NAME_BYTES_MAX]),
        Just(b"...".to_vec()),
    ]
}

pub(crate) fn path() -> BoxedStrategy<TreePath> {
    let longest = vec![&[b'p'; NAME_BYTES_MAX][..]; PATH_BYTES_MAX / (NAME_BYTES_MAX + 1)];
    let longest = TreePath::from_names(longest).unwrap();
    prop_oneof![
        6 => prop::collection::vec(name(), 0..4)
            .prop_map(|names| TreePath::from_names(names.iter().map(Vec::as_slice)).unwrap()),
        1 => Just(longest),
    ]
    .boxed()
}

pub(crate) fn text() -> impl Strategy<Value = Text> {
    prop::collection::vec(any::<u8>(), 0..=255).prop_map(|bytes| Text::new(&bytes))
}

fn contents(bytes_max: usize) -> impl Strategy<Value = Data> {
    prop_oneof![
        6 => prop::collection::vec(any::<u8>(), 0..64).prop_map(Bytes::from),
        1 => Just(Bytes::from(vec![7; bytes_max])),
    ]
    .prop_map(Data)
}

pub(crate) fn data() -> BoxedStrategy<Data> {
    contents(DATA_BYTES_MAX).boxed()
}

pub(crate) fn attribute() -> BoxedStrategy<Data> {
    contents(XATTR_BYTES_MAX).boxed()
}

pub(crate) fn fd() -> impl Strategy<Value = Fd> {
    prop_oneof![Just(NOFD), any::<u16>().prop_map(Fd)]
}

pub(crate) fn id() -> impl Strategy<Value = FileId> {
    (word(), long(), word()).prop_map(|(fs, ino, generation)| FileId { fs, ino, generation })
}

pub(crate) fn target() -> BoxedStrategy<Target> {
    (path(), fd(), prop::option::of(id())).prop_map(|(path, fd, id)| Target { path, fd, id }).boxed()
}

pub(crate) fn place() -> BoxedStrategy<Place> {
    (path(), prop::option::of(id())).prop_map(|(path, dir)| Place { path, dir }).boxed()
}

pub(crate) fn timestamp() -> impl Strategy<Value = Timestamp> {
    (
        prop_oneof![Just(i64::MIN), Just(i64::MAX), any::<i64>()],
        prop_oneof![Just(999_999_999), 0..1_000_000_000_u32],
    )
        .prop_map(|(secs, nanos)| Timestamp { secs, nanos })
}

pub(crate) fn kind() -> impl Strategy<Value = Kind> {
    prop::sample::select(&Kind::ALL[..])
}

pub(crate) fn errno() -> impl Strategy<Value = Errno> {
    prop::sample::select(&Errno::ALL[..])
}

pub(crate) fn stat() -> BoxedStrategy<Stat> {
    let numbers = (id(), kind(), long(), 0..=0o7777_u32, word(), word(), word(), word());
    let sizes = (long(), long(), word());
    (numbers, sizes, [timestamp(), timestamp(), timestamp()], any::<[bool; 2]>())
        .prop_map(
            |(
                (id, kind, version, mode, nlink, uid, gid, rdev),
                (size, blocks, blksize),
                times,
                [without_xattrs, leased],
            )| {
                let [atime, mtime, ctime] = times;
                Stat {
                    id,
                    kind,
                    version,
                    mode,
                    nlink,
                    uid,
                    gid,
                    rdev,
                    size,
                    blocks,
                    blksize,
                    atime,
                    mtime,
                    ctime,
                    without_xattrs,
                    leased,
                }
            },
        )
        .boxed()
}

pub(crate) fn some_stat() -> BoxedStrategy<Option<Stat>> {
    prop::option::of(stat()).boxed()
}

pub(crate) fn set() -> BoxedStrategy<SetStat> {
    let time = || prop::option::of(prop_oneof![Just(SetTime::Now), timestamp().prop_map(SetTime::At)]);
    let word = || prop::option::of(word());
    (word(), word(), word(), prop::option::of(long()), time(), time())
        .prop_map(|(mode, uid, gid, size, atime, mtime)| SetStat { mode, uid, gid, size, atime, mtime })
        .boxed()
}

pub(crate) fn cred() -> impl Strategy<Value = Cred> {
    (word(), word(), word()).prop_map(|(uid, gid, umask)| Cred { uid, gid, umask })
}

pub(crate) fn family() -> impl Strategy<Value = LockFamily> {
    prop::sample::select(&[LockFamily::Posix, LockFamily::Flock][..])
}

pub(crate) fn range() -> BoxedStrategy<LockRange> {
    let kind = prop::sample::select(&[LockKind::Read, LockKind::Write, LockKind::Unlock][..]);
    (kind, long(), long(), word())
        .prop_map(|(kind, start, end, pid)| LockRange { kind, start, end, pid })
        .boxed()
}

pub(crate) fn figures() -> BoxedStrategy<FsStat> {
    (word(), [long(), long(), long(), long(), long()], word())
        .prop_map(|(block_bytes, counts, name_bytes_max)| {
            let [blocks, blocks_free, blocks_available, files, files_free] = counts;
            FsStat { block_bytes, blocks, blocks_free, blocks_available, files, files_free, name_bytes_max }
        })
        .boxed()
}

pub(crate) fn entry() -> impl Strategy<Value = DirEntry> {
    (name(), 1..=u64::MAX, stat()).prop_map(|(name, next, stat)| DirEntry { name, next, stat })
}

/// Consecutive attributes in a stream: arbitrary, or those of a file with a few changed fields.
fn found_stat() -> BoxedStrategy<Stat> {
    let time = Timestamp { secs: 1_700_000_000, nanos: 5 };
    let ordinary = move |(ino, size, kind, later): (u64, u64, Kind, i64)| {
        let later = Timestamp { secs: time.secs + later, ..time };
        Stat {
            id: FileId { fs: 0, ino, generation: 1 },
            kind,
            version: ino ^ size,
            mode: 0o644,
            nlink: 1,
            uid: 1000,
            gid: 1000,
            rdev: 0,
            size,
            blocks: size.div_ceil(4096) * 8,
            blksize: 4096,
            atime: later,
            mtime: time,
            ctime: later,
            without_xattrs: true,
            leased: ino % 2 == 0,
        }
    };
    let ordinary = (0..100_u64, 0..64_u64, kind(), 0..2_i64).prop_map(ordinary);
    prop_oneof![2 => ordinary, 1 => stat()].boxed()
}

/// Names and paths with long, short or no common prefixes.
fn found_name() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![2 => "[ab]{1,4}".prop_map(String::into_bytes), 1 => name()]
}

fn found_path() -> impl Strategy<Value = TreePath> {
    let short = prop::collection::vec(found_name(), 0..4)
        .prop_map(|names| TreePath::from_names(names.iter().map(Vec::as_slice)).unwrap());
    prop_oneof![4 => short, 1 => path()]
}

fn found_entry() -> impl Strategy<Value = FindRecord> {
    (found_name(), found_stat(), any::<bool>()).prop_map(|(name, stat, with_contents)| {
        let has_some = with_contents && stat.size < 100 && matches!(stat.kind, Kind::File | Kind::Symlink);
        let contents = has_some.then(|| Bytes::from(vec![b'c'; stat.size as usize]));
        FindRecord::Entry(FindEntry { name, stat, contents })
    })
}

/// The records of one message, starting with a directory.
pub(crate) fn found() -> impl Strategy<Value = Vec<FindRecord>> {
    let directory =
        (found_path(), found_stat(), any::<[bool; 2]>()).prop_map(|(path, stat, [begins, ends])| {
            FindRecord::Directory(FindDirectory { path, stat, begins, ends })
        });
    let listing =
        (directory, prop::collection::vec(found_entry(), 0..8)).prop_map(|(directory, mut records)| {
            records.insert(0, directory);
            records
        });
    prop::collection::vec(listing, 0..5).prop_map(|listings| listings.concat())
}
