//! Answers to calls, and the undoing of answers that no caller takes any more.

use crate::call::{Answer, CallId, Invalidate};
use crate::core::Client;
use crate::operation::release;
use crate::output::Output;
use wirefs_cache::TreeNodeId;
use wirefs_op::Errno;

impl Client {
    pub(crate) fn answer(&mut self, id: CallId, answer: Answer) {
        self.view.changed_names(&mut self.calls, &mut self.outputs, id, !matches!(answer, Answer::Fail(_)));
        if self.calls.end(id) {
            self.outputs.push(Output::Answer(id, answer));
        } else {
            self.undo_answer(id, answer);
        }
    }

    /// Answers; where set-id bits of `node` may have fallen, once the kernel has forgotten the mode that it knew.
    pub(crate) fn answer_with_fallen(
        &mut self,
        id: CallId,
        answer: Answer,
        node: TreeNodeId,
        may_have_fallen: bool,
    ) {
        if !may_have_fallen {
            return self.answer(id, answer);
        }
        self.calls.answer_dropped(
            &mut self.outputs,
            Invalidate::Node { node, offset: -1, length: 0 },
            id,
            answer,
        );
    }

    pub(crate) fn fail(&mut self, id: CallId, errno: Errno) {
        self.answer(id, Answer::Fail(errno));
    }

    /// Undoes an answer whose caller is gone: releases the lookups and handles that it carries.
    pub(crate) fn undo_answer(&mut self, call: CallId, answer: Answer) {
        match answer {
            Answer::Entry(entry) => self.view.forget_lookups(&self.calls, entry.node, 1),
            Answer::Created(entry, handle, _) => {
                release::unwanted(self, call, handle);
                self.view.forget_lookups(&self.calls, entry.node, 1);
            }
            Answer::Opened(handle, _) => release::unwanted(self, call, handle),
            Answer::Listing(listed) => {
                for entry in listed.into_iter().filter_map(|listed| listed.entry) {
                    self.view.forget_lookups(&self.calls, entry.node, 1);
                }
            }
            Answer::Fail(_)
            | Answer::Done
            | Answer::NoEntry(_)
            | Answer::Attr(..)
            | Answer::Data(_)
            | Answer::Size(_)
            | Answer::Count(_)
            | Answer::FsStat(_)
            | Answer::Lock(_)
            | Answer::ListingEnd
            | Answer::Offset(_) => {}
        }
    }
}
