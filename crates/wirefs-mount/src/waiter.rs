//! The waiter for an answer.

use super::meter::MeasuredCall;
use super::mount_place::MountPlace;
use std::sync::mpsc;
use wirefs_client::Client;
use wirefs_client::call::Answer;
use wirefs_fuse::Reply;
use wirefs_metrics::Cause;

/// The waiter for an answer.
pub(super) enum Waiter {
    Kernel { reply: Reply, measured: Box<MeasuredCall> },
    Own(mpsc::Sender<Answer>),
}

impl Waiter {
    /// Divides the time until now among its causes. The rest, until the answer is given, has the cause `rest`.
    pub(super) fn explain(&mut self, client: &Client, rest: Cause) {
        match self {
            Waiter::Kernel { measured, .. } => measured.explain(client, rest),
            Waiter::Own(_) => {}
        }
    }

    /// Returns the process and the measurement of a kernel's call.
    pub(super) fn measured(&self) -> Option<&MeasuredCall> {
        match self {
            Waiter::Kernel { measured, .. } => Some(measured),
            Waiter::Own(_) => None,
        }
    }

    /// Returns the answer that its caller may have, where links are confined.
    pub(super) fn confined(&self, place: &MountPlace, answer: Answer) -> Answer {
        match self {
            Waiter::Kernel { measured, .. } if measured.is_readlink() => place.confine(measured.pid, answer),
            Waiter::Kernel { .. } | Waiter::Own(_) => answer,
        }
    }

    pub(super) fn answer(self, answer: Answer) {
        match self {
            Waiter::Kernel { reply, mut measured } => {
                measured.note();
                reply.answer(answer);
                measured.end();
            }
            // The caller may have given up.
            Waiter::Own(sender) => drop(sender.send(answer)),
        }
    }
}
