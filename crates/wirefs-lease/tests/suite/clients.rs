//! Events at the clients: program actions, kernel invalidation, clock ticks.

use crate::mutations::Mutation;
use crate::sim_client::Next;
use crate::simulation::{Event, LeaseSimulation};
use crate::store::{DIRECTORIES, NAMES};
use crate::wire::{Ask, Connection, Down, Up, Wires};
use wirefs_lease::{LeaseHolder, PendingRecall};
use wirefs_op::Time;

impl LeaseSimulation {
    pub(crate) fn arrive(&mut self, client: usize, connection: Connection, down: Down) {
        if self.clients[client].asleep {
            return self.at(self.wakes_at(client), Event::Down(client, connection, down));
        }
        if self.clients[client].connection != Some(connection) {
            return;
        }
        self.advance(client);
        match self.clients[client].receive(self.now, down, self.mutation, &mut self.dice) {
            Next::Nothing => {}
            Next::Lost => self.at(self.now, Event::CutAtClient(client, connection)),
            Next::Answer(pending, facts) => {
                if self.mutation == Some(Mutation::AnswersFirst) {
                    self.answer(client, pending);
                }
                let most = if self.clients[client].slow_kernel { 25_000_000 } else { 50_000 };
                self.later(0, most, Event::Invalidated(client, pending, facts));
            }
        }
        self.advance(client);
    }

    /// Returns when an event at a client takes place: events of a sleeping machine take place right after it
    /// wakes, in the same order.
    pub(crate) fn wakes_at(&self, client: usize) -> Time {
        let wakes = |event: &Event| matches!(event, Event::Wake(owner, _) if *owner == client);
        self.events.iter().find(|(_, event)| wakes(event)).map_or(self.now, |(at, _)| at)
    }

    pub(crate) fn handle_client_event(&mut self, client: usize, event: Event) {
        match event {
            Event::ClientTick(_) => {}
            Event::Act(_) => self.act(client),
            Event::Invalidated(_, pending, facts) => {
                for fact in facts {
                    self.clients[client].kernel.remove(&fact);
                }
                self.answer(client, pending);
            }
            Event::FullyInvalidated(_) => {
                self.clients[client].kernel.clear();
                if let Some(holder) = &mut self.clients[client].holder {
                    holder.invalidated();
                }
            }
            Event::CutAtClient(_, connection) => {
                if self.clients[client].connection == Some(connection) {
                    self.clients[client].lost(self.now);
                    let most = if self.dice.chance(30, 100) { 40_000_000 } else { 1_000_000 };
                    self.later(1_000, most, Event::Connect(client));
                }
            }
            Event::Connect(_) => {
                self.connections += 1;
                self.clients[client].connection = Some(Connection(self.connections));
                self.wires[client] = Wires::stalled(self.wires[client].stalled_until);
                self.up(client, Up::Attach);
            }
            Event::Up(..)
            | Event::Down(..)
            | Event::Step(_)
            | Event::Tick
            | Event::CutAtServer(..)
            | Event::Wake(..)
            | Event::Watch(..)
            | Event::Fault => {}
        }
    }

    /// A client reads its clock.
    pub(crate) fn advance(&mut self, client: usize) {
        let now = self.now;
        let empty = self.clients[client].advance(now);
        if let Some(empty) = empty {
            let clock = self.clients[client].clock;
            let most = clock.until(now, empty.by).as_micros() as u64;
            if self.mutation == Some(Mutation::SkipsKernelInvalidation) {
                if let Some(holder) = &mut self.clients[client].holder {
                    holder.invalidated();
                }
            } else if clock.read(now) >= empty.by {
                self.handle_client_event(client, Event::FullyInvalidated(client));
            } else {
                self.later(0, most, Event::FullyInvalidated(client));
            }
        }
        let seat_now = &self.clients[client];
        let renewal = seat_now.renewal_at();
        let deadline = seat_now.holder.as_ref().and_then(LeaseHolder::deadline);
        if renewal.is_some_and(|at| at <= seat_now.clock.read(now)) {
            self.send_request(client, Ask::Ping);
        }
        let seat_now = &self.clients[client];
        let next = deadline.into_iter().chain(seat_now.renewal_at()).min();
        if let Some(next) = next {
            let wait = seat_now.clock.until(now, next);
            let is_new = !self.events.iter().any(|(at, event)| {
                at <= now + wait && at > now && matches!(event, Event::ClientTick(owner) if *owner == client)
            });
            if is_new {
                self.at(now + wait, Event::ClientTick(client));
            }
        }
    }

    fn answer(&mut self, client: usize, pending: PendingRecall) {
        if let Some(serial) = self.clients[client].answer(pending) {
            self.up(client, Up::Recalled(serial));
        }
    }

    fn send_request(&mut self, client: usize, ask: Ask) {
        self.requests += 1;
        let request = self.requests;
        self.clients[client].sends(self.now, request, ask.clone());
        self.up(client, Up::Request(request, ask));
    }

    fn act(&mut self, client: usize) {
        if self.is_resting() {
            return;
        }
        if self.clients[client].attached && self.clients[client].pending.len() < 20 {
            let ask = self.something(client);
            self.send_request(client, ask);
        }
        let most = match self.dice.between(0, 19) {
            0 => 30_000_000,
            1..4 => 3_000_000,
            _ => 300_000,
        };
        self.later(1_000, most, Event::Act(client));
    }

    fn something(&mut self, client: usize) -> Ask {
        let directory = self.dice.one_of(&DIRECTORIES);
        let name = self.dice.one_of(&NAMES);
        match self.dice.between(0, 99) {
            0..25 => Ask::Lookup(directory, name),
            25..45 => Ask::List(directory),
            45..65 => {
                let object = self.store.name(directory, name).unwrap_or(directory);
                Ask::Attributes(object)
            }
            _ => {
                let kind = self.some_change();
                Ask::Change(self.clients[client].expects(self.now, kind))
            }
        }
    }
}
