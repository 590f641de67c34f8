//! Runs a step in a process of its own, which prints the elapsed time, and kills it at the time limit.

use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::samples::StepOutcome;
use crate::error::LabError;
use crate::workload::{WorkPlace, Workload, WorkloadStep};

/// The maximum wait after SIGKILL; a process may be blocked in its file system.
const KILL_WAIT_MAX: Duration = Duration::from_secs(30);
/// The polling interval for an interrupt.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// A step to run once.
pub(super) struct StepTask<'a> {
    pub(super) workload: &'static Workload,
    pub(super) step: &'static WorkloadStep,
    pub(super) place: &'a WorkPlace,
    pub(super) limit: Duration,
}

/// Runs a step in this process and prints the elapsed nanoseconds to standard output.
///
/// # Errors
/// Those of the step.
pub fn work(step: &WorkloadStep, place: &WorkPlace) -> Result<(), LabError> {
    let begin = Instant::now();
    (step.run)(place)?;
    let elapsed = begin.elapsed();
    writeln!(io::stdout(), "{}", elapsed.as_nanos())
        .map_err(|error| LabError::io("write to standard output", error))
}

/// The end of a step's process: the elapsed time that it printed, or an outcome without a time.
pub(super) enum StepEnd {
    Done(Duration),
    Early(StepOutcome),
}

/// Runs `command`, which calls [`work`], until it ends or reaches the limit.
pub(super) fn run_to_limit(
    mut command: Command,
    limit: Duration,
    stop: &AtomicBool,
) -> Result<StepEnd, LabError> {
    // A process group of its own, so that its child processes are killed with it.
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().map_err(|error| LabError::io("run a workload", error))?;
    let group = Pid::from_child(&child);
    let (done, ended) = mpsc::channel();
    // Ends with the child, which is killed at the limit.
    thread::spawn(move || done.send(child.wait_with_output()));
    let begin = Instant::now();
    let output = loop {
        match ended.recv_timeout(POLL_INTERVAL.min(limit)) {
            Ok(output) => break output.map_err(|error| LabError::io("wait for a workload", error))?,
            Err(_) if begin.elapsed() < limit && !stop.load(Ordering::Relaxed) => {}
            Err(_) => {
                // The group may have ended already.
                kill_process_group(group, Signal::KILL).ok();
                ended.recv_timeout(KILL_WAIT_MAX).ok();
                return Ok(StepEnd::Early(StepOutcome::Stopped(limit)));
            }
        }
    };
    Ok(parse_output(&output).map_or_else(StepEnd::Early, StepEnd::Done))
}

fn parse_output(output: &Output) -> Result<Duration, StepOutcome> {
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        let line = message.lines().last().map_or_else(|| output.status.to_string(), str::to_owned);
        return Err(StepOutcome::Failed(line));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let ns = text
        .trim()
        .parse()
        .map_err(|_| StepOutcome::Failed(format!("unexpected output `{}`", text.trim())))?;
    Ok(Duration::from_nanos(ns))
}
