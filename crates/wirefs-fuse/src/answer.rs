//! Encodes answers for the kernel: a pure function, testable without a kernel.

mod attribute;
mod listing;
#[cfg(test)]
mod tests;
mod time;

use crate::abi::{self, opened};
use attribute::{put_attr_out, put_entry_out, put_statx_out};
use bytes::Bytes;
pub(crate) use time::bound;
use wirefs_client::call::{Answer, CallId, Entry, Handle, PageCache};
use wirefs_op::{Errno, FsStat, LockKind, LockRange};

/// The form of an operation's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expects {
    /// No answer.
    Nothing,
    /// Success without data.
    Done,
    /// An entry, or its absence.
    Lookup,
    /// An entry.
    Entry,
    /// Attributes.
    Attr,
    /// Attributes in the form of `statx(2)`.
    Statx,
    /// An opened file.
    Opened,
    /// An opened directory.
    OpenedDirectory,
    /// An entry and an opened file.
    Created,
    /// Bytes.
    Data {
        /// The kernel's room for them.
        bytes_max: u32,
    },
    /// An extended attribute or the list of names; only the size if `size_max` is 0.
    Xattr {
        /// The caller's room.
        size_max: u32,
    },
    /// A count of bytes.
    Count,
    /// A count of bytes in 64 bits.
    Count64,
    /// Directory entries.
    Listing {
        /// The kernel's room for them.
        bytes_max: u32,
        /// Whether each has attributes.
        with_stats: bool,
    },
    /// File system statistics.
    FsStat,
    /// A conflicting lock.
    Lock,
    /// An offset.
    Offset,
}

/// An encoded answer: its head, and data that is not copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Encoded {
    pub(crate) head: Vec<u8>,
    pub(crate) data: Bytes,
}

/// The largest size of most answers in bytes: header, entry, opened file.
const USUAL_BYTES: usize = abi::OUT_HEADER_BYTES + abi::ENTRY_OUT_BYTES + 16;

/// Encodes an answer in the form of its call. An answer of another form becomes `EIO`.
pub(crate) fn encode(call: CallId, expects: Expects, answer: Answer) -> Encoded {
    let mut head = Vec::with_capacity(USUAL_BYTES);
    head.extend_from_slice(&[0; abi::OUT_HEADER_BYTES]);
    let mut data = Bytes::new();
    let mut error = 0;
    match put(&mut head, expects, answer) {
        Ok(bytes) => data = bytes,
        Err(errno) => {
            head.truncate(abi::OUT_HEADER_BYTES);
            error = -i32::from(errno.code());
        }
    }
    put_header(&mut head, error, call.0, data.len());
    Encoded { head, data }
}

/// An error without data.
pub(crate) fn encode_error(call: CallId, errno: Errno) -> Vec<u8> {
    encode(call, Expects::Done, Answer::Fail(errno)).head
}

/// Fills the header at the start of `message`: `len[4] error[4] unique[8]`.
pub(crate) fn put_header(message: &mut [u8], error: i32, unique: u64, data_bytes: usize) {
    let length = u32::try_from(message.len() + data_bytes).unwrap_or(u32::MAX);
    let fields = length.to_ne_bytes().into_iter().chain(error.to_ne_bytes()).chain(unique.to_ne_bytes());
    message.iter_mut().zip(fields).for_each(|(byte, field)| *byte = field);
}

pub(crate) fn put_u16(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_ne_bytes());
}

pub(crate) fn put_u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_ne_bytes());
}

pub(crate) fn put_u64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_ne_bytes());
}

/// Appends the body, and returns the data that follows it.
fn put(out: &mut Vec<u8>, expects: Expects, answer: Answer) -> Result<Bytes, Errno> {
    match (answer, expects) {
        (Answer::Fail(errno), _) => return Err(errno),
        (Answer::Done, Expects::Done) => {}
        (Answer::Entry(entry), Expects::Lookup | Expects::Entry) => put_entry_out(out, &entry),
        (Answer::NoEntry(ttl), Expects::Lookup) => {
            if ttl.is_zero() {
                return Err(Errno::NotFound);
            }
            attribute::put_no_entry(out, ttl);
        }
        (Answer::Attr(stat, ttl), Expects::Attr) => put_attr_out(out, &stat, ttl),
        (Answer::Attr(stat, ttl), Expects::Statx) => put_statx_out(out, &stat, ttl),
        (Answer::Opened(handle, cache), Expects::Opened) => put_opened(out, handle, file_flags(cache)),
        (Answer::Opened(handle, cache), Expects::OpenedDirectory) => {
            put_opened(out, handle, directory_flags(cache));
        }
        (Answer::Created(entry, handle, cache), Expects::Created) => put_created(out, &entry, handle, cache),
        (Answer::Data(data), Expects::Data { bytes_max }) => return within(data, bytes_max, Errno::Io),
        (Answer::Data(data), Expects::Xattr { size_max: 0 }) => {
            put_size(out, u32::try_from(data.len()).map_err(|_| Errno::TooBig)?);
        }
        (Answer::Data(data), Expects::Xattr { size_max }) => return within(data, size_max, Errno::Range),
        (Answer::Size(size), Expects::Xattr { size_max: 0 }) => put_size(out, size),
        (Answer::Count(count), Expects::Count) => put_size(out, count),
        (Answer::Count(count), Expects::Count64) => put_u64(out, u64::from(count)),
        (Answer::Listing(entries), Expects::Listing { bytes_max, with_stats }) => {
            listing::put(out, &entries, bytes_max, with_stats)?;
        }
        // The kernel marks a listing as complete only after an answer of 0 bytes, and reads no entry from fewer
        // bytes (`fs/fuse/readdir.c`).
        (Answer::ListingEnd, Expects::Listing { .. }) => put_u64(out, 0),
        (Answer::FsStat(fs), Expects::FsStat) => put_fs_stat(out, &fs),
        (Answer::Lock(lock), Expects::Lock) => put_lock(out, lock),
        (Answer::Offset(offset), Expects::Offset) => put_u64(out, offset),
        (
            Answer::Done
            | Answer::Entry(_)
            | Answer::NoEntry(_)
            | Answer::Attr(..)
            | Answer::Opened(..)
            | Answer::Created(..)
            | Answer::Data(_)
            | Answer::Size(_)
            | Answer::Count(_)
            | Answer::Listing(_)
            | Answer::ListingEnd
            | Answer::FsStat(_)
            | Answer::Lock(_)
            | Answer::Offset(_),
            _,
        ) => return Err(Errno::Io),
    }
    Ok(Bytes::new())
}

fn within(data: Bytes, bytes_max: u32, otherwise: Errno) -> Result<Bytes, Errno> {
    let fits = usize::try_from(bytes_max).is_ok_and(|bytes_max| data.len() <= bytes_max);
    if fits { Ok(data) } else { Err(otherwise) }
}

/// Whether pages are cached although the file system asked for the opposite: otherwise the file could not be
/// mapped.
pub(crate) fn decide_pages(answer: &mut Answer, maps_uncached: bool) {
    if let Answer::Opened(_, cache @ PageCache::Avoid) | Answer::Created(_, _, cache @ PageCache::Avoid) =
        answer
    {
        *cache = if maps_uncached { PageCache::Bypass } else { PageCache::Drop };
    }
}

/// Sets NOFLUSH only if it was answered: the kernel leaves the release of POSIX locks at a close to FLUSH
/// (`fuse_setlk`), also of those taken through other descriptors of the file.
fn file_flags(cache: PageCache) -> u32 {
    match cache {
        PageCache::Keep => opened::KEEP_CACHE,
        PageCache::Quiet => opened::KEEP_CACHE | opened::NOFLUSH,
        PageCache::Drop | PageCache::Avoid => 0,
        PageCache::Bypass => opened::DIRECT_IO | opened::PARALLEL_DIRECT_WRITES,
        PageCache::QuietBypass => opened::DIRECT_IO | opened::PARALLEL_DIRECT_WRITES | opened::NOFLUSH,
    }
}

/// The kernel caches a listing only if it may be kept, because it cannot validate one.
fn directory_flags(cache: PageCache) -> u32 {
    match cache {
        PageCache::Keep | PageCache::Quiet => opened::KEEP_CACHE | opened::CACHE_DIR,
        PageCache::Drop | PageCache::Bypass | PageCache::QuietBypass | PageCache::Avoid => 0,
    }
}

/// `fh[8] open_flags[4] backing_id[4]`
fn put_opened(out: &mut Vec<u8>, handle: Handle, flags: u32) {
    put_u64(out, handle.0);
    put_u32(out, flags);
    put_u32(out, 0);
}

fn put_created(out: &mut Vec<u8>, entry: &Entry, handle: Handle, cache: PageCache) {
    put_entry_out(out, entry);
    put_opened(out, handle, file_flags(cache));
}

/// `size[4] pad[4]`, the shape of `fuse_write_out` and `fuse_getxattr_out`.
fn put_size(out: &mut Vec<u8>, size: u32) {
    put_u32(out, size);
    put_u32(out, 0);
}

/// `blocks[8] bfree[8] bavail[8] files[8] ffree[8] bsize[4] namelen[4] frsize[4] pad[4] spare[24]`
fn put_fs_stat(out: &mut Vec<u8>, fs: &FsStat) {
    for figure in [fs.blocks, fs.blocks_free, fs.blocks_available, fs.files, fs.files_free] {
        put_u64(out, figure);
    }
    for figure in [fs.block_bytes, fs.name_bytes_max, fs.block_bytes, 0] {
        put_u32(out, figure);
    }
    out.extend_from_slice(&[0; 24]);
}

/// `start[8] end[8] type[4] pid[4]`
fn put_lock(out: &mut Vec<u8>, lock: Option<LockRange>) {
    let lock = lock.unwrap_or(LockRange { kind: LockKind::Unlock, start: 0, end: u64::MAX, pid: 0 });
    put_u64(out, lock.start.min(abi::lock::OFFSET_MAX));
    put_u64(out, lock.end.min(abi::lock::OFFSET_MAX));
    put_u32(
        out,
        match lock.kind {
            LockKind::Read => abi::lock::READ,
            LockKind::Write => abi::lock::WRITE,
            LockKind::Unlock => abi::lock::UNLOCK,
        },
    );
    put_u32(out, lock.pid);
}
