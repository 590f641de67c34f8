//! The checks after each event.

use crate::server::Work;
use crate::sim_client::SimClient;
use crate::simulation::{Changer, LeaseSimulation};
use crate::store::{Fact, Value};
use std::collections::BTreeMap;
use std::time::Duration;
use wirefs_op::Time;

/// The maximal time until a client sees an external change: until the watcher has looked and the recall has
/// arrived, or until the leases have expired. Jobs, stalls and slow kernels delay both.
const EXTERNAL_MAX: Duration = Duration::from_secs(60);

/// The maximal time until a client sees the result of its own change whose reply was lost: the recall arrives
/// after the reconnect, and the kernel may be slow.
const RECALLED_MAX: Duration = Duration::from_secs(30);

impl LeaseSimulation {
    pub(crate) fn check(&mut self) {
        for client in 0..self.clients.len() {
            if let Some(failure) = self.wrong_fact(client) {
                self.fail(format!("client {client} {failure}"));
            }
        }
        let leases = self.server.grantor.leased_objects();
        if leases > self.server.config.leases_max {
            self.fail(format!("{leases} leases"));
        }
    }

    /// Returns a description of a valid cached fact of a client that is wrong.
    fn wrong_fact(&self, index: usize) -> Option<String> {
        let client = &self.clients[index];
        if client.asleep {
            return None;
        }
        let valid = client.is_valid(self.now);
        let own = client.own.iter().filter(|_| valid).map(|(fact, value)| (*fact, *value, "its cache"));
        let kernel = client.kernel.iter().map(|(fact, value)| (*fact, *value, "the kernel"));
        let wrong = own.chain(kernel).find(|(fact, value, _)| !self.may_use(index, *fact, *value))?;
        let (fact, value, place) = wrong;
        let truth = self.store.value(fact);
        let (changer, at) = self.changers.get(&fact).copied().unwrap_or((Changer::Leaseless, Time(0)));
        Some(format!(
            "has {fact:?} cached as {value:?} in {place}; it is {truth:?} by {changer:?} at {}",
            at.0
        ))
    }

    fn may_use(&self, index: usize, fact: Fact, value: Value) -> bool {
        if self.store.value(fact) == value {
            return true;
        }
        let client: &SimClient = &self.clients[index];
        match self.changers.get(&fact) {
            Some((Changer::External, at)) => self.now.since(*at) <= EXTERNAL_MAX,
            // The client requested this change itself and does not have the reply yet.
            Some((Changer::Client(owner, request), _)) if *owner == index => {
                let was_told = client.answered_again.is_some_and(|at| self.now.since(at) > RECALLED_MAX);
                client.pending.contains_key(request) || client.lost.contains(request) && !was_told
            }
            Some((Changer::Client(..), _)) => false,
            Some((Changer::Leaseless, _)) | None => false,
        }
    }

    /// Checks, when a change runs, that no other job is changing names in the same directories.
    pub(crate) fn check_apart(&mut self, job: u64, work: &Work) {
        let others: BTreeMap<u64, u64> = self
            .server
            .jobs
            .iter()
            .flat_map(|(other, work)| work.locked_directories.iter().map(|directory| (*directory, *other)))
            .collect();
        for directory in &work.locked_directories {
            if let Some(other) = others.get(directory) {
                self.fail(format!("jobs {job} and {other} change names of directory {directory} together"));
            }
        }
    }
}
