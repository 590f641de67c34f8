//! Answers to calls.

use crate::call::{Answer, CallId, Invalidate};
use crate::kernel::CallsInProgress;
use crate::output::{Output, Outputs};
use crate::steps::Step;
use crate::view::View;
use wirefs_cache::TreeNodeId;
use wirefs_op::Errno;

/// The rooms of a function that answers calls, and sends no request.
pub(crate) struct Answerer<'a> {
    pub(crate) view: &'a mut View,
    pub(crate) calls: &'a mut CallsInProgress,
    pub(crate) outputs: &'a mut Outputs,
}

impl Answerer<'_> {
    /// Answers a call. An answer whose caller is gone is undone.
    pub(crate) fn answer(&mut self, id: CallId, answer: Answer) {
        self.view.changed_names(self.calls, self.outputs, id, !matches!(answer, Answer::Fail(_)));
        if self.calls.end(id) {
            self.outputs.push(Output::Answer(id, answer));
        } else {
            self.outputs.leave(Step::Undo(id, answer));
        }
    }

    /// Answers a call with an error.
    pub(crate) fn fail(&mut self, id: CallId, errno: Errno) {
        self.answer(id, Answer::Fail(errno));
    }

    /// Answers a call. If the change may have cleared set-id bits of `node`, the kernel drops the mode that it has
    /// cached first.
    pub(crate) fn answer_with_fallen(
        &mut self,
        id: CallId,
        answer: Answer,
        node: TreeNodeId,
        may_have_fallen: bool,
    ) {
        if may_have_fallen {
            self.calls.answer_dropped(
                self.outputs,
                Invalidate::Node { node, offset: -1, length: 0 },
                id,
                answer,
            );
        } else {
            self.answer(id, answer);
        }
    }
}
