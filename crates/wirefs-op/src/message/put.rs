//! Tput: walk + create + wstat + write in one request.

#[cfg(test)]
mod tests;

use crate::message::get::mode_bits;
use crate::message::target::{Fd, Target};
use crate::stat::{Cred, Kind, SetStat, Stat};
use crate::wire::{Data, wire_struct};

mode_bits! {
    /// What a Tput does, in this order: create, open, truncate and change attributes, write, close.
    PutMode {
        /// Writes the data.
        DATA = 1,
        /// Changes attributes as `set` says.
        STAT = 2,
        /// Keeps the file open and tells its fd; without it, a valid fd of the request is closed.
        MORE = 4,
        /// Creates. `target.id` is then the *directory's* id.
        CREATE = 8,
        /// With CREATE: it must not exist yet.
        EXCLUSIVE = 16,
        /// The data goes to the end of the file, wherever that is; `offset` does not count.
        APPEND = 32,
        /// Answers when the change is on stable storage.
        SYNC = 64,
        /// Removes the name when the fd is closed or the session ends (the source's OREMOVEC).
        REMOVE = 128,
        /// Set-id bits and file capabilities of a file that was there before fall with this write or truncation.
        KILL_PRIVILEGES = 256,
        /// With MORE: the fd is to be good for reading.
        READ = 512,
        /// With MORE: the fd is to be good for writing.
        WRITE = 1024,
        /// With CREATE: a file without a name, in the directory that the path names (`O_TMPFILE`).
        NAMELESS = 2048,
    }
}

wire_struct! {
    /// What to create.
    pub struct Create {
        /// Its kind. A symbolic link's target is the request's data.
        kind: Kind,
        /// Permission bits, before the umask.
        mode: u32,
        /// Device number for device nodes.
        rdev: u32,
        /// On whose behalf.
        cred: Cred,
    }
}

wire_struct! {
    /// `Tput tag[2] target mode[2] create[opt] set offset[8] count[4] data[count]`
    pub struct Tput {
        /// The file, or the name to create.
        target: Target,
        /// What to do.
        mode: PutMode,
        /// With CREATE: what.
        create: Option<Create>,
        /// With STAT: which attributes.
        set: SetStat,
        /// Where the data goes.
        offset: u64,
        /// The data to write.
        data: Data,
    }
}

impl Tput {
    /// Whether it does nothing but wait for stable storage: what is behind it in the line waits for it
    /// ([`FEATURE_BARRIERS`](crate::message::version::FEATURE_BARRIERS)).
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
        /// Bytes written.
        count: u32,
        /// Where they went (for APPEND).
        offset: u64,
        /// The object's `Stat::version` just before it; 0 when it was created. A client that knows this version knows
        /// that nobody else came between (NFS's weak cache consistency, RFC 1813 §2.6).
        before: u64,
        /// The attributes after it.
        stat: Option<Stat>,
        /// With CREATE: the directory's attributes after it.
        dir: Option<Stat>,
    }
}
