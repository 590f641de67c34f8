//! The obligation to answer one call.

use crate::answer::{self, Expects};
use crate::device::Connection;
use crate::name_cache::Lookup;
use std::sync::Arc;
use wirefs_client::call::{Answer, CallId, TreeNodeId};
use wirefs_op::Errno;

/// Answers one call once, from any thread, now or later. Dropped without an answer, it answers `EIO`, so that no
/// caller waits forever. A forget has no answer; its reply does nothing.
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
    /// The reply to a call on `directory`, if it is one; with `lookup` if the call looks up a name.
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

    /// The call to answer.
    pub fn id(&self) -> CallId {
        self.call
    }

    /// Sends the answer to the kernel. An answer of another form than the call's becomes `EIO`.
    ///
    /// # Cost
    /// One system call; data is not copied here.
    pub fn answer(mut self, answer: Answer) {
        self.send(answer);
    }

    fn send(&mut self, mut answer: Answer) {
        if std::mem::replace(&mut self.waiting, false) {
            let name_cache = self.connection.name_cache();
            answer::bound(&mut answer, name_cache.bounds(self.directory));
            let lookup = self.lookup.map(|lookup| name_cache.answering(lookup, &mut answer));
            answer::decide_pages(&mut answer, name_cache.maps_uncached());
            let encoded = answer::encode(self.call, self.expects, answer);
            self.connection.send(self.lane, self.call, &encoded);
            if let Some(lookup) = lookup {
                name_cache.answered(lookup);
            }
        }
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        self.send(Answer::Fail(Errno::Io));
    }
}
