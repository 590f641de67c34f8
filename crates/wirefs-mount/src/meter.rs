//! Measures calls of the kernel: their time, and its causes.

use super::clock::Clock;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use wirefs_cache::TreeNodeId;
use wirefs_client::Client;
use wirefs_metrics::{CallKind, CallLatencies, Cause, Causes};
use wirefs_op::Time;

/// The number of finished waits that are remembered.
const FINISHED_MAX: usize = 256;
/// A call that took less is not remembered.
const REMEMBERED_MIN: Duration = Duration::from_millis(20);

/// The measurements of one mount.
#[derive(Debug)]
pub(super) struct Meter {
    pub(super) clock: Clock,
    pub(super) times: CallLatencies,
    finished: Mutex<VecDeque<FinishedWait>>,
}

/// A call that took long, and has its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishedWait {
    /// The calling process, or 0 if it was gone.
    pub process: u32,
    /// The calling thread.
    pub thread: u32,
    /// Its name.
    pub program: String,
    /// The operation.
    pub operation: CallKind,
    /// The path below the mountpoint; empty for the mountpoint and nodes without a name.
    pub path: Vec<u8>,
    /// Its end, on the mount's clock.
    pub ended: Time,
    /// The causes of its time.
    pub causes: Causes,
}

/// A call without an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PresentWait {
    /// The calling process, or 0 if it is gone.
    pub process: u32,
    /// The calling thread.
    pub thread: u32,
    /// Its name.
    pub program: String,
    /// The operation.
    pub operation: CallKind,
    /// The path below the mountpoint; empty for the mountpoint and nodes without a name.
    pub path: Vec<u8>,
    /// The time since the call.
    pub since: Duration,
    /// The present cause.
    pub cause: Cause,
    /// The request that it waits for, if that is its own.
    pub request: Option<&'static str>,
}

impl Meter {
    pub(super) fn new(clock: Clock) -> Meter {
        Meter { clock, times: CallLatencies::default(), finished: Mutex::default() }
    }

    /// Returns the last calls that took long, the oldest first.
    pub(super) fn finished(&self) -> Vec<FinishedWait> {
        self.finished.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    fn remember(&self, wait: FinishedWait) {
        let mut finished = self.finished.lock().unwrap_or_else(PoisonError::into_inner);
        if finished.len() >= FINISHED_MAX {
            finished.pop_front();
        }
        finished.push_back(wait);
    }
}

/// The measurement of one call.
#[derive(Debug)]
pub(super) struct MeasuredCall {
    meter: Arc<Meter>,
    operation: CallKind,
    node: TreeNodeId,
    pub(super) pid: u32,
    begun: Time,
    /// Its time until it entered the core.
    entered: Time,
    paced: Duration,
    causes: Causes,
    /// The cause of the time from `explained` on.
    rest: Cause,
    explained: Time,
    path: Vec<u8>,
    /// The process and the program's name, if the call took long.
    caller: Option<(u32, String)>,
}

impl MeasuredCall {
    /// Whether the kernel reads a link.
    pub(super) fn is_readlink(&self) -> bool {
        self.operation == CallKind::Readlink
    }

    /// Begins a call that was just received.
    ///
    /// # Cost
    /// One reading of the clock.
    pub(super) fn begin(meter: &Arc<Meter>, operation: CallKind, node: TreeNodeId, pid: u32) -> MeasuredCall {
        let begun = meter.clock.now();
        MeasuredCall {
            meter: Arc::clone(meter),
            operation,
            node,
            pid,
            begun,
            entered: begun,
            paced: Duration::ZERO,
            causes: Causes::default(),
            rest: Cause::Local,
            explained: begun,
            path: Vec::new(),
            caller: None,
        }
    }

    /// Notes that all time until now was a wait for the journal.
    pub(super) fn waited_for_journal(&mut self) {
        self.paced = self.meter.clock.now() - self.begun;
    }

    /// The call enters the core.
    pub(super) fn enter(&mut self, now: Time) {
        self.entered = now;
    }

    /// Divides the time until the core's last input among its causes; the rest has the cause `rest`.
    pub(super) fn explain(&mut self, client: &Client, rest: Cause) {
        let now = client.time();
        self.causes = client.causes(self.entered);
        self.causes.add(Cause::Local, self.entered - self.begun);
        self.causes.shift(Cause::Local, Cause::JournalDisk, self.paced);
        (self.rest, self.explained) = (rest, now);
        if now - self.begun >= REMEMBERED_MIN {
            self.path = path_of(client, self.node);
        }
    }

    /// Notes the caller of a call that took long, while it still waits.
    pub(super) fn note(&mut self) {
        if self.explained - self.begun >= REMEMBERED_MIN {
            self.caller = Some(caller_of(self.pid));
        }
    }

    /// Ends the call: its caller has the answer.
    ///
    /// # Cost
    /// One reading of the clock; more if the call took long.
    pub(super) fn end(mut self: Box<Self>) {
        let ended = self.meter.clock.now();
        self.causes.add(self.rest, ended - self.explained);
        self.meter.times.add(self.operation, &self.causes);
        if ended - self.begun >= REMEMBERED_MIN {
            let (process, program) = self.caller.unwrap_or_else(|| caller_of(self.pid));
            self.meter.remember(FinishedWait {
                process,
                thread: self.pid,
                program,
                operation: self.operation,
                path: self.path,
                ended,
                causes: self.causes,
            });
        }
    }

    /// Returns the wait of a call without an answer.
    pub(super) fn present(&self, client: &Client, call: wirefs_client::call::CallId) -> PresentWait {
        let (process, program) = caller_of(self.pid);
        let (cause, request) = match client.wait_of(call) {
            Some((cause, request)) => (cause, Some(request)),
            None => (client.common_wait(), None),
        };
        PresentWait {
            process,
            thread: self.pid,
            program,
            operation: self.operation,
            path: path_of(client, self.node),
            since: self.meter.clock.now() - self.begun,
            cause,
            request,
        }
    }
}

fn path_of(client: &Client, node: TreeNodeId) -> Vec<u8> {
    client.path_of(node).map(|path| path.as_bytes().to_vec()).unwrap_or_default()
}

/// Returns the process of a thread, 0 if it is gone, and its name.
fn caller_of(thread: u32) -> (u32, String) {
    let status = std::fs::read_to_string(format!("/proc/{thread}/status")).unwrap_or_default();
    let field =
        |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim();
    (field("Tgid:").parse().unwrap_or_default(), field("Name:").to_owned())
}
