//! A program that changes and reads the tree.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use wirefs_lab::random::Random;

use super::history::{EventHistory, EventOrigin, Observed, ReadEvent, Register, WriteEvent};
use super::record::{self, RecordValue, SIZE_BASE};
use super::{DIRECTORIES, NAMES};

/// The pause between two operations.
const PAUSE: Duration = Duration::from_millis(1);

/// A program on a mount or on the exported directory.
pub(super) struct Actor {
    origin: EventOrigin,
    at: PathBuf,
    start_time: Instant,
    random: Random,
    /// The number of the actor, below 8; distinguishes values and temporary names of the actors.
    nth: u64,
    values: u64,
    /// Whether names and attributes may be of different ages.
    may_be_unfinished: bool,
    history: EventHistory,
}

impl Actor {
    pub(super) fn new(
        origin: EventOrigin,
        at: PathBuf,
        start_time: Instant,
        (seed, nth): (u64, u64),
        may_be_unfinished: bool,
    ) -> Actor {
        let random = Random::new(seed);
        Actor {
            origin,
            at,
            start_time,
            random,
            nth,
            values: 0,
            may_be_unfinished,
            history: EventHistory::default(),
        }
    }

    /// Runs until it is stopped.
    pub(super) fn run(mut self, stop: &AtomicBool) -> EventHistory {
        while !stop.load(Ordering::Relaxed) {
            self.step();
            // Otherwise the program on the server would do more than both clients together.
            thread::sleep(if self.origin == EventOrigin::Server { 20 * PAUSE } else { PAUSE });
        }
        self.history
    }

    fn step(&mut self) {
        let directory = self.random.below(DIRECTORIES as u64);
        let name = format!("d{directory}/n{}", self.random.below(NAMES as u64));
        let place = format!("d{directory}/place");
        match self.random.below(100) {
            0..40 => self.read(&name),
            40..60 => self.stat(&name),
            60..70 => self.list(directory),
            70..82 => self.replace(directory, &name),
            82..87 => self.remove(&name),
            87..95 => self.read(&place),
            _ => self.write_in_place(&place),
        }
    }

    fn now(&self) -> Duration {
        self.start_time.elapsed()
    }

    fn value(&mut self) -> RecordValue {
        self.values += 1;
        RecordValue(self.values * 8 + self.nth)
    }

    fn record_read(&mut self, register: &str, start: Duration, observed: io::Result<Observed>) {
        let observed = match observed {
            Ok(observed) => observed,
            Err(error) if error.kind() == ErrorKind::NotFound => Observed::Absent,
            Err(error) => return self.failed("read", &error),
        };
        let read = ReadEvent { origin: self.origin, start, end: self.now(), observed };
        self.history.reads.entry(register.to_owned()).or_default().push(read);
    }

    fn record_write(
        &mut self,
        register: &str,
        start: Duration,
        value: Option<RecordValue>,
        done: io::Result<()>,
    ) {
        let end = match done {
            Ok(()) => Some(self.now()),
            Err(error) => {
                self.failed("write", &error);
                None
            }
        };
        let write = WriteEvent { origin: self.origin, start, end, value };
        self.history.writes.entry(register.to_owned()).or_default().push(write);
    }

    fn failed(&mut self, operation: &str, error: &io::Error) {
        *self.history.failures.entry(format!("{operation}: {error}")).or_default() += 1;
    }

    fn read(&mut self, register: &str) {
        let start = self.now();
        let observed = record::read(&self.at.join(register)).map(Observed::Value);
        self.record_read(register, start, observed);
    }

    fn stat(&mut self, register: &str) {
        let start = self.now();
        let found = fs::symlink_metadata(self.at.join(register)).map(|metadata| metadata.len());
        let observed = match found.as_ref().map(|size| size.checked_sub(SIZE_BASE)) {
            Ok(Some(value)) => Ok(Observed::Value(RecordValue(value))),
            // Within the window the name may be current while the attributes are older than the file's completion
            // (S-8).
            Ok(None) if self.may_be_unfinished => {
                let too_early = io::Error::other("the size is from before the file was finished");
                return self.failed("stat", &too_early);
            }
            Ok(None) => panic!("{register} was never {found:?} bytes long"),
            Err(_) => found.map(|_| Observed::Absent),
        };
        self.record_read(register, start, observed);
    }

    fn list(&mut self, directory: u64) {
        let start = self.now();
        let listed = fs::read_dir(self.at.join(format!("d{directory}"))).and_then(|entries| {
            entries
                .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
                .collect::<io::Result<BTreeSet<_>>>()
        });
        let listed = match listed {
            Ok(listed) => listed,
            Err(error) => return self.failed("list", &error),
        };
        for name in (0..NAMES).map(|name| format!("n{name}")) {
            let observed = if listed.contains(&name) { Observed::Present } else { Observed::Absent };
            let register: Register = format!("d{directory}/{name}");
            self.record_read(&register, start, Ok(observed));
        }
    }

    fn replace(&mut self, directory: u64, register: &str) {
        let value = self.value();
        let temporary = self.at.join(format!("d{directory}/.new-{}-{}", self.nth, value.0));
        if let Err(error) = record::write_new(&temporary, value) {
            return self.failed("create", &error);
        }
        let start = self.now();
        let done = fs::rename(&temporary, self.at.join(register));
        self.record_write(register, start, Some(value), done);
    }

    fn remove(&mut self, register: &str) {
        let start = self.now();
        match fs::remove_file(self.at.join(register)) {
            // A failed removal is a read of an absent name.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.record_read(register, start, Err(error))
            }
            done => self.record_write(register, start, None, done),
        }
    }

    fn write_in_place(&mut self, register: &str) {
        let (value, start) = (self.value(), self.now());
        let done = record::write_in_place(&self.at.join(register), value);
        self.record_write(register, start, Some(value), done);
    }
}
