//! The kernel's calls, passed to the core.

use super::engine::Engine;
use super::meter::MeasuredCall;
use super::signals::caller_state;
use super::waiter::Waiter;
use wirefs_client::call::{Call, CallId, Caller};
use wirefs_fuse::{FileSystem, ReaderRole, Reply};

impl FileSystem for Engine {
    fn call(&self, caller: Caller, call: Call<'_>, reply: Reply, reading: &ReaderRole<'_>) {
        let id = reply.id();
        let mut measured = call
            .operation()
            .map(|(operation, node)| MeasuredCall::begin(&self.meter, operation, node, caller.pid));
        if self.keep_pace(reading, &call)
            && let Some(measured) = &mut measured
        {
            measured.waited_for_journal();
        }
        self.drive_and_wait(
            || reading.hand_over(),
            |state, now| {
                if let Some(mut measured) = measured {
                    measured.enter(now);
                    state.waiting.insert(id, Waiter::Kernel { reply, measured: Box::new(measured) });
                }
                state.client.call(now, id, caller, call);
            },
        );
    }

    /// Cancels a lock that waits. Other calls continue, as on a local disk, unless their caller is being killed, so
    /// that no process reads the answer, or is asked to end while the server does not respond.
    fn interrupt(&self, call: CallId) -> bool {
        self.drive(|state, now| {
            let Some(measured) = state.waiting.get(&call).and_then(Waiter::measured) else {
                return state.delayed.contains(&call);
            };
            let pid = measured.pid;
            state.client.call(now, call, Caller::default(), Call::Interrupt { call });
            state.signaled.insert(call, pid);
            state.apply_caller_state(now, call, caller_state(pid));
            true
        })
    }
}
