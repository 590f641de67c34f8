//! The deadline of requests while the connection is up: a server may answer pings and still leave a request without a
//! reply.
//!
//! | waiting | progress | limit |
//! |---|---|---|
//! | a query that was sent | a part of its reply, or of an earlier request's | the deadline and [`SERVER_WAIT_MAX`] |
//! | a query that waits for a tag, or for a change that may not be sent yet | a reply to any request but a ping | the same |
//! | a sync | the same; a reply to any change | [`SYNC_FACTOR`] times that |
//! | a call that changes something, or may wait for changes of this client | a reply to any change, since they are executed in order | that of a query |
//! | a lock that others have | – | none: signals end the wait |

use crate::call::{Call, CallId};
use crate::kernel::{CallsInProgress, Patience};
use crate::pending::Pending;
use crate::requests::Requests;
use crate::requests::late::SYNC_FACTOR;
use crate::view::Mount;
use std::time::Duration;
use wirefs_op::Time;

/// A server may wait this long before it executes a request: for holders of leases, and after a restart.
const SERVER_WAIT_MAX: Duration = Duration::from_secs(50);

/// The patience of a call that begins now.
pub(super) fn patience(now: Time, call: &Call<'_>) -> Patience {
    match call {
        Call::Lookup { .. }
        | Call::Forget { .. }
        | Call::Getattr { .. }
        | Call::Readlink { .. }
        | Call::Read { .. }
        | Call::Release { .. }
        | Call::Opendir { .. }
        | Call::Readdir { .. }
        | Call::Releasedir { .. }
        | Call::Access { .. }
        | Call::Interrupt { .. }
        | Call::Setlk { wait: true, .. } => Patience::Requests,
        // These may wait for changes before they are asked for.
        Call::Statfs { .. }
        | Call::Getxattr { .. }
        | Call::Listxattr { .. }
        | Call::Lseek { .. }
        | Call::Setattr { .. }
        | Call::Mknod { .. }
        | Call::Mkdir { .. }
        | Call::Symlink { .. }
        | Call::Unlink { .. }
        | Call::Rmdir { .. }
        | Call::Rename { .. }
        | Call::Link { .. }
        | Call::Open { .. }
        | Call::Create { .. }
        | Call::Tmpfile { .. }
        | Call::Write { .. }
        | Call::Setxattr { .. }
        | Call::Removexattr { .. }
        | Call::Getlk { .. }
        | Call::Setlk { wait: false, .. } => Patience::Changes(now, 1),
        Call::Flush { .. }
        | Call::Fsync { .. }
        | Call::Fsyncdir { .. }
        | Call::Syncfs { .. }
        | Call::Fallocate { .. }
        | Call::CopyRange { .. } => Patience::Changes(now, SYNC_FACTOR),
    }
}

/// Takes the waits for replies that do not come: the continuations of queries, and the calls that wait for changes.
pub(super) fn take_late(
    mount: &Mount,
    requests: &mut Requests,
    calls: &mut CallsInProgress,
    slept: Duration,
) -> (Vec<Pending>, Vec<CallId>) {
    requests.slept(mount.now, slept);
    if !slept.is_zero() || !requests.link.is_up() {
        calls.changes_go_on(mount.now);
        requests.link.replied = mount.now;
        return Default::default();
    }
    let Some(deadline) = mount.config.deadline else { return Default::default() };
    let silence_max = deadline + SERVER_WAIT_MAX;
    let late = (requests.take_late(mount.now, silence_max), calls.late(mount.now, silence_max));
    requests.link.timed_out += (late.0.len() + late.1.len()) as u64;
    late
}
