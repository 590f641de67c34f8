//! Changes whose replies will never come, because a replay has sent the changes again under other numbers. Those with a
//! known outcome are taken out; the others get new numbers.

use super::{Outstanding, Requests};
use crate::pending::Pending;
use wirefs_cache::path_estimator::RateSample;
use wirefs_op::{FileId, Frame, NOTAG, Request, Tag, Time};

impl Requests {
    /// Stops the numbering of changes until [`Requests::number_again`]. Returns the number of the next change.
    pub(crate) fn hold_numbers(&mut self) -> u64 {
        self.are_numbers_held = true;
        self.numbers.next()
    }

    /// Resumes the numbering of changes when they are issued.
    pub(crate) fn release_numbers(&mut self) {
        self.are_numbers_held = false;
    }

    /// Takes out the waiting changes that are settled, in order, as if each had been sent just now.
    pub(crate) fn take_settled(
        &mut self,
        now: Time,
        departure: RateSample,
        is_settled: impl Fn(u64, &Pending) -> bool,
    ) -> Vec<Outstanding> {
        let mut settled = Vec::new();
        for waiting in std::mem::take(&mut self.waiting) {
            match waiting.number.filter(|number| is_settled(*number, &waiting.pending)) {
                Some(number) => {
                    self.numbers.answered(Some(number));
                    self.next_order += 1;
                    settled.push(Outstanding {
                        tag: Tag(0),
                        request: waiting.request,
                        pending: waiting.pending,
                        over: None,
                        sent: now,
                        last_progress: now,
                        told_since: now,
                        arrival: departure,
                        departure,
                        first_reply: true,
                        received: 0,
                        order: self.next_order,
                        number: Some(number),
                        blames: 0,
                        origin: waiting.origin,
                    });
                }
                None => self.waiting.push_back(waiting),
            }
        }
        settled
    }

    /// Gives new numbers to all waiting changes. Returns those to journal, each with its number.
    pub(crate) fn number_again(&mut self) -> Vec<(u64, Frame)> {
        self.release_numbers();
        let mut journaled = Vec::new();
        for waiting in self.waiting.iter_mut().filter(|waiting| waiting.request.is_change()) {
            self.numbers.answered(waiting.number.take());
            let number = self.numbers.issue();
            waiting.number = Some(number);
            if !matches!(waiting.request, Request::Lock(_)) {
                journaled.push((number, waiting.request.encode(NOTAG)));
            }
        }
        journaled
    }

    /// Replaces the ids of objects in requests that are not sent yet.
    pub(crate) fn rename_ids(&mut self, id_of: impl Fn(FileId) -> FileId) {
        let waiting = self.waiting.iter_mut().map(|waiting| &mut waiting.request);
        let held = self.held.iter_mut().map(|held| &mut held.request);
        for id in waiting.chain(held).flat_map(Request::ids_mut).flatten() {
            *id = id_of(*id);
        }
    }
}
