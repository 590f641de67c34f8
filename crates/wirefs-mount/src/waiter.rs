//! The waiter for an answer.

use std::sync::mpsc;
use wirefs_client::call::Answer;
use wirefs_fuse::Reply;

/// The waiter for an answer.
pub(super) enum Waiter {
    Kernel { reply: Reply, pid: u32 },
    Own(mpsc::Sender<Answer>),
}

impl Waiter {
    pub(super) fn answer(self, answer: Answer) {
        match self {
            Waiter::Kernel { reply, .. } => reply.answer(answer),
            // The caller may have given up.
            Waiter::Own(sender) => drop(sender.send(answer)),
        }
    }
}
