//! The queue of a kernel's invalidations, the frames and answers behind them, and answers beside them.

use crate::flaw::Flaw;
use crate::host::Host;
use crate::world::{Event, World};
use bytes::Bytes;
use std::time::Duration;
use wirefs_client::Lane;
use wirefs_client::call::{Answer, CallId, Invalidate, TreeNodeId};
use wirefs_server::ConnectionKey;

/// The interval of checks whether readers have their replies.
const LOOK: Duration = Duration::from_millis(2);
/// Factor for a late answer, up to this.
const LATE: u32 = 40;
const LATEST: Duration = Duration::from_millis(200);

/// One item of the queue.
#[derive(Debug)]
pub(crate) enum QueueItem {
    Forget(Invalidate),
    Answer(CallId, Answer),
    Send(Option<ConnectionKey>, Bytes),
}

impl World {
    /// Appends an item to the queue.
    pub(super) fn queue_invalidation(&mut self, index: usize, notice: QueueItem) {
        let is_hasty = matches!((&notice, self.flaw), (QueueItem::Send(..), Some(Flaw::AnswersFirst)));
        if is_hasty {
            return self.done_for_kernel(index, notice);
        }
        let (now, delay) = (self.now, self.delay(self.plan.kernel));
        let Some(host) = self.hosts.get_mut(index) else { return };
        let at = (now + delay).max(host.invalidated);
        host.invalidated = at;
        host.invalidations.push_back(notice);
        let life = host.life;
        self.when(at, Event::Invalidated(index, life));
    }

    /// Executes the first item of the queue.
    pub(crate) fn invalidated(&mut self, index: usize, life: u64) {
        let Some(host) = self.hosts.get_mut(index).filter(|host| host.life == life) else { return };
        if let Some(notice) = host.invalidations.pop_front() {
            self.done_for_kernel(index, notice);
        }
    }

    fn done_for_kernel(&mut self, index: usize, notice: QueueItem) {
        let flaw = self.flaw;
        let Some(host) = self.hosts.get_mut(index) else { return };
        match notice {
            QueueItem::Forget(_) if flaw == Some(Flaw::KeepsTheRecalled) => {}
            QueueItem::Forget(Invalidate::Listing { .. }) if flaw == Some(Flaw::KeepsListings) => {}
            QueueItem::Forget(what) => {
                host.kernel.invalidate(&what);
                self.note(|| format!("  kernel {index} forgets {what:?}"));
            }
            QueueItem::Answer(id, answer) => self.answer_comes(index, id, answer),
            QueueItem::Send(Some(connection), body) if host.uses(connection) => {
                self.note_request(index, &body);
                self.send_up(connection, body, Lane::Queries);
            }
            QueueItem::Send(..) => {}
        }
    }

    /// Waits for readers of a directory, beside the queue.
    pub(crate) fn await_readers(&mut self, index: usize, dir: TreeNodeId, until: u64) {
        if let Some(life) = self.hosts.get(index).map(|host| host.life) {
            self.after(LOOK, Event::Passed(index, life, dir, until));
        }
    }

    /// Checks whether the readers have their replies.
    pub(crate) fn readers_passed(&mut self, index: usize, life: u64, dir: TreeNodeId, until: u64) {
        let Some(host) = self.hosts.get(index).filter(|host| host.life == life && !host.is_down) else {
            return;
        };
        if host.kernel.is_held(dir) {
            return self.after(LOOK, Event::Passed(index, life, dir, until));
        }
        self.drive(index, |client, now| client.readers_passed(now, dir, until));
    }

    /// Sends an answer to the kernel, beside the queue. Some listings are late: their reader is not scheduled.
    pub(crate) fn answer_comes(&mut self, index: usize, id: CallId, answer: Answer) {
        let gathers = self.plan.spares_opendir && self.hosts.get(index).is_some_and(Host::keeps_listings);
        // Not by the dice, so that runs without such listings stay the same.
        let is_late =
            gathers && matches!(answer, Answer::Listing(_)) && (self.now.0 / 1000 + id.0).is_multiple_of(8);
        let prompt = self.delay(self.plan.kernel) / 4;
        let delay = if is_late { (prompt * LATE).min(LATEST) } else { prompt };
        let Some(life) = self.hosts.get(index).map(|host| host.life) else { return };
        self.after(delay, Event::Answered(index, life, id, Box::new(answer)));
    }

    /// Delivers an answer.
    pub(crate) fn answer_is_there(&mut self, index: usize, life: u64, id: CallId, answer: Answer) {
        let now = self.now;
        let is_there = |host: &&mut super::Host| host.life == life && !host.is_down;
        let Some(host) = self.hosts.get_mut(index).filter(is_there) else { return };
        let local = host.clock(now);
        host.kernel.takes(local, id, &answer);
        self.program_is_answered(index, id, answer);
    }
}
