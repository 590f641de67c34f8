//! An exclusive mount with a journal, and a program that believes its answers. The mount may be killed, and both machines may lose power.
//!
//! Each successful step of the program is also applied to a separate tree. In the end the server must have that tree, with each step applied
//! once and in order. After a crash of the client it must have all steps up to some step, and no promised one may be missing.

pub(crate) mod act;
pub(crate) mod believed;
mod checks;
mod delivery;
mod disk;
mod faults;
mod journal;
mod plan;
mod program;

pub(crate) use delivery::ActiveDelivery;
pub(crate) use plan::AheadPlan;

use crate::flaw::Flaw;
use crate::world::World;
use act::Task;
use believed::BelievedSteps;
use journal::Journal;
use wirefs_client::{Client, Output};
use wirefs_journal::Header;
use wirefs_journal::SuspendedReplay;
use wirefs_model::ModelTree;
use wirefs_op::message::version::{BootId, SessionId};
use wirefs_op::{Frame, Request};

/// The index of the only client.
pub(crate) const HOST: usize = 0;

/// The state of such a run.
pub(crate) struct Ahead {
    pub(crate) believed: BelievedSteps,
    /// The current task of the program.
    task: Option<Task>,
    /// The files that the program keeps open.
    opened: Vec<act::Open>,
    /// The journal of the running mount.
    journal: Option<Journal>,
    /// The journal of a dead mount.
    pub(crate) dead_journal: Option<Journal>,
    pub(crate) delivery: Option<ActiveDelivery>,
    /// A replay of the running mount, over as many connections as needed.
    live_replay: Option<LiveReplay>,
    /// The server with this boot id has lost changes that cannot be determined.
    given_up: Option<BootId>,
    /// The remaining number of faults.
    pub(crate) faults_left: u64,
    /// The last call of a dead mount's program would have failed.
    would_fail: bool,
    /// The run of the client's kernel.
    kernel_run: u64,
    /// All changes went to the quarantine, and the run is over.
    pub(crate) is_over: bool,
}

/// A replay of the running mount.
struct LiveReplay {
    end: u64,
    answered: u64,
    decided: Option<SuspendedReplay>,
}

impl Ahead {
    pub(crate) fn new(tree: &ModelTree, faults_left: u64) -> Ahead {
        Ahead {
            believed: BelievedSteps::new(tree.copy()),
            task: None,
            opened: Vec::new(),
            journal: None,
            dead_journal: None,
            delivery: None,
            live_replay: None,
            given_up: None,
            faults_left,
            would_fail: false,
            kernel_run: 1,
            is_over: false,
        }
    }

    /// Records that a replay was interrupted or its changes were lost, so objects may be half created again.
    pub(crate) fn is_torn(&mut self) {
        let is_under_way = self.delivery.as_ref().is_some_and(ActiveDelivery::has_replayed);
        let is_broken = self.live_replay.as_ref().is_some_and(|live_replay| live_replay.decided.is_some());
        if let Some(journal) = &mut self.journal {
            journal.is_torn |= is_under_way || is_broken;
        }
        self.is_torn_for_dead();
    }

    /// Records the same where only a dead mount's replay cannot continue.
    pub(crate) fn is_torn_for_dead(&mut self) {
        let is_under_way = self.delivery.as_ref().is_some_and(ActiveDelivery::has_replayed);
        if let Some(dead_journal) = &mut self.dead_journal {
            dead_journal.is_torn |= is_under_way || dead_journal.decided.is_some();
        }
    }

    /// Returns whether the program has no pending call.
    pub(crate) fn is_idle(&self) -> bool {
        self.task.is_none()
    }

    /// Returns the session that the next connection takes up: a dead mount's comes first.
    pub(crate) fn session(&self, own: SessionId) -> SessionId {
        self.dead_journal.as_ref().map_or(own, |dead_journal| dead_journal.header.session)
    }

    /// Describes the state.
    pub(crate) fn shown(&self) -> String {
        let task = self.task.as_ref().map(Task::shown);
        format!(
            "{task:?}, dead journal {}, delivers {}",
            self.dead_journal.is_some(),
            self.delivery.is_some()
        )
    }
}

impl World {
    /// Starts the mount's journal.
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

    /// Executes an output for the journal.
    pub(crate) fn journal(&mut self, output: Output) {
        if let (Some(_), Output::Refused(number, _, errno)) = (&self.rivals, &output) {
            return self.fail(format!("the server rejected change {number}: {errno:?}"));
        }
        let Some(ahead) = &mut self.ahead else { return };
        let is_over = ahead.is_over;
        let Some(journal) = &mut ahead.journal else { return };
        match output {
            Output::Refused(..) if is_over => {}
            Output::Journal(number, frame) => {
                journal.record(number, frame.to_body(), ahead.believed.next_step());
            }
            Output::JournalNote(note) => journal.note(note),
            Output::JournalForget(below) => journal.forget(below),
            Output::Refused(number, frame, errno) => {
                let what = Request::decode(frame.to_body());
                self.fail(format!("the server rejected change {number}, {what:?}: {errno:?}"));
            }
            _ => {}
        }
    }

    /// Writes the entries that must be in the journal before a frame is sent.
    pub(crate) fn journal_before(&mut self, frame: Frame) -> Frame {
        if let Some(journal) = self.ahead.as_mut().and_then(|ahead| ahead.journal.as_mut()) {
            journal.before(&frame);
        }
        frame
    }

    /// Writes all pending entries of the journal.
    pub(crate) fn journal_is_written(&mut self, index: usize) {
        let answered =
            self.hosts.get(index).and_then(|host| host.client.as_ref()).map(Client::answered_below);
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

    /// Ends the client. Its memory is lost; if its machine is gone too, so is the part of its journal that was not durable.
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
            let open = task.open.and_then(|open| ahead.believed.path_of(open.id)).cloned();
            task.pending_change(open.as_ref())
        });
        ahead.opened.clear();
        ahead.is_torn();
        (ahead.live_replay, ahead.delivery) = (None, None);
        let Some(mut journal) = ahead.journal.take() else { return };
        let (mut kept_steps, mut is_broken) = (None, false);
        if loses_power {
            ahead.kernel_run += 1;
            self.counts.cut_early += u64::from(journal.is_early);
            (kept_steps, is_broken) = journal.loses_power(lost);
        }
        ahead.would_fail = ahead.believed.client_is_gone(kept_steps, begins);
        let damage = journal.survey().0.damage.filter(|_| loses_power);
        ahead.dead_journal = Some(journal);
        if is_broken || damage.is_some() {
            self.fail(format!("the client's disk lacks promised entries: {is_broken}, {damage:?}"));
        }
        self.note(|| format!("  with its machine: {loses_power}, which loses steps from {kept_steps:?} on"));
        self.counts.client_power_cuts += u64::from(loses_power);
    }
}
