//! Open files.

use super::*;
use wirefs_client::call::{OpenHow, WriteData};

#[test]
fn open_flags_become_how() {
    let open = |how| Call::Open { node: NODE, how };
    let read = OpenHow { read: true, ..OpenHow::default() };
    expect(14, "00800000 00000000", open(read), Expects::Opened);
    let append = OpenHow { write: true, append: true, truncate: true, ..OpenHow::default() };
    expect(14, "01060000 00000000", open(append), Expects::Opened);
    let both = OpenHow { read: true, write: true, ..OpenHow::default() };
    expect(14, "02000000 00000000", open(both), Expects::Opened);
    expect(14, "03000000 00000000", open(both), Expects::Opened);
}

#[test]
fn only_sync_flags_make_an_open_synchronous() {
    let how = |flags: &str| {
        let request = request(14, &format!("{flags} 00000000"));
        match decode(&request, PLAIN) {
            Ok((_, Body::Call(Call::Open { how, .. }, _))) => how,
            other => panic!("{other:?}"),
        }
    };
    assert!(!how("02000000").sync);
    assert!(how("02100000").sync, "O_DSYNC");
    assert!(how("02101000").sync, "O_SYNC");
}

#[test]
fn files_are_created_with_and_without_a_name() {
    let how = OpenHow { read: true, write: true, exclusive: true, ..OpenHow::default() };
    expect(
        35,
        "c2000000 a4810000 12000000 00000000 'new' .",
        Call::Create { parent: NODE, name: b"new", mode: 0o100_644, umask: 0o022, how },
        Expects::Created,
    );
    let how = OpenHow { exclusive: false, ..how };
    expect(
        51,
        "02000000 80810000 00000000 00000000 '/' .",
        Call::Tmpfile { parent: NODE, mode: 0o100_600, umask: 0, how },
        Expects::Created,
    );
}

#[test]
fn data_is_read_and_written() {
    let (node, handle) = (NODE, HANDLE);
    expect(
        15,
        "0102030400000000 0000000001000000 00001000 00000000 0000000000000000 00000000 00000000",
        Call::Read { node, handle, offset: 1 << 32, count: 1 << 20 },
        Expects::Data { bytes_max: 1 << 20 },
    );
    let write = |cached, kill_privileges| Call::Write {
        node,
        handle,
        offset: 5,
        data: WriteData::Lent(b"abc"),
        cached,
        kill_privileges,
    };
    let bytes = |flags: &str| {
        format!("0102030400000000 0500000000000000 03000000 {flags} 0900000000000000 00000000 00000000 'abc'")
    };
    expect(16, &bytes("00000000"), write(false, false), Expects::Count);
    expect(16, &bytes("01000000"), write(true, false), Expects::Count);
    expect(16, &bytes("06000000"), write(false, true), Expects::Count);
}

#[test]
fn open_files_are_flushed_synced_and_closed() {
    let (node, handle) = (NODE, HANDLE);
    let owner = 0x99;
    expect(
        25,
        "0102030400000000 00000000 00000000 9900000000000000",
        Call::Flush { node, handle, owner },
        Expects::Done,
    );
    let release = |flock_owner| Call::Release { node, handle, flock_owner };
    expect(18, "0102030400000000 02000000 00000000 9900000000000000", release(None), Expects::Done);
    expect(18, "0102030400000000 02000000 02000000 9900000000000000", release(Some(handle.0)), Expects::Done);
    let fsync = |data_only| Call::Fsync { node, handle, data_only };
    expect(20, "0102030400000000 01000000 00000000", fsync(true), Expects::Done);
    expect(20, "0102030400000000 00000000 00000000", fsync(false), Expects::Done);
    expect(
        30,
        "0102030400000000 01000000 00000000",
        Call::Fsyncdir { node, handle, data_only: true },
        Expects::Done,
    );
    expect(50, "0000000000000000", Call::Syncfs { node }, Expects::Done);
    expect(17, "", Call::Statfs { node }, Expects::FsStat);
    expect(34, "05000000 00000000", Call::Access { node, mask: 5 }, Expects::Done);
}

#[test]
fn space_holes_and_copies_have_their_operands() {
    let (node, handle) = (NODE, HANDLE);
    expect(
        43,
        "0102030400000000 0100000000000000 0200000000000000 03000000 00000000",
        Call::Fallocate { node, handle, offset: 1, length: 2, mode: 3 },
        Expects::Done,
    );
    expect(
        46,
        "0102030400000000 0500000000000000 03000000 00000000",
        Call::Lseek { node, handle, offset: 5, whence: 3 },
        Expects::Offset,
    );
    let operands = "0102030400000000 0100000000000000 3300000000000000 0500000000000000 0200000000000000 \
                    0000000001000000 0000000000000000";
    let call = Call::CopyRange {
        from: node,
        from_handle: handle,
        from_offset: 1,
        to: TreeNodeId(0x33),
        to_handle: Handle(5),
        to_offset: 2,
        length: 1 << 32,
    };
    expect(47, operands, call, Expects::Count);
    expect(53, operands, call, Expects::Count64);
}
