//! Attributes in the kernel's formats.

use super::{put_u16, put_u32, put_u64, time};
use crate::abi;
use std::time::Duration;
use wirefs_client::call::Entry;
use wirefs_op::{Stat, Timestamp};

/// `nodeid[8] generation[8] entry_valid[8] attr_valid[8] entry_valid_nsec[4] attr_valid_nsec[4] attr[88]`. The
/// generation is 0: node ids are never reused during a mount.
pub(super) fn put_entry_out(out: &mut Vec<u8>, entry: &Entry) {
    let (name_time, attr_time) = (time::split(entry.entry_ttl), time::split(entry.attr_ttl));
    put_u64(out, entry.node.0);
    put_u64(out, 0);
    put_u64(out, name_time.0);
    put_u64(out, attr_time.0);
    put_u32(out, name_time.1);
    put_u32(out, attr_time.1);
    put_attr(out, &entry.stat);
}

/// An absent entry: node 0, valid for `ttl`.
pub(super) fn put_no_entry(out: &mut Vec<u8>, ttl: Duration) {
    let start = out.len();
    let (secs, nanos) = time::split(ttl);
    put_u64(out, 0);
    put_u64(out, 0);
    put_u64(out, secs);
    put_u64(out, 0);
    put_u32(out, nanos);
    out.resize(start + abi::ENTRY_OUT_BYTES, 0);
}

/// `attr_valid[8] attr_valid_nsec[4] pad[4] attr[88]`
pub(super) fn put_attr_out(out: &mut Vec<u8>, stat: &Stat, ttl: Duration) {
    let (secs, nanos) = time::split(ttl);
    put_u64(out, secs);
    put_u32(out, nanos);
    put_u32(out, 0);
    put_attr(out, stat);
}

/// `ino[8] size[8] blocks[8] atime[8] mtime[8] ctime[8] atimensec[4] mtimensec[4] ctimensec[4] mode[4] nlink[4] uid[4]
/// gid[4] rdev[4] blksize[4] flags[4]`
fn put_attr(out: &mut Vec<u8>, stat: &Stat) {
    for field in [stat.id.ino, stat.size, stat.blocks] {
        put_u64(out, field);
    }
    let times = [stat.atime, stat.mtime, stat.ctime];
    for time in times {
        put_u64(out, time.secs.cast_unsigned());
    }
    for time in times {
        put_u32(out, time.nanos);
    }
    for field in [stat.st_mode(), stat.nlink, stat.uid, stat.gid, stat.rdev, stat.blksize, 0] {
        put_u32(out, field);
    }
}

/// `attr_valid[8] attr_valid_nsec[4] flags[4] spare[16] statx[256]`, all basic attributes, no birth time.
pub(super) fn put_statx_out(out: &mut Vec<u8>, stat: &Stat, ttl: Duration) {
    let (secs, nanos) = time::split(ttl);
    put_u64(out, secs);
    put_u32(out, nanos);
    out.extend_from_slice(&[0; 20]);

    put_u32(out, abi::STATX_BASIC);
    put_u32(out, stat.blksize);
    put_u64(out, 0);
    for field in [stat.nlink, stat.uid, stat.gid] {
        put_u32(out, field);
    }
    // The type and permission bits of POSIX fit into 16 bits.
    put_u16(out, u16::try_from(stat.st_mode()).unwrap_or(u16::MAX));
    put_u16(out, 0);
    for field in [stat.id.ino, stat.size, stat.blocks, 0] {
        put_u64(out, field);
    }
    for time in [stat.atime, Timestamp::default(), stat.ctime, stat.mtime] {
        put_u64(out, time.secs.cast_unsigned());
        put_u32(out, time.nanos);
        put_u32(out, 0);
    }
    let (major, minor) = device_numbers(stat.rdev);
    for field in [major, minor, 0, 0] {
        put_u32(out, field);
    }
    out.extend_from_slice(&[0; 112]);
}

/// A 32-bit device number has 12 bits of major between the 8 low and 12 high bits of minor.
fn device_numbers(rdev: u32) -> (u32, u32) {
    ((rdev & 0x000f_ff00) >> 8, (rdev & 0xff) | ((rdev >> 12) & 0x000f_ff00))
}
