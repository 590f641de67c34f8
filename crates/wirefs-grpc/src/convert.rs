//! Values of the tree as messages.

use crate::proto;
use wirefs_op::{FsStat, Kind, SetStat, SetTime, Stat, Timestamp};

fn time(time: Timestamp) -> Option<proto::Time> {
    Some(proto::Time { seconds: time.secs, nanoseconds: time.nanos })
}

pub(crate) fn attributes(stat: &Stat) -> proto::Attributes {
    let kind = match stat.kind {
        Kind::File => proto::Kind::File,
        Kind::Directory => proto::Kind::Directory,
        Kind::Symlink => proto::Kind::Symlink,
        Kind::Fifo => proto::Kind::Fifo,
        Kind::Socket => proto::Kind::Socket,
        Kind::CharDevice => proto::Kind::CharDevice,
        Kind::BlockDevice => proto::Kind::BlockDevice,
    };
    proto::Attributes {
        kind: kind.into(),
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
    }
}

pub(crate) fn set_stat(request: &proto::SetAttributesRequest) -> SetStat {
    let time = |time: Option<proto::Time>| {
        let nanos = |time: &proto::Time| time.nanoseconds.min(999_999_999);
        time.map(|time| SetTime::At(Timestamp { secs: time.seconds, nanos: nanos(&time) }))
    };
    SetStat {
        mode: request.mode.map(|mode| mode & 0o7777),
        uid: request.uid,
        gid: request.gid,
        size: request.size,
        atime: time(request.accessed),
        mtime: time(request.modified),
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
