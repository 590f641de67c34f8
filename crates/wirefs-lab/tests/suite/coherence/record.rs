//! What stands in a file, so that both its contents and its size tell which value it is.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// Bytes of a record: magic, value, and the value's complement, so that a mix of two is seen.
pub(super) const RECORD_BYTES: usize = 24;
/// A file of value v is so many bytes long and v more.
pub(super) const SIZE_BASE: u64 = 4_096;
const MAGIC: &[u8; 8] = b"record!\n";

/// One write of a whole file, or what was seen of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Value(pub(super) u64);

pub(super) fn encode(value: Value) -> [u8; RECORD_BYTES] {
    let mut record = [0; RECORD_BYTES];
    record[..8].copy_from_slice(MAGIC);
    record[8..16].copy_from_slice(&value.0.to_le_bytes());
    record[16..].copy_from_slice(&(!value.0).to_le_bytes());
    record
}

/// # Errors
/// The file cannot be read. What is no record is a fault of the mount and panics.
pub(super) fn read(path: &Path) -> io::Result<Value> {
    let mut record = [0; RECORD_BYTES];
    File::open(path)?.read_exact(&mut record)?;
    let field = |at: usize| u64::from_le_bytes(record[at..at + 8].try_into().unwrap());
    assert!(
        &record[..8] == MAGIC && field(16) == !field(8),
        "{}: a mix of two versions: {record:?}",
        path.display()
    );
    Ok(Value(field(8)))
}

/// Writes a file that tells of `value` by its contents and its size.
pub(super) fn write_new(path: &Path, value: Value) -> io::Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all_at(&encode(value), 0)?;
    file.set_len(SIZE_BASE + value.0)?;
    crate::sys::close(file)
}

/// Writes `value` over what is there, the size left alone.
pub(super) fn write_in_place(path: &Path, value: Value) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    file.write_all_at(&encode(value), 0)?;
    crate::sys::close(file)
}

/// The value 0, which is there when a run begins.
pub(super) fn write_in_place_file(path: &Path) {
    fs::write(path, encode(Value(0))).unwrap();
}
