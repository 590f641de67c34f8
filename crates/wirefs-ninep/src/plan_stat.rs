//! The stat of 9P2000: machine-independent directory entries, and the changes of Twstat.

use crate::attributes::version_of;
use crate::qid::{QID_DIRECTORY, Qid};
use crate::text::NineString;
use wirefs_op::wire::{Malformed, Reader, Wire, Writer};
use wirefs_op::{FileId, Kind, Stat, Timestamp};

/// The mode bit of a directory.
pub const DMDIR: u32 = 0x8000_0000;

/// `size[2] type[2] dev[4] qid[13] mode[4] atime[4] mtime[4] length[8] name[s] uid[s] gid[s] muid[s]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanStat {
    /// For the server's kernel.
    pub kind: u16,
    /// For the server's kernel.
    pub dev: u32,
    /// The object.
    pub qid: Qid,
    /// Permissions and flags.
    pub mode: u32,
    /// Last access, in seconds since 1970.
    pub atime: u32,
    /// Last change of contents, in seconds since 1970.
    pub mtime: u32,
    /// Length in bytes; 0 for directories.
    pub length: u64,
    /// The last element of the path.
    pub name: NineString,
    /// The owner's name.
    pub uid: NineString,
    /// The group's name.
    pub gid: NineString,
    /// The name of the user who last changed the file.
    pub muid: NineString,
}

/// The bytes of a stat besides its strings, without the size word.
const FIXED_BYTES: usize = 39 + 4 * 2;

impl PlanStat {
    /// Returns the stat of an object; numbers stand for the names of users.
    pub fn of(stat: &Stat, name: &[u8]) -> PlanStat {
        let number = |id: u32| NineString::new(id.to_string().as_bytes());
        let is_directory = stat.kind == Kind::Directory;
        let secs = |secs: i64| u32::try_from(secs.max(0)).unwrap_or(u32::MAX);
        // Without extensions a client knows files and directories alone.
        let kind = if is_directory { QID_DIRECTORY } else { 0 };
        PlanStat {
            kind: 0,
            dev: 0,
            qid: Qid { kind, ..Qid::of(stat) },
            mode: (stat.mode & 0o777) | if is_directory { DMDIR } else { 0 },
            atime: secs(stat.atime.secs),
            mtime: secs(stat.mtime.secs),
            length: if is_directory { 0 } else { stat.size },
            name: NineString::new(name),
            uid: number(stat.uid),
            gid: number(stat.gid),
            muid: number(stat.uid),
        }
    }

    /// Returns Op's attributes. The user and group of those whose names are not numbers are given.
    pub fn to_stat(&self, uid: u32, gid: u32) -> Stat {
        let number = |name: &NineString| std::str::from_utf8(&name.0).ok()?.parse::<u32>().ok();
        let kind = if self.mode & DMDIR != 0 { Kind::Directory } else { Kind::File };
        let time = |secs: u32| Timestamp { secs: i64::from(secs), nanos: 0 };
        let [version, mode, mtime] = [self.qid.version, self.mode, self.mtime].map(u64::from);
        Stat {
            version: version_of([version, mode, mtime, self.length]),
            mode: self.mode & 0o777,
            nlink: if kind == Kind::Directory { 2 } else { 1 },
            uid: number(&self.uid).unwrap_or(uid),
            gid: number(&self.gid).unwrap_or(gid),
            size: self.length,
            blocks: self.length.div_ceil(512),
            blksize: 4096,
            atime: time(self.atime),
            mtime: time(self.mtime),
            ctime: time(self.mtime),
            ..Stat::blank(FileId { fs: 0, ino: self.qid.path, generation: 0 }, kind)
        }
    }

    /// Returns a Twstat that changes nothing.
    pub fn unchanged() -> PlanStat {
        PlanStat {
            kind: u16::MAX,
            dev: u32::MAX,
            qid: Qid { kind: u8::MAX, version: u32::MAX, path: u64::MAX },
            mode: u32::MAX,
            atime: u32::MAX,
            mtime: u32::MAX,
            length: u64::MAX,
            name: NineString::default(),
            uid: NineString::default(),
            gid: NineString::default(),
            muid: NineString::default(),
        }
    }

    /// Returns the size on the wire in bytes, with the size word.
    pub fn wire_len(&self) -> usize {
        2 + self.inner_len()
    }

    fn inner_len(&self) -> usize {
        let strings = [&self.name, &self.uid, &self.gid, &self.muid];
        FIXED_BYTES + strings.iter().map(|text| text.0.len()).sum::<usize>()
    }
}

impl Wire for PlanStat {
    fn put(&self, writer: &mut Writer) {
        (self.inner_len() as u16).put(writer);
        self.kind.put(writer);
        self.dev.put(writer);
        self.qid.put(writer);
        self.mode.put(writer);
        self.atime.put(writer);
        self.mtime.put(writer);
        self.length.put(writer);
        self.name.put(writer);
        self.uid.put(writer);
        self.gid.put(writer);
        self.muid.put(writer);
    }
    fn take(reader: &mut Reader) -> Result<Self, Malformed> {
        let size = usize::from(u16::take(reader)?);
        let before = reader.remaining();
        let stat = PlanStat {
            kind: Wire::take(reader)?,
            dev: Wire::take(reader)?,
            qid: Wire::take(reader)?,
            mode: Wire::take(reader)?,
            atime: Wire::take(reader)?,
            mtime: Wire::take(reader)?,
            length: Wire::take(reader)?,
            name: Wire::take(reader)?,
            uid: Wire::take(reader)?,
            gid: Wire::take(reader)?,
            muid: Wire::take(reader)?,
        };
        if before - reader.remaining() != size {
            return Err(reader.malformed("a stat of another size than it says"));
        }
        Ok(stat)
    }
}

/// `n[2] stat`: a stat within a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizedStat(pub PlanStat);

impl Wire for SizedStat {
    fn put(&self, writer: &mut Writer) {
        (self.0.wire_len() as u16).put(writer);
        self.0.put(writer);
    }
    fn take(reader: &mut Reader) -> Result<Self, Malformed> {
        let size = usize::from(u16::take(reader)?);
        let stat = PlanStat::take(reader)?;
        if stat.wire_len() != size {
            return Err(reader.malformed("a stat of another size than its message says"));
        }
        Ok(SizedStat(stat))
    }
}
