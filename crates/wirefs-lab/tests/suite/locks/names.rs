//! A program on the mount and one at the server lock by creating a name exclusively, as git and mail programs do. One of them gets it, and
//! it reads what the previous holder wrote.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use super::Place;
use crate::site::wait_for;

/// Attempts of one program, at most: some minutes.
const ATTEMPTS_MAX: u64 = 50_000;
/// Between two attempts.
const RETRY_AFTER: Duration = Duration::from_millis(3);
/// From a release to the next attempt, so that the other program gets its turn.
const PAUSE: Duration = Duration::from_millis(10);

/// How a lock is made and given back.
#[derive(Clone, Copy)]
enum Style {
    /// `O_EXCL`; the lock becomes the new contents.
    Create,
    /// `mkdir`.
    Directory,
    /// `link`, from a file of its own.
    Link,
}

pub(super) fn create(place: &Place) -> Result<(), String> {
    contend(place, Style::Create)
}

pub(super) fn make_directory(place: &Place) -> Result<(), String> {
    contend(place, Style::Directory)
}

pub(super) fn link(place: &Place) -> Result<(), String> {
    contend(place, Style::Link)
}

fn contend(place: &Place, style: Style) -> Result<(), String> {
    let (export, rounds) = (place.site.export(), place.rounds);
    fs::write(export.join("value"), "0").unwrap();
    // What was there before the programs began may be seen for a window; that is no matter of locks.
    wait_for("the new value", || fs::read(place.mount.join("value")).is_ok_and(|text| text == b"0"));
    let read = thread::scope(|scope| {
        let run = |at: &Path, tag: &str| {
            let contender = Contender { at: at.to_owned(), tag: tag.to_owned(), style };
            scope.spawn(move || contender.run(rounds))
        };
        let programs = [run(place.mount, "mount"), run(export, "server")];
        programs.into_iter().map(|program| program.join().unwrap()).collect::<Result<Vec<_>, String>>()
    })?;
    place.site.wirefs(&["sync", place.mount.to_str().unwrap()]).succeeds();
    let (expected, value) = (2 * rounds, fs::read_to_string(export.join("value")).unwrap());
    if value == expected.to_string() { Ok(()) } else { Err(format!("{value} of {expected}; read: {read:?}")) }
}

struct Contender {
    at: PathBuf,
    tag: String,
    style: Style,
}

impl Contender {
    /// The values that were read under the lock.
    fn run(self, rounds: u64) -> Result<(String, Vec<u64>), String> {
        let mut read = Vec::new();
        for round in 0..rounds {
            read.push(self.add_one().map_err(|error| format!("{}, round {round}: {error}", self.tag))?);
            thread::sleep(PAUSE);
        }
        Ok((self.tag, read))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.at.join(name)
    }

    /// Adds 1 under the lock; the value before.
    fn add_one(&self) -> io::Result<u64> {
        let held = self.lock()?;
        let value: u64 = fs::read_to_string(self.path("value"))?.parse().map_err(io::Error::other)?;
        let next = (value + 1).to_string();
        if let Some(mut file) = held {
            file.write_all(next.as_bytes())?;
            drop(file);
            fs::rename(self.path("value.lock"), self.path("value"))?;
            return Ok(value);
        }
        fs::write(self.path("value.new"), next)?;
        fs::rename(self.path("value.new"), self.path("value"))?;
        match self.style {
            Style::Directory => fs::remove_dir(self.path("value.lock"))?,
            Style::Create | Style::Link => fs::remove_file(self.path("value.lock"))?,
        }
        Ok(value)
    }

    /// Takes the lock; its file where that is written to.
    fn lock(&self) -> io::Result<Option<File>> {
        for _ in 0..ATTEMPTS_MAX {
            match self.try_lock() {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => thread::sleep(RETRY_AFTER),
                done => return done,
            }
        }
        Err(io::Error::other("the other program does not give the lock back"))
    }

    fn try_lock(&self) -> io::Result<Option<File>> {
        let lock = self.path("value.lock");
        match self.style {
            Style::Create => File::create_new(lock).map(Some),
            Style::Directory => fs::create_dir(lock).map(|()| None),
            Style::Link => {
                let own = self.path(&format!("value.{}", self.tag));
                File::create(&own)?;
                fs::hard_link(&own, lock).map(|()| None)
            }
        }
    }
}
