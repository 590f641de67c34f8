//! Ledgers in files, one per session, in a directory of the export. They outlive the server's process.
//!
//! A record goes into the page cache, at the cost of a microsecond, and survives the process. The file is synced when
//! its session ends in order. A server locks the files of its sessions, so two servers of one export do not damage
//! each other's.
//!
//! A file's name is a one-way function of the session id, because the id is the session's secret.

mod log;
mod record;

use super::log as operator_log;
pub(super) use log::Log;
use log::{LogOwner, OpenedLog};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};
use wirefs_log::hash_name;
use wirefs_op::message::version::{BootId, SessionId};
use wirefs_server::{LedgerRecord, SavedLedger};

/// The maximum number of files per export. Beyond it the oldest unlocked files are removed.
const LOGS_MAX: usize = 256;
/// The maximum age of the ledger of a session that does not return.
const AGE_MAX: Duration = Duration::from_secs(30 * 24 * 3600);
/// How long a resumed session waits until the other server has closed its ledger. A client waits for 10 s.
const BUSY_MAX: Duration = Duration::from_secs(7);
/// The interval between two attempts.
pub(super) const BUSY_LOOK: Duration = Duration::from_millis(20);

/// The ledger files of one export.
#[derive(Debug)]
pub(super) struct Ledgers {
    dir: PathBuf,
    boot: BootId,
    /// By session of this server; `None` if the file could not be written.
    logs: BTreeMap<SessionId, Option<Log>>,
    has_reported: bool,
}

impl Ledgers {
    /// Uses the ledgers in an existing directory.
    pub(super) fn new(dir: PathBuf, boot: BootId) -> Ledgers {
        Ledgers { dir, boot, logs: BTreeMap::new(), has_reported: false }
    }

    /// Returns whether the session is known.
    pub(super) fn has(&self, session: SessionId) -> bool {
        self.logs.contains_key(&session)
    }

    /// Returns the place of a session's ledger.
    pub(super) fn place(&self, session: SessionId) -> LedgerPlace {
        LedgerPlace { dir: self.dir.clone(), name: hash_name(&[b"session", &session.0]), boot: self.boot }
    }

    /// Adds the ledger of a session.
    pub(super) fn insert(&mut self, session: SessionId, log: io::Result<Log>) {
        let log = log.inspect_err(|error| self.report(error)).ok();
        self.logs.insert(session, log);
    }

    /// Writes a record before its effect. `all` returns the ledger's contents with this record.
    pub(super) fn note(
        &mut self,
        session: SessionId,
        note: LedgerRecord,
        all: impl FnOnce() -> Option<SavedLedger>,
    ) {
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
            self.report(&error);
        }
    }

    /// Removes the ledger of an ended session from the table; the caller closes it.
    pub(super) fn end(&mut self, session: SessionId) -> Option<Log> {
        self.logs.remove(&session).flatten()
    }

    fn report(&mut self, error: &io::Error) {
        if !self.has_reported {
            self.has_reported = true;
            operator_log::line(format_args!(
                "{}: {error}; so the ledger is in memory only: if this server is killed, changes in progress may \
                 fail",
                self.dir.display()
            ));
        }
    }
}

/// Removes old ledgers of sessions that did not return, to make room for one more.
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

/// The result of [`LedgerPlace::open`].
pub(super) enum FoundLedger {
    /// There is none.
    None,
    Saved(Box<Log>, Box<SavedLedger>),
    /// Another process has it open: to be tried again. `is_own`: the client's key began the session.
    Busy {
        is_own: bool,
    },
    /// Another process has it open, and another key began the session.
    Foreign,
}

/// The place of a session's ledger.
#[derive(Clone, Debug)]
pub(super) struct LedgerPlace {
    dir: PathBuf,
    name: String,
    boot: BootId,
}

impl LedgerPlace {
    fn path(&self) -> PathBuf {
        self.dir.join(&self.name)
    }

    /// Creates the ledger, before the session's first change: so a missing ledger proves that no change was made.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn create(&self) -> io::Result<Log> {
        tidy(&self.dir);
        Log::create(&self.path(), self.boot)
    }

    /// Opens the ledger for a client with this key. `since` is the time of the first attempt.
    pub(super) fn open(&self, key: Option<[u8; 32]>, since: Instant) -> FoundLedger {
        let path = self.path();
        match Log::open(&path, self.boot) {
            Ok(OpenedLog::Missing) => FoundLedger::None,
            Ok(OpenedLog::Log(log, noted)) => FoundLedger::Saved(log, noted),
            Ok(OpenedLog::Busy) => self.open_elsewhere(key, since.elapsed() >= BUSY_MAX),
            Ok(OpenedLog::Damaged(damage)) => {
                operator_log::line(format_args!("{}: {damage}; it is removed", path.display()));
                FoundLedger::None
            }
            Err(error) => {
                forget(&path, &error);
                FoundLedger::None
            }
        }
    }

    /// Another process has the ledger open. Only the owner of the session may take it away.
    fn open_elsewhere(&self, key: Option<[u8; 32]>, is_late: bool) -> FoundLedger {
        let path = self.path();
        let is_own = match (log::owner_of_open(&path), key) {
            (Some(LogOwner::Key(owner)), Some(key)) => Some(owner == key),
            (Some(LogOwner::None | LogOwner::NoneYet), None) => Some(true),
            (Some(LogOwner::Key(_)), None) | (Some(LogOwner::None), Some(_)) => Some(false),
            (Some(LogOwner::NoneYet), Some(_)) | (None, _) => None,
        };
        match is_own {
            // The other process still runs, but its client has left it.
            Some(true) if is_late => {
                forget(&path, &"another server still has it open");
                FoundLedger::None
            }
            Some(true) => FoundLedger::Busy { is_own: true },
            None if !is_late => FoundLedger::Busy { is_own: false },
            Some(false) | None => FoundLedger::Foreign,
        }
    }
}

/// Removes an unusable ledger, so that no later server relies on it.
fn forget(path: &Path, why: &dyn std::fmt::Display) {
    operator_log::line(format_args!(
        "{}: {why}; the state of the session's pending changes is unknown",
        path.display()
    ));
    let _gone = std::fs::remove_file(path);
}
