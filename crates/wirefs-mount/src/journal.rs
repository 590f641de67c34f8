//! The journal of a mount. A change is on the local disk before its program is told that it is done, and stays until
//! the server has it on stable storage.
//!
//! The core decides what is journaled, and when. Entries are written here in order, under the core's lock: a `write`
//! into the page cache, which survives this process. Answers that must survive the machine wait for the disk without
//! that lock, in the FUSE thread that has them, or else in the journal's thread.
//!
//! If the disk fails, the mount goes on without a journal, and answers changes when the server has them.

mod deferred;
mod disk;
mod findings_file;
mod group;
mod pending;
mod place;
mod quarantine;
mod quarantined;
mod reboot_replay;
mod recover;
mod running_replay;
mod sender;
mod writer;

pub(super) use deferred::DeferredAnswer;
pub use pending::{PendingJournal, PendingJournalState, pending_journals};
pub use place::{FsyncWaits, JournalPlan};
pub use quarantined::{QuarantineCount, QuarantinedChange, count_quarantined, quarantined_changes};
pub(super) use recover::recover_all;
pub use recover::{JournalRecovery, RecoveryError, ReplayProgress, ReplayedJournal};
pub(super) use running_replay::ReplayState;

use super::engine::Shared;
use super::handshake::Attached;
use super::previous_mount::{MountNote, wait_for_previous};
use super::slow_step::MountStep;
use super::unsent::Unsent;
use crate::log;
use deferred::{Queue, Work};
use disk::Local;
use group::{Group, GroupThread, Point};
use place::{Claim, hex, identity};
use quarantine::Quarantine;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use wirefs_client::call::Answer;
use wirefs_client::{ChangeFact, Note};
use wirefs_journal::delivery::nanos;
use wirefs_journal::{ChangeOutcome, Figures, Header, Record};
use wirefs_op::message::number::Tnumber;
use wirefs_op::message::version::{BootId, SessionId};
use wirefs_op::wire::Malformed;
use wirefs_op::{Errno, Frame, Request, fnv1a};
use writer::{AppendError, Writer};

/// The state of a mount's journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalStatus {
    /// The pending changes.
    pub figures: Figures,
    /// The reason why nothing more is written.
    pub failed: Option<String>,
    /// How often answers waited for a sync of the local disk. Syncs before anyone waits are not counted.
    pub syncs: u64,
    /// The quarantined changes of this source.
    pub kept: Vec<QuarantineCount>,
}

/// A failure of a journal.
#[derive(Clone, Debug)]
struct Failure {
    why: String,
    /// The disk is full: the journal may be written again later.
    is_full: bool,
}

impl From<AppendError> for Failure {
    fn from(error: AppendError) -> Failure {
        Failure { why: error.to_string(), is_full: error.is_full() }
    }
}

/// Writes one line to standard error.
fn log_line(line: &str) {
    log::line(format_args!("{line}"));
}

/// The journal.
pub(super) struct Journal {
    dir: PathBuf,
    writer: Mutex<Option<Writer>>,
    /// The failure of which the core is informed, or about to be.
    failed: Mutex<Option<Failure>>,
    group: GroupThread,
    late: Queue,
    worker: Mutex<Option<JoinHandle<()>>>,
    /// The quarantine of this mount, and the directory of the source's quarantine.
    refused: Mutex<Quarantine>,
    quarantine: PathBuf,
}

impl Journal {
    /// Creates the journal of a session. If that fails, reports the reason; the mount works without it.
    pub(super) fn begin(
        plan: &JournalPlan,
        session: SessionId,
        attached: &Attached,
        tell_wait: fn(MountStep),
    ) -> Option<Journal> {
        if !plan.keeps {
            return None;
        }
        let peer = &attached.carrier.peer;
        let dir = plan.source_dir(peer).join(hex(&session));
        let header = Header {
            session,
            root: attached.attachment.root.id,
            boot: attached.attachment.boot,
            run: kernel_run(),
            segment: 1,
            identity: identity(peer).unwrap_or_default(),
            path: plan.path.clone(),
            source: plan.source.clone(),
        };
        let name = plan.name(peer);
        let refused = Quarantine::new(plan.quarantine_of(&name, session), plan.source.clone());
        let claim = wait_for_previous(tell_wait, || Claim::take(&dir)).map_err(|error| error.to_string());
        let begun = claim.and_then(|claim| {
            let group = GroupThread::start(Local(dir.clone())).map_err(|error| error.to_string())?;
            let writer = Writer::begin(claim, header, &group).map_err(|error| error.to_string())?;
            Ok((writer, group))
        });
        match begun {
            Ok((writer, group)) => Some(Journal {
                dir,
                writer: Mutex::new(Some(writer)),
                failed: Mutex::default(),
                group,
                late: Queue::default(),
                worker: Mutex::default(),
                refused: Mutex::new(refused),
                quarantine: plan.quarantine.join(name),
            }),
            Err(error) => {
                log_line(&format!("no journal: {error}; each change waits for the server"));
                None
            }
        }
    }

    /// Updates the note for the next mount.
    pub(super) fn note_holder(&self, holder: &MountNote) {
        if let Some(writer) = self.writer().as_ref() {
            writer.note_holder(holder);
        }
    }

    /// INVARIANT: after a failure, the writer is not used again.
    fn writer(&self) -> MutexGuard<'_, Option<Writer>> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self) -> MutexGuard<'_, Option<Failure>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Uses the writer, unless the journal has failed. Returns `false` if it fails now.
    fn with(&self, act: impl FnOnce(&mut Writer, &Group) -> Result<(), AppendError>) -> bool {
        let mut writer = self.writer();
        let Some(writer) = writer.as_mut().filter(|_| self.failed().is_none()) else { return true };
        match act(writer, &self.group) {
            Ok(()) => true,
            Err(error) => {
                self.record_failure(error.into());
                false
            }
        }
    }

    pub(super) fn fail(&self, why: &str) {
        self.record_failure(Failure { why: why.to_owned(), is_full: false });
    }

    fn record_failure(&self, failure: Failure) {
        let mut failed = self.failed();
        if failed.is_none() {
            let until = if failure.is_full { "Until there is space" } else { "From now on" };
            log_line(&format!(
                "cannot write the journal: {}. {until}, changes are complete only when the server has them. Changes in \
                 progress are lost if this machine stops before the server has them",
                failure.why
            ));
            *failed = Some(failure);
        }
    }

    /// Returns the failure of the journal. A failure of the disk fails the next write.
    fn failure(&self) -> Option<Failure> {
        let failed = self.failed().clone();
        failed.or_else(|| Some(AppendError::below(&self.dir, self.group.check().err()?).into()))
    }

    /// Returns whether nothing is written until there is space on the local disk.
    pub(super) fn is_full(&self) -> bool {
        self.failure().is_some_and(|failure| failure.is_full)
    }

    /// Restarts a journal without space, now that the server has all changes, those below a number, on stable storage
    /// for this boot of its machine. Returns `false` if there is still no space.
    pub(super) fn begin_anew(&self, below: u64, boot: BootId) -> bool {
        if !self.refused().is_settled() {
            self.late.forget(below);
            return false;
        }
        let mut writer = self.writer();
        let Some(writer) = writer.as_mut().filter(|_| self.is_full()) else { return false };
        let begun = writer.begin_anew(below, boot, &self.group);
        let mut failed = self.failed();
        match begun {
            Ok(()) => {
                log_line("the journal is written again: there is space");
                *failed = None;
            }
            Err(error) => *failed = Some(error.into()),
        }
        failed.is_none()
    }

    /// Adds a change; `false` if the journal fails now.
    pub(super) fn record(&self, number: u64, frame: Frame) -> bool {
        self.with(|writer, group| writer.record(number, frame, group))
    }

    /// Adds a note for a later replay; `false` if the journal fails now.
    pub(super) fn note(&self, note: Note) -> bool {
        self.with(|writer, group| match note {
            Note::Alone(from) => writer.alone(from, group),
            Note::Seen(at) => writer.seen(nanos(at), group),
            Note::Fact(number, said) => writer.outcome(number, &answer_of(said), group),
            Note::Synced(below, file) => writer.synced(below, file, group),
        })
    }

    /// Removes the changes below a number, which the server has on stable storage, except rejected ones. While the
    /// local disk does not have these in the quarantine, [`Journal::sync_quarantine_and_forget`] does it later. `false`
    /// if the journal fails now.
    pub(super) fn forget(&self, below: u64) -> bool {
        if !self.refused().is_settled() {
            self.late.forget(below);
            return true;
        }
        self.with(|writer, group| writer.forget(below, group))
    }

    /// Does the same in a thread that may wait for the disk.
    fn sync_quarantine_and_forget(&self, below: u64) -> bool {
        let mut refused = self.refused();
        let (unsynced, dir) = (refused.take_unsynced(), refused.dir().to_path_buf());
        drop(refused);
        let brought = quarantine::sync_files(&dir, &unsynced);
        self.refused().synced(unsynced, brought.is_ok());
        self.with(|writer, group| {
            brought.map_err(AppendError::Refused)?;
            writer.forget(below, group)
        })
    }

    fn refused(&self) -> MutexGuard<'_, Quarantine> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Quarantines a rejected change, before its entry is removed; `false` if the journal fails now.
    pub(super) fn refuse(&self, number: u64, frame: &Frame, errno: Option<Errno>) -> bool {
        let why = match errno {
            Some(errno) => format!("the server rejected it: {errno}"),
            None => "the server no longer knows whether it has done it".to_owned(),
        };
        let mut refused = self.refused();
        if refused.count() == 0 {
            log_line(
                "the server rejected changes that programs were told had succeeded; `wirefs quarantine list` shows them",
            );
        }
        let kept = refused.keep(&Record { number, body: frame.to_body() }, &why);
        if let Err(error) = &kept {
            let why =
                format!("a rejected change cannot be quarantined in {}: {error}", refused.dir().display());
            if self.is_full() { log_line(&why) } else { self.fail(&why) }
        }
        kept.is_ok()
    }

    /// Writes everything that must precede a frame: earlier changes, and the replies that the server may forget.
    /// `false` if the journal fails now.
    pub(super) fn before(&self, frame: &Frame) -> bool {
        let acknowledged = acknowledgment_of(frame);
        self.with(|writer, group| {
            if let Some(acknowledged) = acknowledged {
                writer.answered(acknowledged.answered, group)?;
            }
            writer.write(group)
        })
    }

    /// Writes everything that must precede answers to programs, and the server's first answer ever. `false` if the
    /// journal fails now.
    pub(super) fn write(&self, answered: impl FnOnce() -> u64) -> bool {
        self.with(|writer, group| {
            if writer.has_no_answer() {
                writer.answered(answered(), group)?;
            }
            writer.write(group)
        })
    }

    /// Returns the end of the written journal.
    pub(super) fn written(&self) -> Point {
        self.group.written()
    }

    /// Waits until the journal is durable up to a point; `false` if it never will be.
    pub(super) fn sync_to(&self, point: Point) -> bool {
        match self.group.sync_to(point) {
            Ok(()) => self.failed().is_none(),
            Err(error) => {
                self.record_failure(AppendError::below(&self.dir, error).into());
                false
            }
        }
    }

    /// Returns whether the disk is so far behind that changes must wait.
    pub(super) fn is_behind(&self) -> bool {
        self.group.is_behind()
    }

    /// Waits while the disk is behind.
    pub(super) fn keep_pace(&self) {
        self.group.keep_pace();
    }

    /// Passes answers to the journal's thread.
    pub(super) fn hand_over(&self, point: Point, answers: Vec<DeferredAnswer>) {
        self.late.push(point, answers);
    }

    pub(super) fn status(&self, answered: u64) -> JournalStatus {
        JournalStatus {
            figures: self.writer().as_ref().map(|writer| writer.figures(answered)).unwrap_or_default(),
            failed: self.failure().map(|failure| failure.why),
            syncs: self.group.waits(),
            kept: count_quarantined(&self.quarantine),
        }
    }

    /// Returns whether no change at or above a number is pending.
    pub(super) fn is_done_below(&self, number: u64) -> bool {
        self.writer().as_ref().is_none_or(|writer| writer.figures(number).unanswered_records == 0)
    }

    /// Returns the changes that may not be on the server's disk.
    pub(super) fn unsent(&self, answered: u64) -> Unsent {
        let figures = self.writer().as_ref().map(|writer| writer.figures(answered)).unwrap_or_default();
        Unsent { changes: figures.records, bytes: figures.bytes, journal: Some(self.dir.clone()) }
    }

    /// Ends the journal. Changes that the server does not have stay, for the next mount of the source.
    pub(super) fn end(&self, is_needed: bool) {
        self.late.stop();
        let worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(worker) = worker {
            // Errors have been reported.
            let _ended = worker.join();
        }
        self.group.stop();
        let Some(writer) = self.writer().take() else { return };
        let is_settled = self.refused().settle().inspect_err(|error| {
            log_line(&format!("the quarantine may not be on the disk: {error}"));
        });
        let unsent = writer.figures(0);
        if is_needed && unsent.records > 0 || is_settled.is_err() {
            let (changes, bytes) = (counted(unsent.records, "change"), counted(unsent.bytes, "byte"));
            log_line(&format!(
                "unmounted, but {changes} ({bytes}) may not be on the server's disk. The journal in {} keeps them. The next mount of the \
                 same source, or `wirefs recover`, sends them",
                self.dir.display()
            ));
        } else if let Err(error) = writer.remove() {
            log_line(&format!("cannot remove a journal that is not needed any more: {error}"));
        }
    }
}

/// Returns a count with its noun.
fn counted(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

fn answer_of(said: ChangeFact) -> ChangeOutcome {
    let answered = ChangeOutcome { is_answered: true, ..ChangeOutcome::default() };
    match said {
        ChangeFact::Rejected => ChangeOutcome { is_rejected: true, ..answered },
        ChangeFact::Created(id) => ChangeOutcome { made: Some(id), ..answered },
        ChangeFact::WroteAt(offset) => ChangeOutcome { offset: Some(offset), ..answered },
        ChangeFact::WillWriteAt(offset) => ChangeOutcome { offset: Some(offset), ..ChangeOutcome::default() },
    }
}

/// Decodes a frame that acknowledges replies, which the server may forget then.
fn acknowledgment_of(frame: &Frame) -> Option<Tnumber> {
    const NUMBER: u8 = 162;
    if frame.head.get(4) != Some(&NUMBER) {
        return None;
    }
    let decoded: Result<_, Malformed> = Request::decode(frame.to_body());
    match decoded {
        Ok((_, Request::Number(told))) => Some(told),
        Ok(_) | Err(_) => None,
    }
}

/// Identifies this boot of the local machine: unsynced data survives as long as it runs.
fn kernel_run() -> u64 {
    fnv1a(&[&std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default()])
}

/// Starts the thread that waits for the disk on behalf of others, if there is a journal.
pub(super) fn start(engine: &Shared) -> io::Result<()> {
    let Some(journal) = engine.journal.clone() else { return Ok(()) };
    let (engine, for_thread) = (Shared::clone(engine), journal.clone());
    let worker = std::thread::Builder::new().name("wirefs-journal".into()).spawn(move || {
        while let Some(Work { answers, point, forget }) = for_thread.late.next() {
            // If the disk has failed, its promises hold once the server has the changes.
            let is_kept = answers.is_empty() || for_thread.sync_to(point) || {
                engine.drive(|state, _| engine.journal_stops(state));
                engine.settle() && engine.settle_journal()
            };
            for (call, waiting, answer) in answers {
                waiting.answer(if is_kept { answer } else { Answer::Fail(Errno::Io) });
                engine.lock().delayed.remove(&call);
            }
            if forget.is_some_and(|below| !for_thread.sync_quarantine_and_forget(below)) {
                engine.drive(|state, _| engine.journal_stops(state));
            }
        }
    })?;
    *journal.worker.lock().unwrap_or_else(PoisonError::into_inner) = Some(worker);
    Ok(())
}

#[cfg(test)]
mod tests;
