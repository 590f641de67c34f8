//! The world: events in the order of their times, which a seed determines.

use crate::dice::Dice;
use crate::flaws::Flaw;
use crate::seat::Seat;
use crate::server::Server;
use crate::store::{Fact, Store};
use crate::wire::{Connection, Down, Up, Ways};
use std::collections::BTreeMap;
use std::time::Duration;
use wirefs_lease::{Config, Forgetting};
use wirefs_op::Time;

/// How long programs go on before everything is left to come to rest.
const BUSY: Duration = Duration::from_secs(150);
/// Then all must be done.
const REST: Duration = Duration::from_secs(240);

#[derive(Debug)]
pub(crate) enum Event {
    /// Something arrives at the server.
    Up(usize, Connection, Up),
    /// Something arrives at a client.
    Down(usize, Connection, Down),
    /// A job goes on.
    Step(u64),
    /// Time passes for the server.
    Tick,
    /// Time passes for a client.
    SeatTick(usize),
    /// A program at a client does something.
    Act(usize),
    /// A client's kernel has forgotten what a recall named.
    Forgotten(usize, Forgetting, Vec<Fact>),
    /// A client's kernel has forgotten everything.
    Emptied(usize),
    /// The server notices that a connection broke.
    CutAtServer(usize, Connection),
    /// A client notices.
    CutAtClient(usize, Connection),
    /// A client connects again.
    Connect(usize),
    /// A machine wakes up; so long it slept.
    Wake(usize, Duration),
    /// A watcher looks at an object, or a name in it.
    Watch(u64, Option<&'static str>),
    /// Something happens to somebody.
    Trouble,
}

/// Who changed something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Changer {
    /// Somebody who holds nothing, through the server.
    Nobody,
    /// A client, with this request.
    Seat(usize, u64),
    /// A program on the server.
    Outside,
}

pub(crate) struct World {
    pub(crate) now: Time,
    pub(crate) flaw: Option<Flaw>,
    pub(crate) dice: Dice,
    pub(crate) store: Store,
    /// Who changed a fact last, and when.
    pub(crate) changers: BTreeMap<Fact, (Changer, Time)>,
    pub(crate) server: Server,
    pub(crate) seats: Vec<Seat>,
    pub(crate) failure: Option<String>,
    pub(crate) log: Vec<String>,
    pub(crate) ways: Vec<Ways>,
    /// Connections over which nothing comes any more.
    pub(crate) dead: Vec<Connection>,
    pub(crate) events: BTreeMap<(Time, u64), Event>,
    serial: u64,
    pub(crate) requests: u64,
    pub(crate) connections: u64,
    pub(crate) tick_at: Option<Time>,
}

/// What a run came to.
#[derive(Debug, PartialEq, Eq, Default)]
pub(crate) struct Record {
    pub(crate) events: u64,
    pub(crate) recalls: u64,
    pub(crate) parked: u64,
    pub(crate) taken: u64,
    pub(crate) expelled: u64,
    pub(crate) ended: Time,
}

impl World {
    pub(crate) fn new(seed: u64, flaw: Option<Flaw>) -> World {
        let mut dice = Dice::new(seed);
        let seats = dice.between(2, 4) as usize;
        let mut config = Config::default();
        if flaw == Some(Flaw::FencesEarly) {
            config.term = Duration::from_secs(3);
            config.margin = Duration::from_secs(1);
        }
        if dice.percent(25) {
            config.known_max = dice.between(4, 12) as usize;
        }
        World {
            now: Time(0),
            flaw,
            store: Store::new(),
            changers: BTreeMap::new(),
            server: Server::new(config, seats),
            seats: (0..seats).map(|_| Seat::new(&mut dice)).collect(),
            failure: None,
            log: Vec::new(),
            ways: vec![Ways::default(); seats],
            dead: Vec::new(),
            events: BTreeMap::new(),
            serial: 0,
            requests: 0,
            connections: 0,
            tick_at: None,
            dice,
        }
    }

    /// Runs to its end.
    ///
    /// # Errors
    /// What was wrong.
    pub(crate) fn run(&mut self) -> Result<Record, String> {
        for seat in 0..self.seats.len() {
            self.later(0, 1_000_000, Event::Connect(seat));
            self.later(1_000_000, 2_000_000, Event::Act(seat));
        }
        self.later(2_000_000, 10_000_000, Event::Trouble);
        let mut record = Record::default();
        while let Some(((at, _), event)) = self.events.pop_first() {
            if at > Time(0) + BUSY + REST {
                break;
            }
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
        record.taken = self.seats.iter().map(|seat| seat.taken).sum();
        if let Some((job, work)) = self.server.jobs.first_key_value() {
            return Err(format!("job {job} was never done: {work:?}"));
        }
        Ok(record)
    }

    pub(crate) fn fail(&mut self, what: String) {
        self.failure.get_or_insert(what);
    }

    pub(crate) fn is_resting(&self) -> bool {
        self.now >= Time(0) + BUSY
    }

    pub(crate) fn later(&mut self, least_us: u64, most_us: u64, event: Event) {
        let delay = self.dice.between(least_us * 1000, most_us * 1000);
        self.at(Time(self.now.0 + delay), event);
    }

    pub(crate) fn at(&mut self, at: Time, event: Event) {
        self.serial += 1;
        self.events.insert((at.max(self.now), self.serial), event);
    }

    /// The server sends something over the connection that it has with a client.
    pub(crate) fn down(&mut self, seat: usize, down: Down) {
        let Some(connection) = self.server.connections[seat] else { return };
        let overtakes = self.flaw == Some(Flaw::OvertakesRecalls);
        let at = self.ways[seat].down(self.now, &mut self.dice, &down, overtakes);
        self.at(at, Event::Down(seat, connection, down));
    }

    pub(crate) fn up(&mut self, seat: usize, up: Up) {
        let Some(connection) = self.seats[seat].connection else { return };
        let at = self.ways[seat].up(self.now, &mut self.dice, &up);
        self.at(at, Event::Up(seat, connection, up));
    }

    pub(crate) fn schedule_tick(&mut self) {
        let deadline = self.server.grantor.deadline();
        if let Some(at) = deadline.filter(|at| self.tick_at.is_none_or(|tick| *at < tick || tick < self.now))
        {
            // A server has other things to do as well.
            let late = self.dice.between(0, 50_000_000);
            self.tick_at = Some(at);
            self.at(Time(at.0 + late), Event::Tick);
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Up(seat, connection, up) if !self.dead.contains(&connection) => {
                self.receive(seat, connection, up);
            }
            Event::Down(seat, connection, down) if !self.dead.contains(&connection) => {
                self.arrive(seat, connection, down);
            }
            Event::Up(..) | Event::Down(..) => {}
            Event::Step(job) => self.step(job),
            Event::Tick => {
                self.tick_at = None;
                self.server.grantor.tick(self.now);
                self.pump(false);
            }
            Event::Watch(object, name) => self.watch(object, name),
            Event::CutAtServer(seat, connection) => {
                if self.server.connections[seat] == Some(connection) {
                    self.cut_jobs(seat);
                    self.server.connections[seat] = None;
                    self.server.grantor.disconnected(self.now, wirefs_lease::HolderKey(seat as u64));
                    self.pump(false);
                }
            }
            Event::Trouble => self.trouble(),
            Event::Wake(seat, slept) => {
                self.seats[seat].wakes(slept, self.flaw);
                self.pass(seat);
                // What should have been empty long ago is emptied before any program runs.
                let is_emptying = |event: &Event| matches!(event, Event::Emptied(who) if *who == seat);
                if self.events.values().any(is_emptying) {
                    self.seats[seat].kernel.clear();
                }
            }
            Event::SeatTick(seat)
            | Event::Act(seat)
            | Event::Forgotten(seat, ..)
            | Event::Emptied(seat)
            | Event::CutAtClient(seat, _)
            | Event::Connect(seat) => {
                if self.seats[seat].asleep {
                    return self.at(self.wakes_at(seat), event);
                }
                self.pass(seat);
                self.happen_at_client(seat, event);
                self.pass(seat);
            }
        }
    }
}
