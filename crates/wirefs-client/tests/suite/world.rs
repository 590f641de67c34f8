//! A world without wire, thread or clock: clients, one server with the reference tree, and queues whose delays a seed
//! determines. Time passes only from event to event.

mod attach;
mod data;
mod disk;
mod grants;
mod kernel;
mod locks;
mod notes;
mod notices;
mod outside;

use crate::history::{History, Observer};
use bytes::Bytes;
use kernel::Kernel;
use notices::Notice;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::time::Duration;
use wirefs_cache::CachePiece;
use wirefs_client::call::{Answer, Call, CallId, Caller, Invalidate, TreeNodeId};
use wirefs_client::{Client, Config, Lane, Note, Output};
use wirefs_model::ModelTree;
use wirefs_op::Order;
use wirefs_op::message::attach::Watch;
use wirefs_op::message::error::Rerror;
use wirefs_op::message::version::{BootId, SessionId};
use wirefs_op::{Errno, FileId, Reply, Request, Tag, Time};
use wirefs_server::{ConnectionKey, Job, JobKey, LeaseTerms, Replies, ServerInput, Sessions, Stopped, Tree};
use wirefs_virtual::{Dice, EventQueue, Span, TwoLanes, delay};

const BOOT: BootId = BootId(7);
/// A call that is not answered after so much time is stuck.
const PATIENCE: Duration = Duration::from_secs(120);

/// One client, and what it did.
pub(crate) struct Seat {
    pub(crate) client: Client,
    pub(crate) connection: Option<ConnectionKey>,
    session: SessionId,
    config: Config,
    /// The order of frames to the server; queries are urgent.
    up: TwoLanes,
    /// The order of replies to the client; recalls are urgent.
    down: TwoLanes,
    /// The invalidations for its kernel, in order, and the time of the last one.
    notices: VecDeque<Notice>,
    noticed: Time,
    pub(crate) takes_leases: bool,
    kernel: Kernel,
    /// Nothing that is sent to it arrives any more.
    is_mute: bool,
    /// Every request sent, by name.
    pub(crate) sent: Vec<&'static str>,
    pub(crate) answers: BTreeMap<CallId, (Time, Answer)>,
    pub(crate) invalidated: Vec<Invalidate>,
    pub(crate) hang_ups: usize,
    /// Nodes that its kernel was to let go of.
    pub(crate) let_go: Vec<TreeNodeId>,
    /// Directories whose readers are to be waited for, and the numbers to say so with.
    pub(crate) awaited: Vec<(TreeNodeId, u64)>,
    /// The numbers of the changes in its journal.
    pub(crate) journal: Vec<u64>,
    /// The other notes in its journal.
    pub(crate) notes: Vec<Note>,
    /// How often it was to be begun anew.
    pub(crate) anew: u32,
    /// The numbers of the changes that are to be kept, and why.
    pub(crate) refused: Vec<(u64, Option<Errno>)>,
    /// Contents on disk, where the client has one.
    pub(crate) disk: BTreeMap<CachePiece, Bytes>,
    /// The most requests that were under way at once.
    pub(crate) in_flight_max: u64,
}

enum Event {
    Arrive(ConnectionKey, Bytes),
    Execute(Box<Job>),
    /// The replies to a job, and which of the changes that were carried out it was.
    Queue(Box<Job>, Vec<Reply>, Option<usize>),
    Deliver(usize, ConnectionKey, Bytes, Option<usize>),
    /// A kernel has done what it was told first.
    Noticed(usize),
    /// An answer has reached its kernel.
    Answered(usize, CallId, Box<Answer>),
    ServerTick,
    Tick(usize),
    /// A piece was looked for on disk.
    Loaded(usize, CachePiece),
    Restore(usize, bool),
    DeliverData(ConnectionKey, Bytes),
    /// Something happens to the connections of a seat.
    Narrow(usize),
}

/// How long things take, at least and at most, in microseconds.
#[derive(Clone, Copy)]
pub(crate) struct Delays {
    pub(crate) wire: Span,
    pub(crate) server: Span,
    /// Telling a kernel to forget something.
    pub(crate) kernel: Span,
}

/// Always the same round trip of 100 ms, and a server that takes none.
pub(crate) const STEADY: Delays = Delays { wire: (50_000, 50_000), server: (0, 0), kernel: (0, 0) };

pub(crate) struct World {
    pub(crate) now: Time,
    pub(crate) dice: Dice,
    pub(crate) tree: ModelTree,
    locks: locks::LockTable,
    pub(crate) history: History,
    observer: Observer,
    sessions: Sessions,
    pub(crate) seats: Vec<Seat>,
    events: EventQueue<Event>,
    stopped: BTreeSet<JobKey>,
    calls: u64,
    connections: u64,
    pub(crate) data: data::DataConnections,
    delays: Delays,
    /// Whether changes are recorded in the history.
    pub(crate) records: bool,
    /// Whether disks have faults.
    pub(crate) damages: bool,
    /// The changes that were carried out.
    pub(crate) applied: Vec<Applied>,
    /// The server's disk takes nothing: barriers and commits fail.
    pub(crate) is_disk_broken: bool,
    /// The changes that were begun, in that order.
    pub(crate) line: Vec<Request>,
    /// The change whose reply the server is about to send.
    answering: Option<usize>,
    /// A connection that is not a seat's yet, and what it was told.
    arriving: Option<(ConnectionKey, Vec<Reply>)>,
    /// A trace of frames, for people.
    pub(crate) log: Vec<String>,
}

/// A change that was carried out.
pub(crate) struct Applied {
    /// Whose.
    pub(crate) seat: usize,
    pub(crate) request: Request,
    /// The state in the history that it led to.
    pub(crate) state: usize,
    /// When its client had the reply.
    pub(crate) answered: Option<Time>,
}

struct Collected(Vec<Reply>);

impl Replies for Collected {
    fn send(&mut self, reply: Reply) -> Result<(), Stopped> {
        self.0.push(reply);
        Ok(())
    }
    fn is_stopped(&self) -> bool {
        false
    }
    fn wait(&mut self) {}
}

fn broken() -> Reply {
    Reply::Error(Rerror::from(Errno::Io))
}

/// The replies of a tree to one request.
pub(crate) fn serve(tree: &ModelTree, session: wirefs_server::SessionKey, request: Request) -> Vec<Reply> {
    let mut collected = Collected(Vec::new());
    tree.serve(session, request, &mut collected);
    collected.0
}

impl World {
    /// So many clients at one server with an empty tree.
    pub(crate) fn new(seed: u64, config: Config, clients: usize, delays: Delays) -> World {
        World::of(seed, &vec![config; clients], delays)
    }

    /// One client at a server that leases nothing.
    pub(crate) fn without_leases(seed: u64, config: Config, delays: Delays) -> World {
        World::at(seed, &[config], delays, Sessions::new(BOOT))
    }

    /// A client for each of these, at one server with an empty tree.
    pub(crate) fn of(seed: u64, configs: &[Config], delays: Delays) -> World {
        World::at(seed, configs, delays, Sessions::leasing(BOOT, LeaseTerms::new(Watch::Filesystem)))
    }

    /// One client at a server that watches so.
    pub(crate) fn watched(seed: u64, config: Config, delays: Delays, watch: Watch) -> World {
        World::at(seed, &[config], delays, Sessions::leasing(BOOT, LeaseTerms::new(watch)))
    }

    fn at(seed: u64, configs: &[Config], delays: Delays, sessions: Sessions) -> World {
        let tree = ModelTree::new(BOOT);
        let observer = Observer::new(&tree);
        let mut world = World {
            now: Time(1_000_000_000_000),
            dice: Dice::new(seed),
            tree,
            locks: locks::LockTable::default(),
            history: History::default(),
            observer,
            sessions,
            seats: Vec::new(),
            events: EventQueue::default(),
            stopped: BTreeSet::new(),
            calls: 0,
            connections: 0,
            data: data::DataConnections::default(),
            delays,
            records: false,
            damages: false,
            applied: Vec::new(),
            is_disk_broken: false,
            line: Vec::new(),
            answering: None,
            arriving: None,
            log: Vec::new(),
        };
        for config in configs {
            world.seat(*config);
        }
        if configs.iter().any(|config| config.mode.takes_leases()) {
            world.after(Duration::from_millis(500), Event::ServerTick);
        }
        world
    }

    /// Records the tree from now on.
    pub(crate) fn record(&mut self) {
        self.records = true;
        self.snapshot();
    }

    /// Which object is mounted.
    pub(crate) fn root(&self) -> FileId {
        self.observer.root()
    }

    fn snapshot(&mut self) {
        let snapshot = self.observer.observe(&self.tree);
        self.history.push(self.now, snapshot);
    }

    fn after(&mut self, after: Duration, event: Event) {
        self.when(self.now + after, event);
    }

    fn when(&mut self, at: Time, event: Event) {
        self.events.push(at, event);
    }

    fn delay(&mut self, span: Span) -> Duration {
        delay(&mut self.dice, span)
    }

    fn handle(&mut self, input: ServerInput) {
        self.sessions.handle(self.now, input);
        self.follow();
    }

    /// Does what the server says.
    fn follow(&mut self) {
        while let Some(output) = self.sessions.poll() {
            self.carry_out(output);
        }
    }

    fn carry_out(&mut self, output: wirefs_server::ServerOutput) {
        match output {
            wirefs_server::ServerOutput::Reply { connection, reply, .. }
                if self.arriving.as_ref().is_some_and(|(arriving, _)| *arriving == connection) =>
            {
                self.arriving.iter_mut().for_each(|(_, replies)| replies.push(reply.clone()));
            }
            wirefs_server::ServerOutput::Reply { connection, tag, reply } => {
                let change = if matches!(reply, Reply::Recall(_)) { None } else { self.answering.take() };
                self.reply(connection, tag, &reply, change);
            }
            wirefs_server::ServerOutput::Execute(job) => {
                let delay = self.delay(self.delays.server);
                self.after(delay, Event::Execute(Box::new(job)));
            }
            wirefs_server::ServerOutput::Stop(key) => {
                self.stopped.insert(key);
            }
            wirefs_server::ServerOutput::EndSession(session) => {
                self.locks.end(session);
                self.tree.end(session);
            }
            // Only where notes are kept.
            wirefs_server::ServerOutput::LoadLedger { .. }
            | wirefs_server::ServerOutput::AppendLedger(..)
            | wirefs_server::ServerOutput::LedgerClosed(_) => {}
            // Only where there are other servers.
            wirefs_server::ServerOutput::AwaitColocated(_) | wirefs_server::ServerOutput::ExclusiveEnded => {}
            wirefs_server::ServerOutput::Verify { .. } => panic!("nobody changes the tree from outside"),
            wirefs_server::ServerOutput::Attach { connection, session, path, .. } => {
                let result = self.tree.attach(session, &path);
                self.handle(ServerInput::Attached { connection, session, result });
            }
            wirefs_server::ServerOutput::Close { connection, why } => {
                assert!(self.data_is_closed(connection), "the server closes a connection: {why:?}");
            }
        }
    }

    /// A reply stands in its connection's queue; what stands there comes in order.
    fn reply(&mut self, connection: ConnectionKey, tag: Tag, reply: &Reply, change: Option<usize>) {
        if self.reply_data(connection, tag, reply) {
            return;
        }
        let Some(seat) = self.seats.iter().position(|seat| seat.connection == Some(connection)) else {
            return;
        };
        if self.seats[seat].is_mute {
            return;
        }
        let delay = self.delay(self.delays.wire);
        let is_urgent = matches!(reply, Reply::Recall(_));
        let at = self.seats[seat].down.arrives(self.now + delay, is_urgent);
        self.when(at, Event::Deliver(seat, connection, reply.encode(tag).to_body(), change));
    }

    /// Nothing that is sent to a client arrives from now on, and its connection stands.
    pub(crate) fn mute(&mut self, seat: usize) {
        self.seats[seat].is_mute = true;
    }

    /// These states, and those before them that differ for whoever asks in nothing but what a client itself changed and had no answer
    /// to before `at`: under a lease it goes on to believe what was before.
    pub(crate) fn without_own(
        &self,
        seat: usize,
        at: Time,
        states: Range<usize>,
        is_same: impl Fn(usize, usize) -> bool,
    ) -> Range<usize> {
        let mut first = states.start;
        let is_own = |state: usize| {
            let found = self.applied.binary_search_by_key(&state, |applied| applied.state).ok();
            found.and_then(|found| self.applied.get(found)).is_some_and(|applied| {
                applied.seat == seat && applied.answered.is_none_or(|answered| answered >= at)
            })
        };
        while self.seats[seat].takes_leases && first > 0 && (is_same(first - 1, first) || is_own(first)) {
            first -= 1;
        }
        first..states.end
    }

    /// Hands in a call; its answer may be there already.
    pub(crate) fn call(&mut self, seat: usize, call: Call<'_>) -> CallId {
        self.call_by(1, seat, call)
    }

    /// The same of this thread.
    pub(crate) fn call_by(&mut self, pid: u32, seat: usize, call: Call<'_>) -> CallId {
        self.calls += 1;
        let id = CallId(self.calls);
        let caller = Caller { uid: 0, gid: 0, pid };
        let now = self.now;
        self.seats[seat].kernel.asks(id, &call);
        self.seats[seat].client.call(now, id, caller, call);
        self.outputs(seat);
        id
    }

    /// Tells a client that its mount is made.
    pub(crate) fn greet(&mut self, seat: usize) {
        let now = self.now;
        self.seats[seat].client.greet(now);
        self.outputs(seat);
    }

    pub(crate) fn outputs(&mut self, seat: usize) {
        while let Some(output) = self.seats[seat].client.poll() {
            match output {
                Output::Answer(id, answer) | Output::AnswerJournaled(id, answer) => {
                    self.answered(seat, id, answer);
                }
                Output::Journal(number, _) => self.seats[seat].journal.push(number),
                Output::JournalNote(note) => self.seats[seat].notes.push(note),
                Output::JournalAnew(below) => {
                    let journal = &self.seats[seat].journal;
                    assert!(
                        journal.iter().all(|number| *number < below),
                        "it has what the server does not: {journal:?}"
                    );
                    self.seats[seat].anew += 1;
                }
                Output::Refused(number, _, errno) => self.seats[seat].refused.push((number, errno)),
                Output::JournalForget(below) => self.seats[seat].journal.retain(|number| *number >= below),
                Output::Send(frame, lane) => self.send(seat, frame.to_body(), lane),
                Output::Invalidate(what) => self.tell_kernel(seat, Notice::Forget(what)),
                Output::AnswerDropped(what, id, answer) => {
                    self.seats[seat].kernel.forgets(&what);
                    self.seats[seat].invalidated.push(what);
                    self.answered(seat, id, answer);
                }
                Output::AwaitReaders(dir, until) => self.seats[seat].awaited.push((dir, until)),
                Output::AnswerAfter(id, answer) => self.tell_kernel(seat, Notice::Answer(id, answer)),
                Output::SendAfter(frame) => {
                    let connection = self.seats[seat].connection;
                    self.tell_kernel(seat, Notice::Send(connection, frame.to_body()));
                }
                // What a kernel lets go of it gives back, or not: programs forget at random.
                Output::LetGo(node, _) => self.seats[seat].let_go.push(node),
                Output::Load(piece) => self.load(seat, piece),
                Output::Keep(piece, data) => {
                    self.seats[seat].disk.insert(piece, data);
                }
                Output::OpenData(key) => self.open_data(seat, key),
                Output::CloseData(key) | Output::HangUpData(key) => self.close_data(seat, key),
                Output::HangUp => self.seats[seat].hang_ups += 1,
                // Who hands the message in is told as well.
                Output::Blamed(_) | Output::RefusedLink(..) => {}
            }
        }
        let flying = self.seats[seat].client.snapshot().in_flight.values().sum();
        self.seats[seat].in_flight_max = self.seats[seat].in_flight_max.max(flying);
    }

    fn send(&mut self, seat: usize, body: Bytes, lane: Lane) {
        let (_, request) = Request::decode(body.clone()).expect("the client's frames are well formed");
        // It goes with the change behind it.
        if !matches!(request, Request::Number(_)) {
            self.seats[seat].sent.push(request.name());
        }
        self.note_request(seat, &request);
        let Some(connection) = self.seats[seat].connection else {
            panic!("a frame without a connection");
        };
        if let Lane::Data(key) = lane {
            let connection = self.data_connection(seat, key).expect("a frame without a data connection");
            return self.send_data(connection, body);
        }
        let delay = self.delay(self.delays.wire);
        let at = self.seats[seat].up.arrives(self.now + delay, lane == Lane::Queries);
        self.when(at, Event::Arrive(connection, body));
    }

    /// Lets the next thing happen.
    pub(crate) fn step(&mut self) {
        let Some((at, event)) = self.events.pop() else {
            panic!("nothing happens any more");
        };
        self.now = self.now.max(at);
        match event {
            Event::Arrive(connection, body) => self.handle(ServerInput::Received(connection, body)),
            Event::Execute(job) => self.execute(job),
            Event::Queue(job, replies, change) => {
                match (job.order, job.connection) {
                    // The server's core knows where a change is waited for by now.
                    (Order::Change, _) => {
                        self.answering = change;
                        for reply in replies {
                            self.handle(ServerInput::Answered(job.key, reply));
                        }
                        self.answering = None;
                    }
                    (Order::Ordered | Order::Free, Some(connection)) => {
                        for reply in &replies {
                            self.reply(connection, job.tag, reply, change);
                        }
                    }
                    (Order::Ordered | Order::Free, None) => {}
                }
                self.handle(ServerInput::Finished(job.key));
            }
            Event::Deliver(seat, _, body, change) => {
                let now = self.now;
                if let Some(applied) = change.and_then(|change| self.applied.get_mut(change)) {
                    applied.answered = Some(now);
                }
                self.note_reply(seat, body.clone());
                let received = self.seats[seat].client.receive(now, body);
                received.expect("an honest server is not blamed");
                self.outputs(seat);
            }
            Event::Tick(seat) => {
                let now = self.now;
                self.seats[seat].client.tick(now);
                self.outputs(seat);
                self.after(Duration::from_millis(500), Event::Tick(seat));
            }
            Event::Loaded(seat, piece) => self.loaded(seat, piece),
            Event::DeliverData(connection, body) => self.deliver_data(connection, body),
            Event::Narrow(seat) => self.is_narrow(seat),
            Event::Restore(seat, resumed) => self.restore(seat, resumed),
            Event::Noticed(seat) => self.noticed(seat),
            Event::Answered(seat, id, answer) => self.take_answer(seat, id, *answer),
            Event::ServerTick => {
                self.handle(ServerInput::Tick);
                self.after(Duration::from_millis(500), Event::ServerTick);
            }
        }
    }

    fn execute(&mut self, job: Box<Job>) {
        if self.stopped.remove(&job.key) {
            return self.handle(ServerInput::Finished(job.key));
        }
        let replies = match job.request.clone() {
            Request::Lock(lock) => self.serve_lock(&job, &lock),
            Request::Put(put) if self.is_disk_broken && put.is_barrier() => Some(vec![broken()]),
            Request::Commit(_) if self.is_disk_broken => Some(vec![broken()]),
            _ => self.serve_job(&job),
        };
        let Some(replies) = replies else { return };
        if job.order == Order::Change {
            self.line.push(job.request.clone());
        }
        let mut change = None;
        if self.records && job.order == Order::Change {
            self.snapshot();
            let owner = |seat: &Seat| job.connection.is_some() && seat.connection == job.connection;
            if let Some(seat) = self.seats.iter().position(owner) {
                let state = self.history.0.len() - 1;
                let request = job.request.clone();
                change = Some(self.applied.len());
                self.applied.push(Applied { seat, request, state, answered: None });
            }
            self.check_kernels();
        }
        let delay = self.delay(self.delays.server);
        self.after(delay, Event::Queue(job, replies, change));
    }

    /// Lets time pass.
    pub(crate) fn pass(&mut self, span: Duration) {
        let until = self.now + span;
        while self.events.next_at().is_some_and(|at| at <= until) {
            self.step();
        }
        self.now = until;
    }

    /// Waits for the answer to a call.
    pub(crate) fn wait(&mut self, seat: usize, id: CallId) -> Answer {
        let until = self.now + PATIENCE;
        while !self.seats[seat].answers.contains_key(&id) {
            assert!(
                self.now < until,
                "call {id:?} is never answered; {:?}",
                self.seats[seat].client.snapshot()
            );
            self.step();
        }
        self.seats[seat].answers.remove(&id).expect("just seen").1
    }

    /// Calls and waits.
    pub(crate) fn ask(&mut self, seat: usize, call: Call<'_>) -> Answer {
        let id = self.call(seat, call);
        self.wait(seat, id)
    }

    /// Calls, waits, and tells the names of the requests that were sent meanwhile.
    pub(crate) fn cost(&mut self, seat: usize, call: Call<'_>) -> (Answer, Vec<&'static str>) {
        let before = self.seats[seat].sent.len();
        let answer = self.ask(seat, call);
        (answer, self.seats[seat].sent[before..].to_vec())
    }

    /// Waits until no client has anything under way.
    pub(crate) fn settle(&mut self) {
        let until = self.now + PATIENCE;
        let is_idle = |seat: &Seat| seat.connection.is_some() && seat.client.is_settled();
        while !self.seats.iter().all(is_idle) || self.sessions.jobs() > 0 {
            assert!(
                self.now < until,
                "requests never end: {:?}",
                self.seats.iter().map(|seat| seat.client.snapshot()).collect::<Vec<_>>()
            );
            self.step();
        }
    }
}
