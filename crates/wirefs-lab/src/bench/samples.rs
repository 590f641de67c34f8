//! Outcomes of steps, and their medians.

use std::fmt;
use std::time::Duration;

use super::peer::BenchPeer;
use crate::workload::{Workload, WorkloadStep};

/// The measurement of one successful step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BenchSample {
    /// The elapsed time.
    pub elapsed: Duration,
    /// Frames that both hosts sent during the step. On a plain veth pair these may be larger than the MTU.
    pub frames: u64,
    /// Bytes of these frames, Ethernet headers included.
    pub bytes: u64,
}

/// The result of one run of a step.
#[derive(Clone, Debug, PartialEq)]
pub enum StepOutcome {
    /// Success.
    Done(BenchSample),
    /// Killed at this time limit.
    Stopped(Duration),
    /// Failure, with the last line of its error output.
    Failed(String),
}

impl fmt::Display for StepOutcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StepOutcome::Done(sample) => {
                let seconds = sample.elapsed.as_secs_f64();
                write!(out, "{seconds:.4} s, {} frames, {} bytes", sample.frames, sample.bytes)
            }
            StepOutcome::Stopped(limit) => write!(out, "stopped after {} s", limit.as_secs_f64()),
            StepOutcome::Failed(message) => write!(out, "FAILED: {message}"),
        }
    }
}

/// The key of the outcomes of all runs of a step.
#[derive(Clone, Copy, Debug)]
pub struct SeriesKey {
    /// The round-trip time of the link.
    pub rtt: Duration,
    /// The workload.
    pub workload: &'static Workload,
    /// The step of the workload.
    pub step: &'static WorkloadStep,
    /// The peer.
    pub peer: BenchPeer,
}

impl SeriesKey {
    /// Returns whether both are equal; workloads and steps have unique names.
    fn equals(&self, other: &SeriesKey) -> bool {
        self.rtt == other.rtt
            && self.workload.name == other.workload.name
            && self.step.name == other.step.name
            && self.peer == other.peer
    }
}

/// All outcomes of a benchmark, in the order of the first run.
#[derive(Debug, Default)]
pub struct BenchSamples {
    rows: Vec<(SeriesKey, Vec<StepOutcome>)>,
}

impl BenchSamples {
    /// Adds an outcome.
    pub fn add(&mut self, series: SeriesKey, outcome: StepOutcome) {
        match self.rows.iter_mut().find(|(known, _)| known.equals(&series)) {
            Some((_, outcomes)) => outcomes.push(outcome),
            None => self.rows.push((series, vec![outcome])),
        }
    }

    /// Returns all keys with their outcomes.
    pub fn rows(&self) -> impl Iterator<Item = (&SeriesKey, &[StepOutcome])> {
        self.rows.iter().map(|(series, outcomes)| (series, outcomes.as_slice()))
    }

    /// Returns the outcomes of one key, empty if it was not measured.
    pub fn outcomes(&self, series: &SeriesKey) -> &[StepOutcome] {
        self.rows.iter().find(|(known, _)| known.equals(series)).map_or(&[], |(_, outcomes)| outcomes)
    }

    /// Returns whether any run of this step was stopped at the limit.
    pub(super) fn was_stopped(
        &self,
        rtt: Duration,
        workload: &'static Workload,
        step: &'static WorkloadStep,
        peer: BenchPeer,
    ) -> bool {
        let outcomes = self.outcomes(&SeriesKey { rtt, workload, step, peer });
        outcomes.iter().any(|outcome| matches!(outcome, StepOutcome::Stopped(_)))
    }

    /// Returns the median of each value over the runs; the first outcome that is not a success, if there is one.
    pub fn median(&self, series: &SeriesKey) -> Option<StepOutcome> {
        let outcomes = self.outcomes(series);
        let unsuccessful = outcomes.iter().find(|outcome| !matches!(outcome, StepOutcome::Done(_)));
        if let Some(unsuccessful) = unsuccessful {
            return Some(unsuccessful.clone());
        }
        let done: Vec<BenchSample> = outcomes
            .iter()
            .filter_map(|outcome| match outcome {
                StepOutcome::Done(sample) => Some(*sample),
                StepOutcome::Stopped(_) | StepOutcome::Failed(_) => None,
            })
            .collect();
        Some(StepOutcome::Done(BenchSample {
            elapsed: median_of(done.iter().map(|sample| sample.elapsed))?,
            frames: median_of(done.iter().map(|sample| sample.frames))?,
            bytes: median_of(done.iter().map(|sample| sample.bytes))?,
        }))
    }
}

/// Returns the median; for an even count the lower of the two middle values.
fn median_of<T: Ord>(values: impl Iterator<Item = T>) -> Option<T> {
    let mut sorted: Vec<T> = values.collect();
    sorted.sort();
    let at = sorted.len().checked_sub(1)? / 2;
    sorted.into_iter().nth(at)
}

#[cfg(test)]
mod tests;
