use super::{FindDirectory, FindEntry, FindReader, FindRecord, FindWriter};
use crate::limits::{FIND_PATH_BYTES_MAX, NAME_BYTES_MAX};
use crate::message::tests::{directory_stat, file_stat};
use crate::path::TreePath;
use crate::stat::{Kind, Stat};
use crate::wire::Malformed;
use bytes::Bytes;

fn path(bytes: &'static [u8]) -> TreePath {
    TreePath::from_bytes(Bytes::from_static(bytes)).unwrap()
}

fn directory(at: &'static [u8]) -> FindDirectory {
    FindDirectory { path: path(at), stat: directory_stat(), begins: true, ends: false }
}

fn unpack(data: Bytes) -> Result<Vec<FindRecord>, Malformed> {
    FindReader::new(data).collect()
}

fn refusal(bytes: &[u8]) -> &'static str {
    let mut reader = FindReader::new(Bytes::copy_from_slice(bytes));
    let refused = reader.by_ref().find_map(Result::err).unwrap();
    assert!(reader.next().is_none(), "an error is the last that is packed_count");
    assert!(refused.at <= bytes.len());
    refused.what
}

/// A directory, two files, one with contents, and a subdirectory.
fn packed() -> Vec<u8> {
    let mut writer = FindWriter::new(1000);
    assert!(writer.directory(&directory(b"d")));
    assert!(writer.entry(b"main.c", &file_stat(), Some(b"hello")));
    let mut other = Stat { leased: true, without_xattrs: false, ..file_stat() };
    other.id.ino += 1;
    assert!(writer.entry(b"main.h", &other, None));
    writer.end_directory();
    assert!(writer.directory(&directory(b"d/lib")));
    writer.finish().to_vec()
}

#[test]
fn records_have_these_bytes() {
    let from_nothing: [&[u8]; 14] = [
        &[0xbf, 0xbd, 0x0b], // generation, version, ino, size, times changed; kind, mode, links, uid, gid, blksize
        &[1, 0, 0, 0],       // generation 1
        &[9, 0, 0, 0, 0, 0, 0, 0], // version 9
        &[4],                // ino 0 + 2
        &[0x80, 0x40],       // size 0 + 4096
        &[0x80, 0xc4, 0x9f, 0xd5, 0x0c], // changed at 0 + 1,700,000,000 s …
        &[3, 0, 0, 0],       // … and 3 ns
        &[2, 0, 0, 0],       // modified at the same second and 2 ns
        &[1, 0, 0, 0],       // read at the same second and 1 ns
        &[1],                // kind 1, directory
        &[0xda, 0x07],       // mode 0 + 0755
        &[6],                // links 0 + 3
        &[0xd0, 0x0f, 0xd0, 0x0f], // uid and gid 0 + 1000
        &[0x80, 0x40],       // blksize 0 + 4096
    ];
    let from_nothing = from_nothing.concat();
    let expected: [&[u8]; 7] = [
        &[0x17, 0, 1, b'd'], // a directory that begins, ends and has no extended attributes; "" + "d"
        &from_nothing,
        // An entry with contents, without extended attributes, "" + "main.c"; ino, size, kind, mode, links differ.
        &[0x18, 0, 6, b'm', b'a', b'i', b'n', b'.', b'c', 0x8c, 0x38, 20, 0xf5, 0x3f, 0, 0x91, 0x01, 3],
        b"hello",
        // A leased entry, "main." + "h"; only its ino differs, by one.
        &[0x20, 5, 1, b'h', 4, 2],
        // A directory that begins, "d" + "/lib"; ino, size, kind, mode, links differ.
        &[0x13, 1, 4, b'/', b'l', b'i', b'b', 0x8c, 0x38, 21, 0xf6, 0x3f, 1, 0x92, 0x01, 4],
        &[],
    ];
    assert_eq!(packed(), expected.concat());
}

#[test]
fn records_round_trip() {
    let mut other = Stat { leased: true, without_xattrs: false, ..file_stat() };
    other.id.ino += 1;
    let entry = |name: &[u8], stat, contents: Option<&'static [u8]>| {
        FindRecord::Entry(FindEntry { name: name.to_vec(), stat, contents: contents.map(Bytes::from_static) })
    };
    let expected = [
        FindRecord::Directory(FindDirectory { ends: true, ..directory(b"d") }),
        entry(b"main.c", file_stat(), Some(b"hello")),
        entry(b"main.h", other, None),
        FindRecord::Directory(directory(b"d/lib")),
    ];
    assert_eq!(unpack(packed().into()).unwrap(), expected);
}

#[test]
fn records_that_do_not_fit_leave_no_bytes() {
    let whole = packed();
    for bytes_max in 0..whole.len() {
        let mut writer = FindWriter::new(bytes_max);
        let mut packed_count = 0;
        packed_count += usize::from(writer.directory(&directory(b"d")));
        for name in [b"main.c", b"main.h", b"main.o"] {
            packed_count += usize::from(writer.entry(name, &file_stat(), Some(b"hello")));
        }
        packed_count += usize::from(writer.directory(&directory(b"d/lib")));
        assert!(writer.len() <= bytes_max);
        assert_eq!(unpack(writer.finish()).unwrap().len(), packed_count, "{bytes_max} bytes");
    }
}

#[test]
fn entries_need_an_open_directory() {
    let mut writer = FindWriter::new(1000);
    assert!(!writer.entry(b"f", &file_stat(), None));
    assert!(writer.directory(&directory(b"")));
    assert!(writer.entry(b"f", &file_stat(), None));
    writer.end_directory();
    assert!(!writer.entry(b"g", &file_stat(), None));
}

#[test]
fn contents_of_another_length_than_the_size_are_left_out() {
    let link = Stat { kind: Kind::Symlink, size: 4, ..file_stat() };
    let cases: [(Stat, &[u8], bool); 5] = [
        (file_stat(), b"hello", true),
        (file_stat(), b"hell", false),
        (Stat { size: 0, ..file_stat() }, b"", true),
        (link, b"d/f2", true),
        (Stat { size: 0, kind: Kind::Fifo, ..file_stat() }, b"", false),
    ];
    for (stat, contents, come_along) in cases {
        let mut writer = FindWriter::new(1000);
        assert!(writer.directory(&directory(b"")) && writer.entry(b"f", &stat, Some(contents)));
        let records = unpack(writer.finish()).unwrap();
        let Some(FindRecord::Entry(entry)) = records.get(1) else { panic!("{records:?}") };
        assert_eq!(entry.contents.as_deref(), come_along.then_some(contents), "{stat:?}");
    }
}

#[test]
fn a_name_is_encoded_against_the_previous_name_of_its_directory_only() {
    let mut writer = FindWriter::new(1000);
    assert!(writer.directory(&directory(b"a")) && writer.entry(b"same", &file_stat(), None));
    assert!(writer.directory(&directory(b"b")) && writer.entry(b"same", &file_stat(), None));
    let packed = writer.finish();
    assert_eq!(packed.windows(6).filter(|window| *window == b"\x00\x04same").count(), 2);
    assert_eq!(unpack(packed).unwrap().len(), 4);
}

#[test]
fn invalid_records_are_rejected() {
    // The entries here have the predicted attributes, encoded by one zero byte.
    let mut writer = FindWriter::new(1000);
    let time = file_stat().ctime;
    let stat = Stat { atime: time, mtime: time, ..directory_stat() };
    assert!(writer.directory(&FindDirectory { stat, ..directory(b"") }));
    let root = writer.finish();
    let after_root: [(&[u8], &str); 13] = [
        (&[0x40, 0, 1, b'f', 0], "unknown bits in a record"),
        (&[0x02, 0, 1, b'f', 0], "unknown bits in a record"),
        (&[0x09, 0, 1, b'f', 0], "unknown bits in a record"),
        (&[0x00, 0, 0, 0], "an entry's name that is not clean"),
        (&[0x00, 0, 2, b'.', b'.', 0], "an entry's name that is not clean"),
        (&[0x00, 0, 3, b'a', b'/', b'b', 0], "an entry's name that is not clean"),
        (&[0x01, 0, 2, b'.', b'.', 0], "a directory's path that is not clean"),
        (&[0x01, 0, 2, b'/', b'a', 0], "a directory's path that is not clean"),
        (&[0x00, 1, 1, b'f', 0], "a shared prefix longer than the previous name"),
        (&[0x00, 0, 0x80, 0x02, b'f'], "a name over its limit"),
        (&[0x00, 0, 0x81, 0x00, b'f', 0], "a number that is not in its shortest encoding"),
        (&[0x08, 0, 1, b'f', 0], "contents of an object without any"),
        (&[0x00, 0, 1, b'f', 0, 0x00, 0, 1, b'f', 0], "a shared prefix that could be longer"),
    ];
    for (record, what) in after_root {
        assert_eq!(refusal(&[&root, record].concat()), what, "{record:x?}");
    }
    assert_eq!(refusal(&[0x00, 0, 1, b'f', 0]), "an entry without a directory");
    for len in 1..root.len() {
        assert_eq!(refusal(&root[..len]), "ends within a field", "{len}");
    }
}

#[test]
fn contents_longer_than_the_message_are_rejected() {
    let mut bytes = packed();
    bytes.truncate(bytes.len() - 16 - 6 - 1);
    assert_eq!(refusal(&bytes), "ends within a field");
}

#[test]
fn paths_over_the_total_limit_are_neither_encoded_nor_decoded() {
    let long = TreePath::from_names(vec![&[b'p'; NAME_BYTES_MAX][..]; 120]).unwrap();
    let directory_at = |path: &TreePath| FindDirectory { path: path.clone(), ..directory(b"") };
    let mut writer = FindWriter::new(usize::MAX);
    let most = FIND_PATH_BYTES_MAX / long.as_bytes().len();
    assert!((0..most).all(|_| writer.directory(&directory_at(&long))));
    assert!(!writer.directory(&directory_at(&long)), "{most} and one more");
    let again = [0x13, 0xff, 0xef, 0x01, 0, 0];
    let packed = writer.finish();
    assert!(packed.ends_with(&again), "{:x?}", packed.rchunks(8).next());
    assert_eq!(unpack(packed.clone()).unwrap().len(), most);
    assert_eq!(refusal(&[&packed[..], &again].concat()), "paths over their limit");
}
