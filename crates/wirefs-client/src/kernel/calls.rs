//! The calls in progress, each of which gets exactly one answer.

use crate::call::{Answer, CallId, Invalidate};
use crate::output::{Output, Outputs};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use wirefs_cache::TreeNodeId;
use wirefs_op::Time;

/// How long a caller waits for a server that is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// As long as its requests, which have their own limits.
    Requests,
    /// Since then, as long as the server replies to changes, and then this many times the limit.
    Changes(Time, u32),
}

/// The calls in progress.
#[derive(Debug, Default)]
pub(crate) struct CallsInProgress {
    /// With the patience of their callers.
    waiting: BTreeMap<CallId, Patience>,
    /// When the server last replied to a change, or could not.
    changed: Time,
    /// Calls whose callers are gone, and whose results are still to come.
    abandoned: BTreeSet<CallId>,
    /// The directories in which calls change names: the kernel may have cached listings of them.
    changing: BTreeMap<CallId, [Option<TreeNodeId>; 2]>,
}

impl CallsInProgress {
    /// Adds a call that waits for an answer.
    pub(crate) fn begin(&mut self, id: CallId, patience: Patience) {
        self.waiting.insert(id, patience);
    }

    /// Notes a reply to a change, or a time in which none could come.
    pub(crate) fn changes_go_on(&mut self, now: Time) {
        self.changed = now;
    }

    /// The calls whose changes the server leaves without a reply for too long.
    pub(crate) fn late(&self, now: Time, silence_max: Duration) -> Vec<CallId> {
        let is_late = |patience: &Patience| match patience {
            Patience::Requests => false,
            Patience::Changes(since, factor) => now.since(self.changed.max(*since)) >= silence_max * *factor,
        };
        self.waiting.iter().filter(|(_, patience)| is_late(patience)).map(|(id, _)| *id).collect()
    }

    /// Notes the directories in which a call changes names.
    pub(crate) fn change_names(&mut self, id: CallId, dirs: [Option<TreeNodeId>; 2]) {
        self.changing.insert(id, dirs);
    }

    /// Ends a call's changes of names: the directories whose listings in the kernel may be outdated. The kernel knows the changes
    /// from the answer, unless no caller waits for it, or it is an error.
    pub(crate) fn names_changed(&mut self, id: CallId, is_done: bool) -> Vec<TreeNodeId> {
        match self.changing.remove(&id) {
            Some(dirs) if !is_done || !self.is_waiting(id) => dirs.into_iter().flatten().collect(),
            Some(_) | None => Vec::new(),
        }
    }

    /// Ends a call. Returns whether its caller waits for the answer.
    pub(crate) fn end(&mut self, id: CallId) -> bool {
        let is_waiting = self.waiting.remove(&id).is_some();
        if !is_waiting {
            self.abandoned.remove(&id);
        }
        is_waiting
    }

    /// Answers once the kernel has forgotten what it is being told to forget.
    pub(crate) fn answer_after(&mut self, outputs: &mut Outputs, id: CallId, answer: Answer) {
        if self.end(id) {
            outputs.push(Output::AnswerAfter(id, answer));
        }
    }

    /// Answers once the kernel has forgotten this, which is no name.
    pub(crate) fn answer_dropped(
        &mut self,
        outputs: &mut Outputs,
        what: Invalidate,
        id: CallId,
        answer: Answer,
    ) {
        if self.end(id) {
            outputs.push(Output::AnswerDropped(what, id, answer));
        } else {
            outputs.invalidate(what);
        }
    }

    /// Notes that the result of an answered call is still to come.
    pub(crate) fn abandon(&mut self, id: CallId) {
        self.abandoned.insert(id);
    }

    /// The directories in which a call changes names.
    pub(crate) fn changing(&self, id: CallId) -> Option<[Option<TreeNodeId>; 2]> {
        self.changing.get(&id).copied()
    }

    /// Whether a call waits for its answer.
    pub(crate) fn is_waiting(&self, id: CallId) -> bool {
        self.waiting.contains_key(&id)
    }

    /// The calls that wait for their answers.
    pub(crate) fn waiting(&self) -> impl ExactSizeIterator<Item = CallId> {
        self.waiting.keys().copied()
    }

    /// Whether results are to come for callers that are gone.
    pub(crate) fn has_abandoned(&self) -> bool {
        !self.abandoned.is_empty()
    }
}
