//! Where what was noted of numbered changes outlives the process: a log for each session, in a directory of the export's.
//!
//! A log is written into the page cache, which outlives the process and costs a microsecond; it is safe on the disk only once
//! its session has ended in order. Whoever has a log holds it locked, so two servers of one export do not spoil each other.
//!
//! The names of logs are made of the sessions' ids by a one-way function, since who knows an id owns the session.

mod log;
mod record;

use super::log as said;
use log::Kept;
pub(super) use log::Log;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};
use wirefs_op::message::version::{BootId, SessionId};
use wirefs_server::{Note, Noted};
use wirefs_store::sum;

/// Logs of one export, at most; past it the oldest go, those in use excepted.
const LOGS_MAX: usize = 256;
/// How long the log of a session that nobody comes back to is kept.
const AGE_MAX: Duration = Duration::from_secs(30 * 24 * 3600);
/// How long a session that comes back waits for the server that it comes from to end it. A client waits for 10 s.
const BUSY_MAX: Duration = Duration::from_secs(7);
/// How often it looks.
pub(super) const BUSY_LOOK: Duration = Duration::from_millis(20);

/// The logs of one export.
#[derive(Debug)]
pub(super) struct Ledgers {
    dir: PathBuf,
    boot: BootId,
    /// Those of the sessions that are here; `None`: it could not be written.
    logs: BTreeMap<SessionId, Option<Log>>,
    has_complained: bool,
}

impl Ledgers {
    /// The logs in this directory, which is there.
    pub(super) fn new(dir: PathBuf, boot: BootId) -> Ledgers {
        Ledgers { dir, boot, logs: BTreeMap::new(), has_complained: false }
    }

    /// Whether the session is here already.
    pub(super) fn has(&self, session: SessionId) -> bool {
        self.logs.contains_key(&session)
    }

    /// Where the session's log is, or would be.
    pub(super) fn place(&self, session: SessionId) -> Place {
        Place { dir: self.dir.clone(), name: sum::name(&[b"session", &session.0]), boot: self.boot }
    }

    /// Goes on with this log of a session.
    pub(super) fn keep(&mut self, session: SessionId, log: io::Result<Log>) {
        let log = log.inspect_err(|error| self.complain(error)).ok();
        self.logs.insert(session, log);
    }

    /// Writes a note down, before what it says happens. `all`: what the notes of the session come to, this one included.
    pub(super) fn note(&mut self, session: SessionId, note: Note, all: impl FnOnce() -> Option<Noted>) {
        let Some(entry) = self.logs.get_mut(&session) else { return };
        let Some(log) = entry else { return };
        let mut written = log.note(note);
        if written.is_ok() && log.is_long() {
            written = all().map_or(Ok(()), |noted| log.rewrite(&noted));
        }
        if let Err(error) = written {
            if let Some(log) = entry.take() {
                log.discard();
            }
            self.complain(&error);
        }
    }

    /// The session is over; its log is to be closed.
    pub(super) fn end(&mut self, session: SessionId) -> Option<Log> {
        self.logs.remove(&session).flatten()
    }

    fn complain(&mut self, error: &io::Error) {
        if !self.has_complained {
            self.has_complained = true;
            said::line(format_args!(
                "{}: {error}; so changes are remembered in memory only: should this server be killed, those that are under way \
                 may fail",
                self.dir.display()
            ));
        }
    }
}

/// Removes logs that nobody comes back to, so that there is room for one more.
fn tidy(dir: &Path) {
    let names = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let dated = |name: std::fs::DirEntry| Some((name.metadata().ok()?.modified().ok()?, name.path()));
    let mut logs: Vec<(SystemTime, PathBuf)> = names.filter_map(dated).collect();
    logs.sort_unstable_by(|one, other| other.cmp(one));
    let now = SystemTime::now();
    for (rank, (modified, path)) in logs.into_iter().enumerate() {
        let age = now.duration_since(modified).unwrap_or_default();
        if rank + 1 >= LOGS_MAX || age > AGE_MAX {
            log::remove_unless_used(&path);
        }
    }
}

/// Where a session's log is.
#[derive(Clone, Debug)]
pub(super) struct Place {
    dir: PathBuf,
    name: String,
    boot: BootId,
}

impl Place {
    fn path(&self) -> PathBuf {
        self.dir.join(&self.name)
    }

    /// Begins a log there. Before the session's first change, so that a server which finds none knows that it knows nothing.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn create(&self) -> io::Result<Log> {
        tidy(&self.dir);
        Log::create(&self.path(), self.boot)
    }

    /// What is there. `since`: when it was looked for first; while another process has it, `None` says to look again in a
    /// while.
    pub(super) fn look(&self, since: Instant) -> Option<Option<(Log, Noted)>> {
        let path = self.path();
        match Log::open(&path, self.boot) {
            Ok(Kept::Nothing) => Some(None),
            Ok(Kept::Log(log, noted)) => Some(Some((*log, *noted))),
            Ok(Kept::Busy) if since.elapsed() < BUSY_MAX => None,
            // Its process goes on, but nobody reads what it writes any more.
            Ok(Kept::Busy) => {
                forget(&path, &"another server has it still");
                Some(None)
            }
            Ok(Kept::Void(damage)) => {
                said::line(format_args!("{}: {damage}; it is removed", path.display()));
                Some(None)
            }
            Err(error) => {
                forget(&path, &error);
                Some(None)
            }
        }
    }
}

/// Removes a log that cannot be used, so that nobody believes it later.
fn forget(path: &Path, why: &dyn std::fmt::Display) {
    said::line(format_args!("{}: {why}; what the session has under way is not known", path.display()));
    let _gone = std::fs::remove_file(path);
}
