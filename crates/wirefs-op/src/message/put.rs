//! Tput: walk, create, wstat and write in one request.

#[cfg(test)]
mod tests;

use crate::message::get::mode_bits;
use crate::message::target::{Fd, Target};
use crate::stat::{Cred, Kind, SetStat, Stat};
use crate::wire::{Data, wire_struct};

mode_bits! {
    /// The actions of a Tput, in this order: create, open, truncate and change attributes, write, close.
    PutMode {
        /// Writes the data.
        DATA = 1,
        /// Changes the attributes in `set`.
        STAT = 2,
        /// Keeps the file open and returns its fd; otherwise, a valid fd of the request is closed.
        MORE = 4,
        /// Creates the object. `target.id` is then the *directory's* id.
        CREATE = 8,
        /// With CREATE: fails if the name exists.
        EXCLUSIVE = 16,
        /// Appends the data at the end of the file; `offset` is ignored.
        APPEND = 32,
        /// Replies only when the change is on stable storage.
        SYNC = 64,
        /// Removes the name when the fd is closed or the session ends (ORCLOSE in 9P).
        REMOVE = 128,
        /// Clears the set-id bits and file capabilities of an existing file with this write or truncation.
        KILL_PRIVILEGES = 256,
        /// With MORE: opens the fd for reading.
        READ = 512,
        /// With MORE: opens the fd for writing.
        WRITE = 1024,
        /// With CREATE: creates a file without a name, in the directory at the path (`O_TMPFILE`).
        NAMELESS = 2048,
    }
}

wire_struct! {
    /// The object to create.
    pub struct Create {
        /// The kind. The data of the request is the target of a symbolic link.
        kind: Kind,
        /// The permission bits, before the umask is applied.
        mode: u32,
        /// The device number of a device node.
        rdev: u32,
        /// The owner of the new object.
        cred: Cred,
    }
}

wire_struct! {
    /// `Tput tag[2] target mode[2] create[opt] set offset[8] count[4] data[count]`
    pub struct Tput {
        /// The file, or the name to create.
        target: Target,
        /// The actions.
        mode: PutMode,
        /// With CREATE: the object to create.
        create: Option<Create>,
        /// With STAT: the attributes to change.
        set: SetStat,
        /// The offset of the data.
        offset: u64,
        /// The data to write.
        data: Data,
    }
}

impl Tput {
    /// Returns true if the request only waits for stable storage, so that later requests of the session wait
    /// for it too ([`FEATURE_BARRIERS`](crate::message::version::FEATURE_BARRIERS)).
    pub fn is_barrier(&self) -> bool {
        let opening = PutMode::MORE.and(PutMode::READ).and(PutMode::WRITE);
        self.mode.without(opening) == PutMode::SYNC
    }
}

wire_struct! {
    /// `Rput tag[2] fd[2] count[4] offset[8] before[8] stat[opt] dir[opt]`
    pub struct Rput {
        /// The open file, or NOFD.
        fd: Fd,
        /// The number of bytes written.
        count: u32,
        /// The offset of the written bytes (for APPEND).
        offset: u64,
        /// The object's `Stat::version` before the change; 0 if the request created it. A client that has
        /// this version cached knows that no other change intervened (NFS's weak cache consistency, RFC 1813,
        /// 2.6).
        before: u64,
        /// The attributes after the change.
        stat: Option<Stat>,
        /// With CREATE: the directory's attributes after the change.
        dir: Option<Stat>,
    }
}
