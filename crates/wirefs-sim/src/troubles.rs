//! What goes wrong, and when it ends.

use crate::truth::By;
use crate::wire::Way;
use crate::world::{Event, World};
use wirefs_op::Time;

/// Between one trouble and the next, in microseconds.
const BETWEEN: (u64, u64) = (100_000, 5_000_000);
/// Between what programs at the server do, in microseconds.
const ACTS: (u64, u64) = (50_000, 2_000_000);
/// A short and a long silence, in microseconds.
const STALL_SHORT: (u64, u64) = (100_000, 6_000_000);
const STALL_LONG: (u64, u64) = (6_000_000, 60_000_000);

impl World {
    /// What is there before anybody comes.
    pub(crate) fn furnish(&mut self) {
        for request in self.furniture() {
            self.serve_outside(request);
        }
        self.truth.look(&self.server.tree, Time(1), By::Nobody);
    }

    /// Something goes wrong.
    pub(crate) fn trouble(&mut self) {
        if self.is_healed {
            return;
        }
        if self.ahead.is_some() {
            return self.trouble_ahead();
        }
        let troubles = self.plan.troubles;
        let seat = self.dice.below(self.seats.len() as u64) as usize;
        match self.dice.below(100) {
            0..45 if troubles.cuts => {
                if let Some(connection) = self.seats.get(seat).and_then(|seat| seat.connection()) {
                    self.record.cuts += 1;
                    self.note(|| format!("the line of client {seat} breaks: connection {}", connection.0));
                    self.cut(connection);
                }
            }
            20..80 if troubles.stalls => self.stall(seat),
            80..88 if troubles.client_crashes => self.crash_seat(seat),
            88..97 if troubles.server_crashes => {
                let with_machine = self.dice.chance(1, 3);
                self.crash_server(with_machine);
            }
            97..100 if troubles.server_crashes => self.drain_server(),
            _ => {}
        }
        let delay = self.delay(BETWEEN);
        self.after(delay, Event::Trouble);
    }

    /// Nothing comes through for a while; then all of it does.
    pub(crate) fn stall(&mut self, seat: usize) {
        let span = if self.dice.chance(1, 3) { STALL_LONG } else { STALL_SHORT };
        let until = self.now + self.delay(span);
        let ways: &[Way] = match self.dice.below(4) {
            0 => &[Way::Up],
            1 => &[Way::Down],
            _ => &[Way::Up, Way::Down],
        };
        self.record.stalls += 1;
        let long = until.since(self.now).as_millis();
        self.note(|| format!("nothing comes through to or from client {seat} for {long} ms: {ways:?}"));
        for way in ways {
            let Some(line) = self.lines.get_mut(seat) else { return };
            match way {
                Way::Up => line.stalled_up = until,
                Way::Down => line.stalled_down = until,
            }
            self.when(until, Event::Release(seat, *way));
        }
    }

    /// Programs at the server go on.
    pub(crate) fn outside(&mut self) {
        if self.rivals.is_some() {
            return self.rival_acts_outside();
        }
        if self.is_resting() {
            return;
        }
        self.act_outside();
        let delay = self.delay(ACTS);
        self.after(delay, Event::ActOutside);
    }

    /// Everything works from now on; what is down comes back by itself.
    pub(crate) fn heal(&mut self) {
        self.note(|| "all is well from now on".into());
        self.is_healed = true;
        for seat in 0..self.lines.len() {
            if let Some(line) = self.lines.get_mut(seat) {
                *line = crate::wire::Line::default();
            }
            self.release(seat, Way::Up);
            self.release(seat, Way::Down);
        }
    }
}
