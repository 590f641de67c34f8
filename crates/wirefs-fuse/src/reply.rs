//! The right, and the duty, to answer one call.

use crate::answer::{self, Expects};
use crate::beliefs::Lookup;
use crate::device::Connection;
use std::sync::Arc;
use wirefs_client::call::{Answer, CallId, TreeNodeId};
use wirefs_op::Errno;

/// Answers one call, once, from any thread, now or later. Dropped without an answer, it answers `EIO`: no caller waits
/// for ever. Forgets take no answer; theirs does nothing.
#[derive(Debug)]
pub struct Reply {
    connection: Arc<Connection>,
    lane: usize,
    call: CallId,
    expects: Expects,
    directory: TreeNodeId,
    lookup: Option<Lookup>,
    waiting: bool,
}

impl Reply {
    /// The answer to a call on `directory`, if it is one; `lookup` where that looks up a name.
    pub(crate) fn new(
        connection: &Arc<Connection>,
        lane: usize,
        call: CallId,
        expects: Expects,
        directory: TreeNodeId,
        lookup: Option<Lookup>,
    ) -> Reply {
        let waiting = expects != Expects::Nothing;
        Reply { connection: Arc::clone(connection), lane, call, expects, directory, lookup, waiting }
    }

    /// The call that it answers.
    pub fn id(&self) -> CallId {
        self.call
    }

    /// Gives the answer to the kernel. One that does not fit the call becomes `EIO`.
    ///
    /// # Cost
    /// One system call; data is not copied here.
    pub fn answer(mut self, answer: Answer) {
        self.send(answer);
    }

    fn send(&mut self, mut answer: Answer) {
        if std::mem::replace(&mut self.waiting, false) {
            let beliefs = self.connection.beliefs();
            answer::bound(&mut answer, beliefs.bounds(self.directory));
            let lookup = self.lookup.map(|lookup| beliefs.answering(lookup, &mut answer));
            answer::decide_pages(&mut answer, beliefs.maps_unkept());
            let encoded = answer::encode(self.call, self.expects, answer);
            self.connection.send(self.lane, self.call, &encoded);
            if let Some(lookup) = lookup {
                beliefs.answered(lookup);
            }
        }
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        self.send(Answer::Fail(Errno::Io));
    }
}
