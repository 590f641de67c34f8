//! Writes the data of a Tput.

use crate::failure::{Failure, uninterrupted};
use crate::open_files::OpenFile;
use rustix::fs::SeekFrom;
use rustix::io::{Errno as SystemErrno, ReadWriteFlags};
use std::io::IoSlice;
use wirefs_op::Errno;
use wirefs_op::message::put::{PutMode, Tput};

/// Offset for `pwritev2`: use the file position and advance it.
const AT_POSITION: u64 = u64::MAX;

/// The result of a write.
pub(super) struct Written {
    /// Bytes written.
    pub(super) count: u32,
    /// The offset of the first byte.
    pub(super) offset: u64,
}

impl Written {
    pub(super) fn nothing(offset: u64) -> Written {
        Written { count: 0, offset }
    }
}

/// Writes all data. Bytes written before a failure count: the failure occurs again with the rest.
pub(super) fn write(file: &OpenFile, request: &Tput) -> Result<Written, Failure> {
    let data: &[u8] = &request.data.0;
    if request.mode.has(PutMode::APPEND) {
        return append(file, data);
    }
    // The data is bounded, so only the offset can be out of range.
    let end = request.offset.checked_add(data.len() as u64).ok_or(Errno::FileTooBig)?;
    i64::try_from(end).map_err(|_| Errno::FileTooBig)?;
    let count = write_all(data, |rest, done| rustix::io::pwrite(file, rest, request.offset + done))?;
    Ok(Written { count, offset: request.offset })
}

/// Appends to the file. The kernel determines the end and writes in one step, so that concurrent appends of clients
/// and server programs never overlap.
fn append(file: &OpenFile, data: &[u8]) -> Result<Written, Failure> {
    let _position = file.position();
    let count = write_all(data, |rest, _| {
        rustix::io::pwritev2(file, &[IoSlice::new(rest)], AT_POSITION, ReadWriteFlags::APPEND)
    })?;
    let end = rustix::fs::seek(file, SeekFrom::Current(0))?;
    Ok(Written { count, offset: end.saturating_sub(count.into()) })
}

fn write_all(
    data: &[u8],
    mut write: impl FnMut(&[u8], u64) -> Result<usize, SystemErrno>,
) -> Result<u32, Failure> {
    let mut done = 0;
    while let Some(rest) = data.get(done..).filter(|rest| !rest.is_empty()) {
        match uninterrupted(|| write(rest, done as u64)) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if done == 0 => return Err(error.into()),
            Err(_) => break,
        }
    }
    // INVARIANT: a message's data is far below 4 GiB.
    Ok(u32::try_from(done).unwrap_or(u32::MAX))
}
