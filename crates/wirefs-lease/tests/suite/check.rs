//! What must hold after each event.

use crate::seat::Seat;
use crate::server::Work;
use crate::store::{Fact, Value};
use crate::world::{Changer, World};
use std::collections::BTreeMap;
use std::time::Duration;
use wirefs_op::Time;

/// How long what a program on the server changed may be unknown to a client: until its watcher has looked and the recall
/// is there, or until the leases have run out. Both may be held up by jobs, stalls and slow kernels.
const OUTSIDE_MAX: Duration = Duration::from_secs(60);

/// What became of a client's own change whose reply was lost is recalled when it is back: so long the kernel may take.
const RECALLED_MAX: Duration = Duration::from_secs(30);

impl World {
    pub(crate) fn check(&mut self) {
        for seat in 0..self.seats.len() {
            if let Some(failure) = self.wrong_belief(seat) {
                self.fail(format!("seat {seat} {failure}"));
            }
        }
        let known = self.server.grantor.known();
        if known > self.server.config.known_max {
            self.fail(format!("{known} known objects"));
        }
    }

    /// What a client believes although it is not so.
    fn wrong_belief(&self, index: usize) -> Option<String> {
        let seat = &self.seats[index];
        if seat.asleep {
            return None;
        }
        let valid = seat.is_valid(self.now);
        let own = seat.own.iter().filter(|_| valid).map(|(fact, value)| (*fact, *value, "its cache"));
        let kernel = seat.kernel.iter().map(|(fact, value)| (*fact, *value, "the kernel"));
        let wrong = own.chain(kernel).find(|(fact, value, _)| !self.may_believe(index, *fact, *value))?;
        let (fact, value, place) = wrong;
        let truth = self.store.value(fact);
        let (changer, at) = self.changers.get(&fact).copied().unwrap_or((Changer::Nobody, Time(0)));
        Some(format!(
            "believes {fact:?} to be {value:?} in {place}; it is {truth:?} by {changer:?} at {}",
            at.0
        ))
    }

    fn may_believe(&self, index: usize, fact: Fact, value: Value) -> bool {
        if self.store.value(fact) == value {
            return true;
        }
        let seat: &Seat = &self.seats[index];
        match self.changers.get(&fact) {
            Some((Changer::Outside, at)) => self.now.since(*at) <= OUTSIDE_MAX,
            // It asked for that itself and was not told the result yet.
            Some((Changer::Seat(who, request), _)) if *who == index => {
                let was_told = seat.answered_again.is_some_and(|at| self.now.since(at) > RECALLED_MAX);
                seat.pending.contains_key(request) || seat.lost.contains(request) && !was_told
            }
            Some((Changer::Seat(..), _)) => false,
            Some((Changer::Nobody, _)) | None => false,
        }
    }

    /// A change is carried out: nobody else may be changing names of the same directories.
    pub(crate) fn check_apart(&mut self, job: u64, work: &Work) {
        let others: BTreeMap<u64, u64> = self
            .server
            .jobs
            .iter()
            .flat_map(|(other, work)| work.alone_in.iter().map(|directory| (*directory, *other)))
            .collect();
        for directory in &work.alone_in {
            if let Some(other) = others.get(directory) {
                self.fail(format!("jobs {job} and {other} change names of directory {directory} together"));
            }
        }
    }
}
