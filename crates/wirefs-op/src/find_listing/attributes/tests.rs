use super::{NOTHING, put_attributes, take_attributes};
use crate::find_listing::{FindDirectory, FindWriter};
use crate::message::tests::{directory_stat, file_stat};
use crate::path::TreePath;
use crate::stat::{FileId, Kind, Stat};
use crate::time::Timestamp;
use crate::wire::Reader;
use bytes::Bytes;

fn encoded(before: &Stat, stat: &Stat) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_attributes(&mut bytes, before, stat);
    bytes
}

fn decoded(before: &Stat, bytes: &[u8]) -> Result<Stat, &'static str> {
    let mut reader = Reader::new(Bytes::copy_from_slice(bytes));
    let stat = take_attributes(&mut reader, before).map_err(|malformed| malformed.what)?;
    reader.end().map_err(|malformed| malformed.what)?;
    Ok(stat)
}

fn plain(stat: Stat) -> Stat {
    Stat { without_xattrs: false, leased: false, ..stat }
}

#[test]
fn the_same_attributes_take_one_byte() {
    // Equal times, so that the next record's times are predicted to be equal.
    let time = Timestamp { secs: -7, nanos: 1 };
    let stat = plain(Stat { atime: time, mtime: time, ctime: time, ..file_stat() });
    assert_eq!(encoded(&stat, &stat), [0]);
    assert_eq!(decoded(&stat, &[0]), Ok(stat));
}

#[test]
fn each_field_round_trips_from_any_previous_value() {
    let all = |word: u32, secs: i64, nanos: u32, kind: Kind| {
        let time = |step| Timestamp { secs: secs.wrapping_add(step), nanos };
        let long = u64::from(word) << 32 | u64::from(word);
        Stat {
            id: FileId { fs: word, ino: long, generation: word },
            kind,
            version: long,
            mode: word,
            nlink: word,
            uid: word,
            gid: word,
            rdev: word,
            size: long,
            blocks: long,
            blksize: word,
            atime: time(0),
            mtime: time(1),
            ctime: time(2),
            without_xattrs: false,
            leased: false,
        }
    };
    let stats = [
        NOTHING,
        plain(file_stat()),
        plain(directory_stat()),
        all(u32::MAX, i64::MAX, 999_999_999, Kind::BlockDevice),
        all(0x8000_0000, i64::MIN, 0, Kind::Socket),
        all(1, -1, 1, Kind::Symlink),
    ];
    for before in stats {
        for stat in stats {
            assert_eq!(decoded(&before, &encoded(&before, &stat)), Ok(stat), "after {before:?}");
        }
    }
}

#[test]
fn equal_times_are_predicted_to_be_equal_again() {
    let time = |secs| Timestamp { secs, nanos: 5 };
    let with = |atime, mtime, ctime| Stat { atime, mtime, ctime, ..plain(file_stat()) };
    let mask = |before: Stat, stat: Stat| {
        encoded(&before, &stat)[0] as usize | (encoded(&before, &stat)[1..].len() << 8)
    };
    // One byte with one bit set, and one byte for a difference of one second.
    let one_second = |bit: usize| 1 << bit | 1 << 8;
    assert_eq!(mask(with(time(1), time(1), time(1)), with(time(2), time(2), time(2))), one_second(4));
    // A file unpacked with its old mtime: atime and ctime are now, mtime equals the previous one.
    assert_eq!(mask(with(time(9), time(1), time(9)), with(time(10), time(1), time(10))), one_second(4));
    // Three different times: each is predicted from the previous record.
    assert_eq!(mask(with(time(1), time(2), time(3)), with(time(1), time(2), time(4))), one_second(4));
    assert_eq!(mask(with(time(1), time(2), time(3)), with(time(1), time(3), time(3))), one_second(6));
}

#[test]
fn attributes_have_exactly_one_encoding() {
    let before = plain(file_stat());
    let cases: [(&[u8], &str); 10] = [
        (&[0x80, 0x80, 0x20], "unknown bits in attributes"),
        (&[0x80, 0x00], "a number that is not in its shortest encoding"),
        (&[0x04, 0x00], "an explicit attribute equal to its prediction"),
        (&[0x02, 9, 0, 0, 0, 0, 0, 0, 0], "an explicit attribute equal to its prediction"),
        (&[0x80, 0x08, 7], "an attribute out of its range"),
        (&[0x20, 0, 0xca, 0x9a, 0x3b], "an attribute out of its range"),
        (&[0x80, 0x20, 0x03], "an attribute out of its range"),
        (
            &[0x04, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02],
            "a number of more than 64 bits",
        ),
        (&[0x04, 0xff], "ends within a field"),
        (&[0x04, 2, 2], "bytes left over"),
    ];
    for (bytes, what) in cases {
        assert_eq!(decoded(&before, bytes), Err(what), "{bytes:x?}");
    }
}

/// Mixes a number into 64 bits.
fn spread(number: u64) -> u64 {
    crate::mix(number.wrapping_mul(crate::mix::GOLDEN))
}

/// The attributes of a typical file: inodes in order of creation, listed in hash order; nearly random
/// versions and generations; sizes of source files.
fn ordinary(at: u64, times: [Timestamp; 3]) -> Stat {
    let ino = 1_500_000 + spread(at) % 1000;
    let size = spread(ino) % 20_000;
    let [atime, mtime, ctime] = times;
    Stat {
        id: FileId { fs: 0, ino, generation: spread(ino + 1) as u32 },
        version: spread(ino + 2),
        size,
        blocks: size.div_ceil(4096) * 8,
        atime,
        mtime,
        ctime,
        ..file_stat()
    }
}

fn bytes_per_entry(times: impl Fn(u64) -> [Timestamp; 3]) -> f64 {
    let mut writer = FindWriter::new(usize::MAX);
    let root = FindDirectory { path: TreePath::root(), stat: directory_stat(), begins: true, ends: true };
    assert!(writer.directory(&root));
    let before = writer.len();
    for at in 0..1000 {
        let name = format!("{:010x}", spread(at) >> 24);
        assert!(writer.entry(name.as_bytes(), &ordinary(at, times(at)), None));
    }
    (writer.len() - before) as f64 / 1000.0
}

#[test]
fn a_typical_entry_with_a_name_of_ten_bytes_takes_at_most_forty() {
    let now = 1_700_000_000;
    let at = |secs: i64, nanos: u64| Timestamp { secs, nanos: (nanos % 1_000_000_000) as u32 };
    let within_a_minute = |n: u64| at(now + (spread(n) % 60) as i64, spread(n + 3));
    let written_once = bytes_per_entry(|n| [within_a_minute(n); 3]);
    let unpacked_with_old_times = bytes_per_entry(|n| {
        let old = at(now - (spread(n) % 100_000_000) as i64, 0);
        [within_a_minute(n), old, within_a_minute(n)]
    });
    let made_and_read_each_at_its_time = bytes_per_entry(|n| {
        let read = at(now + 1_000_000 + (spread(n) % 1000) as i64, spread(n + 4));
        [read, within_a_minute(n), within_a_minute(n)]
    });
    let measured = [written_once, unpacked_with_old_times, made_and_read_each_at_its_time];
    assert!(written_once <= 40.0 && unpacked_with_old_times <= 40.0, "{measured:?}");
    // Two nearly random times.
    assert!(made_and_read_each_at_its_time <= 46.0, "{measured:?}");
}
