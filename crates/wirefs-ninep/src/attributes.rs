//! Attributes in 9P2000.L: those of Rgetattr and of Tsetattr.

use crate::qid::Qid;
use wirefs_op::wire::{Malformed, Reader, Wire, Writer};
use wirefs_op::{FileId, Kind, SetStat, SetTime, Stat, Timestamp, fnv1a};

macro_rules! fields_in_order {
    ($name:ident { $($field:ident),* $(,)? }) => {
        impl Wire for $name {
            fn put(&self, writer: &mut Writer) {
                $(self.$field.put(writer);)*
            }
            fn take(reader: &mut Reader) -> Result<Self, Malformed> {
                Ok($name { $($field: Wire::take(reader)?),* })
            }
        }
    };
}
pub(crate) use fields_in_order;

/// The basic attributes, `P9_GETATTR_BASIC`: what this module tells, but for the version.
pub const GETATTR_BASIC: u64 = 0x7ff;
/// The version is valid.
pub const GETATTR_VERSION: u64 = 0x2000;

/// The sizes of an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// The number of hard links.
    pub nlink: u64,
    /// The device number of a device node.
    pub rdev: u64,
    /// Size in bytes.
    pub size: u64,
    /// Preferred size of a read or write, in bytes.
    pub blksize: u64,
    /// Allocated blocks of 512 bytes.
    pub blocks: u64,
}
fields_in_order!(Sizes { nlink, rdev, size, blksize, blocks });

/// A time: `sec[8] nsec[8]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NineTime {
    /// Seconds since 1970.
    pub secs: u64,
    /// Nanoseconds.
    pub nanos: u64,
}
fields_in_order!(NineTime { secs, nanos });

impl NineTime {
    fn of(time: Timestamp) -> NineTime {
        NineTime { secs: time.secs.cast_unsigned(), nanos: u64::from(time.nanos) }
    }

    fn timestamp(self) -> Timestamp {
        let nanos = u32::try_from(self.nanos).unwrap_or(0).min(999_999_999);
        Timestamp { secs: self.secs.cast_signed(), nanos }
    }
}

/// The attributes of Rgetattr.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// The valid ones, as `GETATTR_…` bits.
    pub valid: u64,
    /// The object.
    pub qid: Qid,
    /// `st_mode`.
    pub mode: u32,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// The sizes.
    pub sizes: Sizes,
    /// Last access.
    pub atime: NineTime,
    /// Last change of contents.
    pub mtime: NineTime,
    /// Last change of attributes or contents.
    pub ctime: NineTime,
    /// Birth: not known.
    pub btime: NineTime,
    /// Distinguishes objects that used the same inode number.
    pub generation: u64,
    /// The version.
    pub version: u64,
}
fields_in_order!(Attributes {
    valid,
    qid,
    mode,
    uid,
    gid,
    sizes,
    atime,
    mtime,
    ctime,
    btime,
    generation,
    version
});

impl Attributes {
    /// Returns the attributes for a request with this mask.
    pub fn of(stat: &Stat, mask: u64) -> Attributes {
        Attributes {
            valid: GETATTR_BASIC | (mask & GETATTR_VERSION),
            qid: Qid::of(stat),
            mode: stat.st_mode(),
            uid: stat.uid,
            gid: stat.gid,
            sizes: Sizes {
                nlink: u64::from(stat.nlink),
                rdev: u64::from(stat.rdev),
                size: stat.size,
                blksize: u64::from(stat.blksize),
                blocks: stat.blocks,
            },
            atime: NineTime::of(stat.atime),
            mtime: NineTime::of(stat.mtime),
            ctime: NineTime::of(stat.ctime),
            btime: NineTime::default(),
            generation: u64::from(stat.id.generation),
            version: stat.version,
        }
    }
}

impl Attributes {
    /// Returns Op's attributes; `None` if the mode has no type.
    pub fn to_stat(&self) -> Option<Stat> {
        let kind = Kind::from_mode(self.mode)?;
        let narrow = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let times = [self.mtime, self.ctime].map(|time| time.secs ^ (time.nanos << 32));
        let own = if self.valid & GETATTR_VERSION != 0 { self.version } else { u64::from(self.qid.version) };
        Some(Stat {
            version: version_of([own, self.sizes.size, times[0], times[1], u64::from(self.mode)]),
            mode: self.mode & 0o7777,
            nlink: narrow(self.sizes.nlink),
            uid: self.uid,
            gid: self.gid,
            rdev: narrow(self.sizes.rdev),
            size: self.sizes.size,
            blocks: self.sizes.blocks,
            blksize: narrow(self.sizes.blksize),
            atime: self.atime.timestamp(),
            mtime: self.mtime.timestamp(),
            ctime: self.ctime.timestamp(),
            ..Stat::blank(FileId { fs: 0, ino: self.qid.path, generation: 0 }, kind)
        })
    }
}

/// Mixes the values that differ when an object differs (FNV-1a): servers of synthetic files keep the qid's version at 0.
pub(crate) fn version_of<const N: usize>(parts: [u64; N]) -> u64 {
    fnv1a(&[parts.map(u64::to_le_bytes).as_flattened()])
}

/// The fields of Tsetattr.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetAttributes {
    /// The attributes to change, as bits: mode 1, uid 2, gid 4, size 8, atime 16, mtime 32, ctime 64; atime and mtime
    /// to the given value 128 and 256.
    pub valid: u32,
    /// Permission bits.
    pub mode: u32,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// Size in bytes.
    pub size: u64,
    /// Last access.
    pub atime: NineTime,
    /// Last change of contents.
    pub mtime: NineTime,
}
fields_in_order!(SetAttributes { valid, mode, uid, gid, size, atime, mtime });

impl SetAttributes {
    /// Returns the fields for changes in Op's terms.
    pub fn of(set: &SetStat) -> SetAttributes {
        let bit = |is_set: bool, bit| if is_set { bit } else { 0 };
        let time = |time: Option<SetTime>| match time {
            Some(SetTime::At(time)) => NineTime::of(time),
            Some(SetTime::Now) | None => NineTime::default(),
        };
        let is_given = |time| matches!(time, Some(SetTime::At(_)));
        let valid = bit(set.mode.is_some(), 1)
            | bit(set.uid.is_some(), 2)
            | bit(set.gid.is_some(), 4)
            | bit(set.size.is_some(), 8)
            | bit(set.atime.is_some(), 16)
            | bit(set.mtime.is_some(), 32)
            | bit(is_given(set.atime), 128)
            | bit(is_given(set.mtime), 256);
        SetAttributes {
            valid,
            mode: set.mode.unwrap_or_default(),
            uid: set.uid.unwrap_or_default(),
            gid: set.gid.unwrap_or_default(),
            size: set.size.unwrap_or_default(),
            atime: time(set.atime),
            mtime: time(set.mtime),
        }
    }

    /// Returns the changes in Op's terms. A change of ctime alone is none.
    pub fn to_set_stat(self) -> SetStat {
        let has = |bit: u32| self.valid & bit != 0;
        let time = |bit, at_bit, time: NineTime| {
            let value = if has(at_bit) { SetTime::At(time.timestamp()) } else { SetTime::Now };
            has(bit).then_some(value)
        };
        SetStat {
            mode: has(1).then_some(self.mode & 0o7777),
            uid: has(2).then_some(self.uid),
            gid: has(4).then_some(self.gid),
            size: has(8).then_some(self.size),
            atime: time(16, 128, self.atime),
            mtime: time(32, 256, self.mtime),
        }
    }
}
