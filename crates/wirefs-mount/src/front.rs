//! The kernel's side: each request goes straight into the core.

use super::engine::{Engine, Waiting};
use super::signals::fate;
use wirefs_client::call::{Call, CallId, Caller};
use wirefs_fuse::{FileSystem, Reading, Reply};

impl FileSystem for Engine {
    fn call(&self, caller: Caller, call: Call<'_>, reply: Reply, reading: &Reading<'_>) {
        let id = reply.id();
        self.keep_pace(reading, &call);
        self.drive_and_wait(
            || reading.hand_over(),
            |state, now| {
                if !matches!(call, Call::Forget { .. }) {
                    state.waiting.insert(id, Waiting::Kernel { reply, pid: caller.pid });
                }
                state.client.call(now, id, caller, call);
            },
        );
    }

    /// A lock that is waited for is withdrawn. Anything else goes on, as on a local disk, unless its caller is being
    /// killed, when nobody will look at the answer, or asked to end while the server does not respond.
    fn interrupt(&self, call: CallId) -> bool {
        self.drive(|state, now| {
            let Some(Waiting::Kernel { pid, .. }) = state.waiting.get(&call) else {
                return state.delayed.contains(&call);
            };
            let pid = *pid;
            state.client.call(now, call, Caller::default(), Call::Interrupt { call });
            state.signalled.insert(call, pid);
            state.meet(now, call, fate(pid));
            true
        })
    }
}
