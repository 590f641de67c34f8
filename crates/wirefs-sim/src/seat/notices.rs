//! What a kernel is told to forget, one after the other, what waits for that, and the answers beside it.

use crate::flaw::Flaw;
use crate::seat::Seat;
use crate::world::{Event, World};
use bytes::Bytes;
use std::time::Duration;
use wirefs_client::Lane;
use wirefs_client::call::{Answer, CallId, Invalidate, TreeNodeId};
use wirefs_server::ConnectionKey;

/// How often it is looked whether readers have what they were told.
const LOOK: Duration = Duration::from_millis(2);
/// A late answer takes so many times as long, up to this.
const LATE: u32 = 40;
const LATEST: Duration = Duration::from_millis(200);

/// One thing to do.
#[derive(Debug)]
pub(crate) enum Notice {
    Forget(Invalidate),
    Answer(CallId, Answer),
    Send(Option<ConnectionKey>, Bytes),
}

impl World {
    /// It is done after what was told before.
    pub(super) fn tell_kernel(&mut self, index: usize, notice: Notice) {
        let is_hasty = matches!((&notice, self.flaw), (Notice::Send(..), Some(Flaw::AnswersFirst)));
        if is_hasty {
            return self.done_for_kernel(index, notice);
        }
        let (now, delay) = (self.now, self.delay(self.plan.kernel));
        let Some(seat) = self.seats.get_mut(index) else { return };
        let at = (now + delay).max(seat.noticed);
        seat.noticed = at;
        seat.notices.push_back(notice);
        let life = seat.life;
        self.when(at, Event::Noticed(index, life));
    }

    /// The first of what was told is done.
    pub(crate) fn noticed(&mut self, index: usize, life: u64) {
        let Some(seat) = self.seats.get_mut(index).filter(|seat| seat.life == life) else { return };
        if let Some(notice) = seat.notices.pop_front() {
            self.done_for_kernel(index, notice);
        }
    }

    fn done_for_kernel(&mut self, index: usize, notice: Notice) {
        let flaw = self.flaw;
        let Some(seat) = self.seats.get_mut(index) else { return };
        match notice {
            Notice::Forget(_) if flaw == Some(Flaw::KeepsTheRecalled) => {}
            Notice::Forget(Invalidate::Listing { .. }) if flaw == Some(Flaw::KeepsListings) => {}
            Notice::Forget(what) => {
                seat.kernel.forgets(&what);
                self.note(|| format!("  kernel {index} forgets {what:?}"));
            }
            Notice::Answer(id, answer) => self.answer_comes(index, id, answer),
            Notice::Send(Some(connection), body) if seat.uses(connection) => {
                self.note_request(index, &body);
                self.send_up(connection, body, Lane::Queries);
            }
            Notice::Send(..) => {}
        }
    }

    /// Who reads a directory is waited for, beside all else.
    pub(crate) fn await_readers(&mut self, index: usize, dir: TreeNodeId, until: u64) {
        if let Some(life) = self.seats.get(index).map(|seat| seat.life) {
            self.after(LOOK, Event::Passed(index, life, dir, until));
        }
    }

    /// Looks whether they have what they were told.
    pub(crate) fn readers_passed(&mut self, index: usize, life: u64, dir: TreeNodeId, until: u64) {
        let Some(seat) = self.seats.get(index).filter(|seat| seat.life == life && !seat.is_down) else {
            return;
        };
        if seat.kernel.is_held(dir) {
            return self.after(LOOK, Event::Passed(index, life, dir, until));
        }
        self.drive(index, |client, now| client.readers_passed(now, dir, until));
    }

    /// An answer is on its way to the kernel, beside what that is told. Now and then what a kernel gathers is long in coming: its reader is
    /// not let run.
    pub(crate) fn answer_comes(&mut self, index: usize, id: CallId, answer: Answer) {
        let gathers = self.plan.spares_opendir && self.seats.get(index).is_some_and(Seat::keeps_listings);
        // Not by the dice: what is no listing stays the run that it is.
        let is_late =
            gathers && matches!(answer, Answer::Listing(_)) && (self.now.0 / 1000 + id.0).is_multiple_of(8);
        let prompt = self.delay(self.plan.kernel) / 4;
        let delay = if is_late { (prompt * LATE).min(LATEST) } else { prompt };
        let Some(life) = self.seats.get(index).map(|seat| seat.life) else { return };
        self.after(delay, Event::Answered(index, life, id, Box::new(answer)));
    }

    /// An answer is there.
    pub(crate) fn answer_is_there(&mut self, index: usize, life: u64, id: CallId, answer: Answer) {
        let now = self.now;
        let is_there = |seat: &&mut super::Seat| seat.life == life && !seat.is_down;
        let Some(seat) = self.seats.get_mut(index).filter(is_there) else { return };
        let local = seat.clock(now);
        seat.kernel.takes(local, id, &answer);
        self.program_is_answered(index, id, answer);
    }
}
