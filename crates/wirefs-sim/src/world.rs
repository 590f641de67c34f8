//! Virtual time: one queue of all that is going to happen, and one seed that decides it.

use crate::Scene;
use crate::ahead::Ahead;
use crate::flaw::Flaw;
use crate::plan::{Plan, Span};
use crate::record::Record;
use crate::rivals::Rivals;
use crate::seat::Seat;
use crate::server::{Server, time_of_day};
use crate::truth::Truth;
use crate::wire::{Line, Packet, Way, Wire};
use std::collections::BTreeMap;
use std::time::Duration;
use wirefs_client::call::{Answer, CallId, TreeNodeId};
use wirefs_journal::DiskJob;
use wirefs_model::ModelTree;
use wirefs_op::message::version::BootId;
use wirefs_op::{Reply, Time};
use wirefs_server::{ConnectionKey, Job, Outside};
use wirefs_virtual::Dice;

/// When a run begins, on the world's clock: late enough that nothing subtracts below zero.
const BEGIN: Time = Time(1_000_000_000_000);
/// A run that takes longer than that never ends.
const LONGEST: Duration = Duration::from_secs(4 * 3600);
/// In one of so many runs socket buffers limit connections, so that data connections are made.
const NARROW: u64 = 3;
/// One of so many seeds has a mount that keeps no contents, and believes names and attributes.
const DIRECT: u64 = 8;
/// In one of so many, programs lock files.
const LOCKING: u64 = 10;
/// How often the server's time passes at first.
const SOON: Duration = Duration::from_millis(500);

/// What is going to happen. What belongs to a life of a client or the server is void in the next.
pub(crate) enum Event {
    Arrive(ConnectionKey, Way, Packet),
    Unheard(ConnectionKey, Way),
    Release(usize, Way),
    Execute(u64, Box<Job>),
    Queue(u64, Box<Job>, Vec<Reply>, Option<usize>),
    Outside(u64, Outside),
    TickServer(u64),
    StartServer(bool),
    TickSeat(usize, u64),
    StartSeat(usize),
    Dial(usize, u64),
    Impatient(usize, ConnectionKey),
    /// A kernel has done what it was told first.
    Noticed(usize, u64),
    Answered(usize, u64, CallId, Box<Answer>),
    /// Whether who read a directory has what it was told.
    Passed(usize, u64, TreeNodeId, u64),
    /// A program does something.
    Think(usize, u64, usize),
    /// A client's disk has done something for the journal, with so many entries of a segment.
    Disk(usize, u64, DiskJob, usize),
    /// A client dies while its disk does that.
    Crash(usize, u64),
    Trouble,
    ActOutside,
    Narrow,
}

/// Everything.
pub(crate) struct World {
    pub(crate) now: Time,
    pub(crate) dice: Dice,
    pub(crate) plan: Plan,
    pub(crate) flaw: Option<Flaw>,
    pub(crate) server: Server,
    pub(crate) seats: Vec<Seat>,
    pub(crate) lines: Vec<Line>,
    pub(crate) wires: BTreeMap<ConnectionKey, Wire>,
    pub(crate) truth: Truth,
    pub(crate) ahead: Option<Ahead>,
    pub(crate) rivals: Option<Rivals>,
    pub(crate) record: Record,
    /// Operations that programs have still to begin.
    pub(crate) operations_left: u64,
    /// Nothing goes wrong any more.
    pub(crate) is_healed: bool,
    /// A client's time passes just now, and nothing else happens to it.
    pub(crate) is_ticking: bool,
    /// Counts what was written.
    pub(crate) written: u64,
    events: BTreeMap<(Time, u64), Event>,
    serial: u64,
    failure: Option<String>,
    /// What happened, in words; only where it was asked for.
    history: Option<Vec<String>>,
}

impl World {
    pub(crate) fn new(scene: Scene, seed: u64, flaw: Option<Flaw>, is_told: bool) -> World {
        let mut dice = Dice::new(seed);
        let plan = match scene {
            // Not by the dice: other seeds stay the runs that they are.
            Scene::Beside if seed % NARROW == NARROW - 1 => Plan::new(&mut dice).narrow(),
            Scene::Beside if seed.is_multiple_of(DIRECT) => Plan::new(&mut dice).direct(),
            Scene::Beside if seed % LOCKING == LOCKING - 1 => Plan::new(&mut dice).locking(),
            Scene::Beside => Plan::new(&mut dice),
            Scene::Ahead => Plan::ahead(&mut dice),
            Scene::Rivals => Plan::rivals(&mut dice),
        };
        let tree = ModelTree::new(BootId(1));
        tree.set_time(time_of_day(BEGIN));
        let truth = Truth::new(&tree);
        let operations_left = plan.operations;
        let mut world = World {
            now: BEGIN,
            dice,
            plan,
            flaw,
            server: Server::new(tree),
            seats: Vec::new(),
            lines: Vec::new(),
            wires: BTreeMap::new(),
            truth,
            ahead: None,
            rivals: None,
            record: Record { runs: 1, ..Record::default() },
            operations_left,
            is_healed: false,
            is_ticking: false,
            written: 0,
            events: BTreeMap::new(),
            serial: 0,
            failure: None,
            history: is_told.then(Vec::new),
        };
        world.note(|| "the run begins".into());
        world.begin();
        world
    }

    fn begin(&mut self) {
        let plan = self.plan.clone();
        self.note(|| format!("{plan:?}"));
        self.furnish();
        if plan.ahead.is_some() {
            self.truth.is_blind = true;
            self.server.tree = self.server.tree.copy().on_a_disk();
            let troubles = 1 + self.dice.below(12);
            self.ahead = Some(Ahead::new(&self.server.tree, troubles));
        }
        if plan.is_rivals {
            self.truth.is_blind = true;
            self.rivals = Some(Rivals::default());
        }
        let root = self.truth.root();
        for index in 0..plan.modes.len() {
            self.seat(plan.config(index), root);
        }
        self.after(SOON, Event::TickServer(0));
        if !plan.troubles.is_calm() {
            let soon = self.plan.between_troubles().map(|span| self.delay(span));
            self.after(soon.unwrap_or(SOON), Event::Trouble);
        }
        if plan.troubles.outside {
            self.after(SOON, Event::ActOutside);
        }
        if plan.is_narrow {
            self.after(SOON, Event::Narrow);
        }
    }

    /// Lets everything happen. Gives back what was tried.
    ///
    /// # Errors
    /// What was wrong, in words.
    pub(crate) fn run(&mut self) -> Result<Record, String> {
        while !self.is_at_rest() && self.step() {}
        match (&self.ahead, &self.rivals) {
            (Some(_), _) => self.end_ahead(),
            (None, Some(_)) => self.end_rivals(),
            (None, None) => self.end(),
        }
        match self.failure.take() {
            Some(failure) => Err(failure),
            None => Ok(self.record),
        }
    }

    pub(crate) fn history(self) -> Vec<String> {
        self.history.unwrap_or_default()
    }

    /// Whether programs begin nothing more.
    pub(crate) fn is_resting(&self) -> bool {
        self.operations_left == 0
    }

    fn is_at_rest(&self) -> bool {
        if let Some(ahead) = &self.ahead {
            return ahead.is_over || self.is_resting() && ahead.is_idle();
        }
        self.is_resting() && self.seats.iter().all(|seat| seat.program.busy().next().is_none())
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Something is wrong; the first such thing counts.
    pub(crate) fn fail(&mut self, what: String) {
        self.note(|| format!("WRONG: {what}"));
        self.failure.get_or_insert(what);
    }

    /// Says what happens, where somebody wants to know.
    pub(crate) fn note(&mut self, what: impl FnOnce() -> String) {
        if let Some(history) = &mut self.history {
            let micros = self.now.since(BEGIN).as_micros();
            history.push(format!("{:>6}.{:06} {}", micros / 1_000_000, micros % 1_000_000, what()));
        }
    }

    pub(crate) fn after(&mut self, after: Duration, event: Event) {
        self.when(self.now + after, event);
    }

    pub(crate) fn when(&mut self, at: Time, event: Event) {
        self.serial += 1;
        self.events.insert((at, self.serial), event);
    }

    pub(crate) fn delay(&mut self, (least, most): Span) -> Duration {
        Duration::from_micros(least + self.dice.below(most - least + 1))
    }

    /// Lets the next thing happen; false when the run is over, because something is wrong.
    pub(crate) fn step(&mut self) -> bool {
        if self.has_failed() {
            return false;
        }
        let Some(((at, _), event)) = self.events.pop_first() else {
            self.fail("nothing happens any more".into());
            return false;
        };
        self.now = self.now.max(at);
        if self.now.since(BEGIN) > LONGEST {
            self.fail("the run never ends".into());
        }
        self.happen(event);
        true
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Arrive(connection, way, packet) => self.arrive(connection, way, packet),
            Event::Unheard(connection, way) => self.unheard(connection, way),
            Event::Release(seat, way) => self.release(seat, way),
            Event::Execute(life, job) => self.execute(life, job),
            Event::Queue(life, job, replies, change) => self.queue(life, &job, replies, change),
            Event::Outside(life, outside) => self.outside_is_noticed(life, outside),
            Event::TickServer(life) => self.tick_server(life),
            Event::StartServer(waits) => self.start_server(waits),
            Event::TickSeat(seat, life) => self.tick_seat(seat, life),
            Event::StartSeat(seat) => self.start_seat(seat),
            Event::Dial(seat, life) => self.dial(seat, life),
            Event::Impatient(seat, connection) => self.impatient(seat, connection),
            Event::Noticed(seat, life) => self.noticed(seat, life),
            Event::Answered(seat, life, id, answer) => self.answer_is_there(seat, life, id, *answer),
            Event::Passed(seat, life, dir, until) => self.readers_passed(seat, life, dir, until),
            Event::Think(seat, life, thread) => self.think(seat, life, thread),
            Event::Disk(seat, life, job, count) => self.disk_is_done(seat, life, &job, count),
            Event::Crash(seat, life) => self.crashes(seat, life),
            Event::Trouble => self.trouble(),
            Event::ActOutside => self.outside(),
            Event::Narrow => self.narrows(),
        }
    }

    /// Lets time pass.
    pub(crate) fn pass(&mut self, span: Duration) {
        let until = self.now + span;
        while self.events.first_key_value().is_some_and(|((at, _), _)| *at <= until) && self.step() {}
        self.now = self.now.max(until);
    }
}
