//! The election of the thread that reads the next request, and its busy-polling.
//!
//! One thread at a time is the reader. It executes the request that it has read and then reads on. Before a long
//! execution it hands the role over to another thread, which is woken for that, or calls [`before_blocking`] on the
//! way. So sequential requests of one program meet one awake thread, instead of waking all threads in turn. A
//! thread that blocks without handing over loses the role after a second, in case it depends on another request.
//!
//! A program with sequential calls sends the next one some microseconds after each answer. A thread that sleeps by
//! then must be woken. On a mostly idle machine that also wakes a CPU, which takes some 30 µs on a virtual one,
//! several times longer than most requests. So the reader polls for about this time, as long as polling has paid
//! off:
//!
//! | the last time | now |
//! |---|---|
//! | a request arrived during the poll | polls |
//! | none arrived | sleeps; polls again after a number of requests at short gaps: 1, doubled after each failed poll |
//!
//! At worst one poll fails per [`SKIPS_MAX`] requests: with a slow program, or a machine with other work.

#[cfg(test)]
mod tests;

use crate::device::{Connection, Received};
use rustix::io;
use std::cell::{Cell, RefCell};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The duration of a poll.
const POLL_MAX: Duration = Duration::from_micros(50);
/// The longest short gap, including the wake-up: a poll would have found the request.
const SHORT_GAP: Duration = Duration::from_micros(100);
/// Requests at short gaps before the next poll, at most.
const SKIPS_MAX: u32 = 1024;
/// A reader that executes a request longer than this loses the role, if it has not handed it over.
const EXECUTION_MAX: Duration = Duration::from_millis(500);
/// The interval at which waiting threads check for that.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Decides whether to poll. Without a clock.
#[derive(Debug)]
pub(crate) struct BusyPoll {
    /// Requests at short gaps until the next poll.
    skips: u32,
    /// The same after the next failed poll.
    skips_next: u32,
}

impl BusyPoll {
    fn new() -> BusyPoll {
        BusyPoll { skips: 1, skips_next: 1 }
    }

    /// Whether to poll before sleeping.
    fn is_worth_it(&self) -> bool {
        self.skips == 0
    }

    /// A request arrived during the poll.
    fn found(&mut self) {
        self.skips_next = 1;
    }

    /// The caller does not wait for this thread alone.
    fn handed_over(&mut self) {
        self.skips = self.skips.max(1);
    }

    /// No request arrived during the poll.
    fn failed(&mut self) {
        self.skips = self.skips_next;
        self.skips_next = self.skips_next.saturating_mul(2).min(SKIPS_MAX);
    }

    /// A request arrived after this time without a poll.
    fn slept(&mut self, time: Duration) {
        if time <= SHORT_GAP {
            self.skips = self.skips.saturating_sub(1);
        }
    }
}

thread_local! {
    /// The role of this thread while it executes a request.
    static HELD: RefCell<Option<(Arc<ReaderElection>, u64)>> = const { RefCell::new(None) };
}

/// Hands the reader's role over, if the calling thread has it: it is about to block. For code below the file system
/// that does not know about requests, such as a block store. May be called by any thread, and repeatedly.
///
/// # Cost
/// The first time per request: a wake-up of another thread. Else none.
pub fn before_blocking() {
    if let Some((election, turn)) = HELD.take() {
        election.end(turn);
    }
}

/// The arrival of the last request.
#[derive(Debug)]
enum Arrival {
    /// During the poll.
    Found,
    /// After a failed poll.
    InVain,
    /// After this time, without a poll.
    Slept(Duration),
}

#[derive(Debug)]
struct State {
    poll: BusyPoll,
    /// The number of elections so far.
    election: u64,
    /// The election of the present reader.
    turn: Option<u64>,
    /// Since when the reader executes a request.
    executing_since: Option<Instant>,
}

impl State {
    fn new() -> State {
        State { poll: BusyPoll::new(), election: 0, turn: None, executing_since: None }
    }

    /// Whether another thread may become the reader.
    fn is_free(&self) -> bool {
        self.turn.is_none() || self.executing_since.is_some_and(|since| since.elapsed() >= EXECUTION_MAX)
    }
}

/// The election of the reader.
#[derive(Debug)]
pub(crate) struct ReaderElection {
    state: Mutex<State>,
    freed: Condvar,
}

impl ReaderElection {
    pub(crate) fn new() -> ReaderElection {
        ReaderElection { state: Mutex::new(State::new()), freed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Continues as the reader, or waits for the next election. Returns its number, and whether to poll.
    fn begin(&self, turn: Option<u64>) -> (u64, bool) {
        let mut state = self.lock();
        if let Some(turn) = turn.filter(|_| state.turn == turn) {
            state.executing_since = None;
            return (turn, state.poll.is_worth_it());
        }
        while !state.is_free() {
            state = self.freed.wait_timeout(state, CHECK_INTERVAL).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.election += 1;
        state.turn = Some(state.election);
        state.executing_since = None;
        (state.election, state.poll.is_worth_it())
    }

    /// A request arrived.
    fn arrived(&self, turn: u64, arrived: &Arrival) {
        let mut state = self.lock();
        match arrived {
            Arrival::Found => state.poll.found(),
            Arrival::InVain => state.poll.failed(),
            Arrival::Slept(time) => state.poll.slept(*time),
        }
        if state.turn == Some(turn) {
            state.executing_since = Some(Instant::now());
        }
    }

    fn end(&self, turn: u64) {
        let mut state = self.lock();
        if state.turn == Some(turn) {
            state.turn = None;
            state.poll.handed_over();
            drop(state);
            self.freed.notify_one();
        }
    }
}

/// A thread that executes requests, and may be the reader.
#[derive(Debug)]
pub struct ReaderRole<'a> {
    /// `None`: all threads read.
    election: Option<&'a Arc<ReaderElection>>,
    turn: Cell<Option<u64>>,
    has_polled: Cell<bool>,
}

impl<'a> ReaderRole<'a> {
    pub(crate) fn new(election: Option<&'a Arc<ReaderElection>>) -> ReaderRole<'a> {
        ReaderRole { election, turn: Cell::new(None), has_polled: Cell::new(false) }
    }

    /// For a thread that executes a request without reading any.
    pub fn elsewhere() -> ReaderRole<'static> {
        ReaderRole::new(None)
    }

    /// Hands the reader's role over: this thread is about to block, or to run longer than a wake-up takes. Only the
    /// first time per call has an effect.
    pub fn hand_over(&self) {
        if let (Some(election), Some(turn)) = (self.election, self.turn.take()) {
            election.end(turn);
        }
    }

    /// Whether the last request arrived during a poll.
    pub(crate) fn has_polled(&self) -> bool {
        self.has_polled.get()
    }

    /// Waits to become the reader, and for the next request. `rest` takes the bytes that do not fit into `head`.
    ///
    /// # Errors
    /// As [`Connection::receive`].
    pub(crate) fn receive(
        &self,
        connection: &Connection,
        lane: usize,
        head: &mut [u8],
        rest: &mut [u8],
    ) -> io::Result<Received> {
        let Some(election) = self.election else { return connection.receive(lane, head, rest) };
        let (turn, polls) = election.begin(self.turn.get());
        self.turn.set(Some(turn));
        HELD.set(Some((Arc::clone(election), turn)));
        self.has_polled.set(false);
        let began = Instant::now();
        while polls && began.elapsed() < POLL_MAX {
            match connection.take(lane, head, rest)? {
                Received::Nothing => std::hint::spin_loop(),
                received => {
                    self.has_polled.set(true);
                    election.arrived(turn, &Arrival::Found);
                    return Ok(received);
                }
            }
        }
        let received = connection.receive(lane, head, rest)?;
        election.arrived(turn, &if polls { Arrival::InVain } else { Arrival::Slept(began.elapsed()) });
        Ok(received)
    }
}

impl Drop for ReaderRole<'_> {
    fn drop(&mut self) {
        self.hand_over();
        HELD.take();
    }
}
