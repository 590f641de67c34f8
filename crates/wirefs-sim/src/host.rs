//! One client host: the core, its kernel, its programs, and its connection to the server.

mod data;
mod dial;
mod invalidations;

pub(crate) use data::Data;
pub(crate) use invalidations::QueueItem;

use crate::flaw::Flaw;
use crate::kernel::Kernel;
use crate::program::Program;
use crate::wire::Direction;
use crate::world::{Event, World};
use bytes::Bytes;
use dial::Greeting;
use std::collections::VecDeque;
use std::time::Duration;
use wirefs_client::call::{Call, CallId, Caller, Invalidate};
use wirefs_client::{Client, Config, Lane, Output};
use wirefs_op::message::version::{BootId, SessionId};
use wirefs_op::{FileId, Time};
use wirefs_server::ConnectionKey;

/// The interval of the client's timer.
const TICK: Duration = Duration::from_millis(250);
/// The downtime of a crashed machine, in microseconds.
const AWAY: (u64, u64) = (100_000, 20_000_000);

/// The state of a client's connection.
#[derive(Debug)]
enum ConnectionState {
    /// It will dial.
    Waiting,
    /// It has dialed, and waits for the server's answers.
    Dialling(ConnectionKey, Greeting),
    /// It is attached and delivers a journal first.
    Delivering(ConnectionKey),
    /// It is attached.
    Up(ConnectionKey),
}

/// The client's own clock: with an offset, and slightly fast or slow.
#[derive(Clone, Copy, Debug)]
struct Clock {
    offset: u64,
    /// Its speed, in 10,000ths of the simulation's.
    rate: u64,
}

impl Clock {
    fn at(self, now: Time) -> Time {
        Time(now.0 / 10_000 * self.rate + self.offset)
    }
}

/// One client host.
pub(crate) struct Host {
    pub(crate) config: Config,
    /// The number of starts of the machine.
    pub(crate) life: u64,
    /// `None` before the first attach after a start, and while the host is down.
    pub(crate) client: Option<Client>,
    pub(crate) kernel: Kernel,
    pub(crate) program: Program,
    connection_state: ConnectionState,
    session: SessionId,
    clock: Clock,
    /// The queue of invalidations in the kernel, and the end of the last one.
    invalidations: VecDeque<QueueItem>,
    invalidated: Time,
    pub(crate) is_down: bool,
    /// The time of the last lost connection, and the last time without one.
    pub(crate) last_loss: Option<Time>,
    pub(crate) up_since: Option<Time>,
    /// The server's boot id at the last attach.
    boot: Option<BootId>,
    /// The last time when the server did not know the client's changes any more.
    pub(crate) last_unknown: Option<Time>,
    dials: u32,
    calls: u64,
    /// The thread of the current call.
    pub(crate) thread: u32,
}

impl Host {
    /// Returns the client's time.
    pub(crate) fn clock(&self, now: Time) -> Time {
        self.clock.at(now)
    }

    /// Returns whether it is attached over this connection.
    pub(crate) fn uses(&self, connection: ConnectionKey) -> bool {
        matches!(self.connection_state, ConnectionState::Up(up) if up == connection)
    }

    fn up(&self) -> Option<ConnectionKey> {
        match self.connection_state {
            ConnectionState::Up(connection) => Some(connection),
            ConnectionState::Waiting | ConnectionState::Dialling(..) | ConnectionState::Delivering(_) => None,
        }
    }

    /// Returns the connection that it has or dials.
    pub(crate) fn connection(&self) -> Option<ConnectionKey> {
        match self.connection_state {
            ConnectionState::Up(connection)
            | ConnectionState::Delivering(connection)
            | ConnectionState::Dialling(connection, _) => Some(connection),
            ConnectionState::Waiting => None,
        }
    }

    pub(crate) fn takes_leases(&self) -> bool {
        self.config.mode.takes_leases()
    }

    pub(crate) fn keeps_listings(&self) -> bool {
        self.config.mode.kernel_caches_listings()
    }

    /// Returns whether nothing is pending.
    pub(crate) fn is_settled(&self) -> bool {
        let client = self.client.as_ref();
        self.up().is_some() && self.invalidations.is_empty() && client.is_some_and(Client::is_settled)
    }

    /// Describes the state.
    pub(crate) fn shown(&self) -> String {
        let snapshot = self.client.as_ref().map(Client::snapshot);
        let busy: Vec<String> = self.program.busy().map(|busy| format!("{:?}", busy.operation)).collect();
        format!(
            "{:?}, {} invalidations, {busy:?}, {snapshot:?}",
            self.connection_state,
            self.invalidations.len()
        )
    }

    /// Returns whether a connection was lost, or missing, since a time.
    pub(crate) fn was_disconnected_since(&self, since: Time) -> bool {
        self.up().is_none()
            || self.last_loss.is_some_and(|at| at >= since)
            || self.up_since.is_none_or(|at| at >= since)
    }
}

impl World {
    /// Adds a client host.
    pub(crate) fn host(&mut self, config: Config, root: FileId) {
        let index = self.hosts.len();
        // Where changes by rivals have times, the clocks of both machines agree within 16 s (docs/design/0030).
        let offset = if self.plan.is_rivals { 5_000_000_000 } else { 1 << 40 };
        let clock = Clock { offset: self.dice.below(offset), rate: 9_900 + self.dice.below(201) };
        self.hosts.push(Host {
            config,
            life: 0,
            client: None,
            kernel: Kernel::new(root),
            program: Program::default(),
            connection_state: ConnectionState::Waiting,
            session: SessionId([0; 16]),
            clock,
            invalidations: VecDeque::new(),
            invalidated: Time(0),
            is_down: true,
            last_loss: None,
            up_since: None,
            boot: None,
            last_unknown: None,
            dials: 0,
            calls: 0,
            thread: 1,
        });
        self.paths.push(crate::wire::NetworkPath::default());
        self.start_host(index);
    }

    /// Starts a machine: with empty memory, and a new session or its former one.
    pub(crate) fn start_host(&mut self, index: usize) {
        let root = self.truth.root();
        let now = self.now;
        let takes_up = self.ahead.is_none() && self.dice.chance(1, 2);
        let Some(host) = self.hosts.get_mut(index).filter(|host| host.is_down) else { return };
        host.life += 1;
        host.is_down = false;
        if host.life == 1 || !takes_up {
            host.session = SessionId([index as u8 + 1; 16]);
            host.session.0[1..9].copy_from_slice(&host.life.to_le_bytes());
        }
        host.kernel = Kernel::new(root);
        host.program = Program::new(root);
        host.connection_state = ConnectionState::Waiting;
        host.invalidated = now;
        let life = host.life;
        self.note(|| format!("client {index} starts, life {life}"));
        self.after(TICK, Event::TickHost(index, life));
        self.after(Duration::ZERO, Event::Dial(index, life));
    }

    /// Stops a machine at once, with the loss of its memory.
    pub(crate) fn crash_host(&mut self, index: usize) {
        let says_so = self.dice.chance(1, 2);
        let Some(host) = self.hosts.get_mut(index).filter(|host| !host.is_down) else { return };
        host.is_down = true;
        host.client = None;
        host.kernel = Kernel::default();
        host.invalidations.clear();
        host.connection_state = ConnectionState::Waiting;
        host.program = Program::default();
        host.last_loss = None;
        host.up_since = None;
        host.boot = None;
        host.last_unknown = None;
        self.note(|| format!("client {index} crashes{}", if says_so { "" } else { ", silently" }));
        self.counts.client_crashes += 1;
        self.client_is_gone();
        let own = self.wires.iter().filter(|(_, wire)| wire.host == index && wire.at_host);
        for connection in own.map(|(key, _)| *key).collect::<Vec<ConnectionKey>>() {
            if says_so {
                self.close(connection, Direction::Up);
            } else if let Some(wire) = self.wires.get_mut(&connection) {
                wire.at_host = false;
                self.vanish(connection, Direction::Up);
            }
            self.tidy_wire(connection);
        }
        let away = self.delay(AWAY);
        self.after(away, Event::StartHost(index));
    }

    /// Passes an input to a client's core, and executes its outputs.
    pub(crate) fn drive<R>(&mut self, index: usize, act: impl FnOnce(&mut Client, Time) -> R) -> Option<R> {
        let now = self.now;
        let host = self.hosts.get_mut(index)?;
        let local = host.clock(now);
        let result = host.client.as_mut().map(|client| act(client, local));
        self.follow_host(index);
        self.journal_is_written(index);
        result
    }

    fn follow_host(&mut self, index: usize) {
        while let Some(output) = self.next_output(index) {
            let connection = self.hosts.get(index).and_then(Host::up);
            match output {
                Output::Answer(id, answer) => self.answer_comes(index, id, answer),
                Output::Send(frame, lane) => {
                    let frame = self.journal_before(frame);
                    let over = match lane {
                        Lane::Data(key) => self.data_wire(index, key),
                        Lane::Queries | Lane::Changes => connection,
                    };
                    if let Some(over) = over {
                        let body = frame.to_body();
                        self.note_request(index, &body);
                        self.send_up(over, body, lane);
                    }
                }
                Output::Invalidate(_) if self.is_ticking && self.flaw == Some(Flaw::KeepsTheKernels) => {}
                Output::Invalidate(what) => self.queue_invalidation(index, QueueItem::Forget(what)),
                Output::AnswerDropped(what, id, answer) => {
                    let is_listing = matches!(what, Invalidate::Listing { .. });
                    if !(is_listing && self.flaw == Some(Flaw::KeepsListings))
                        && let Some(host) = self.hosts.get_mut(index)
                    {
                        host.kernel.invalidate(&what);
                    }
                    self.answer_comes(index, id, answer);
                }
                Output::AwaitReaders(dir, until) => self.await_readers(index, dir, until),
                Output::AnswerAfter(id, answer) => {
                    if self.hosts.get(index).is_some_and(|host| host.kernel.holds_a_lock(id)) {
                        self.fail(format!(
                            "client {index}: call {id:?} holds a lock, and its answer waits for names"
                        ));
                    }
                    self.queue_invalidation(index, QueueItem::Answer(id, answer));
                }
                Output::SendAfter(frame)
                    if self.flaw == Some(Flaw::LosesAnAcknowledgment) && self.dice.chance(1, 10) =>
                {
                    drop(frame);
                }
                Output::SendAfter(frame) => {
                    self.queue_invalidation(index, QueueItem::Send(connection, frame.to_body()));
                }
                // Only with a disk cache.
                Output::LetGo(..) | Output::Load(_) | Output::Keep(..) => {}
                Output::OpenData(key) => self.open_data(index, key),
                Output::CloseData(key) | Output::HangUpData(key) => self.close_data(index, key),
                Output::AnswerJournaled(id, answer) => self.answer_journaled(index, id, answer),
                output @ (Output::Journal(..)
                | Output::JournalForget(_)
                | Output::JournalAnew(_)
                | Output::JournalNote(_)
                | Output::Refused(..)) => self.journal(output),
                Output::RefusedLink(..) => self.fail(format!("client {index} confines links")),
                Output::Blamed(why) => self.fail(format!("client {index} broke the protocol: {why}")),
                Output::HangUp => {
                    if let Some(connection) = connection {
                        self.counts.hang_ups += 1;
                        self.note(|| format!("client {index} closes its connection"));
                        self.host_loses(connection);
                    }
                }
            }
        }
    }

    fn next_output(&mut self, index: usize) -> Option<Output> {
        self.hosts.get_mut(index)?.client.as_mut()?.poll()
    }

    /// Makes a call; the answer may come at once.
    pub(crate) fn call(&mut self, index: usize, call: Call<'_>) -> CallId {
        let Some(host) = self.hosts.get_mut(index) else { return CallId(0) };
        host.calls += 1;
        let id = CallId(host.life << 32 | host.calls);
        host.kernel.call_started(id, &call);
        let caller = Caller { uid: 0, gid: 0, pid: host.thread };
        self.drive(index, |client, now| client.call(now, id, caller, call));
        id
    }

    pub(crate) fn tick_host(&mut self, index: usize, life: u64) {
        let is_there = self.hosts.get(index).is_some_and(|host| host.life == life && !host.is_down);
        if !is_there {
            return;
        }
        if self.flaw != Some(Flaw::SleepsThrough) {
            self.is_ticking = true;
            if self
                .hosts
                .get(index)
                .is_some_and(|host| matches!(host.connection_state, ConnectionState::Delivering(_)))
            {
                self.drive(index, |client, now| client.is_being_redone(now));
            }
            self.drive(index, |client, now| client.tick(now));
            self.is_ticking = false;
        }
        self.check_patience(index);
        self.check_ahead_patience();
        self.check_delivery();
        self.after(TICK, Event::TickHost(index, life));
    }

    /// Delivers a message to a client.
    pub(crate) fn host_receives(&mut self, connection: ConnectionKey, body: Bytes, change: Option<usize>) {
        let Some(wire) = self.wires.get(&connection).filter(|wire| wire.at_host) else { return };
        let (index, data) = (wire.host, wire.data);
        self.note_reply(index, &body);
        if let Some(data) = data {
            return self.data_receives(connection, index, data, body);
        }
        let brings = |connection_state: &ConnectionState| matches!(connection_state, ConnectionState::Delivering(brings) if *brings == connection);
        if self.hosts.get(index).is_some_and(|host| brings(&host.connection_state)) {
            return self.delivery_receives(body);
        }
        if !self.hosts.get(index).is_some_and(|host| host.uses(connection)) {
            return self.receive_greeting(index, connection, body);
        }
        if let Some(change) = change {
            self.truth.outcome_known(change, self.now);
        }
        let received = self.drive(index, |client, now| client.receive(now, body));
        if let Some(Err(blamed)) = received {
            self.fail(format!("client {index} blames an honest server: {blamed}"));
        }
    }

    /// Ends a client's connection, lost or closed.
    pub(crate) fn host_loses(&mut self, connection: ConnectionKey) {
        let now = self.now;
        let Some(wire) = self.wires.get(&connection).filter(|wire| wire.at_host) else { return };
        let index = wire.host;
        if let Some(data) = wire.data {
            return self.data_is_lost(connection, index, data.key);
        }
        self.close(connection, Direction::Up);
        self.tidy_wire(connection);
        let Some(host) = self.hosts.get_mut(index).filter(|host| host.connection() == Some(connection))
        else {
            return;
        };
        let was_up = host.uses(connection);
        host.connection_state = ConnectionState::Waiting;
        self.note(|| format!("client {index} has lost connection {}", connection.0));
        self.delivery_lost();
        if was_up {
            if let Some(host) = self.hosts.get_mut(index) {
                (host.last_loss, host.up_since, host.dials) = (Some(now), None, 0);
            }
            self.outcomes_lost(index);
            self.drive(index, |client, now| client.lost(now));
        }
        self.dials_again(index);
    }
}
