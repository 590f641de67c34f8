//! Tests of the grantor, rule by rule; the crate's `tests/suite` tests their combination.

mod bounds;
mod changing;
mod external;
mod fencing;
mod granting;
mod joining;
mod punishing;
mod recalling;

use super::{
    Grantor, GrantorOutput, HolderKey, JobKey, JoinOutcome, LeaseConfig, PartyKey, TouchOutcome, Touched,
};
use crate::recall::{LeaseItem, Serial};
use bytes::Bytes;
use std::time::Duration;
use wirefs_op::{FileId, Time};

const A: HolderKey = HolderKey(1);
const B: HolderKey = HolderKey(2);
const C: HolderKey = HolderKey(3);
/// A directory and two files.
const DIR: FileId = id(1);
const F: FileId = id(10);
const G: FileId = id(11);

const fn id(ino: u64) -> FileId {
    FileId { fs: 0, ino, generation: 1 }
}

fn whole(id: FileId) -> Touched {
    Touched { id, name: None, exclusive: false, recall_own: false }
}

fn named(id: FileId, name: &'static str) -> Touched {
    Touched { id, name: Some(Bytes::from_static(name.as_bytes())), exclusive: true, recall_own: false }
}

fn recall_own_lease(id: FileId) -> Touched {
    Touched { recall_own: true, ..whole(id) }
}

/// A grantor, a clock, and the collected outputs.
struct Bench {
    grantor: Grantor,
    now: Time,
    jobs: u64,
}

impl Bench {
    /// Creates a grantor with these holders, each of which has sent a request.
    fn new(holders: &[HolderKey]) -> Bench {
        Bench::with(LeaseConfig::default(), holders)
    }

    fn with(config: LeaseConfig, holders: &[HolderKey]) -> Bench {
        let mut bench = Bench { grantor: Grantor::new(config, None), now: Time(0), jobs: 100 };
        for holder in holders {
            assert_eq!(bench.join(*holder), JoinOutcome::Fresh);
            bench.grantor.renew(bench.now, *holder);
        }
        assert_eq!(bench.outputs(), []);
        bench
    }

    /// A holder joins, the only one of its party.
    fn join(&mut self, holder: HolderKey) -> JoinOutcome {
        self.join_for(holder, &format!("party of {}", holder.0))
    }

    fn join_for(&mut self, holder: HolderKey, party: &str) -> JoinOutcome {
        self.grantor.join(self.now, holder, PartyKey(Bytes::copy_from_slice(party.as_bytes())))
    }

    fn outputs(&mut self) -> Vec<GrantorOutput> {
        std::iter::from_fn(|| self.grantor.poll()).collect()
    }

    /// Advances the clock; these holders send a message each second.
    fn pass(&mut self, seconds: u64, renewed_at: &[HolderKey]) {
        for _ in 0..seconds {
            self.now = self.now + Duration::from_secs(1);
            for holder in renewed_at {
                self.grantor.renew(self.now, *holder);
            }
            self.grantor.tick(self.now);
        }
    }

    /// Runs a job that reads these objects for a holder. Returns which are granted.
    fn read(&mut self, holder: HolderKey, ids: &[FileId]) -> Vec<bool> {
        self.jobs += 1;
        let job = JobKey(self.jobs);
        self.grantor.begin(job);
        let granted = self.grantor.grant(self.now, job, holder, ids);
        self.grantor.end(job);
        granted
    }

    fn grant(&mut self, holder: HolderKey, id: FileId) {
        assert_eq!(self.read(holder, &[id]), [true]);
    }

    fn touch(&mut self, job: u64, holder: HolderKey, touched: &[Touched]) -> TouchOutcome {
        self.grantor.begin(JobKey(job));
        self.grantor.touch(self.now, JobKey(job), Some(holder), touched)
    }

    /// Runs a change that does not have to wait.
    fn change(&mut self, job: u64, holder: HolderKey, touched: &[Touched]) {
        assert_eq!(self.touch(job, holder, touched), TouchOutcome::Clear);
        self.grantor.end(JobKey(job));
    }

    fn recalled(&mut self, holder: HolderKey, serial: u64) {
        self.grantor.recall_answered(self.now, holder, Serial(serial));
    }
}

fn recall(holder: HolderKey, serial: u64, items: &[LeaseItem]) -> GrantorOutput {
    GrantorOutput::Recall { holder, serial: Serial(serial), items: items.to_vec() }
}

fn retry(job: u64) -> GrantorOutput {
    GrantorOutput::Retry(JobKey(job))
}
