//! The work of the program: rounds of steps. A step of unknown outcome can be repeated.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use wirefs_lab::random::Random;

use super::programs::{Materials, Program};
use crate::sys::close;

/// The database's file.
pub(super) const DATABASE: &str = "database";
/// Names of files whose contents tell of inodes and times.
pub(super) const EXCEPT: [&str; 2] = [DATABASE, ".git/index"];
/// Where the files are that are synced, each before the next step.
pub(super) const SYNCED: &str = "synced";
/// So many of them stay.
const SYNCED_KEPT: u64 = 16;
/// Files that are renamed onto each other.
const STORM: u64 = 8;
/// Trees that are kept: older ones are removed.
const TREES: u64 = 3;

/// One step.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Mkdir(String),
    /// So many bytes of this letter; synced, or not.
    Write(String, u8, usize, bool),
    Chmod(String, u32),
    Symlink(String, String),
    Link(String, String),
    Rename(String, String),
    Unlink(String),
    Rmdir(String),
    Insert(u64),
    /// A file of this number, synced, and its name too.
    Sync(u64),
    Run(Program, String),
    Clear(String),
}

/// Returns the name and the contents of the synced file with this number.
pub(super) fn synced(number: u64) -> (String, String) {
    (format!("f{number}"), format!("synced {number}"))
}

impl Step {
    /// Does it below a directory. `is_again`: it may be done already.
    pub(super) fn apply(&self, root: &Path, materials: &Materials, is_again: bool) -> io::Result<()> {
        let at = |name: &str| root.join(name);
        let unless = |kind: io::ErrorKind, done: io::Result<()>| match done {
            Err(error) if is_again && error.kind() == kind => Ok(()),
            done => done,
        };
        match self {
            Step::Mkdir(name) => unless(io::ErrorKind::AlreadyExists, fs::create_dir(at(name))),
            Step::Write(name, letter, bytes, is_synced) => {
                let mut options = OpenOptions::new();
                options.write(true).create(true).truncate(true);
                let mut file = with_call("open", options.open(at(name)))?;
                with_call("write", file.write_all(&vec![*letter; *bytes]))?;
                if *is_synced { with_call("fsync", file.sync_all()) } else { with_call("close", close(file)) }
            }
            Step::Chmod(name, mode) => fs::set_permissions(at(name), Permissions::from_mode(*mode)),
            Step::Symlink(to, name) => unless(io::ErrorKind::AlreadyExists, symlink(to, at(name))),
            Step::Link(from, to) => unless(io::ErrorKind::AlreadyExists, fs::hard_link(at(from), at(to))),
            Step::Rename(from, to) => unless(io::ErrorKind::NotFound, fs::rename(at(from), at(to))),
            Step::Unlink(name) => unless(io::ErrorKind::NotFound, fs::remove_file(at(name))),
            Step::Rmdir(name) => unless(io::ErrorKind::NotFound, fs::remove_dir(at(name))),
            Step::Insert(row) => insert(root, *row),
            Step::Sync(number) => sync(&root.join(SYNCED), *number),
            Step::Run(program, name) => {
                if is_again {
                    materials.clear(&at(name))?;
                }
                materials.run(*program, &at(name))
            }
            Step::Clear(name) => materials.clear(&at(name)),
        }
    }
}

/// An error, with the call that gave it.
fn with_call<T>(call: &str, done: io::Result<T>) -> io::Result<T> {
    done.map_err(|error| io::Error::new(error.kind(), format!("{call}: {error}")))
}

fn sync(dir: &Path, number: u64) -> io::Result<()> {
    let (name, text) = synced(number);
    fs::create_dir_all(dir)?;
    let mut file = File::create(dir.join(name))?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    close(file)?;
    File::open(dir)?.sync_all()
}

fn sql(root: &Path, text: &str) -> io::Result<String> {
    let database = root.join(DATABASE);
    let ran = Command::new("sqlite3").arg("-bail").arg(database).arg(text).stdin(Stdio::null()).output()?;
    if !ran.status.success() {
        return Err(io::Error::other(String::from_utf8_lossy(&ran.stderr).into_owned()));
    }
    Ok(String::from_utf8_lossy(&ran.stdout).into_owned())
}

/// A transaction of one row, committed in one of three ways; a row that is there stays, and the journal goes.
fn insert(root: &Path, row: u64) -> io::Result<()> {
    let mode = match row % 3 {
        0 => "delete",
        1 => "truncate",
        _ => "persist",
    };
    let text = format!(
        "PRAGMA journal_mode={mode}; PRAGMA synchronous=full; \
         CREATE TABLE IF NOT EXISTS t(id INTEGER PRIMARY KEY, text); \
         INSERT OR IGNORE INTO t VALUES({row}, 'row {row}'); PRAGMA journal_mode=delete;"
    );
    sql(root, &text).map(|_| ())
}

/// All rows of the database, where there is one.
pub(super) fn rows(root: &Path) -> String {
    let is_there = root.join(DATABASE).exists();
    if is_there { sql(root, "SELECT * FROM t ORDER BY id;").unwrap() } else { String::new() }
}

/// Steps without end; the same for the same seed.
pub(super) struct Steps {
    dice: Random,
    round: u64,
    /// Files of the storm that are there.
    storm: Vec<bool>,
    /// The removal of each tree that is there.
    trees: Vec<Vec<Step>>,
    /// The names that programs created.
    made: Vec<String>,
    row: u64,
    synced: u64,
    /// Nothing is synced in this round but by real programs.
    is_lazy: bool,
    has_sqlite: bool,
}

impl Steps {
    pub(super) fn new(seed: u64) -> Steps {
        let has_sqlite = Command::new("sqlite3").arg("-version").output().is_ok();
        let storm = vec![false; STORM as usize];
        Steps {
            dice: Random::new(seed ^ 0x5eed),
            round: 0,
            storm,
            trees: Vec::new(),
            made: Vec::new(),
            row: 0,
            synced: 0,
            is_lazy: false,
            has_sqlite,
        }
    }

    pub(super) fn next_round(&mut self) -> Vec<Step> {
        self.round += 1;
        self.is_lazy = self.dice.below(3) > 0;
        let what = if self.round == 1 { 0 } else { self.dice.below(10) };
        match what {
            0..=2 => self.unpack(),
            3..=5 => self.rename(),
            6 | 7 => self.transact(),
            8 => self.sync(),
            _ => self.run(),
        }
    }

    fn is_synced(&mut self) -> bool {
        self.dice.below(4) == 0 && !self.is_lazy
    }

    /// A tree as from an archive, and the removal of one from before.
    fn unpack(&mut self) -> Vec<Step> {
        let tree = format!("tree{}", self.round);
        let mut steps = vec![Step::Mkdir(tree.clone())];
        let mut gone = Vec::new();
        for dir in 0..3 {
            let dir = format!("{tree}/d{dir}");
            steps.push(Step::Mkdir(dir.clone()));
            for file in 0..self.dice.below(6) {
                let (draft, name) = (format!("{dir}/draft"), format!("{dir}/f{file}"));
                let bytes = self.dice.below(40_000) as usize;
                steps.push(Step::Write(draft.clone(), b'a' + file as u8, bytes, self.is_synced()));
                steps.push(Step::Rename(draft, name.clone()));
                steps.push(Step::Chmod(name.clone(), 0o600 + self.dice.below(0o100) as u32));
                if file == 2 {
                    let link = format!("{dir}/link");
                    steps.push(Step::Link(name.clone(), link.clone()));
                    gone.push(Step::Unlink(link));
                }
                gone.push(Step::Unlink(name));
            }
            let link = format!("{dir}/symlink");
            steps.push(Step::Symlink("f0".to_owned(), link.clone()));
            gone.extend([Step::Unlink(link), Step::Rmdir(dir)]);
        }
        gone.push(Step::Rmdir(tree));
        self.trees.push(gone);
        if self.trees.len() as u64 > TREES {
            steps.extend(self.trees.remove(0));
        }
        steps
    }

    /// Files that take each other's names.
    fn rename(&mut self) -> Vec<Step> {
        let mut steps = Vec::new();
        for _ in 0..12 {
            let (from, to) = (self.dice.below(STORM) as usize, self.dice.below(STORM) as usize);
            let name = |file: usize| format!("storm{file}");
            if !self.storm[from] {
                let letter = b'A' + self.dice.below(26) as u8;
                steps.push(Step::Write(name(from), letter, 100 + from, self.is_synced()));
                self.storm[from] = true;
            } else if from != to {
                steps.push(Step::Rename(name(from), name(to)));
                (self.storm[from], self.storm[to]) = (false, true);
            }
        }
        steps
    }

    fn transact(&mut self) -> Vec<Step> {
        if !self.has_sqlite {
            return self.rename();
        }
        self.row += 2;
        vec![Step::Insert(self.row - 1), Step::Insert(self.row)]
    }

    fn sync(&mut self) -> Vec<Step> {
        let mut steps = Vec::new();
        for _ in 0..3 {
            self.synced += 1;
            steps.push(Step::Sync(self.synced));
            if let Some(old) = self.synced.checked_sub(SYNCED_KEPT).filter(|old| *old > 0) {
                steps.push(Step::Unlink(format!("{SYNCED}/{}", synced(old).0)));
            }
        }
        steps
    }

    /// A program makes a directory, and one from before is removed.
    fn run(&mut self) -> Vec<Step> {
        let program = match self.dice.below(3) {
            0 => Program::Tar,
            1 => Program::Clone,
            _ => Program::Make,
        };
        let name = format!("run{}", self.round);
        self.made.push(name.clone());
        let mut steps = vec![Step::Run(program, name)];
        if self.made.len() as u64 > TREES {
            steps.push(Step::Clear(self.made.remove(0)));
        }
        steps
    }
}
