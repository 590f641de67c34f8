//! A mount that is alone and ahead of its server: with a journal, and with a program that believes what it is told. Its process may be
//! killed, its machine may lose power, and so may the server's.
//!
//! What the program was told is done to a tree of its own, step by step. That is what the server has to have in the end, each step once and
//! in order; and after a crash of the client, all steps up to one that is not before the last of which it was promised that it stays.

pub(crate) mod act;
mod bring;
mod checks;
mod disk;
mod journal;
pub(crate) mod past;
mod plan;
mod program;
mod troubles;

pub(crate) use bring::Bringing;
pub(crate) use plan::AheadPlan;

use crate::flaw::Flaw;
use crate::world::World;
use act::Task;
use journal::Journal;
use past::Past;
use wirefs_client::{Client, Output};
use wirefs_journal::Header;
use wirefs_journal::SuspendedReplay;
use wirefs_model::ModelTree;
use wirefs_op::message::version::{BootId, SessionId};
use wirefs_op::{Frame, Request};

/// The only client of such a run.
pub(crate) const SEAT: usize = 0;

/// What the world knows of it.
pub(crate) struct Ahead {
    pub(crate) past: Past,
    /// What the program does just now.
    task: Option<Task>,
    /// Files that it keeps open.
    opened: Vec<act::Open>,
    /// Of the mount that lives.
    journal: Option<Journal>,
    /// Of the one that died.
    pub(crate) left: Option<Journal>,
    pub(crate) bringing: Option<Bringing>,
    /// What a mount that lives does again, over as many connections as it takes.
    begun: Option<Begun>,
    /// What the server with this boot id has lost cannot be told.
    given_up: Option<BootId>,
    /// So many things go wrong yet.
    pub(crate) troubles_left: u64,
    /// The program of the mount that died had asked for what nobody can do.
    is_refused: bool,
    /// Which run of the client's kernel.
    kernel_run: u64,
    /// It cannot be told what the server's machine has lost: all of it is kept aside, and the run is over.
    pub(crate) is_over: bool,
}

/// Doing changes again.
struct Begun {
    end: u64,
    answered: u64,
    decided: Option<SuspendedReplay>,
}

impl Ahead {
    pub(crate) fn new(tree: &ModelTree, troubles_left: u64) -> Ahead {
        Ahead {
            past: Past::new(tree.copy()),
            task: None,
            opened: Vec::new(),
            journal: None,
            left: None,
            bringing: None,
            begun: None,
            given_up: None,
            troubles_left,
            is_refused: false,
            kernel_run: 1,
            is_over: false,
        }
    }

    /// Whoever does changes again is gone in the midst, or what was done again is lost: what was made again is half there, perhaps.
    pub(crate) fn is_torn(&mut self) {
        let is_under_way = self.bringing.as_ref().is_some_and(Bringing::is_again);
        let is_broken = self.begun.as_ref().is_some_and(|begun| begun.decided.is_some());
        if let Some(journal) = &mut self.journal {
            journal.is_torn |= is_under_way || is_broken;
        }
        self.is_torn_for_dead();
    }

    /// The same, where only a mount that died cannot go on with it.
    pub(crate) fn is_torn_for_dead(&mut self) {
        let is_under_way = self.bringing.as_ref().is_some_and(Bringing::is_again);
        if let Some(left) = &mut self.left {
            left.is_torn |= is_under_way || left.decided.is_some();
        }
    }

    /// Whether the program waits for nothing.
    pub(crate) fn is_idle(&self) -> bool {
        self.task.is_none()
    }

    /// Whose session the next connection takes up: that of the mount that died first.
    pub(crate) fn session(&self, own: SessionId) -> SessionId {
        self.left.as_ref().map_or(own, |left| left.header.session)
    }

    /// In words.
    pub(crate) fn shown(&self) -> String {
        let task = self.task.as_ref().map(Task::shown);
        format!("{task:?}, left {}, brings {}", self.left.is_some(), self.bringing.is_some())
    }
}

impl World {
    /// The mount begins: it has a journal of its own.
    pub(crate) fn begin_journal(&mut self, session: SessionId, boot: BootId) {
        let root = self.truth.root();
        let Some(ahead) = &mut self.ahead else { return };
        ahead.journal = Some(Journal::new(Header {
            session,
            root,
            boot,
            run: ahead.kernel_run,
            segment: 1,
            identity: Vec::new(),
            path: Vec::new(),
            source: Vec::new(),
        }));
    }

    /// Something for the journal.
    pub(crate) fn journal(&mut self, output: Output) {
        if let (Some(_), Output::Refused(number, _, errno)) = (&self.rivals, &output) {
            return self.fail(format!("the server refused change {number}: {errno:?}"));
        }
        let Some(ahead) = &mut self.ahead else { return };
        let is_over = ahead.is_over;
        let Some(journal) = &mut ahead.journal else { return };
        match output {
            Output::Refused(..) if is_over => {}
            Output::Journal(number, frame) => {
                journal.record(number, frame.to_body(), ahead.past.next_step());
            }
            Output::JournalNote(note) => journal.note(note),
            Output::JournalForget(below) => journal.forget(below),
            Output::Refused(number, frame, errno) => {
                let what = Request::decode(frame.to_body());
                self.fail(format!("the server refused change {number}, {what:?}: {errno:?}"));
            }
            _ => {}
        }
    }

    /// What must be in the journal before a frame goes out.
    pub(crate) fn journal_before(&mut self, frame: Frame) -> Frame {
        if let Some(journal) = self.ahead.as_mut().and_then(|ahead| ahead.journal.as_mut()) {
            journal.before(&frame);
        }
        frame
    }

    /// All that was to be journaled by now is written.
    pub(crate) fn journal_is_written(&mut self, index: usize) {
        let answered =
            self.seats.get(index).and_then(|seat| seat.client.as_ref()).map(Client::answered_below);
        let flaw = self.flaw;
        let (Some(ahead), Some(answered)) = (&mut self.ahead, answered) else { return };
        if let Some(journal) = &mut ahead.journal {
            journal.write(answered);
            if flaw == Some(Flaw::FreesOnReply) {
                journal.forget(answered);
            }
        }
        self.disk_goes_on(index);
    }

    /// The client is gone: what it had in its memory is lost, and of its journal what the disk did not have, if the machine is gone too.
    pub(crate) fn client_is_gone(&mut self) {
        if self.ahead.is_none() {
            return;
        }
        let loses_power =
            self.plan.ahead.as_ref().is_some_and(|plan| plan.machine_crashes) && self.dice.chance(1, 2);
        let lost = self.dice.below(1 << 20);
        let Some(ahead) = &mut self.ahead else { return };
        let task = ahead.task.take();
        let begins = task.and_then(|task| {
            let open = task.open.and_then(|open| ahead.past.path_of(open.id)).cloned();
            task.change_under_way(open.as_ref())
        });
        ahead.opened.clear();
        ahead.is_torn();
        (ahead.begun, ahead.bringing) = (None, None);
        let Some(mut journal) = ahead.journal.take() else { return };
        let (mut kept_steps, mut is_broken) = (None, false);
        if loses_power {
            ahead.kernel_run += 1;
            self.record.cut_early += u64::from(journal.is_early);
            (kept_steps, is_broken) = journal.loses_power(lost);
        }
        ahead.is_refused = ahead.past.client_is_gone(kept_steps, begins);
        let damage = journal.survey().0.damage.filter(|_| loses_power);
        ahead.left = Some(journal);
        if is_broken || damage.is_some() {
            self.fail(format!("the client's disk has not what was promised: {is_broken}, {damage:?}"));
        }
        self.note(|| format!("  with its machine: {loses_power}, which loses steps from {kept_steps:?} on"));
        self.record.client_power_cuts += u64::from(loses_power);
    }
}
