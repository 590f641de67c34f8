//! Who reads the next request, and how long it looks for one before it sleeps.
//!
//! One thread reads at a time. It carries out what it read and reads on; where that is going to take a while, it first hands the
//! reading over to another thread, which is woken for it, or says [`before_waiting`] on the way. So the requests of one program after the other meet one thread that is awake,
//! instead of waking all in turn. A thread that waits without having said so loses its turn after a second: should what it waits for
//! depend on another request, that is read then.
//!
//! A program that asks, waits and asks again asks anew some microseconds after each answer. A thread that has gone to sleep by then has to
//! be woken, and on a machine with little to do that wakes a processor as well: some 30 us on a virtual one, several times what most
//! requests take. So the thread looks for the next request for about as long as that would take, as long as that has paid off:
//!
//! | the last time | now |
//! |---|---|
//! | a request came while it was looked for one | looks |
//! | none came | sleeps; looks again after as many requests that came shortly as it takes: 1, and twice as many each time that looking was in vain again |
//!
//! At worst it looks in vain once for every [`WAITS_MAX`] requests: a program that takes its time, a machine with other work.

#[cfg(test)]
mod tests;

use crate::device::{Connection, Received};
use rustix::io;
use std::cell::{Cell, RefCell};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// So long a thread looks for the next request.
const LOOK: Duration = Duration::from_micros(50);
/// What came within this time, the waking included, came shortly: looking would have found it.
const SHORTLY: Duration = Duration::from_micros(100);
/// So many requests have to come shortly at most before it is looked for one again.
const WAITS_MAX: u32 = 1024;
/// Who has carried out one request for so long has lost the turn to read, should it have forgotten to hand it over.
const CARRIES_MAX: Duration = Duration::from_millis(500);
/// So often who waits for a turn looks whether that is so.
const WATCH_EVERY: Duration = Duration::from_secs(1);

/// Whether looking pays off. Without a clock.
#[derive(Debug)]
pub(crate) struct Looking {
    /// So many requests have yet to come shortly.
    waits: u32,
    /// And so many when it is looked in vain the next time.
    waits_next: u32,
}

impl Looking {
    fn new() -> Looking {
        Looking { waits: 1, waits_next: 1 }
    }

    /// Whether to look, rather than to sleep at once.
    fn is_worth_it(&self) -> bool {
        self.waits == 0
    }

    /// A request came while it was looked for one.
    fn found(&mut self) {
        self.waits_next = 1;
    }

    /// Who asked waits for something else than this thread.
    fn was_handed_over(&mut self) {
        self.waits = self.waits.max(1);
    }

    /// None did.
    fn was_in_vain(&mut self) {
        self.waits = self.waits_next;
        self.waits_next = self.waits_next.saturating_mul(2).min(WAITS_MAX);
    }

    /// A request came after this time, without looking.
    fn slept(&mut self, time: Duration) {
        if time <= SHORTLY {
            self.waits = self.waits.saturating_sub(1);
        }
    }
}

thread_local! {
    /// The turn that this thread has while it carries a request out.
    static HELD: RefCell<Option<(Arc<Turns>, u64)>> = const { RefCell::new(None) };
}

/// Lets another thread read requests, where the calling one carries one out: it is about to wait. For who is called in such a thread
/// and knows nothing of it, as a store of blocks. May be called by any thread, as often as it waits.
///
/// # Cost
/// The first time in a request: a wake-up of another thread. Else nothing.
pub fn before_waiting() {
    if let Some((turns, turn)) = HELD.take() {
        turns.end(turn);
    }
}

/// How the last request was received.
#[derive(Debug)]
enum Came {
    /// While it was looked for one.
    Found,
    /// Not while it was looked for one, but then.
    InVain,
    /// After this time, and it was not looked for one.
    Slept(Duration),
}

#[derive(Debug)]
struct State {
    looking: Looking,
    /// Turns so far; each has a number.
    turns: u64,
    /// The turn of the thread that reads.
    turn: Option<u64>,
    /// Since then that thread carries out a request.
    carries_since: Option<Instant>,
}

impl State {
    fn new() -> State {
        State { looking: Looking::new(), turns: 0, turn: None, carries_since: None }
    }

    /// Whether another thread may read.
    fn is_free(&self) -> bool {
        self.turn.is_none() || self.carries_since.is_some_and(|since| since.elapsed() >= CARRIES_MAX)
    }
}

/// Whose turn it is to read.
#[derive(Debug)]
pub(crate) struct Turns {
    state: Mutex<State>,
    freed: Condvar,
}

impl Turns {
    pub(crate) fn new() -> Turns {
        Turns { state: Mutex::new(State::new()), freed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Goes on with this turn, or waits for the next. Its number, and whether to look.
    fn begin(&self, turn: Option<u64>) -> (u64, bool) {
        let mut state = self.lock();
        if let Some(turn) = turn.filter(|_| state.turn == turn) {
            state.carries_since = None;
            return (turn, state.looking.is_worth_it());
        }
        while !state.is_free() {
            state = self.freed.wait_timeout(state, WATCH_EVERY).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.turns += 1;
        state.turn = Some(state.turns);
        state.carries_since = None;
        (state.turns, state.looking.is_worth_it())
    }

    /// A request has come in this turn.
    fn came(&self, turn: u64, came: &Came) {
        let mut state = self.lock();
        match came {
            Came::Found => state.looking.found(),
            Came::InVain => state.looking.was_in_vain(),
            Came::Slept(time) => state.looking.slept(*time),
        }
        if state.turn == Some(turn) {
            state.carries_since = Some(Instant::now());
        }
    }

    fn end(&self, turn: u64) {
        let mut state = self.lock();
        if state.turn == Some(turn) {
            state.turn = None;
            state.looking.was_handed_over();
            drop(state);
            self.freed.notify_one();
        }
    }
}

/// A thread that carries out requests: it may have the turn to read.
#[derive(Debug)]
pub struct Reading<'a> {
    /// `None`: it reads whenever it likes.
    turns: Option<&'a Arc<Turns>>,
    turn: Cell<Option<u64>>,
    has_looked: Cell<bool>,
}

impl<'a> Reading<'a> {
    pub(crate) fn new(turns: Option<&'a Arc<Turns>>) -> Reading<'a> {
        Reading { turns, turn: Cell::new(None), has_looked: Cell::new(false) }
    }

    /// For a thread that reads no requests and carries one out nevertheless.
    pub fn elsewhere() -> Reading<'static> {
        Reading::new(None)
    }

    /// Lets another thread read: this one is about to wait, or to take longer than it takes to wake one. Once for each call counts.
    pub fn hand_over(&self) {
        if let (Some(turns), Some(turn)) = (self.turns, self.turn.take()) {
            turns.end(turn);
        }
    }

    /// Whether the last request came while this thread looked for it.
    pub(crate) fn has_looked(&self) -> bool {
        self.has_looked.get()
    }

    /// Waits until it is this thread's turn, and for the next request; what `head` does not take goes to `rest`.
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
        let Some(turns) = self.turns else { return connection.receive(lane, head, rest) };
        let (turn, looks) = turns.begin(self.turn.get());
        self.turn.set(Some(turn));
        HELD.set(Some((Arc::clone(turns), turn)));
        self.has_looked.set(false);
        let began = Instant::now();
        while looks && began.elapsed() < LOOK {
            match connection.take(lane, head, rest)? {
                Received::Nothing => std::hint::spin_loop(),
                received => {
                    self.has_looked.set(true);
                    turns.came(turn, &Came::Found);
                    return Ok(received);
                }
            }
        }
        let received = connection.receive(lane, head, rest)?;
        turns.came(turn, &if looks { Came::InVain } else { Came::Slept(began.elapsed()) });
        Ok(received)
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.hand_over();
        HELD.take();
    }
}
