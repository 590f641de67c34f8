//! Values of the tree as messages.

use crate::proto;
use wirefs_op::{FileId, FsStat, Kind, SetStat, SetTime, Stat, Timestamp};

/// The nanoseconds of a time, at most.
const NANOS_MAX: u32 = 999_999_999;
/// The preferred size of reads and writes, in bytes.
const BLOCK_BYTES: u32 = 128 * 1024;

fn time(time: Timestamp) -> Option<proto::Time> {
    Some(proto::Time { seconds: time.secs, nanoseconds: time.nanos })
}

pub(crate) fn kind_message(kind: Kind) -> proto::Kind {
    match kind {
        Kind::File => proto::Kind::File,
        Kind::Directory => proto::Kind::Directory,
        Kind::Symlink => proto::Kind::Symlink,
        Kind::Fifo => proto::Kind::Fifo,
        Kind::Socket => proto::Kind::Socket,
        Kind::CharDevice => proto::Kind::CharDevice,
        Kind::BlockDevice => proto::Kind::BlockDevice,
    }
}

pub(crate) fn kind_of(kind: proto::Kind) -> Kind {
    match kind {
        proto::Kind::File => Kind::File,
        proto::Kind::Directory => Kind::Directory,
        proto::Kind::Symlink => Kind::Symlink,
        proto::Kind::Fifo => Kind::Fifo,
        proto::Kind::Socket => Kind::Socket,
        proto::Kind::CharDevice => Kind::CharDevice,
        proto::Kind::BlockDevice => Kind::BlockDevice,
    }
}

pub(crate) fn identity(id: FileId) -> proto::Identity {
    proto::Identity { file_system: id.fs, inode: id.ino, generation: id.generation }
}

pub(crate) fn id_of(identity: &proto::Identity) -> FileId {
    FileId { fs: identity.file_system, ino: identity.inode, generation: identity.generation }
}

/// Attributes of a message as the tree's. Those that the service does not have are unknown.
pub(crate) fn stat_of(found: &proto::Attributes) -> Stat {
    let time = |time: Option<proto::Time>| {
        time.map_or_else(Timestamp::default, |time| Timestamp {
            secs: time.seconds,
            nanos: time.nanoseconds.min(NANOS_MAX),
        })
    };
    let id = FileId { fs: found.file_system, ino: found.inode, generation: found.generation };
    Stat {
        version: found.version,
        mode: found.mode & 0o7777,
        nlink: found.links,
        uid: found.uid,
        gid: found.gid,
        rdev: found.device,
        size: found.size,
        blocks: found.blocks,
        blksize: BLOCK_BYTES,
        atime: time(found.accessed),
        mtime: time(found.modified),
        ctime: time(found.changed),
        ..Stat::blank(id, kind_of(found.kind()))
    }
}

pub(crate) fn attributes(stat: &Stat) -> proto::Attributes {
    proto::Attributes {
        kind: kind_message(stat.kind).into(),
        mode: stat.mode,
        size: stat.size,
        uid: stat.uid,
        gid: stat.gid,
        links: stat.nlink,
        inode: stat.id.ino,
        accessed: time(stat.atime),
        modified: time(stat.mtime),
        changed: time(stat.ctime),
        version: stat.version,
        blocks: stat.blocks,
        file_system: stat.id.fs,
        generation: stat.id.generation,
        device: stat.rdev,
    }
}

pub(crate) fn set_stat(request: &proto::SetAttributesRequest) -> SetStat {
    let time = |time: Option<proto::Time>, is_now: bool| {
        let nanos = |time: &proto::Time| time.nanoseconds.min(NANOS_MAX);
        let given = time.map(|time| SetTime::At(Timestamp { secs: time.seconds, nanos: nanos(&time) }));
        if is_now { Some(SetTime::Now) } else { given }
    };
    SetStat {
        mode: request.mode.map(|mode| mode & 0o7777),
        uid: request.uid,
        gid: request.gid,
        size: request.size,
        atime: time(request.accessed, request.accessed_now),
        mtime: time(request.modified, request.modified_now),
    }
}

/// A change of attributes as a message.
pub(crate) fn set_message(
    path: Vec<u8>,
    object: Option<FileId>,
    set: &SetStat,
) -> proto::SetAttributesRequest {
    let given = |time: Option<SetTime>| match time {
        Some(SetTime::At(given)) => self::time(given),
        Some(SetTime::Now) | None => None,
    };
    proto::SetAttributesRequest {
        path: path.into(),
        mode: set.mode,
        size: set.size,
        uid: set.uid,
        gid: set.gid,
        accessed: given(set.atime),
        modified: given(set.mtime),
        accessed_now: set.atime == Some(SetTime::Now),
        modified_now: set.mtime == Some(SetTime::Now),
        object: object.map(identity),
    }
}

pub(crate) fn figures(figures: &FsStat) -> proto::FsFigures {
    proto::FsFigures {
        block_bytes: u64::from(figures.block_bytes),
        blocks: figures.blocks,
        blocks_free: figures.blocks_free,
        blocks_available: figures.blocks_available,
        files: figures.files,
        files_free: figures.files_free,
    }
}
