//! The journal of a mount: each change is on the local disk before its program is told that it is done, until the server's disk has it.
//!
//! The core says what is journaled and when; this is where it is written, in order, under the core's lock: a `write` into the page
//! cache, which outlives this process. Answers that are to outlive the machine wait for the disk without that lock, in the thread that
//! has them where that is one of the kernel's, else in a thread of the journal's own.
//!
//! A disk that fails takes the journal away and nothing else: the mount goes on, and answers changes when the server has them.

mod again;
mod decided;
mod disk;
mod group;
mod kept;
mod late;
mod left;
mod place;
mod pump;
mod quarantine;
mod recover;
mod redo;
mod writer;

pub use kept::{Kept, KeptChange, kept_changes, kept_in};
pub(super) use late::Late;
pub use left::{LeftJournal, LeftState, left_journals};
pub use place::{FsyncWaits, JournalPlan};
pub(super) use recover::recover_all;
pub use recover::{Brought, Progress, Recovered, Stays};
pub(super) use redo::Begun;

use super::ending::{Holder, once_it_has_ended};
use super::engine::Shared;
use super::handshake::Attached;
use super::slow::Waits;
use disk::Local;
use group::{Group, Point, Syncing};
use late::{Queue, Work};
use place::{Claim, hex, identity};
use quarantine::Quarantine;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use wirefs_client::call::Answer;
use wirefs_client::{Note, Said};
use wirefs_journal::bring::nanos;
use wirefs_journal::{Figures, Header, Record, Told};
use wirefs_op::message::number::Tnumber;
use wirefs_op::message::version::{BootId, SessionId};
use wirefs_op::wire::Malformed;
use wirefs_op::{Errno, Frame, Request};
use writer::{AppendError, Writer};

/// What a mount's journal holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalStatus {
    /// What of it is needed.
    pub figures: Figures,
    /// Why nothing more is written to it.
    pub failed: Option<String>,
    /// How often answers waited for the local disk, whoever synced it. What is synced before anybody waits is not counted.
    pub syncs: u64,
    /// What servers of this source refused and is kept.
    pub kept: Vec<Kept>,
}

/// Why nothing is written to a journal.
#[derive(Clone, Debug)]
struct Failure {
    why: String,
    /// Only until there is room.
    is_full: bool,
}

impl From<AppendError> for Failure {
    fn from(error: AppendError) -> Failure {
        Failure { why: error.to_string(), is_full: error.is_full() }
    }
}

/// One line for whoever reads the log.
fn tell(line: &str) {
    eprintln!("wirefs: {line}");
}

/// The journal.
pub(super) struct Journal {
    dir: PathBuf,
    writer: Mutex<Option<Writer>>,
    /// As far as the core was told of it, or is about to be.
    failed: Mutex<Option<Failure>>,
    group: Syncing,
    late: Queue,
    worker: Mutex<Option<JoinHandle<()>>>,
    /// What the server refuses of this mount, and where what it refused of all mounts of the source is.
    refused: Mutex<Quarantine>,
    quarantine: PathBuf,
}

impl Journal {
    /// Begins a journal for a session. Without it a mount works as well: why there is none is told in a line.
    pub(super) fn begin(
        plan: &JournalPlan,
        session: SessionId,
        attached: &Attached,
        tell_wait: fn(Waits),
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
        let claim = once_it_has_ended(tell_wait, || Claim::take(&dir)).map_err(|error| error.to_string());
        let begun = claim.and_then(|claim| {
            let group = Syncing::start(Local(dir.clone())).map_err(|error| error.to_string())?;
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
                tell(&format!("no journal is kept, so changes are done when the server has them: {error}"));
                None
            }
        }
    }

    /// Tells the next mount how far this one is.
    pub(super) fn note_holder(&self, holder: &Holder) {
        if let Some(writer) = self.writer().as_ref() {
            writer.note_holder(holder);
        }
    }

    /// INVARIANT: what fails half-way is not used again.
    fn writer(&self) -> MutexGuard<'_, Option<Writer>> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self) -> MutexGuard<'_, Option<Failure>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something to the journal, unless it has failed; false: it fails now.
    fn with(&self, act: impl FnOnce(&mut Writer, &Group) -> Result<(), AppendError>) -> bool {
        let mut writer = self.writer();
        let Some(writer) = writer.as_mut().filter(|_| self.failed().is_none()) else { return true };
        match act(writer, &self.group) {
            Ok(()) => true,
            Err(error) => {
                self.stops(error.into());
                false
            }
        }
    }

    pub(super) fn fails(&self, why: &str) {
        self.stops(Failure { why: why.to_owned(), is_full: false });
    }

    fn stops(&self, failure: Failure) {
        let mut failed = self.failed();
        if failed.is_none() {
            let until = if failure.is_full { "until then" } else { "from now on" };
            tell(&format!(
                "THE JOURNAL CANNOT BE WRITTEN: {}; {until} changes are done when the server has them, and what was under way is lost \
                 if this machine stops before the server has it",
                failure.why
            ));
            *failed = Some(failure);
        }
    }

    /// Why nothing is written, or will be, since the disk has failed and whoever writes next is told so.
    fn failure(&self) -> Option<Failure> {
        let failed = self.failed().clone();
        failed.or_else(|| Some(AppendError::below(&self.dir, self.group.check().err()?).into()))
    }

    /// Whether nothing is written until there is room on the local disk.
    pub(super) fn is_full(&self) -> bool {
        self.failure().is_some_and(|failure| failure.is_full)
    }

    /// The server's disk, at this start of its machine, has all changes there are, those below a number: a journal that had no room begins
    /// anew, with nothing in it. False: it still has none.
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
                tell("the journal is written again: there is room");
                *failed = None;
            }
            Err(error) => *failed = Some(error.into()),
        }
        failed.is_none()
    }

    /// Takes a change; false: it fails now.
    pub(super) fn record(&self, number: u64, frame: Frame) -> bool {
        self.with(|writer, group| writer.record(number, frame, group))
    }

    /// Notes what doing changes again has to know; false: the journal fails now.
    pub(super) fn note(&self, note: Note) -> bool {
        self.with(|writer, group| match note {
            Note::Alone(from) => writer.alone(from, group),
            Note::Seen(at) => writer.seen(nanos(at), group),
            Note::Said(number, said) => writer.told(number, &told_of(said), group),
            Note::Synced(below, file) => writer.synced(below, file, group),
        })
    }

    /// The server's disk has all changes below a number, but for those that were refused, which are kept elsewhere: where the local disk
    /// does not have these, they are forgotten later, by [`Journal::settle_and_forget`]. False: the journal fails now.
    pub(super) fn forget(&self, below: u64) -> bool {
        if !self.refused().is_settled() {
            self.late.forget(below);
            return true;
        }
        self.with(|writer, group| writer.forget(below, group))
    }

    /// The same, in a thread that may wait for the disk.
    fn settle_and_forget(&self, below: u64) -> bool {
        let mut refused = self.refused();
        let (fresh, dir) = (refused.take_fresh(), refused.dir().to_path_buf());
        drop(refused);
        let brought = quarantine::bring(&dir, &fresh);
        self.refused().brought(fresh, brought.is_ok());
        self.with(|writer, group| {
            brought.map_err(AppendError::Refused)?;
            writer.forget(below, group)
        })
    }

    fn refused(&self) -> MutexGuard<'_, Quarantine> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a change that the server did not take, before anybody forgets it; false: the journal fails now.
    pub(super) fn refuse(&self, number: u64, frame: &Frame, errno: Option<Errno>) -> bool {
        let why = match errno {
            Some(errno) => format!("the server refused it: {errno}"),
            None => "the server no longer knows whether it has done it".to_owned(),
        };
        let mut refused = self.refused();
        if refused.count() == 0 {
            tell(
                "THE SERVER REFUSES changes whose programs were told that they are done: `wirefs quarantine list`",
            );
        }
        let kept = refused.keep(&Record { number, body: frame.to_body() }, &why);
        if let Err(error) = &kept {
            let why =
                format!("what the server refused cannot be kept in {}: {error}", refused.dir().display());
            if self.is_full() { tell(&why) } else { self.fails(&why) }
        }
        kept.is_ok()
    }

    /// Writes what must be there before a frame goes out: the changes before it, and which replies the server is told to forget. False:
    /// the journal fails now.
    pub(super) fn before(&self, frame: &Frame) -> bool {
        let told = told(frame);
        self.with(|writer, group| {
            if let Some(told) = told {
                writer.answered(told.answered, group)?;
            }
            writer.write(group)
        })
    }

    /// Writes what must be there before programs are answered, and once that the server has answered anything at all; false: the
    /// journal fails now.
    pub(super) fn write(&self, answered: impl FnOnce() -> u64) -> bool {
        self.with(|writer, group| {
            if writer.has_no_answer() {
                writer.answered(answered(), group)?;
            }
            writer.write(group)
        })
    }

    /// What was written so far.
    pub(super) fn written(&self) -> Point {
        self.group.written()
    }

    /// Waits until the disk has all up to a point; false: it never will.
    pub(super) fn sync_to(&self, point: Point) -> bool {
        match self.group.sync_to(point) {
            Ok(()) => self.failed().is_none(),
            Err(error) => {
                self.stops(AppendError::below(&self.dir, error).into());
                false
            }
        }
    }

    /// Whether the disk is so far behind with the journal that whoever changes something waits for it.
    pub(super) fn is_behind(&self) -> bool {
        self.group.is_behind()
    }

    /// Waits while it is.
    pub(super) fn keep_pace(&self) {
        self.group.keep_pace();
    }

    /// Leaves answers to the journal's thread.
    pub(super) fn hand_over(&self, point: Point, answers: Vec<Late>) {
        self.late.push(point, answers);
    }

    pub(super) fn status(&self, answered: u64) -> JournalStatus {
        JournalStatus {
            figures: self.writer().as_ref().map(|writer| writer.figures(answered)).unwrap_or_default(),
            failed: self.failure().map(|failure| failure.why),
            syncs: self.group.waits(),
            kept: kept_in(&self.quarantine),
        }
    }

    /// Whether nothing in it is needed once the server's disk has all changes below a number.
    pub(super) fn is_done_below(&self, number: u64) -> bool {
        self.writer().as_ref().is_none_or(|writer| writer.figures(number).unanswered_records == 0)
    }

    /// The mount has ended. What the server does not have stays, for the next one.
    pub(super) fn end(&self, is_needed: bool) {
        self.late.stop();
        let worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(worker) = worker {
            // It has told what went wrong.
            let _ended = worker.join();
        }
        self.group.stop();
        let Some(writer) = self.writer().take() else { return };
        let is_settled = self.refused().settle().inspect_err(|error| {
            tell(&format!("what the server refused may not be on the disk: {error}"));
        });
        if is_needed || is_settled.is_err() {
            let count = writer.figures(0).records;
            tell(&format!(
                "{count} changes may not be on the server's disk; they are in the journal, and the next mount or `wirefs recover` \
                 brings them there"
            ));
        } else if let Err(error) = writer.remove() {
            tell(&format!("a journal that is not needed any more cannot be removed: {error}"));
        }
    }
}

fn told_of(said: Said) -> Told {
    let answered = Told { is_answered: true, ..Told::default() };
    match said {
        Said::Refused => Told { is_refused: true, ..answered },
        Said::Made(id) => Told { made: Some(id), ..answered },
        Said::Went(offset) => Told { offset: Some(offset), ..answered },
        Said::Expected(offset) => Told { offset: Some(offset), ..Told::default() },
    }
}

/// What a frame tells the server of numbers, if it does.
fn told(frame: &Frame) -> Option<Tnumber> {
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

/// Names this run of the kernel: what was written under it and not synced is there for as long as it runs.
fn kernel_run() -> u64 {
    let run = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    run.iter()
        .fold(0xcbf2_9ce4_8422_2325, |sum: u64, &byte| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// Starts the thread that waits for the disk on behalf of others, where there is a journal.
pub(super) fn start(engine: &Shared) -> io::Result<()> {
    let Some(journal) = engine.journal.clone() else { return Ok(()) };
    let (engine, for_thread) = (Shared::clone(engine), journal.clone());
    let worker = std::thread::Builder::new().name("wirefs-journal".into()).spawn(move || {
        while let Some(Work { answers, point, forget }) = for_thread.late.next() {
            // Where the disk failed, what was promised of it holds once the server has it.
            let is_kept = answers.is_empty() || for_thread.sync_to(point) || {
                engine.drive(|state, _| engine.journal_stops(state));
                engine.settle() && engine.settle_journal()
            };
            for (call, waiting, answer) in answers {
                waiting.answer(if is_kept { answer } else { Answer::Fail(Errno::Io) });
                engine.lock().delayed.remove(&call);
            }
            if forget.is_some_and(|below| !for_thread.settle_and_forget(below)) {
                engine.drive(|state, _| engine.journal_stops(state));
            }
        }
    })?;
    *journal.worker.lock().unwrap_or_else(PoisonError::into_inner) = Some(worker);
    Ok(())
}

#[cfg(test)]
mod tests;
