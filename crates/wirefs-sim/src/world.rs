//! Virtual time: one queue of events, determined by one seed.

use crate::Scene;
use crate::ahead::Ahead;
use crate::event_counts::EventCounts;
use crate::flaw::Flaw;
use crate::host::Host;
use crate::plan::Plan;
use crate::rivals::Rivals;
use crate::server::{Server, time_of_day};
use crate::truth::Truth;
use crate::wire::{Direction, NetworkPath, Packet, Wire};
use std::collections::BTreeMap;
use std::time::Duration;
use wirefs_client::call::{Answer, CallId, TreeNodeId};
use wirefs_journal::DiskJob;
use wirefs_model::ModelTree;
use wirefs_op::message::version::BootId;
use wirefs_op::{Reply, Time};
use wirefs_server::{ConnectionKey, ExternalChange, Job};
use wirefs_virtual::{Dice, EventQueue, Span, delay};

/// The start of a run on the simulation's clock: late enough that no subtraction goes below zero.
const BEGIN: Time = Time(1_000_000_000_000);
/// The maximum duration of a run.
const LONGEST: Duration = Duration::from_secs(4 * 3600);
/// One of so many runs limits connections by socket buffers, so that data connections are opened.
const NARROW: u64 = 3;
/// One of so many runs has a mount without cached contents, with cached names and attributes.
const DIRECT: u64 = 8;
/// In one of so many runs, programs lock files.
const LOCKING: u64 = 10;
/// The first interval of the server's timer.
const SOON: Duration = Duration::from_millis(500);

/// An event. Events of a former start of a client or the server are void.
pub(crate) enum Event {
    Arrive(ConnectionKey, Direction, Packet),
    PeerSilent(ConnectionKey, Direction),
    Release(usize, Direction),
    Execute(u64, Box<Job>),
    Queue(u64, Box<Job>, Vec<Reply>, Option<usize>),
    Outside(u64, ExternalChange),
    TickServer(u64),
    StartServer(bool),
    TickHost(usize, u64),
    StartHost(usize),
    Dial(usize, u64),
    DialTimeout(usize, ConnectionKey),
    /// A kernel has executed the first item of its queue.
    Invalidated(usize, u64),
    Answered(usize, u64, CallId, Box<Answer>),
    /// A check whether readers of a directory have their replies.
    Passed(usize, u64, TreeNodeId, u64),
    /// A program starts an operation.
    Think(usize, u64, usize),
    /// A client's disk has finished a job for the journal, with this number of entries.
    Disk(usize, u64, DiskJob, usize),
    /// A client crashes during such a job.
    Crash(usize, u64),
    Fault,
    ActOutside,
    Narrow,
}

/// The whole simulation.
pub(crate) struct World {
    pub(crate) now: Time,
    pub(crate) dice: Dice,
    pub(crate) plan: Plan,
    pub(crate) flaw: Option<Flaw>,
    pub(crate) server: Server,
    pub(crate) hosts: Vec<Host>,
    pub(crate) paths: Vec<NetworkPath>,
    pub(crate) wires: BTreeMap<ConnectionKey, Wire>,
    pub(crate) truth: Truth,
    pub(crate) ahead: Option<Ahead>,
    pub(crate) rivals: Option<Rivals>,
    pub(crate) counts: EventCounts,
    /// The number of operations that programs have not started.
    pub(crate) operations_left: u64,
    /// Faults have ended.
    pub(crate) is_healed: bool,
    /// A client's timer runs, without another input.
    pub(crate) is_ticking: bool,
    /// The number of writes.
    pub(crate) written: u64,
    events: EventQueue<Event>,
    failure: Option<String>,
    /// Descriptions of events, if requested.
    history: Option<Vec<String>>,
}

impl World {
    pub(crate) fn new(scene: Scene, seed: u64, flaw: Option<Flaw>, has_history: bool) -> World {
        let mut dice = Dice::new(seed);
        let plan = match scene {
            // Not by the dice, so that other seeds keep their runs.
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
            hosts: Vec::new(),
            paths: Vec::new(),
            wires: BTreeMap::new(),
            truth,
            ahead: None,
            rivals: None,
            counts: EventCounts { runs: 1, ..EventCounts::default() },
            operations_left,
            is_healed: false,
            is_ticking: false,
            written: 0,
            events: EventQueue::default(),
            failure: None,
            history: has_history.then(Vec::new),
        };
        world.note(|| "the run begins".into());
        world.begin();
        world
    }

    fn begin(&mut self) {
        let plan = self.plan.clone();
        self.note(|| format!("{plan:?}"));
        self.create_initial_files();
        if plan.ahead.is_some() {
            self.truth.is_blind = true;
            self.server.tree = self.server.tree.copy().on_a_disk();
            let faults = 1 + self.dice.below(12);
            self.ahead = Some(Ahead::new(&self.server.tree, faults));
        }
        if plan.is_rivals {
            self.truth.is_blind = true;
            self.rivals = Some(Rivals::default());
        }
        let root = self.truth.root();
        for index in 0..plan.modes.len() {
            self.host(plan.config(index), root);
        }
        self.after(SOON, Event::TickServer(0));
        if !plan.faults.is_calm() {
            let soon = self.plan.fault_interval().map(|span| self.delay(span));
            self.after(soon.unwrap_or(SOON), Event::Fault);
        }
        if plan.faults.outside {
            self.after(SOON, Event::ActOutside);
        }
        if plan.is_narrow {
            self.after(SOON, Event::Narrow);
        }
    }

    /// Executes the run. Returns the counts of events.
    ///
    /// # Errors
    /// Fails with a description of the first violation.
    pub(crate) fn run(&mut self) -> Result<EventCounts, String> {
        while !self.is_at_rest() && self.step() {}
        match (&self.ahead, &self.rivals) {
            (Some(_), _) => self.end_ahead(),
            (None, Some(_)) => self.end_rivals(),
            (None, None) => self.end(),
        }
        match self.failure.take() {
            Some(failure) => Err(failure),
            None => Ok(self.counts),
        }
    }

    pub(crate) fn history(self) -> Vec<String> {
        self.history.unwrap_or_default()
    }

    /// Returns whether programs start no more operations.
    pub(crate) fn is_resting(&self) -> bool {
        self.operations_left == 0
    }

    fn is_at_rest(&self) -> bool {
        if let Some(ahead) = &self.ahead {
            return ahead.is_over || self.is_resting() && ahead.is_idle();
        }
        self.is_resting() && self.hosts.iter().all(|host| host.program.busy().next().is_none())
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Records a violation; the first one counts.
    pub(crate) fn fail(&mut self, what: String) {
        self.note(|| format!("WRONG: {what}"));
        self.failure.get_or_insert(what);
    }

    /// Records a description of an event, if requested.
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
        self.events.push(at, event);
    }

    pub(crate) fn delay(&mut self, span: Span) -> Duration {
        delay(&mut self.dice, span)
    }

    /// Executes the next event. Returns `false` after a violation.
    pub(crate) fn step(&mut self) -> bool {
        if self.has_failed() {
            return false;
        }
        let Some((at, event)) = self.events.pop() else {
            self.fail("no event is left".into());
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
            Event::Arrive(connection, direction, packet) => self.arrive(connection, direction, packet),
            Event::PeerSilent(connection, direction) => self.peer_silent(connection, direction),
            Event::Release(host, direction) => self.release(host, direction),
            Event::Execute(life, job) => self.execute(life, job),
            Event::Queue(life, job, replies, change) => self.queue(life, &job, replies, change),
            Event::Outside(life, outside) => self.outside_is_noticed(life, outside),
            Event::TickServer(life) => self.tick_server(life),
            Event::StartServer(waits) => self.start_server(waits),
            Event::TickHost(host, life) => self.tick_host(host, life),
            Event::StartHost(host) => self.start_host(host),
            Event::Dial(host, life) => self.dial(host, life),
            Event::DialTimeout(host, connection) => self.dial_timeout(host, connection),
            Event::Invalidated(host, life) => self.invalidated(host, life),
            Event::Answered(host, life, id, answer) => self.answer_is_there(host, life, id, *answer),
            Event::Passed(host, life, dir, until) => self.readers_passed(host, life, dir, until),
            Event::Think(host, life, thread) => self.think(host, life, thread),
            Event::Disk(host, life, job, count) => self.disk_is_done(host, life, &job, count),
            Event::Crash(host, life) => self.crash(host, life),
            Event::Fault => self.inject_fault(),
            Event::ActOutside => self.outside(),
            Event::Narrow => self.narrows(),
        }
    }

    /// Advances the time.
    pub(crate) fn pass(&mut self, span: Duration) {
        let until = self.now + span;
        while self.events.next_at().is_some_and(|at| at <= until) && self.step() {}
        self.now = self.now.max(until);
    }
}
