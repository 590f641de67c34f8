//! What a kernel is told to forget, one after the other, what waits for that, and the answers beside it.

use crate::flaw::Flaw;
use crate::world::{Event, World};
use bytes::Bytes;
use wirefs_client::Lane;
use wirefs_client::call::{Answer, CallId, Invalidate};
use wirefs_server::ConnectionKey;

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

    /// An answer is on its way to the kernel, beside what that is told.
    pub(crate) fn answer_comes(&mut self, index: usize, id: CallId, answer: Answer) {
        let delay = self.delay(self.plan.kernel) / 4;
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
