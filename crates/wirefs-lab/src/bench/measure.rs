//! Running a step in a process of its own, which tells how long it took, and stopping it at the limit.

use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::samples::Outcome;
use crate::error::LabError;
use crate::workload::{Place, Step, Workload};

/// After a kill a process may still wait for its file system to answer.
const DEATH_MAX: Duration = Duration::from_secs(30);
/// Between two looks whether the whole benchmark is to stop.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// A step to be done once.
pub(super) struct Task<'a> {
    pub(super) workload: &'static Workload,
    pub(super) step: &'static Step,
    pub(super) place: &'a Place,
    pub(super) limit: Duration,
}

/// Does a step in this process and writes the nanoseconds that it took to standard output.
///
/// # Errors
/// Those of the step.
pub fn work(step: &Step, place: &Place) -> Result<(), LabError> {
    let begin = Instant::now();
    (step.run)(place)?;
    let elapsed = begin.elapsed();
    writeln!(io::stdout(), "{}", elapsed.as_nanos())
        .map_err(|error| LabError::io("write to standard output", error))
}

/// How a step's process ended, and how long the step took by its own account.
pub(super) enum Ended {
    Done(Duration),
    Early(Outcome),
}

/// Runs `command`, which calls [`work`], to its end or to the limit.
pub(super) fn run_to_limit(
    mut command: Command,
    limit: Duration,
    stop: &AtomicBool,
) -> Result<Ended, LabError> {
    // A group of its own, so that the programs it runs are stopped with it.
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().map_err(|error| LabError::io("run a workload", error))?;
    let group = Pid::from_child(&child);
    let (done, ended) = mpsc::channel();
    // It ends with the child, which is killed at the limit.
    thread::spawn(move || done.send(child.wait_with_output()));
    let begin = Instant::now();
    let output = loop {
        match ended.recv_timeout(LOOK_EVERY.min(limit)) {
            Ok(output) => break output.map_err(|error| LabError::io("wait for a workload", error))?,
            Err(_) if begin.elapsed() < limit && !stop.load(Ordering::Relaxed) => {}
            Err(_) => {
                // A group that has just ended is what is wanted.
                kill_process_group(group, Signal::KILL).ok();
                ended.recv_timeout(DEATH_MAX).ok();
                return Ok(Ended::Early(Outcome::Stopped(limit)));
            }
        }
    };
    Ok(read_account(&output).map_or_else(Ended::Early, Ended::Done))
}

fn read_account(output: &Output) -> Result<Duration, Outcome> {
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let line = said.lines().last().map_or_else(|| output.status.to_string(), str::to_owned);
        return Err(Outcome::Failed(line));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let ns = text.trim().parse().map_err(|_| Outcome::Failed(format!("it said `{}`", text.trim())))?;
    Ok(Duration::from_nanos(ns))
}
