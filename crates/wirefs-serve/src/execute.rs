//! Execution of one request, in any thread.

use super::core::{Effects, Task};
use super::log;
use super::options::InProcessExecution;
use super::pool::{Owner, Rank, Work};
use super::replies::{JobReplies, WaitPolicy};
use super::shared::Shared;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;
use wirefs_op::message::find::FindMode;
use wirefs_op::message::get::{GetMode, GotMode, Tget};
use wirefs_op::message::target::Target;
use wirefs_op::{Errno, Order, Reply, Request, Stat, TreePath, Weight};
use wirefs_server::{Attached, Replies, ServerInput, SessionKey, Stopped, repeat};

impl Shared {
    /// Queues a task for the pool. Fails a blocking lock beyond the limit.
    pub(super) fn submit(self: &Arc<Self>, task: Task) {
        let session = task.job.session;
        let rank = match task.job.weight {
            Weight::Quick => Rank::Quick,
            Weight::Long => Rank::Long,
            Weight::Blocking if self.pool.admit_waiter(session) => Rank::Waits,
            Weight::Blocking => {
                let key = task.job.key;
                let mut replies = JobReplies::new(self, &task, WaitPolicy::Never);
                replies.fail(Errno::NoLocks);
                drop(replies);
                self.finish(key);
                return;
            }
        };
        let shared = Arc::clone(self);
        self.pool.submit(Owner::Session(session), rank, Work::Task(Box::new(task)), move || shared.work());
    }

    /// Executes a task in a worker, and then the quick requests that follow it in its session.
    pub(super) fn work_through(self: &Arc<Self>, task: Task) {
        let mut next = Some(task);
        while let Some(task) = next {
            if (task.job.order, task.job.weight) != (Order::Free, Weight::Quick) {
                // A long request takes more time than the wake-up of another thread.
                if let InProcessExecution::CallingThread { before_blocking } = self.options.in_process {
                    before_blocking();
                }
            }
            let mut effects = self.carry_out(task, WaitPolicy::ForPeer);
            let follows = effects.tasks.iter().position(|task| task.job.weight == Weight::Quick);
            next = follows.map(|at| effects.tasks.swap_remove(at));
            self.perform(effects);
        }
    }

    /// Executes a task. The caller performs the effects.
    pub(super) fn carry_out(self: &Arc<Self>, task: Task, wait_policy: WaitPolicy) -> Effects {
        let started = Instant::now();
        let mut replies = JobReplies::new(self, &task, wait_policy);
        let Task { job, stop_flag, connection } = task;
        let (name, session) = (job.request.name(), job.session);
        let may_release = job.request.traits().may_release;
        // A clone shares its data.
        let again = job.may_park.then(|| job.request.clone());
        if job.order == Order::Change || !stop_flag.is_stopped() {
            let served = catch_unwind(AssertUnwindSafe(|| match &job.undecided {
                None => self.tree.serve(session, job.request, &mut replies),
                Some(begun) => repeat::serve(&*self.tree, session, job.request, begun, &mut replies),
            }));
            if served.is_err() {
                log::line(format_args!("{name} of session {} failed in the server itself", session.0));
            }
            if let (Some(request), Ok(()), true) = (again, served, replies.is_parked()) {
                replies.report_parked();
                drop(replies);
                return self.park(job.key, request);
            }
            if replies.is_owed() {
                // A tree that gives no last reply has failed; the client must not wait for one.
                replies.fail(Errno::Io);
            }
        }
        let answered = replies.answered();
        drop(replies);
        if let (Some(connection), Some(answered)) = (connection, answered) {
            let took = answered.duration_since(started);
            match (job.weight, job.order) {
                (Weight::Quick, Order::Free) => connection.free_pace.sample(took),
                (Weight::Quick, Order::Change | Order::Ordered) => connection.slot_pace.sample(took),
                (Weight::Long | Weight::Blocking, _) => {}
            }
        }
        if may_release {
            self.lock_releases.announce();
        }
        let mut effects = Effects::default();
        let mut core = self.core();
        core.handle(self.now(), ServerInput::Finished(job.key), &mut effects);
        let watched = core.watchers > 0;
        drop(core);
        if watched {
            self.announce();
        }
        effects
    }

    /// Parks a job that the tree returned unexecuted.
    fn park(self: &Arc<Self>, key: wirefs_server::JobKey, request: Request) -> Effects {
        let mut effects = Effects::default();
        let mut core = self.core();
        core.handle(self.now(), ServerInput::Parked(key, request), &mut effects);
        let watched = core.watchers > 0;
        drop(core);
        // While it waits, more requests of its session may be received.
        if watched {
            self.announce();
        }
        effects
    }

    fn finish(self: &Arc<Self>, key: wirefs_server::JobKey) {
        self.handle(ServerInput::Finished(key));
        self.announce();
    }

    /// Tells the tree that a session has ended.
    pub(super) fn end(&self, session: SessionKey) {
        if catch_unwind(AssertUnwindSafe(|| self.tree.end(session))).is_err() {
            log::line(format_args!("the end of session {} failed in the server itself", session.0));
        }
    }

    /// Asks the tree for the root of a session.
    pub(super) fn attach(
        &self,
        session: SessionKey,
        path: &TreePath,
        before: Option<Attached>,
    ) -> Result<Attached, Errno> {
        let ask = || match before {
            None => self.tree.attach(session, path),
            Some(before) => self.attach_again(session, before),
        };
        catch_unwind(AssertUnwindSafe(ask)).unwrap_or(Err(Errno::Io))
    }

    /// Attaches a resumed session again: only the root's attributes may have changed.
    fn attach_again(&self, session: SessionKey, before: Attached) -> Result<Attached, Errno> {
        let request = Request::Get(Tget {
            target: Target::at(TreePath::root()),
            mode: GetMode::STAT,
            nmsgs: 1,
            offset: 0,
            count: 0,
        });
        let mut reply = FirstReply::default();
        self.tree.serve(session, request, &mut reply);
        match reply.0 {
            Some(Reply::Get(get)) => match get.stat {
                Some(root) => Ok(Attached { root, ..before }),
                None => Err(Errno::Io),
            },
            Some(Reply::Error(error)) => Err(error.errno),
            Some(_) | None => Err(Errno::Io),
        }
    }
}

/// Returns whether a reply is the last one to its request.
pub(super) fn is_last(reply: &Reply) -> bool {
    match reply {
        Reply::Get(get) => get.mode.has(GotMode::LAST),
        Reply::Find(find) => find.mode.has(FindMode::LAST),
        _ => true,
    }
}

/// Stores the first reply.
#[derive(Default)]
struct FirstReply(Option<Reply>);

impl Replies for FirstReply {
    fn send(&mut self, reply: Reply) -> Result<(), Stopped> {
        self.0.get_or_insert(reply);
        Ok(())
    }

    fn is_stopped(&self) -> bool {
        false
    }

    /// Attributes are leased when the client gets them.
    fn grant(&mut self, stats: &mut dyn Iterator<Item = &mut Stat>) {
        stats.for_each(|stat| stat.leased = true);
    }

    fn wait(&mut self) {}
}
