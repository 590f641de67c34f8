//! An automount trigger: a mount that connects on its first use. While its server is known to be down, each call fails
//! at once.
//!
//! | state | attributes of the root | another call | next state |
//! |---|---|---|---|
//! | `Closed` | answered locally | held, and starts the connection | `Connecting` |
//! | `Connecting` | answered locally | held | `Connected` or `Failed`, by [`Automount::finished`] |
//! | `Failed` | answered locally | fails like the connection, for a second | `Connecting`, or `Closed` when the server is up |
//! | `Connected` | forwarded | forwarded | `Ended` |
//! | `Ended` | fails with `EHOSTDOWN` | fails with `EHOSTDOWN` | none |
//!
//! In each state, calls fail with `EHOSTDOWN` while the server is down, except those that release an object. So neither
//! a listing of the directory with such mounts nor `df` connects to a server. If a killed mount left a journal, the
//! trigger connects by itself to replay it.

#[cfg(test)]
mod tests;

use std::time::Duration;

use wirefs_op::{Errno, FileId, FsStat, Kind, Stat, Time, Timestamp};

use crate::call::{Answer, Call, ROOT};

/// The maximum number of held calls; further ones fail with `EAGAIN`.
const HELD_MAX: usize = 1_024;
/// The time for which a failure also fails later calls.
const FAILURE_TTL: Duration = Duration::from_secs(1);
/// The pause before the next attempt to connect for a journal.
const JOURNAL_RETRY: Duration = Duration::from_secs(5);
/// The unit of the server's reported space, in bytes.
const BLOCK_BYTES: u32 = 4_096;
/// The maximum length of a name, in bytes.
const NAME_BYTES_MAX: u32 = 255;
/// The time for which the kernel caches attributes before the connection.
const UNCONNECTED_TTL: Duration = Duration::from_millis(100);

/// The treatment of a call.
#[derive(Debug, PartialEq, Eq)]
pub enum CallDecision {
    /// Forward it to the connected mount.
    Forward,
    /// Answer it from the connected mount's cache, as far as possible without the server.
    Unreachable,
    /// Answer it.
    Answer(Answer),
    /// Hold it until the connection has succeeded or failed.
    Hold,
    /// Hold it, and connect.
    HoldAndConnect,
    /// It expects no answer.
    Ignore,
}

/// The consequence of a change of the server's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerChange {
    /// None.
    None,
    /// The held calls fail with `EHOSTDOWN`.
    FailHeld,
    /// The waiting calls of the connected mount fail.
    FailWaiting,
    /// The connected mount dials at once.
    Redial,
}

/// The use of a finished connection attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinishedConnection {
    /// Use the mount, and forward the held calls to it.
    Use,
    /// Discard the mount: the trigger has ended.
    Discard,
    /// The held calls fail.
    Fail(Errno),
}

/// The trigger's knowledge of its server before the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnconnectedRoot {
    /// The owner of the root.
    pub uid: u32,
    /// The group of the root.
    pub gid: u32,
    /// The times of the root.
    pub now: Timestamp,
    /// The server's free space, in bytes.
    pub free_bytes: u64,
    /// The server's total space, in bytes.
    pub total_bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Closed,
    Connecting,
    Failed(Errno, Time),
    Connected,
    Ended,
}

/// The decisions of one automount trigger. The caller holds the calls, and has the connected mount.
#[derive(Debug)]
pub struct Automount {
    phase: Phase,
    is_server_up: bool,
    /// A killed mount left a journal that is not replayed yet.
    has_journal: bool,
}

impl Automount {
    /// Creates a closed trigger of a server that is presumed to be up.
    pub fn new(has_journal: bool) -> Automount {
        Automount { phase: Phase::Closed, is_server_up: true, has_journal }
    }

    /// Decides on a call, while `held` calls are held.
    pub fn call(
        &mut self,
        now: Time,
        call: &Call<'_>,
        held: usize,
        root: impl FnOnce() -> UnconnectedRoot,
    ) -> CallDecision {
        if self.phase == Phase::Connected {
            return match self.is_server_up || is_release(call) {
                true => CallDecision::Forward,
                false => CallDecision::Unreachable,
            };
        }
        if matches!(call, Call::Forget { .. }) {
            return CallDecision::Ignore;
        }
        if !self.is_server_up || self.phase == Phase::Ended {
            return CallDecision::Answer(Answer::Fail(Errno::HostDown));
        }
        if let Some(answer) = local_answer(call, root) {
            return CallDecision::Answer(answer);
        }
        match self.phase {
            Phase::Connecting if held < HELD_MAX => CallDecision::Hold,
            Phase::Connecting => CallDecision::Answer(Answer::Fail(Errno::WouldBlock)),
            Phase::Failed(errno, at) if now.since(at) < FAILURE_TTL => {
                CallDecision::Answer(Answer::Fail(errno))
            }
            Phase::Closed | Phase::Failed(..) => {
                self.phase = Phase::Connecting;
                CallDecision::HoldAndConnect
            }
            // Excluded above.
            Phase::Connected | Phase::Ended => CallDecision::Answer(Answer::Fail(Errno::Stale)),
        }
    }

    /// Notes whether the server is up, also repeatedly.
    pub fn set_server_up(&mut self, is_up: bool) -> ServerChange {
        let was_up = std::mem::replace(&mut self.is_server_up, is_up);
        match (was_up, is_up, self.phase) {
            (true, false, Phase::Connected) => ServerChange::FailWaiting,
            (true, false, Phase::Connecting) => ServerChange::FailHeld,
            (false, true, Phase::Connected) => ServerChange::Redial,
            (false, true, Phase::Failed(..)) => {
                self.phase = Phase::Closed;
                ServerChange::None
            }
            (true, true, _)
            | (false, false, _)
            | (true, false, Phase::Closed | Phase::Failed(..) | Phase::Ended)
            | (false, true, Phase::Closed | Phase::Connecting | Phase::Ended) => ServerChange::None,
        }
    }

    /// Returns whether the server is presumed to be up.
    pub fn is_server_up(&self) -> bool {
        self.is_server_up
    }

    /// Returns whether to connect now, without a call, because a journal is to be replayed.
    pub fn connects_for_journal(&mut self, now: Time) -> bool {
        let is_due = match self.phase {
            Phase::Closed => true,
            Phase::Failed(_, at) => now.since(at) >= JOURNAL_RETRY,
            Phase::Connecting | Phase::Connected | Phase::Ended => false,
        };
        let connects = is_due && self.has_journal && self.is_server_up;
        if connects {
            self.phase = Phase::Connecting;
        }
        connects
    }

    /// Ends a connection attempt.
    pub fn finished(&mut self, now: Time, result: Result<(), Errno>) -> FinishedConnection {
        if self.phase == Phase::Ended {
            return result.map_or_else(FinishedConnection::Fail, |()| FinishedConnection::Discard);
        }
        match result {
            Ok(()) => {
                // A journal that remains is replayed by `wirefs recover` or at the next start.
                self.has_journal = false;
                self.phase = Phase::Connected;
                FinishedConnection::Use
            }
            Err(errno) => {
                self.phase = Phase::Failed(errno, now);
                FinishedConnection::Fail(errno)
            }
        }
    }

    /// Ends the trigger.
    pub fn end(&mut self) {
        self.phase = Phase::Ended;
    }
}

/// Calls by which the kernel releases an object; they are always forwarded.
fn is_release(call: &Call<'_>) -> bool {
    matches!(call, Call::Forget { .. } | Call::Release { .. } | Call::Releasedir { .. } | Call::Flush { .. })
}

/// Answers a call that needs no server before the connection.
fn local_answer(call: &Call<'_>, root: impl FnOnce() -> UnconnectedRoot) -> Option<Answer> {
    match call {
        Call::Getattr { .. } => Some(Answer::Attr(root().stat(), UNCONNECTED_TTL)),
        Call::Statfs { .. } => Some(Answer::FsStat(root().fs_stat())),
        // `ls -l` reads access control lists.
        Call::Getxattr { .. } => Some(Answer::Fail(Errno::NoData)),
        Call::Listxattr { size_max: 0, .. } => Some(Answer::Size(0)),
        Call::Listxattr { .. } => Some(Answer::Data(bytes::Bytes::new())),
        _ => None,
    }
}

impl UnconnectedRoot {
    fn stat(&self) -> Stat {
        Stat {
            mode: 0o755,
            nlink: 2,
            uid: self.uid,
            gid: self.gid,
            blksize: BLOCK_BYTES,
            atime: self.now,
            mtime: self.now,
            ctime: self.now,
            ..Stat::blank(FileId { fs: 0, ino: ROOT.0, generation: 0 }, Kind::Directory)
        }
    }

    fn fs_stat(&self) -> FsStat {
        let blocks = |bytes: u64| bytes / u64::from(BLOCK_BYTES);
        FsStat {
            block_bytes: BLOCK_BYTES,
            blocks: blocks(self.total_bytes),
            blocks_free: blocks(self.free_bytes),
            blocks_available: blocks(self.free_bytes),
            files: 0,
            files_free: 0,
            name_bytes_max: NAME_BYTES_MAX,
        }
    }
}
