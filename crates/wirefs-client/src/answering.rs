//! Answers to calls.

use crate::call::{Answer, CallId, Invalidate};
use crate::core::Client;
use crate::kernel::CallsInProgress;
use crate::output::{Output, Outputs};
use crate::steps::Step;
use crate::view::View;
use wirefs_cache::TreeNodeId;
use wirefs_op::Errno;

impl Client {
    /// Answers a call.
    pub(crate) fn answer(&mut self, id: CallId, answer: Answer) {
        self.view.answer(&mut self.calls, &mut self.outputs, id, answer);
    }

    pub(crate) fn fail(&mut self, id: CallId, errno: Errno) {
        self.answer(id, Answer::Fail(errno));
    }
}

impl View {
    /// Answers a call. An answer whose caller is gone is undone.
    pub(crate) fn answer(
        &mut self,
        calls: &mut CallsInProgress,
        outputs: &mut Outputs,
        id: CallId,
        answer: Answer,
    ) {
        self.changed_names(calls, outputs, id, !matches!(answer, Answer::Fail(_)));
        if calls.end(id) {
            outputs.push(Output::Answer(id, answer));
        } else {
            outputs.leave(Step::Undo(id, answer));
        }
    }

    /// Answers; where set-id bits of `node` may have fallen, once the kernel has forgotten the mode that it knew.
    pub(crate) fn answer_with_fallen(
        &mut self,
        calls: &mut CallsInProgress,
        outputs: &mut Outputs,
        (id, answer): (CallId, Answer),
        node: TreeNodeId,
        may_have_fallen: bool,
    ) {
        if may_have_fallen {
            calls.answer_dropped(outputs, Invalidate::Node { node, offset: -1, length: 0 }, id, answer);
        } else {
            self.answer(calls, outputs, id, answer);
        }
    }
}
