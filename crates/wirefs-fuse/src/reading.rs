//! Who reads the next request, and how long it looks for one before it sleeps.
//!
//! One thread reads at a time. It carries out what it read and reads on; where that is going to take a while, it first hands the
//! reading over to another thread, which is woken for it. So the requests of one program after the other meet one thread that is awake,
//! instead of waking all in turn.
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
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// So long a thread looks for the next request.
const LOOK: Duration = Duration::from_micros(50);
/// What came within this time, the waking included, came shortly: looking would have found it.
const SHORTLY: Duration = Duration::from_micros(100);
/// So many requests have to come shortly at most before it is looked for one again.
const WAITS_MAX: u32 = 1024;

/// Whether looking pays off. Without a clock.
#[derive(Debug)]
pub(crate) struct Looking {
    /// So many requests have yet to come shortly.
    waits: u32,
    /// And so many when it is looked in vain the next time.
    waits_next: u32,
}

impl Default for Looking {
    fn default() -> Looking {
        Looking { waits: 1, waits_next: 1 }
    }
}

impl Looking {
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

/// Whose turn it is to read.
#[derive(Debug, Default)]
pub(crate) struct Turns(Mutex<Looking>);

/// A thread that carries out requests: it may have the turn to read.
#[derive(Debug)]
pub struct Reading<'a> {
    turns: &'a Turns,
    turn: RefCell<Option<MutexGuard<'a, Looking>>>,
    has_looked: Cell<bool>,
}

impl<'a> Reading<'a> {
    pub(crate) fn new(turns: &'a Turns) -> Reading<'a> {
        Reading { turns, turn: RefCell::new(None), has_looked: Cell::new(false) }
    }

    /// For a thread that reads no requests and carries one out nevertheless.
    pub fn elsewhere() -> Reading<'static> {
        static NONE: Turns = Turns(Mutex::new(Looking { waits: 1, waits_next: 1 }));
        Reading::new(&NONE)
    }

    /// Lets another thread read: this one is about to wait, or to take longer than it takes to wake one. Once for each call counts.
    pub fn hand_over(&self) {
        if let Some(mut turn) = self.turn.take() {
            turn.was_handed_over();
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
        let mut turn = self.turn.borrow_mut();
        let looking = turn.get_or_insert_with(|| self.turns.0.lock().unwrap_or_else(PoisonError::into_inner));
        let began = Instant::now();
        self.has_looked.set(false);
        if looking.is_worth_it() {
            while began.elapsed() < LOOK {
                match connection.take(lane, head, rest)? {
                    Received::Nothing => std::hint::spin_loop(),
                    received => {
                        looking.found();
                        self.has_looked.set(true);
                        return Ok(received);
                    }
                }
            }
            looking.was_in_vain();
            return connection.receive(lane, head, rest);
        }
        let received = connection.receive(lane, head, rest)?;
        looking.slept(began.elapsed());
        Ok(received)
    }
}
