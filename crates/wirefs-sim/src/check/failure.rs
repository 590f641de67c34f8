//! Whether an error was possible.

use crate::program::{Busy, Deed, Renaming};
use crate::world::World;
use wirefs_client::call::TreeNodeId;
use wirefs_op::Errno;

impl World {
    /// A deed failed.
    pub(crate) fn failed(&mut self, index: usize, busy: &Busy, errno: Errno) {
        self.record.checks += 1;
        if !self.may_fail(index, busy, errno) {
            self.fail(format!("client {index}: {:?} fails with {errno:?}", busy.deed));
        }
    }

    fn may_fail(&self, index: usize, busy: &Busy, errno: Errno) -> bool {
        let Some(seat) = self.seats.get(index) else { return false };
        let is_troubled = seat.is_troubled_since(busy.began);
        match errno {
            Errno::HostDown => is_troubled,
            Errno::Io => self.may_be_unknown(index, busy),
            Errno::Stale | Errno::NotFound | Errno::NotDirectory if self.is_out_of_reach(index, busy) => true,
            other => match &busy.deed {
                Deed::Names(renaming, _) => self.may_names_fail(index, busy, *renaming, other),
                Deed::Look(_)
                | Deed::Stat(_)
                | Deed::Open(..)
                | Deed::Read { .. }
                | Deed::Write { .. }
                | Deed::Set { .. }
                | Deed::Close(..)
                | Deed::Lock(..)
                | Deed::List { .. }
                | Deed::CloseList(..) => false,
            },
        }
    }

    /// Whether nobody can tell what became of it, or of what was written before.
    fn may_be_unknown(&self, index: usize, busy: &Busy) -> bool {
        let Some(seat) = self.seats.get(index) else { return false };
        let is_unknown_since = |since| seat.last_unknown.is_some_and(|at| at >= since);
        match busy.deed {
            Deed::Names(..) | Deed::Open(_, true) => is_unknown_since(busy.began),
            Deed::Write { .. } | Deed::Set { .. } | Deed::Close(..) => seat.last_unknown.is_some(),
            Deed::Lock(..) => is_unknown_since(busy.began),
            Deed::Open(_, false)
            | Deed::Look(_)
            | Deed::Stat(_)
            | Deed::Read { .. }
            | Deed::List { .. }
            | Deed::CloseList(..) => false,
        }
    }

    /// Whether one of its objects has lost a name once, or a directory on the way to it.
    fn is_out_of_reach(&self, index: usize, busy: &Busy) -> bool {
        let Some(seat) = self.seats.get(index) else { return false };
        let is_unsteady = |node: TreeNodeId| {
            let known = seat.program.nodes.get(&node);
            known.is_none_or(|(id, _)| self.truth.is_unsteady(*id))
        };
        busy.deed.nodes().into_iter().any(is_unsteady)
    }

    fn may_names_fail(&self, index: usize, busy: &Busy, renaming: Renaming, errno: Errno) -> bool {
        let Deed::Names(_, places) = &busy.deed else { return false };
        let glance = self.glance(index, busy.began);
        let has_given_up = self.seats.get(index).is_some_and(|seat| seat.program.has_given_up);
        let was = |at: usize, is_there: bool| {
            let place = places.get(at);
            place.is_some_and(|place| {
                // Not by what it did itself: what is sent again is not carried out again. What it had given up may still
                // have been done meanwhile.
                let since = if has_given_up { self.now } else { busy.began };
                let meanings = self.truth.meanings_by_others(&glance, place.dir, place.name, since);
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
