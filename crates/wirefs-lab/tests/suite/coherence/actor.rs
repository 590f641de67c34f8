//! A program that changes the tree and looks at it.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use wirefs_lab::random::Random;

use super::history::{History, Read, Register, Seen, Who, Write};
use super::record::{self, SIZE_BASE, Value};
use super::{DIRECTORIES, NAMES};

/// Between two things that it does.
const PAUSE: Duration = Duration::from_millis(1);

/// One program, on a mount or on the server's own directory.
pub(super) struct Actor {
    who: Who,
    at: PathBuf,
    begun: Instant,
    random: Random,
    /// Distinguishes the values and temporary names of all actors; below 8.
    nth: u64,
    values: u64,
    /// Names and attributes that it is shown may be of different ages.
    sees_unfinished: bool,
    history: History,
}

impl Actor {
    pub(super) fn new(
        who: Who,
        at: PathBuf,
        begun: Instant,
        (seed, nth): (u64, u64),
        sees_unfinished: bool,
    ) -> Actor {
        let random = Random::new(seed);
        Actor { who, at, begun, random, nth, values: 0, sees_unfinished, history: History::default() }
    }

    /// Goes on until it is stopped.
    pub(super) fn run(mut self, stop: &AtomicBool) -> History {
        while !stop.load(Ordering::Relaxed) {
            self.step();
            // The program on the server would else do more than both clients together.
            thread::sleep(if self.who == Who::Outside { 20 * PAUSE } else { PAUSE });
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
        self.begun.elapsed()
    }

    fn value(&mut self) -> Value {
        self.values += 1;
        Value(self.values * 8 + self.nth)
    }

    fn saw(&mut self, register: &str, start: Duration, seen: io::Result<Seen>) {
        let seen = match seen {
            Ok(seen) => seen,
            Err(error) if error.kind() == ErrorKind::NotFound => Seen::Absent,
            Err(error) => return self.failed("look", &error),
        };
        let read = Read { who: self.who, start, end: self.now(), seen };
        self.history.reads.entry(register.to_owned()).or_default().push(read);
    }

    fn did(&mut self, register: &str, start: Duration, value: Option<Value>, done: io::Result<()>) {
        let end = match done {
            Ok(()) => Some(self.now()),
            Err(error) => {
                self.failed("change", &error);
                None
            }
        };
        let write = Write { who: self.who, start, end, value };
        self.history.writes.entry(register.to_owned()).or_default().push(write);
    }

    fn failed(&mut self, what: &str, error: &io::Error) {
        *self.history.failures.entry(format!("{what}: {error}")).or_default() += 1;
    }

    fn read(&mut self, register: &str) {
        let start = self.now();
        let seen = record::read(&self.at.join(register)).map(Seen::Value);
        self.saw(register, start, seen);
    }

    fn stat(&mut self, register: &str) {
        let start = self.now();
        let found = fs::symlink_metadata(self.at.join(register)).map(|metadata| metadata.len());
        let seen = match found.as_ref().map(|size| size.checked_sub(SIZE_BASE)) {
            Ok(Some(value)) => Ok(Seen::Value(Value(value))),
            // Within the window the name may be the present one while the attributes are those from before the file got it (S-2).
            Ok(None) if self.sees_unfinished => {
                let unfinished = io::Error::other("the size is from before the file was finished");
                return self.failed("stat", &unfinished);
            }
            Ok(None) => panic!("{register} was never {found:?} bytes long"),
            Err(_) => found.map(|_| Seen::Absent),
        };
        self.saw(register, start, seen);
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
            let seen = if listed.contains(&name) { Seen::Present } else { Seen::Absent };
            let register: Register = format!("d{directory}/{name}");
            self.saw(&register, start, Ok(seen));
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
        self.did(register, start, Some(value), done);
    }

    fn remove(&mut self, register: &str) {
        let start = self.now();
        match fs::remove_file(self.at.join(register)) {
            // A look, then, and not a change.
            Err(error) if error.kind() == ErrorKind::NotFound => self.saw(register, start, Err(error)),
            done => self.did(register, start, None, done),
        }
    }

    fn write_in_place(&mut self, register: &str) {
        let (value, start) = (self.value(), self.now());
        let done = record::write_in_place(&self.at.join(register), value);
        self.did(register, start, Some(value), done);
    }
}
