//! The simulation: events in the order of their times, determined by a seed.

use crate::mutations::Mutation;
use crate::server::Server;
use crate::sim_client::SimClient;
use crate::store::{Fact, Store};
use crate::wire::{Connection, Down, Up, Wires};
use std::collections::BTreeMap;
use std::time::Duration;
use wirefs_lease::{LeaseConfig, PendingRecall};
use wirefs_op::Time;
use wirefs_virtual::{Dice, EventQueue};

/// The time for which programs act.
const BUSY: Duration = Duration::from_secs(150);
/// The time after which all requests must have finished.
const REST: Duration = Duration::from_secs(240);

#[derive(Debug)]
pub(crate) enum Event {
    /// A message arrives at the server.
    Up(usize, Connection, Up),
    /// A message arrives at a client.
    Down(usize, Connection, Down),
    /// A job runs its next step.
    Step(u64),
    /// The server's clock ticks.
    Tick,
    /// A client's clock ticks.
    ClientTick(usize),
    /// A program on a client acts.
    Act(usize),
    /// A client's kernel has invalidated the items of a recall.
    Invalidated(usize, PendingRecall, Vec<Fact>),
    /// A client's kernel has invalidated its whole cache.
    FullyInvalidated(usize),
    /// The server notices a broken connection.
    CutAtServer(usize, Connection),
    /// A client notices a broken connection.
    CutAtClient(usize, Connection),
    /// A client reconnects.
    Connect(usize),
    /// A machine wakes up after this time.
    Wake(usize, Duration),
    /// A watcher checks an object, or a name in it.
    Watch(u64, Option<&'static str>),
    /// A fault is injected.
    Fault,
}

/// The origin of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Changer {
    /// A client without leases, through the server.
    Leaseless,
    /// A client, with this request.
    Client(usize, u64),
    /// A program on the server.
    External,
}

pub(crate) struct LeaseSimulation {
    pub(crate) now: Time,
    pub(crate) mutation: Option<Mutation>,
    pub(crate) dice: Dice,
    pub(crate) store: Store,
    /// The origin and time of the last change of each fact.
    pub(crate) changers: BTreeMap<Fact, (Changer, Time)>,
    pub(crate) server: Server,
    pub(crate) clients: Vec<SimClient>,
    pub(crate) failure: Option<String>,
    pub(crate) log: Vec<String>,
    pub(crate) wires: Vec<Wires>,
    /// Connections that deliver nothing any more.
    pub(crate) dead: Vec<Connection>,
    pub(crate) events: EventQueue<Event>,
    pub(crate) requests: u64,
    pub(crate) connections: u64,
    pub(crate) tick_at: Option<Time>,
}

/// The statistics of a run.
#[derive(Debug, PartialEq, Eq, Default)]
pub(crate) struct Record {
    pub(crate) events: u64,
    pub(crate) recalls: u64,
    pub(crate) parked: u64,
    pub(crate) taken: u64,
    pub(crate) expelled: u64,
    pub(crate) ended: Time,
}

impl LeaseSimulation {
    pub(crate) fn new(seed: u64, mutation: Option<Mutation>) -> LeaseSimulation {
        let mut dice = Dice::new(seed);
        let clients = dice.between(2, 4) as usize;
        let mut config = LeaseConfig::default();
        if mutation == Some(Mutation::FencesEarly) {
            config.term = Duration::from_secs(3);
            config.margin = Duration::from_secs(1);
        }
        if dice.chance(25, 100) {
            config.leases_max = dice.between(4, 12) as usize;
        }
        LeaseSimulation {
            now: Time(0),
            mutation,
            store: Store::new(),
            changers: BTreeMap::new(),
            server: Server::new(config, clients),
            clients: (0..clients).map(|_| SimClient::new(&mut dice)).collect(),
            failure: None,
            log: Vec::new(),
            wires: vec![Wires::default(); clients],
            dead: Vec::new(),
            events: EventQueue::default(),
            requests: 0,
            connections: 0,
            tick_at: None,
            dice,
        }
    }

    /// Runs the simulation to its end.
    ///
    /// # Errors
    /// Fails with the description of the first violation.
    pub(crate) fn run(&mut self) -> Result<Record, String> {
        for client in 0..self.clients.len() {
            self.later(0, 1_000_000, Event::Connect(client));
            self.later(1_000_000, 2_000_000, Event::Act(client));
        }
        self.later(2_000_000, 10_000_000, Event::Fault);
        let mut record = Record::default();
        while let Some((at, event)) = self.events.pop_until(Time(0) + BUSY + REST) {
            self.now = at;
            record.events += 1;
            self.log.push(format!("{:>13} {event:?}", at.0));
            self.happen(event);
            self.check();
            if let Some(failure) = self.failure.take() {
                return Err(format!("at {}: {failure}", at.0));
            }
            if self.is_resting() && self.server.jobs.is_empty() {
                break;
            }
        }
        record.ended = self.now;
        record.recalls = self.server.recalls;
        record.parked = self.server.parked;
        record.expelled = self.server.expelled;
        record.taken = self.clients.iter().map(|client| client.taken).sum();
        if let Some((job, work)) = self.server.jobs.first_key_value() {
            return Err(format!("job {job} never finished: {work:?}"));
        }
        Ok(record)
    }

    pub(crate) fn fail(&mut self, kind: String) {
        self.failure.get_or_insert(kind);
    }

    pub(crate) fn is_resting(&self) -> bool {
        self.now >= Time(0) + BUSY
    }

    pub(crate) fn later(&mut self, least_us: u64, most_us: u64, event: Event) {
        let delay = self.dice.between(least_us * 1000, most_us * 1000);
        self.at(Time(self.now.0 + delay), event);
    }

    pub(crate) fn at(&mut self, at: Time, event: Event) {
        self.events.push(at.max(self.now), event);
    }

    /// Sends a message over the server's connection to a client.
    pub(crate) fn down(&mut self, client: usize, down: Down) {
        let Some(connection) = self.server.connections[client] else { return };
        let overtakes = self.mutation == Some(Mutation::OvertakesRecalls);
        let at = self.wires[client].down(self.now, &mut self.dice, &down, overtakes);
        self.at(at, Event::Down(client, connection, down));
    }

    pub(crate) fn up(&mut self, client: usize, up: Up) {
        let Some(connection) = self.clients[client].connection else { return };
        let at = self.wires[client].up(self.now, &mut self.dice, &up);
        self.at(at, Event::Up(client, connection, up));
    }

    pub(crate) fn schedule_tick(&mut self) {
        let deadline = self.server.grantor.deadline();
        if let Some(at) = deadline.filter(|at| self.tick_at.is_none_or(|tick| *at < tick || tick < self.now))
        {
            // The server is busy with other work.
            let late = self.dice.between(0, 50_000_000);
            self.tick_at = Some(at);
            self.at(Time(at.0 + late), Event::Tick);
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Up(client, connection, up) if !self.dead.contains(&connection) => {
                self.receive(client, connection, up);
            }
            Event::Down(client, connection, down) if !self.dead.contains(&connection) => {
                self.arrive(client, connection, down);
            }
            Event::Up(..) | Event::Down(..) => {}
            Event::Step(job) => self.step(job),
            Event::Tick => {
                self.tick_at = None;
                self.server.grantor.tick(self.now);
                self.pump(false);
            }
            Event::Watch(object, name) => self.watch(object, name),
            Event::CutAtServer(client, connection) => {
                if self.server.connections[client] == Some(connection) {
                    self.cut_jobs(client);
                    self.server.connections[client] = None;
                    self.server.grantor.disconnected(self.now, wirefs_lease::HolderKey(client as u64));
                    self.pump(false);
                }
            }
            Event::Fault => self.inject_fault(),
            Event::Wake(client, slept) => {
                self.clients[client].wakes(slept, self.mutation);
                self.advance(client);
                // An overdue invalidation takes place before any program runs.
                let is_invalidation =
                    |event: &Event| matches!(event, Event::FullyInvalidated(owner) if *owner == client);
                if self.events.iter().any(|(_, event)| is_invalidation(event)) {
                    self.clients[client].kernel.clear();
                }
            }
            Event::ClientTick(client)
            | Event::Act(client)
            | Event::Invalidated(client, ..)
            | Event::FullyInvalidated(client)
            | Event::CutAtClient(client, _)
            | Event::Connect(client) => {
                if self.clients[client].asleep {
                    return self.at(self.wakes_at(client), event);
                }
                self.advance(client);
                self.handle_client_event(client, event);
                self.advance(client);
            }
        }
    }
}
