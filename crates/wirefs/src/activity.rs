//! The calls of programs on a mount: their times by cause, and who waits for what. In the format of `--json`.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use wirefs_metrics::{CallKind, Cause, Causes};
use wirefs_mount::MountControl;

/// The calls of programs on a mount.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Activity {
    /// Operations that were called at least once.
    pub(crate) operations: Vec<OperationReport>,
    /// Calls without an answer, the longest first.
    pub(crate) waiting: Vec<Wait>,
    /// The last calls that took at least 20 ms, the oldest first.
    pub(crate) finished: Vec<Wait>,
}

/// The times of one operation since the mount.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct OperationReport {
    pub(crate) name: String,
    pub(crate) calls: u64,
    pub(crate) total_us: u64,
    /// The median and the 99th percentile, at most 1/8 too large.
    pub(crate) p50_us: u64,
    pub(crate) p99_us: u64,
    /// The total by cause.
    pub(crate) causes_us: BTreeMap<String, u64>,
}

/// A call that waits, or that waited.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Wait {
    /// The process, 0 if it was gone, and the thread.
    pub(crate) process: u32,
    pub(crate) thread: u32,
    /// The thread's name.
    pub(crate) program: String,
    pub(crate) operation: String,
    /// The path below the mountpoint.
    pub(crate) path: String,
    pub(crate) waited_us: u64,
    /// The time since its end; none while it waits.
    pub(crate) ended_ago_us: Option<u64>,
    /// The time by cause; while it waits, all of it has the present cause.
    pub(crate) causes_us: BTreeMap<String, u64>,
    /// The request that a waiting call waits for, if it is the call's own.
    pub(crate) request: Option<String>,
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn by_cause(causes: &Causes) -> BTreeMap<String, u64> {
    causes.by_time().into_iter().map(|(cause, time)| (cause.name().to_owned(), micros(time))).collect()
}

/// Returns the cause with this name in words.
pub(crate) fn in_words(name: &str) -> &'static str {
    let cause = Cause::ALL.into_iter().find(|cause| cause.name() == name);
    cause.map_or("an unknown cause", Cause::words)
}

impl Activity {
    /// Returns the calls of a mount.
    pub(crate) fn of(mount: &MountControl) -> Activity {
        let times = mount.call_times();
        let called = CallKind::ALL.into_iter().map(|operation| (operation, times.of(operation)));
        let operations = called.filter(|(_, counts)| counts.count() > 0).map(|(operation, counts)| {
            let caused = Cause::ALL.map(|cause| (cause, micros(times.caused(operation, cause).sum())));
            let caused = caused.into_iter().filter(|(_, sum)| *sum > 0);
            OperationReport {
                name: operation.name().to_owned(),
                calls: counts.count(),
                total_us: micros(counts.sum()),
                p50_us: counts.quantile(0.5).map_or(0, micros),
                p99_us: counts.quantile(0.99).map_or(0, micros),
                causes_us: caused.map(|(cause, sum)| (cause.name().to_owned(), sum)).collect(),
            }
        });
        let now = mount.time();
        let text = |path: &[u8]| String::from_utf8_lossy(path).into_owned();
        let waiting = mount.present_waits().into_iter().map(|wait| Wait {
            process: wait.process,
            thread: wait.thread,
            program: wait.program,
            operation: wait.operation.name().to_owned(),
            path: text(&wait.path),
            waited_us: micros(wait.since),
            ended_ago_us: None,
            causes_us: BTreeMap::from([(wait.cause.name().to_owned(), micros(wait.since))]),
            request: wait.request.map(str::to_owned),
        });
        let finished = mount.finished_waits().into_iter().map(|wait| Wait {
            process: wait.process,
            thread: wait.thread,
            program: wait.program,
            operation: wait.operation.name().to_owned(),
            path: text(&wait.path),
            waited_us: micros(wait.causes.total()),
            ended_ago_us: Some(micros(now.since(wait.ended))),
            causes_us: by_cause(&wait.causes),
            request: None,
        });
        Activity {
            operations: operations.collect(),
            waiting: waiting.collect(),
            finished: finished.collect(),
        }
    }
}

/// A mount at one moment: its status and its calls.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Sample {
    pub(crate) status: crate::status::Report,
    pub(crate) activity: Activity,
}
