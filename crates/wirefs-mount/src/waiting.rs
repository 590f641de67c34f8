//! Who waits for an answer.

use std::sync::mpsc;
use wirefs_client::call::Answer;
use wirefs_fuse::Reply;

/// Who waits for an answer.
pub(super) enum Waiting {
    Kernel { reply: Reply, pid: u32 },
    Own(mpsc::Sender<Answer>),
}

impl Waiting {
    pub(super) fn answer(self, answer: Answer) {
        match self {
            Waiting::Kernel { reply, .. } => reply.answer(answer),
            // The one who asked may have gone.
            Waiting::Own(sender) => drop(sender.send(answer)),
        }
    }
}
