//! The mount of a connected automount trigger.

use crate::connect::start_threads;
use crate::engine::Engine;
use crate::waiter::Waiter;
use crate::{Connected, invalidation};
use std::sync::Arc;
use wirefs_client::call::{Answer, Call, CallId};
use wirefs_fuse::Notifier;
use wirefs_op::Errno;

impl Connected {
    /// Starts the threads of a mount whose FUSE session already runs.
    pub(super) fn serve_connected(self, notifier: Notifier) -> std::io::Result<Arc<Engine>> {
        let Connected { plan, engine, attached, .. } = self;
        let started =
            start_threads(&engine, attached, plan).and_then(|()| invalidation::start(&engine, notifier));
        if let Err(error) = started {
            engine.stop();
            engine.end_journal(true);
            return Err(error);
        }
        Ok(engine)
    }
}

impl Engine {
    /// Returns whether the server has all journaled changes on stable storage.
    pub(super) fn has_nothing_journaled(&self) -> bool {
        self.journal.as_ref().is_none_or(|journal| journal.is_done_below(0))
    }

    /// The answer to a call while the server is known to be down.
    pub(super) fn unreachable(&self, call: &Call<'_>) -> Answer {
        match call {
            Call::Lookup { parent, name } => {
                self.drive(|state, now| state.client.look_up_unreachable(now, *parent, name))
            }
            _ => Answer::Fail(Errno::HostDown),
        }
    }

    /// Fails all waiting calls of programs, because the server is down.
    pub(super) fn fail_waiting(&self) {
        let waiting = self.drive(|state, now| {
            let of_programs = |waiting: &Waiter| matches!(waiting, Waiter::Kernel { .. });
            let calls = state.waiting.iter().filter(|(_, waiting)| of_programs(waiting));
            let calls: Vec<CallId> = calls.map(|(call, _)| *call).collect();
            let answered = calls.into_iter().filter_map(|call| {
                let waiting = state.waiting.remove(&call)?;
                state.signaled.remove(&call);
                Some((waiting, state.client.unreachable(now, call)))
            });
            answered.collect::<Vec<(Waiter, Answer)>>()
        });
        waiting.into_iter().for_each(|(waiting, answer)| waiting.answer(answer));
    }
}
