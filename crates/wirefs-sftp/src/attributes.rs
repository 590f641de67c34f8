//! Attributes of SFTP, and Op's attributes from them.

use wirefs_op::{FileId, Kind, Stat, Timestamp};

use crate::message::{Malformed, Packet, PacketReader};

const SIZE: u32 = 1;
const OWNER: u32 = 2;
const PERMISSIONS: u32 = 4;
const TIMES: u32 = 8;
const EXTENDED: u32 = 0x8000_0000;

/// The attributes of an object, or the changes of some.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Attributes {
    pub(crate) size: Option<u64>,
    /// User and group.
    pub(crate) owner: Option<(u32, u32)>,
    /// With the type bits of POSIX, in replies.
    pub(crate) permissions: Option<u32>,
    /// Last access and last change, in seconds.
    pub(crate) times: Option<(u32, u32)>,
}

impl Attributes {
    /// Returns attributes with permissions alone.
    pub(crate) fn mode(mode: u32) -> Attributes {
        Attributes { permissions: Some(mode), ..Attributes::default() }
    }

    pub(crate) fn put(&self, packet: &mut Packet) {
        let bit = |is_present, bit| if is_present { bit } else { 0 };
        let flags = bit(self.size.is_some(), SIZE)
            | bit(self.owner.is_some(), OWNER)
            | bit(self.permissions.is_some(), PERMISSIONS)
            | bit(self.times.is_some(), TIMES);
        packet.number(flags);
        if let Some(size) = self.size {
            packet.long(size);
        }
        if let Some((uid, gid)) = self.owner {
            packet.number(uid);
            packet.number(gid);
        }
        if let Some(permissions) = self.permissions {
            packet.number(permissions);
        }
        if let Some((atime, mtime)) = self.times {
            packet.number(atime);
            packet.number(mtime);
        }
    }

    pub(crate) fn take(reader: &mut PacketReader) -> Result<Attributes, Malformed> {
        let flags = reader.number()?;
        let mut found = Attributes::default();
        if flags & SIZE != 0 {
            found.size = Some(reader.long()?);
        }
        if flags & OWNER != 0 {
            found.owner = Some((reader.number()?, reader.number()?));
        }
        if flags & PERMISSIONS != 0 {
            found.permissions = Some(reader.number()?);
        }
        if flags & TIMES != 0 {
            found.times = Some((reader.number()?, reader.number()?));
        }
        if flags & EXTENDED != 0 {
            for _ in 0..reader.number()? {
                let (_kind, _data) = (reader.string()?, reader.string()?);
            }
        }
        Ok(found)
    }

    /// Returns the kind of the object. A server that sends no type bits has plain files alone.
    pub(crate) fn kind(&self) -> Kind {
        self.permissions.and_then(Kind::from_mode).unwrap_or(Kind::File)
    }

    /// Returns Op's attributes of the object with this inode number.
    pub(crate) fn stat(&self, ino: u64) -> Stat {
        let kind = self.kind();
        let (uid, gid) = self.owner.unwrap_or_default();
        let (atime, mtime) = self.times.unwrap_or_default();
        let time = |secs: u32| Timestamp { secs: i64::from(secs), nanos: 0 };
        let size = self.size.unwrap_or_default();
        Stat {
            version: self.version(),
            mode: self.permissions.unwrap_or(0o644) & 0o7777,
            // Not known: programs take 1 for a directory as that.
            nlink: 1,
            uid,
            gid,
            size,
            blocks: size.div_ceil(512),
            blksize: 4096,
            atime: time(atime),
            mtime: time(mtime),
            ctime: time(mtime),
            without_xattrs: true,
            ..Stat::blank(id_of(ino, kind), kind)
        }
    }

    /// Returns a number that differs, nearly always, if contents or attributes differ: SFTP has no better one.
    fn version(&self) -> u64 {
        let (uid, gid) = self.owner.unwrap_or_default();
        let parts = [
            self.size.unwrap_or_default(),
            u64::from(self.times.map_or(0, |(_, mtime)| mtime)),
            u64::from(self.permissions.unwrap_or_default()),
            u64::from(uid) << 32 | u64::from(gid),
        ];
        // Words are mixed one after the other; 0 and the highest number have a meaning of their own.
        let hash = parts.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, part| {
            let mixed = (hash ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            mixed ^ (mixed >> 29)
        });
        hash.clamp(1, u64::MAX - 1)
    }
}

/// Returns the id of an object: another kind of object at the same path is another object.
pub(crate) fn id_of(ino: u64, kind: Kind) -> FileId {
    FileId { fs: 0, ino, generation: kind as u32 + 1 }
}

/// Returns the kind of an object with this id.
pub(crate) fn kind_of(id: FileId) -> Option<Kind> {
    u8::try_from(id.generation.checked_sub(1)?).ok().and_then(Kind::from_code)
}
