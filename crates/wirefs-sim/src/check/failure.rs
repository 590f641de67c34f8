//! Checks that an error was possible.

use crate::program::{Busy, Operation, Renaming};
use crate::world::World;
use std::time::Duration;
use wirefs_client::call::TreeNodeId;
use wirefs_op::Errno;

/// The least time before a call fails that a server leaves without a reply (S-166), beside the deadline.
const SILENCE_MIN: Duration = Duration::from_secs(50);

impl World {
    /// Checks a failed operation.
    pub(crate) fn failed(&mut self, index: usize, busy: &Busy, errno: Errno) {
        self.counts.checks += 1;
        if !self.may_fail(index, busy, errno) {
            self.fail(format!("client {index}: {:?} fails with {errno:?}", busy.operation));
        }
    }

    fn may_fail(&self, index: usize, busy: &Busy, errno: Errno) -> bool {
        let Some(host) = self.hosts.get(index) else { return false };
        let is_troubled = host.was_disconnected_since(busy.began);
        match errno {
            Errno::HostDown => is_troubled,
            // The server is up, but does not hear this client.
            Errno::TimedOut => self.now.since(busy.began) >= SILENCE_MIN,
            Errno::Io => self.may_be_unknown(index, busy),
            Errno::Stale | Errno::NotFound | Errno::NotDirectory if self.is_out_of_reach(index, busy) => true,
            other => match &busy.operation {
                Operation::Names(renaming, _) => self.may_names_fail(index, busy, *renaming, other),
                Operation::Look(_)
                | Operation::Stat(_)
                | Operation::Open(..)
                | Operation::Read { .. }
                | Operation::Write { .. }
                | Operation::Set { .. }
                | Operation::Close(..)
                | Operation::Lock(..)
                | Operation::List { .. }
                | Operation::CloseList(..) => false,
            },
        }
    }

    /// Returns whether the outcome of the operation, or of earlier writes, cannot be known.
    fn may_be_unknown(&self, index: usize, busy: &Busy) -> bool {
        let Some(host) = self.hosts.get(index) else { return false };
        let is_unknown_since = |since| host.last_unknown.is_some_and(|at| at >= since);
        match busy.operation {
            Operation::Names(..) | Operation::Open(_, true) => is_unknown_since(busy.began),
            Operation::Write { .. } | Operation::Set { .. } | Operation::Close(..) => {
                host.last_unknown.is_some()
            }
            Operation::Lock(..) => is_unknown_since(busy.began),
            Operation::Open(_, false)
            | Operation::Look(_)
            | Operation::Stat(_)
            | Operation::Read { .. }
            | Operation::List { .. }
            | Operation::CloseList(..) => false,
        }
    }

    /// Returns whether one of its objects, or a directory on the path, has ever lost a name.
    fn is_out_of_reach(&self, index: usize, busy: &Busy) -> bool {
        let Some(host) = self.hosts.get(index) else { return false };
        let is_unsteady = |node: TreeNodeId| {
            let known = host.program.nodes.get(&node);
            known.is_none_or(|(id, _)| self.truth.is_unsteady(*id))
        };
        busy.operation.nodes().into_iter().any(is_unsteady)
    }

    fn may_names_fail(&self, index: usize, busy: &Busy, renaming: Renaming, errno: Errno) -> bool {
        let Operation::Names(_, places) = &busy.operation else { return false };
        let observation = self.observation(index, busy.began);
        let has_given_up = self.hosts.get(index).is_some_and(|host| host.program.has_given_up);
        let was = |at: usize, is_there: bool| {
            let place = places.get(at);
            place.is_some_and(|place| {
                // Its own change does not count: it is not applied twice. An operation that was abandoned may have been applied later.
                let since = if has_given_up { self.now } else { busy.began };
                let meanings = self.truth.meanings_by_others(&observation, place.dir, place.name, since);
                meanings.into_iter().any(|meaning| meaning.is_some() == is_there)
            })
        };
        match (renaming, errno) {
            (Renaming::Create | Renaming::Mkdir | Renaming::Symlink | Renaming::Link(_), Errno::Exists) => {
                was(0, true)
            }
            (Renaming::Unlink | Renaming::Rmdir, Errno::NotFound) => was(0, false),
            (Renaming::Unlink, Errno::IsDirectory) => was(0, true),
            (Renaming::Rmdir, Errno::NotDirectory | Errno::NotEmpty) => was(0, true),
            (Renaming::Rename(1), Errno::Exists) => was(1, true),
            (Renaming::Rename(2), Errno::NotFound) => was(0, false) || was(1, false),
            (Renaming::Rename(_), Errno::NotFound) => was(0, false),
            (
                Renaming::Rename(_),
                Errno::Invalid | Errno::NotEmpty | Errno::NotDirectory | Errno::IsDirectory,
            ) => was(0, true),
            (Renaming::Link(_), Errno::NotPermitted) => true,
            _ => false,
        }
    }
}
