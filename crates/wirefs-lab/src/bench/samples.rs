//! What was measured, and its medians.

use std::fmt;
use std::time::Duration;

use super::peer::Peer;
use crate::workload::{Step, Workload};

/// One step, done once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// How long it took.
    pub elapsed: Duration,
    /// Frames that both hosts sent meanwhile. On a plain veth pair these may be larger than the MTU.
    pub frames: u64,
    /// Bytes of those, Ethernet headers included.
    pub bytes: u64,
}

/// How a step ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// As it should.
    Done(Sample),
    /// It was stopped because it took longer than this.
    Stopped(Duration),
    /// It failed, and said so.
    Failed(String),
}

impl fmt::Display for Outcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Done(sample) => {
                let seconds = sample.elapsed.as_secs_f64();
                write!(out, "{seconds:.4} s, {} frames, {} bytes", sample.frames, sample.bytes)
            }
            Outcome::Stopped(limit) => write!(out, "stopped after {} s", limit.as_secs_f64()),
            Outcome::Failed(said) => write!(out, "FAILED: {said}"),
        }
    }
}

/// What a row of outcomes belongs to.
#[derive(Clone, Copy, Debug)]
pub struct Series {
    /// The round-trip time of the link.
    pub rtt: Duration,
    /// The workload.
    pub workload: &'static Workload,
    /// Its step.
    pub step: &'static Step,
    /// The peer.
    pub peer: Peer,
}

impl Series {
    /// Whether both are the same; workloads and steps have unique names.
    fn is(&self, other: &Series) -> bool {
        self.rtt == other.rtt
            && self.workload.name == other.workload.name
            && self.step.name == other.step.name
            && self.peer == other.peer
    }
}

/// Everything that a benchmark measured, in the order of the first run.
#[derive(Debug, Default)]
pub struct Samples {
    rows: Vec<(Series, Vec<Outcome>)>,
}

impl Samples {
    /// Adds an outcome to its series.
    pub fn add(&mut self, series: Series, outcome: Outcome) {
        match self.rows.iter_mut().find(|(known, _)| known.is(&series)) {
            Some((_, outcomes)) => outcomes.push(outcome),
            None => self.rows.push((series, vec![outcome])),
        }
    }

    /// The series and their outcomes.
    pub fn rows(&self) -> impl Iterator<Item = (&Series, &[Outcome])> {
        self.rows.iter().map(|(series, outcomes)| (series, outcomes.as_slice()))
    }

    /// The outcomes of one series; none when it was not measured.
    pub fn outcomes(&self, series: &Series) -> &[Outcome] {
        self.rows.iter().find(|(known, _)| known.is(series)).map_or(&[], |(_, outcomes)| outcomes)
    }

    /// Whether this step was ever stopped at the limit.
    pub(super) fn was_stopped(
        &self,
        rtt: Duration,
        workload: &'static Workload,
        step: &'static Step,
        peer: Peer,
    ) -> bool {
        let outcomes = self.outcomes(&Series { rtt, workload, step, peer });
        outcomes.iter().any(|outcome| matches!(outcome, Outcome::Stopped(_)))
    }

    /// What one series comes to: the medians of its runs, each for itself; otherwise why there are none.
    pub fn median(&self, series: &Series) -> Option<Outcome> {
        let outcomes = self.outcomes(series);
        let spoiled = outcomes.iter().find(|outcome| !matches!(outcome, Outcome::Done(_)));
        if let Some(spoiled) = spoiled {
            return Some(spoiled.clone());
        }
        let done: Vec<Sample> = outcomes
            .iter()
            .filter_map(|outcome| match outcome {
                Outcome::Done(sample) => Some(*sample),
                Outcome::Stopped(_) | Outcome::Failed(_) => None,
            })
            .collect();
        Some(Outcome::Done(Sample {
            elapsed: middle(done.iter().map(|sample| sample.elapsed))?,
            frames: middle(done.iter().map(|sample| sample.frames))?,
            bytes: middle(done.iter().map(|sample| sample.bytes))?,
        }))
    }
}

/// The median; of an even count the lower one of the two, which is a value that was measured.
fn middle<T: Ord>(values: impl Iterator<Item = T>) -> Option<T> {
    let mut sorted: Vec<T> = values.collect();
    sorted.sort();
    let at = sorted.len().checked_sub(1)? / 2;
    sorted.into_iter().nth(at)
}

#[cfg(test)]
mod tests;
