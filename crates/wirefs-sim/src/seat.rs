//! One client: the core, its kernel, its programs, and how it comes to its server, at first and again.

mod data;
mod dial;
mod notices;

pub(crate) use data::Data;
pub(crate) use notices::Notice;

use crate::flaw::Flaw;
use crate::kernel::Kernel;
use crate::program::Program;
use crate::wire::Way;
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

/// How often a client's time passes.
const TICK: Duration = Duration::from_millis(250);
/// How long a crashed machine is away, in microseconds.
const AWAY: (u64, u64) = (100_000, 20_000_000);

/// How a client stands to its server.
#[derive(Debug)]
enum Line {
    /// It will dial.
    Waiting,
    /// It has, and waits for the server's answers.
    Dialling(ConnectionKey, Greeting),
    /// It is attached, and what an earlier life left, or the server's machine lost, is brought to the server first.
    Bringing(ConnectionKey),
    /// It is attached.
    Up(ConnectionKey),
}

/// The client's own clock: not set by the world's, and a little faster or slower.
#[derive(Clone, Copy, Debug)]
struct Clock {
    offset: u64,
    /// Its speed, in 10,000ths of the world's.
    rate: u64,
}

impl Clock {
    fn at(self, now: Time) -> Time {
        Time(now.0 / 10_000 * self.rate + self.offset)
    }
}

/// One client.
pub(crate) struct Seat {
    pub(crate) config: Config,
    /// Which life of its machine.
    pub(crate) life: u64,
    /// None while it was never attached in this life, or is down.
    pub(crate) client: Option<Client>,
    pub(crate) kernel: Kernel,
    pub(crate) program: Program,
    line: Line,
    session: SessionId,
    clock: Clock,
    /// What its kernel is being told, in order, and when it was told the last of it.
    notices: VecDeque<Notice>,
    noticed: Time,
    pub(crate) is_down: bool,
    /// When it last lost a connection, and when it was without one.
    pub(crate) last_loss: Option<Time>,
    pub(crate) up_since: Option<Time>,
    /// The server's when it was last attached.
    boot: Option<BootId>,
    /// When it last found that the server did not know its changes any more.
    pub(crate) last_unknown: Option<Time>,
    dials: u32,
    calls: u64,
    /// Which of its threads makes a call.
    pub(crate) thread: u32,
}

impl Seat {
    /// What its clock shows.
    pub(crate) fn clock(&self, now: Time) -> Time {
        self.clock.at(now)
    }

    /// Whether it is attached over this connection.
    pub(crate) fn uses(&self, connection: ConnectionKey) -> bool {
        matches!(self.line, Line::Up(up) if up == connection)
    }

    fn up(&self) -> Option<ConnectionKey> {
        match self.line {
            Line::Up(connection) => Some(connection),
            Line::Waiting | Line::Dialling(..) | Line::Bringing(_) => None,
        }
    }

    /// The connection that it has or tries.
    pub(crate) fn connection(&self) -> Option<ConnectionKey> {
        match self.line {
            Line::Up(connection) | Line::Bringing(connection) | Line::Dialling(connection, _) => {
                Some(connection)
            }
            Line::Waiting => None,
        }
    }

    pub(crate) fn takes_leases(&self) -> bool {
        self.config.mode.takes_leases()
    }

    pub(crate) fn keeps_listings(&self) -> bool {
        self.config.mode.kernel_caches_listings()
    }

    /// Whether nothing is on its way.
    pub(crate) fn is_settled(&self) -> bool {
        let client = self.client.as_ref();
        self.up().is_some() && self.notices.is_empty() && client.is_some_and(Client::is_settled)
    }

    /// What it waits for, in words.
    pub(crate) fn shown(&self) -> String {
        let snapshot = self.client.as_ref().map(Client::snapshot);
        let busy: Vec<String> = self.program.busy().map(|busy| format!("{:?}", busy.deed)).collect();
        format!("{:?}, {} notices, {busy:?}, {snapshot:?}", self.line, self.notices.len())
    }

    /// Whether a connection was lost, or was missing, at some time since then.
    pub(crate) fn is_troubled_since(&self, since: Time) -> bool {
        self.up().is_none()
            || self.last_loss.is_some_and(|at| at >= since)
            || self.up_since.is_none_or(|at| at >= since)
    }
}

impl World {
    /// A client that was never there.
    pub(crate) fn seat(&mut self, config: Config, root: FileId) {
        let index = self.seats.len();
        // Where changes by rivals are dated, the clocks of both machines agree within 16 s (docs/design/0030).
        let offset = if self.plan.is_rivals { 5_000_000_000 } else { 1 << 40 };
        let clock = Clock { offset: self.dice.below(offset), rate: 9_900 + self.dice.below(201) };
        self.seats.push(Seat {
            config,
            life: 0,
            client: None,
            kernel: Kernel::new(root),
            program: Program::default(),
            line: Line::Waiting,
            session: SessionId([0; 16]),
            clock,
            notices: VecDeque::new(),
            noticed: Time(0),
            is_down: true,
            last_loss: None,
            up_since: None,
            boot: None,
            last_unknown: None,
            dials: 0,
            calls: 0,
            thread: 1,
        });
        self.lines.push(crate::wire::Line::default());
        self.start_seat(index);
    }

    /// A machine starts: with nothing in its memory, and a session of its own, or the one that it had.
    pub(crate) fn start_seat(&mut self, index: usize) {
        let root = self.truth.root();
        let now = self.now;
        let takes_up = self.ahead.is_none() && self.dice.chance(1, 2);
        let Some(seat) = self.seats.get_mut(index).filter(|seat| seat.is_down) else { return };
        seat.life += 1;
        seat.is_down = false;
        if seat.life == 1 || !takes_up {
            seat.session = SessionId([index as u8 + 1; 16]);
            seat.session.0[1..9].copy_from_slice(&seat.life.to_le_bytes());
        }
        seat.kernel = Kernel::new(root);
        seat.program = Program::new(root);
        seat.line = Line::Waiting;
        seat.noticed = now;
        let life = seat.life;
        self.note(|| format!("client {index} starts, life {life}"));
        self.after(TICK, Event::TickSeat(index, life));
        self.after(Duration::ZERO, Event::Dial(index, life));
    }

    /// A machine stops at once, with all that it had in its memory.
    pub(crate) fn crash_seat(&mut self, index: usize) {
        let says_so = self.dice.chance(1, 2);
        let Some(seat) = self.seats.get_mut(index).filter(|seat| !seat.is_down) else { return };
        seat.is_down = true;
        seat.client = None;
        seat.kernel = Kernel::default();
        seat.notices.clear();
        seat.line = Line::Waiting;
        seat.program = Program::default();
        seat.last_loss = None;
        seat.up_since = None;
        seat.boot = None;
        seat.last_unknown = None;
        self.note(|| format!("client {index} crashes{}", if says_so { "" } else { ", in silence" }));
        self.record.client_crashes += 1;
        self.client_is_gone();
        let own = self.wires.iter().filter(|(_, wire)| wire.seat == index && wire.at_seat);
        for connection in own.map(|(key, _)| *key).collect::<Vec<ConnectionKey>>() {
            if says_so {
                self.close(connection, Way::Up);
            } else if let Some(wire) = self.wires.get_mut(&connection) {
                wire.at_seat = false;
                self.falls_silent(connection, Way::Up);
            }
            self.tidy_wire(connection);
        }
        let away = self.delay(AWAY);
        self.after(away, Event::StartSeat(index));
    }

    /// Does something to a client's core, and then what it says.
    pub(crate) fn drive<R>(&mut self, index: usize, act: impl FnOnce(&mut Client, Time) -> R) -> Option<R> {
        let now = self.now;
        let seat = self.seats.get_mut(index)?;
        let local = seat.clock(now);
        let result = seat.client.as_mut().map(|client| act(client, local));
        self.follow_seat(index);
        self.journal_is_written(index);
        result
    }

    fn follow_seat(&mut self, index: usize) {
        while let Some(output) = self.next_output(index) {
            let connection = self.seats.get(index).and_then(Seat::up);
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
                Output::Invalidate(what) => self.tell_kernel(index, Notice::Forget(what)),
                Output::AnswerDropped(what, id, answer) => {
                    let is_listing = matches!(what, Invalidate::Listing { .. });
                    if !(is_listing && self.flaw == Some(Flaw::KeepsListings))
                        && let Some(seat) = self.seats.get_mut(index)
                    {
                        seat.kernel.forgets(&what);
                    }
                    self.answer_comes(index, id, answer);
                }
                Output::AwaitReaders(dir, until) => self.await_readers(index, dir, until),
                Output::AnswerAfter(id, answer) => {
                    if self.seats.get(index).is_some_and(|seat| seat.kernel.holds_a_lock(id)) {
                        self.fail(format!(
                            "client {index}: call {id:?} holds a lock, and its answer waits for names"
                        ));
                    }
                    self.tell_kernel(index, Notice::Answer(id, answer));
                }
                Output::SendAfter(frame)
                    if self.flaw == Some(Flaw::LosesARecalled) && self.dice.chance(1, 10) =>
                {
                    drop(frame);
                }
                Output::SendAfter(frame) => {
                    self.tell_kernel(index, Notice::Send(connection, frame.to_body()));
                }
                // Comes only where there is a store.
                Output::LetGo(..) | Output::Load(_) | Output::Keep(..) => {}
                Output::OpenData(key) => self.open_data(index, key),
                Output::CloseData(key) | Output::HangUpData(key) => self.close_data(index, key),
                Output::AnswerJournaled(id, answer) => self.answer_journaled(index, id, answer),
                output @ (Output::Journal(..)
                | Output::JournalForget(_)
                | Output::JournalAnew(_)
                | Output::JournalNote(_)
                | Output::Refused(..)) => self.journal(output),
                Output::Blamed(why) => self.fail(format!("client {index} broke the protocol: {why}")),
                Output::HangUp => {
                    if let Some(connection) = connection {
                        self.record.hang_ups += 1;
                        self.note(|| format!("client {index} gives its connection up"));
                        self.seat_loses(connection);
                    }
                }
            }
        }
    }

    fn next_output(&mut self, index: usize) -> Option<Output> {
        self.seats.get_mut(index)?.client.as_mut()?.poll()
    }

    /// Hands in a call; its answer may come at once.
    pub(crate) fn call(&mut self, index: usize, call: Call<'_>) -> CallId {
        let Some(seat) = self.seats.get_mut(index) else { return CallId(0) };
        seat.calls += 1;
        let id = CallId(seat.life << 32 | seat.calls);
        seat.kernel.asks(id, &call);
        let caller = Caller { uid: 0, gid: 0, pid: seat.thread };
        self.drive(index, |client, now| client.call(now, id, caller, call));
        id
    }

    pub(crate) fn tick_seat(&mut self, index: usize, life: u64) {
        let is_there = self.seats.get(index).is_some_and(|seat| seat.life == life && !seat.is_down);
        if !is_there {
            return;
        }
        if self.flaw != Some(Flaw::SleepsThrough) {
            self.is_ticking = true;
            if self.seats.get(index).is_some_and(|seat| matches!(seat.line, Line::Bringing(_))) {
                self.drive(index, |client, now| client.is_being_redone(now));
            }
            self.drive(index, |client, now| client.tick(now));
            self.is_ticking = false;
        }
        self.check_patience(index);
        self.check_ahead_patience();
        self.check_bringing();
        self.after(TICK, Event::TickSeat(index, life));
    }

    /// Something came for a client.
    pub(crate) fn seat_receives(&mut self, connection: ConnectionKey, body: Bytes, change: Option<usize>) {
        let Some(wire) = self.wires.get(&connection).filter(|wire| wire.at_seat) else { return };
        let (index, data) = (wire.seat, wire.data);
        self.note_reply(index, &body);
        if let Some(data) = data {
            return self.data_receives(connection, index, data, body);
        }
        let brings = |line: &Line| matches!(line, Line::Bringing(brings) if *brings == connection);
        if self.seats.get(index).is_some_and(|seat| brings(&seat.line)) {
            return self.bringing_receives(body);
        }
        if !self.seats.get(index).is_some_and(|seat| seat.uses(connection)) {
            return self.greeted(index, connection, body);
        }
        if let Some(change) = change {
            self.truth.told(change, self.now);
        }
        let received = self.drive(index, |client, now| client.receive(now, body));
        if let Some(Err(blamed)) = received {
            self.fail(format!("client {index} blames an honest server: {blamed}"));
        }
    }

    /// A client's connection is gone, or it gives it up.
    pub(crate) fn seat_loses(&mut self, connection: ConnectionKey) {
        let now = self.now;
        let Some(wire) = self.wires.get(&connection).filter(|wire| wire.at_seat) else { return };
        let index = wire.seat;
        if let Some(data) = wire.data {
            return self.data_is_lost(connection, index, data.key);
        }
        self.close(connection, Way::Up);
        self.tidy_wire(connection);
        let Some(seat) = self.seats.get_mut(index).filter(|seat| seat.connection() == Some(connection))
        else {
            return;
        };
        let was_up = seat.uses(connection);
        seat.line = Line::Waiting;
        self.note(|| format!("client {index} has lost connection {}", connection.0));
        self.bringing_is_lost();
        if was_up {
            if let Some(seat) = self.seats.get_mut(index) {
                (seat.last_loss, seat.up_since, seat.dials) = (Some(now), None, 0);
            }
            self.hears_nothing(index);
            self.drive(index, |client, now| client.lost(now));
        }
        self.dials_again(index);
    }
}
