//! A world without wire, thread or clock: clients, one server with the reference tree, and queues whose delays a seed
//! determines. Time passes only from event to event.

use crate::history::{History, Observer};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use wirefs_client::call::{Answer, Call, CallId, Caller, Invalidate};
use wirefs_client::{Attachment, Client, Config, Lane, Output};
use wirefs_model::{Dice, ModelTree};
use wirefs_op::message::attach::Tattach;
use wirefs_op::message::version::{BootId, SessionId, Tversion, VERSION};
use wirefs_op::wire::Text;
use wirefs_op::{FileId, NOTAG, Reply, Request, Tag, Time, TreePath};
use wirefs_server::{ConnectionKey, Input, Job, JobKey, Order, Replies, Sessions, Stopped, Tree};

const BOOT: BootId = BootId(7);
/// A call that is not answered after so much time is stuck.
const PATIENCE: Duration = Duration::from_secs(120);

/// One client, and what it did.
pub(crate) struct Seat {
    pub(crate) client: Client,
    pub(crate) connection: Option<ConnectionKey>,
    session: SessionId,
    /// When the last frame of each lane arrives at the server.
    arrives: (Time, Time),
    /// When the last reply leaves for and arrives at the client.
    delivered: Time,
    /// Every request sent, by name.
    pub(crate) sent: Vec<&'static str>,
    pub(crate) answers: BTreeMap<CallId, (Time, Answer)>,
    pub(crate) invalidated: Vec<Invalidate>,
    pub(crate) hang_ups: usize,
    /// The most requests that were under way at once.
    pub(crate) in_flight_max: u64,
}

enum Event {
    Arrive(ConnectionKey, Bytes),
    Execute(Box<Job>),
    Queue(Box<Job>, Vec<Reply>),
    Deliver(usize, ConnectionKey, Bytes),
    Tick(usize),
    Restore(usize, bool),
}

/// How long things take, at least and at most, in microseconds.
#[derive(Clone, Copy)]
pub(crate) struct Delays {
    pub(crate) wire: (u64, u64),
    pub(crate) server: (u64, u64),
}

/// Always the same round trip of 100 ms, and a server that takes none.
pub(crate) const STEADY: Delays = Delays { wire: (50_000, 50_000), server: (0, 0) };

pub(crate) struct World {
    pub(crate) now: Time,
    pub(crate) dice: Dice,
    pub(crate) tree: ModelTree,
    pub(crate) history: History,
    observer: Observer,
    sessions: Sessions,
    pub(crate) seats: Vec<Seat>,
    events: BTreeMap<(Time, u64), Event>,
    stopped: BTreeSet<JobKey>,
    serial: u64,
    calls: u64,
    connections: u64,
    delays: Delays,
    /// Whether changes are recorded in the history.
    pub(crate) records: bool,
    /// The changes that were carried out: whose, which, and the state in the history that they led to.
    pub(crate) applied: Vec<(usize, Request, usize)>,
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

/// What a tree replies to one request.
pub(crate) fn serve(tree: &ModelTree, session: wirefs_server::SessionKey, request: Request) -> Vec<Reply> {
    let mut collected = Collected(Vec::new());
    tree.serve(session, request, &mut collected);
    collected.0
}

impl World {
    /// So many clients at one server with an empty tree.
    pub(crate) fn new(seed: u64, config: Config, clients: usize, delays: Delays) -> World {
        let tree = ModelTree::new(BOOT);
        let observer = Observer::new(&tree);
        let mut world = World {
            now: Time(1_000_000_000_000),
            dice: Dice::new(seed),
            tree,
            history: History::default(),
            observer,
            sessions: Sessions::new(BOOT),
            seats: Vec::new(),
            events: BTreeMap::new(),
            stopped: BTreeSet::new(),
            serial: 0,
            calls: 0,
            connections: 0,
            delays,
            records: false,
            applied: Vec::new(),
        };
        for seat in 0..clients {
            let session = SessionId([seat as u8 + 1; 16]);
            let (connection, attachment, _) = world.join(session);
            let now = world.now;
            world.seats.push(Seat {
                client: Client::new(config, attachment, now),
                connection: Some(connection),
                session,
                arrives: (now, now),
                delivered: now,
                sent: Vec::new(),
                answers: BTreeMap::new(),
                invalidated: Vec::new(),
                hang_ups: 0,
                in_flight_max: 0,
            });
            world.at(Duration::from_millis(500), Event::Tick(seat));
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

    fn at(&mut self, after: Duration, event: Event) {
        self.when(self.now + after, event);
    }

    fn when(&mut self, at: Time, event: Event) {
        self.serial += 1;
        self.events.insert((at, self.serial), event);
    }

    fn delay(&mut self, (least, most): (u64, u64)) -> Duration {
        Duration::from_micros(least + self.dice.below(most - least + 1))
    }

    /// A connection to a session: Tversion and Tattach.
    fn join(&mut self, session: SessionId) -> (ConnectionKey, Attachment, bool) {
        self.connections += 1;
        let connection = ConnectionKey(self.connections);
        self.handle(Input::Connected(connection));
        let hello = Tversion { msize: 1 << 20, version: Text::new(VERSION), features: 0, session };
        let frame = Request::Version(hello).encode(NOTAG);
        self.sessions.handle(self.now, Input::Received(connection, frame.to_body()));
        let mut resumed = false;
        while let Some(output) = self.sessions.poll() {
            match output {
                wirefs_server::Output::Reply { reply: Reply::Version(version), .. } => {
                    resumed = version.resumed;
                }
                other => self.carry_out(other),
            }
        }
        let attach = Tattach { uname: Text::new(b"test"), path: TreePath::root() };
        let frame = Request::Attach(attach).encode(Tag(0));
        self.sessions.handle(self.now, Input::Received(connection, frame.to_body()));
        let mut attachment = None;
        while let Some(output) = self.sessions.poll() {
            match output {
                wirefs_server::Output::Attach { connection, session, path, .. } => {
                    let result = self.tree.attach(session, &path);
                    self.sessions.handle(self.now, Input::Attached { connection, session, result });
                }
                wirefs_server::Output::Reply { reply: Reply::Attach(attach), .. } => {
                    attachment = Some(Attachment {
                        root: attach.root,
                        uid: attach.uid,
                        gid: attach.gid,
                        acts_for_callers: attach.acts_for_callers,
                        read_only: attach.read_only,
                        boot: BOOT,
                    });
                }
                other => self.carry_out(other),
            }
        }
        (connection, attachment.expect("the tree lets itself be attached"), resumed)
    }

    /// Cuts the connection of a seat: what is on the wire is lost, in both directions. It is there again after a while,
    /// with the same session (`resumed`) or a new one.
    pub(crate) fn cut(&mut self, seat: usize, back_after: Duration, resumed: bool) {
        let Some(connection) = self.seats[seat].connection.take() else { return };
        self.events.retain(|_, event| match event {
            Event::Arrive(whose, _) | Event::Deliver(_, whose, _) => *whose != connection,
            _ => true,
        });
        self.handle(Input::Disconnected(connection));
        self.seats[seat].client.lost(self.now);
        self.outputs(seat);
        self.at(back_after, Event::Restore(seat, resumed));
    }

    fn restore(&mut self, seat: usize, resumed: bool) {
        if !resumed {
            // A new session: what the old one still had to do is done first.
            let old: Vec<(Time, u64)> = self
                .events
                .iter()
                .filter(|(_, event)| matches!(event, Event::Execute(_) | Event::Queue(..)))
                .map(|(key, _)| *key)
                .collect();
            if !old.is_empty() {
                self.at(Duration::from_millis(10), Event::Restore(seat, false));
                return;
            }
            self.seats[seat].session.0[1] += 1;
        }
        let (connection, attachment, known) = self.join(self.seats[seat].session);
        assert_eq!(known, resumed, "the server keeps sessions");
        let now = self.now;
        let chair = &mut self.seats[seat];
        chair.connection = Some(connection);
        chair.arrives = (now, now);
        chair.delivered = now;
        chair.client.connected(now, attachment, resumed);
        self.outputs(seat);
    }

    fn handle(&mut self, input: Input) {
        self.sessions.handle(self.now, input);
        while let Some(output) = self.sessions.poll() {
            self.carry_out(output);
        }
    }

    fn carry_out(&mut self, output: wirefs_server::Output) {
        match output {
            wirefs_server::Output::Reply { connection, tag, reply } => self.reply(connection, tag, &reply),
            wirefs_server::Output::Execute(job) => {
                let delay = self.delay(self.delays.server);
                self.at(delay, Event::Execute(Box::new(job)));
            }
            wirefs_server::Output::Stop(key) => {
                self.stopped.insert(key);
            }
            wirefs_server::Output::EndSession(session) => self.tree.end(session),
            wirefs_server::Output::Attach { .. } => panic!("an attach out of turn"),
            wirefs_server::Output::Close { why, .. } => panic!("the server closes a connection: {why:?}"),
        }
    }

    /// A reply stands in its connection's queue; what stands there comes in order.
    fn reply(&mut self, connection: ConnectionKey, tag: Tag, reply: &Reply) {
        let Some(seat) = self.seats.iter().position(|seat| seat.connection == Some(connection)) else {
            return;
        };
        let delay = self.delay(self.delays.wire);
        let at = (self.now + delay).max(self.seats[seat].delivered);
        self.seats[seat].delivered = at;
        self.when(at, Event::Deliver(seat, connection, reply.encode(tag).to_body()));
    }

    /// Hands in a call; its answer may be there already.
    pub(crate) fn call(&mut self, seat: usize, call: Call<'_>) -> CallId {
        self.calls += 1;
        let id = CallId(self.calls);
        let caller = Caller { uid: 0, gid: 0, pid: 1 };
        let now = self.now;
        self.seats[seat].client.call(now, id, caller, call);
        self.outputs(seat);
        id
    }

    pub(crate) fn outputs(&mut self, seat: usize) {
        while let Some(output) = self.seats[seat].client.poll() {
            match output {
                Output::Answer(id, answer) | Output::AnswerAfter(id, answer) => {
                    let twice = self.seats[seat].answers.insert(id, (self.now, answer));
                    assert!(twice.is_none(), "call {id:?} was answered twice, first {twice:?}");
                }
                Output::Send(frame, lane) => self.send(seat, frame.to_body(), lane),
                Output::Invalidate(what) => self.seats[seat].invalidated.push(what),
                Output::HangUp => self.seats[seat].hang_ups += 1,
            }
        }
        let flying = self.seats[seat].client.snapshot().in_flight.values().sum();
        self.seats[seat].in_flight_max = self.seats[seat].in_flight_max.max(flying);
    }

    fn send(&mut self, seat: usize, body: Bytes, lane: Lane) {
        let (_, request) = Request::decode(body.clone()).expect("the client's frames are well formed");
        self.seats[seat].sent.push(request.name());
        let Some(connection) = self.seats[seat].connection else {
            panic!("a frame without a connection");
        };
        let delay = self.delay(self.delays.wire);
        let (changes, queries) = self.seats[seat].arrives;
        let at = match lane {
            Lane::Queries => (self.now + delay).max(queries),
            Lane::Changes => (self.now + delay).max(queries).max(changes),
        };
        match lane {
            Lane::Queries => self.seats[seat].arrives.1 = at,
            Lane::Changes => self.seats[seat].arrives.0 = at,
        }
        self.when(at, Event::Arrive(connection, body));
    }

    /// Lets the next thing happen.
    pub(crate) fn step(&mut self) {
        let Some(((at, _), event)) = self.events.pop_first() else {
            panic!("nothing happens any more");
        };
        self.now = self.now.max(at);
        match event {
            Event::Arrive(connection, body) => self.handle(Input::Received(connection, body)),
            Event::Execute(job) => self.execute(job),
            Event::Queue(job, replies) => {
                if let Some(connection) = job.connection {
                    for reply in &replies {
                        self.reply(connection, job.tag, reply);
                    }
                }
                self.handle(Input::Finished(job.key));
            }
            Event::Deliver(seat, _, body) => {
                let now = self.now;
                let received = self.seats[seat].client.receive(now, body);
                received.expect("an honest server is not blamed");
                self.outputs(seat);
            }
            Event::Tick(seat) => {
                let now = self.now;
                self.seats[seat].client.tick(now);
                self.outputs(seat);
                self.at(Duration::from_millis(500), Event::Tick(seat));
            }
            Event::Restore(seat, resumed) => self.restore(seat, resumed),
        }
    }

    fn execute(&mut self, job: Box<Job>) {
        if self.stopped.remove(&job.key) {
            return self.handle(Input::Finished(job.key));
        }
        let replies = serve(&self.tree, job.session, job.request.clone());
        if self.records && job.order == Order::Change {
            self.snapshot();
            let owner = |seat: &Seat| job.connection.is_some() && seat.connection == job.connection;
            if let Some(seat) = self.seats.iter().position(owner) {
                self.applied.push((seat, job.request.clone(), self.history.0.len() - 1));
            }
        }
        let delay = self.delay(self.delays.server);
        self.at(delay, Event::Queue(job, replies));
    }

    /// Lets time pass.
    pub(crate) fn pass(&mut self, span: Duration) {
        let until = self.now + span;
        while self.events.first_key_value().is_some_and(|((at, _), _)| *at <= until) {
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
        while !self.seats.iter().all(|seat| seat.connection.is_some() && seat.client.is_settled()) {
            assert!(
                self.now < until,
                "requests never end: {:?}",
                self.seats.iter().map(|seat| seat.client.snapshot()).collect::<Vec<_>>()
            );
            self.step();
        }
    }
}
