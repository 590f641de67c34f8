//! File contents whose bytes and size both encode a value.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// Bytes of a record: magic, value, and the value's complement, which reveals a mix of two records.
pub(super) const RECORD_BYTES: usize = 24;
/// The size of a file with value 0; a file with value v has v more bytes.
pub(super) const SIZE_BASE: u64 = 4_096;
const MAGIC: &[u8; 8] = b"record!\n";

/// The value of one write of a whole file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RecordValue(pub(super) u64);

pub(super) fn encode(value: RecordValue) -> [u8; RECORD_BYTES] {
    let mut record = [0; RECORD_BYTES];
    record[..8].copy_from_slice(MAGIC);
    record[8..16].copy_from_slice(&value.0.to_le_bytes());
    record[16..].copy_from_slice(&(!value.0).to_le_bytes());
    record
}

/// # Errors
/// Fails if the file cannot be read. Panics if the contents are not a record, which is a fault of the mount.
pub(super) fn read(path: &Path) -> io::Result<RecordValue> {
    let mut record = [0; RECORD_BYTES];
    File::open(path)?.read_exact(&mut record)?;
    let field = |at: usize| u64::from_le_bytes(record[at..at + 8].try_into().unwrap());
    assert!(
        &record[..8] == MAGIC && field(16) == !field(8),
        "{}: a mix of two versions: {record:?}",
        path.display()
    );
    Ok(RecordValue(field(8)))
}

/// Writes a file that encodes `value` in its contents and its size.
pub(super) fn write_new(path: &Path, value: RecordValue) -> io::Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all_at(&encode(value), 0)?;
    file.set_len(SIZE_BASE + value.0)?;
    crate::sys::close(file)
}

/// Overwrites the record with `value`; the size stays.
pub(super) fn write_in_place(path: &Path, value: RecordValue) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    file.write_all_at(&encode(value), 0)?;
    crate::sys::close(file)
}

/// Writes value 0, the initial state of a run.
pub(super) fn write_in_place_file(path: &Path) {
    fs::write(path, encode(RecordValue(0))).unwrap();
}
