//! A kernel's queue of invalidations, and the outputs that wait for them.

use super::{Event, World};
use bytes::Bytes;
use wirefs_client::Lane;
use wirefs_client::call::{Answer, CallId, Invalidate};
use wirefs_server::ConnectionKey;

/// One thing to do.
pub(super) enum Notice {
    Forget(Invalidate),
    Answer(CallId, Answer),
    Send(Option<ConnectionKey>, Bytes),
}

impl World {
    /// It is done after what was told before.
    pub(super) fn tell_kernel(&mut self, seat: usize, notice: Notice) {
        let is_instant = self.delays.kernel == (0, 0);
        self.seats[seat].notices.push_back(notice);
        if is_instant {
            return self.noticed(seat);
        }
        let delay = self.delay(self.delays.kernel);
        let at = (self.now + delay).max(self.seats[seat].noticed);
        self.seats[seat].noticed = at;
        self.when(at, Event::Noticed(seat));
    }

    /// The first of what was told is done.
    pub(super) fn noticed(&mut self, seat: usize) {
        match self.seats[seat].notices.pop_front() {
            Some(Notice::Forget(what)) => {
                self.seats[seat].kernel.forgets(&what);
                self.seats[seat].invalidated.push(what);
            }
            Some(Notice::Answer(id, answer)) => self.answered(seat, id, answer),
            Some(Notice::Send(Some(connection), body)) if Some(connection) == self.seats[seat].connection => {
                self.send(seat, body, Lane::Queries);
            }
            Some(Notice::Send(..)) | None => {}
        }
    }

    /// An answer is on its way to the kernel, beside what that is told.
    pub(super) fn answered(&mut self, seat: usize, id: CallId, answer: Answer) {
        if self.delays.kernel == (0, 0) {
            return self.take_answer(seat, id, answer);
        }
        let delay = self.delay(self.delays.kernel) / 4;
        self.after(delay, Event::Answered(seat, id, Box::new(answer)));
    }

    /// An answer is there.
    pub(super) fn take_answer(&mut self, seat: usize, id: CallId, answer: Answer) {
        let now = self.now;
        self.seats[seat].kernel.takes(now, id, &answer);
        self.check_kernel(seat);
        let twice = self.seats[seat].answers.insert(id, (self.now, answer));
        assert!(twice.is_none(), "call {id:?} was answered twice, first {twice:?}");
    }
}
