//! What happens at the clients: programs act, kernels forget, clocks go on.

use crate::flaws::Flaw;
use crate::seat::Next;
use crate::store::{DIRECTORIES, NAMES};
use crate::wire::{Ask, Connection, Down, Up, Ways};
use crate::world::{Event, World};
use wirefs_lease::{Forgetting, Holder};
use wirefs_op::Time;

impl World {
    pub(crate) fn arrive(&mut self, seat: usize, connection: Connection, down: Down) {
        if self.seats[seat].asleep {
            return self.at(self.wakes_at(seat), Event::Down(seat, connection, down));
        }
        if self.seats[seat].connection != Some(connection) {
            return;
        }
        self.pass(seat);
        match self.seats[seat].receive(self.now, down, self.flaw, &mut self.dice) {
            Next::Nothing => {}
            Next::Lost => self.at(self.now, Event::CutAtClient(seat, connection)),
            Next::Answer(forgetting, facts) => {
                if self.flaw == Some(Flaw::AnswersFirst) {
                    self.answer(seat, forgetting);
                }
                let most = if self.seats[seat].slow_kernel { 25_000_000 } else { 50_000 };
                self.later(0, most, Event::Forgotten(seat, forgetting, facts));
            }
        }
        self.pass(seat);
    }

    /// What happens to a machine that sleeps happens right after it wakes, in the same order.
    pub(crate) fn wakes_at(&self, seat: usize) -> Time {
        let wakes = |event: &Event| matches!(event, Event::Wake(who, _) if *who == seat);
        self.events.iter().find(|(_, event)| wakes(event)).map_or(self.now, |((at, _), _)| *at)
    }

    pub(crate) fn happen_at_client(&mut self, seat: usize, event: Event) {
        match event {
            Event::SeatTick(_) => {}
            Event::Act(_) => self.act(seat),
            Event::Forgotten(_, forgetting, facts) => {
                for fact in facts {
                    self.seats[seat].kernel.remove(&fact);
                }
                self.answer(seat, forgetting);
            }
            Event::Emptied(_) => {
                self.seats[seat].kernel.clear();
                if let Some(holder) = &mut self.seats[seat].holder {
                    holder.emptied();
                }
            }
            Event::CutAtClient(_, connection) => {
                if self.seats[seat].connection == Some(connection) {
                    self.seats[seat].lost(self.now);
                    let most = if self.dice.percent(30) { 40_000_000 } else { 1_000_000 };
                    self.later(1_000, most, Event::Connect(seat));
                }
            }
            Event::Connect(_) => {
                self.connections += 1;
                self.seats[seat].connection = Some(Connection(self.connections));
                self.ways[seat] = Ways::stalled(self.ways[seat].stalled_until);
                self.up(seat, Up::Attach);
            }
            Event::Up(..)
            | Event::Down(..)
            | Event::Step(_)
            | Event::Tick
            | Event::CutAtServer(..)
            | Event::Wake(..)
            | Event::Watch(..)
            | Event::Trouble => {}
        }
    }

    /// A client looks at its clock.
    pub(crate) fn pass(&mut self, seat: usize) {
        let now = self.now;
        let empty = self.seats[seat].pass(now);
        if let Some(empty) = empty {
            let clock = self.seats[seat].clock;
            let most = clock.until(now, empty.by).as_micros() as u64;
            if self.flaw == Some(Flaw::KeepsTheKernels) {
                if let Some(holder) = &mut self.seats[seat].holder {
                    holder.emptied();
                }
            } else if clock.read(now) >= empty.by {
                self.happen_at_client(seat, Event::Emptied(seat));
            } else {
                self.later(0, most, Event::Emptied(seat));
            }
        }
        let seat_now = &self.seats[seat];
        let renewal = seat_now.renewal_at();
        let deadline = seat_now.holder.as_ref().and_then(Holder::deadline);
        if renewal.is_some_and(|at| at <= seat_now.clock.read(now)) {
            self.ask(seat, Ask::Ping);
        }
        let seat_now = &self.seats[seat];
        let next = deadline.into_iter().chain(seat_now.renewal_at()).min();
        if let Some(next) = next {
            let wait = seat_now.clock.until(now, next);
            let is_new = !self.events.iter().any(|((at, _), event)| {
                *at <= now + wait && *at > now && matches!(event, Event::SeatTick(who) if *who == seat)
            });
            if is_new {
                self.at(now + wait, Event::SeatTick(seat));
            }
        }
    }

    fn answer(&mut self, seat: usize, forgetting: Forgetting) {
        if let Some(serial) = self.seats[seat].answer(forgetting) {
            self.up(seat, Up::Recalled(serial));
        }
    }

    fn ask(&mut self, seat: usize, ask: Ask) {
        self.requests += 1;
        let request = self.requests;
        self.seats[seat].sends(self.now, request, ask.clone());
        self.up(seat, Up::Request(request, ask));
    }

    fn act(&mut self, seat: usize) {
        if self.is_resting() {
            return;
        }
        if self.seats[seat].attached && self.seats[seat].pending.len() < 20 {
            let ask = self.something(seat);
            self.ask(seat, ask);
        }
        let most = match self.dice.between(0, 19) {
            0 => 30_000_000,
            1..4 => 3_000_000,
            _ => 300_000,
        };
        self.later(1_000, most, Event::Act(seat));
    }

    fn something(&mut self, seat: usize) -> Ask {
        let directory = self.dice.pick(&DIRECTORIES);
        let name = self.dice.pick(&NAMES);
        match self.dice.between(0, 99) {
            0..25 => Ask::Lookup(directory, name),
            25..45 => Ask::List(directory),
            45..65 => {
                let known = self.store.name(directory, name).unwrap_or(directory);
                Ask::Attributes(known)
            }
            _ => {
                let what = self.some_change();
                Ask::Change(self.seats[seat].expects(self.now, what))
            }
        }
    }
}
