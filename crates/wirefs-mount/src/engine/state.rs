//! The client core, and the state of its calls and connections.

use std::collections::{BTreeMap, BTreeSet};

use wirefs_carrier::{Closer, PeerInfo};
use wirefs_client::call::CallId;
use wirefs_client::{Client, DataKey};
use wirefs_metrics::Cause;
use wirefs_op::{Errno, Time};

use crate::data_connection::DataConnection;
use crate::memory::MountMemory;
use crate::server_sink::ServerSink;
use crate::signals::CallerState;
use crate::waiter::Waiter;

/// The state behind the core's lock.
pub(crate) struct State {
    pub(crate) client: Client,
    pub(crate) memory: MountMemory,
    pub(crate) waiting: BTreeMap<CallId, Waiter>,
    /// Callers with a pending signal that still wait.
    pub(crate) signaled: BTreeMap<CallId, u32>,
    /// Calls whose answers wait for an invalidation in the kernel or for the local disk.
    pub(crate) delayed: BTreeSet<CallId>,
    pub(crate) sink: Option<ServerSink>,
    /// The number of connections so far, including the present one.
    pub(crate) installed: u64,
    pub(crate) closer: Option<Closer>,
    /// Data connections in use.
    pub(crate) data: BTreeMap<DataKey, DataConnection>,
    /// Data connections that the core has requested and no thread opens yet; there are few.
    pub(crate) wanted_data: Vec<DataKey>,
    pub(crate) peer: PeerInfo,
    /// The error of the last dial; `None` while there is a connection.
    pub(crate) dial_error: Option<String>,
}

impl State {
    /// Measures the memory of the process, if the core needs it.
    pub(super) fn measure_memory(&mut self) {
        if self.client.is_measurement_due() {
            let uncounted = self.memory.uncounted(self.client.counted_bytes());
            self.client.note_uncounted(uncounted);
        }
    }

    /// Removes a data connection.
    pub(super) fn end_data(&mut self, key: DataKey) -> Option<DataConnection> {
        self.wanted_data.retain(|wanted| *wanted != key);
        self.data.remove(&key)
    }

    /// Returns the calls whose callers may have a pending signal. While the server does not respond, these are all
    /// calls: the kernel does not report a signal to a process that waits for a page.
    pub(crate) fn callers_to_watch(&self, now: Time) -> Vec<(CallId, u32)> {
        if !self.client.is_unresponsive(now) {
            return self.signaled.iter().map(|(call, pid)| (*call, *pid)).collect();
        }
        let from_kernel = |(call, waiting): (&CallId, &Waiter)| match waiting {
            Waiter::Kernel { measured, .. } => Some((*call, measured.pid)),
            Waiter::Own(_) => None,
        };
        self.waiting.iter().filter_map(from_kernel).collect()
    }

    /// Ends a call if its caller's state requires it.
    pub(crate) fn apply_caller_state(&mut self, now: Time, call: CallId, caller: CallerState) {
        match caller {
            CallerState::AskedToEnd => self.client.asked_to_end(now, call),
            CallerState::Exiting if self.signaled.contains_key(&call) => {
                self.client.abandon(now, call, Errno::Interrupted);
            }
            // The kernel writes pages back for processes that have exited.
            CallerState::Exiting | CallerState::Running => {}
        }
    }

    /// Removes the waiter of a call that is about to be answered; it waits longer for `rest`.
    pub(super) fn end_waiting(&mut self, call: CallId, rest: Cause) -> Option<Waiter> {
        self.signaled.remove(&call);
        let mut waiter = self.waiting.remove(&call)?;
        waiter.explain(&self.client, rest);
        Some(waiter)
    }
}
