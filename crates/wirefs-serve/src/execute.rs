//! Carrying out one request, on whatever thread.

use super::core::{Effects, Task};
use super::log;
use super::pool::{Owner, Rank, Work};
use super::replies::{Answer, Patience};
use super::shared::Shared;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;
use wirefs_op::message::find::FindMode;
use wirefs_op::message::get::{GetMode, GotMode, Tget};
use wirefs_op::message::target::Target;
use wirefs_op::{Errno, Order, Reply, Request, Stat, TreePath, Weight};
use wirefs_server::{Attached, Input, Replies, SessionKey, Stopped, repeat};

impl Shared {
    /// Gives a task to the pool; a waiting lock beyond the limit is refused instead.
    pub(super) fn submit(self: &Arc<Self>, task: Task) {
        let session = task.job.session;
        let rank = match task.job.weight {
            Weight::Quick => Rank::Quick,
            Weight::Long => Rank::Long,
            Weight::Blocking if self.pool.admit_waiter(session) => Rank::Waits,
            Weight::Blocking => {
                let key = task.job.key;
                let mut answer = Answer::new(self, &task, Patience::None);
                answer.fail(Errno::NoLocks);
                drop(answer);
                self.finish(key);
                return;
            }
        };
        let shared = Arc::clone(self);
        self.pool.submit(Owner::Session(session), rank, Work::Task(Box::new(task)), move || shared.work());
    }

    /// Carries out a task on a worker, and after it what has become its session's turn, as long as that is quick.
    pub(super) fn work_through(self: &Arc<Self>, task: Task) {
        let mut next = Some(task);
        while let Some(task) = next {
            if (task.job.order, task.job.weight) != (Order::Free, Weight::Quick) {
                // It takes longer than another thread takes to wake.
                (self.options.before_blocking)();
            }
            let mut effects = self.carry_out(task, Patience::Wire);
            let follows = effects.tasks.iter().position(|task| task.job.weight == Weight::Quick);
            next = follows.map(|at| effects.tasks.swap_remove(at));
            self.perform(effects);
        }
    }

    /// Has the tree do it. What follows from the end of it is for the caller to perform.
    pub(super) fn carry_out(self: &Arc<Self>, task: Task, patience: Patience) -> Effects {
        let started = Instant::now();
        let mut answer = Answer::new(self, &task, patience);
        let Task { job, ticket, connection } = task;
        let (name, session) = (job.request.name(), job.session);
        let gives_up = job.request.traits().may_release;
        // What is shared in it is not copied.
        let again = job.may_park.then(|| job.request.clone());
        if job.order == Order::Change || !ticket.is_stopped() {
            let served = catch_unwind(AssertUnwindSafe(|| match &job.undecided {
                None => self.tree.serve(session, job.request, &mut answer),
                Some(begun) => repeat::serve(&*self.tree, session, job.request, begun, &mut answer),
            }));
            if served.is_err() {
                log::line(format_args!("{name} of session {} failed in the server itself", session.0));
            }
            if let (Some(request), Ok(()), true) = (again, served, answer.is_parked()) {
                drop(answer);
                return self.put_aside(job.key, request);
            }
            if answer.is_owed() {
                // A tree that gives no last reply has failed; the client must not wait for it.
                answer.fail(Errno::Io);
            }
        }
        let answered = answer.answered();
        drop(answer);
        if let (Some(connection), Some(answered)) = (connection, answered) {
            let took = answered.duration_since(started);
            match (job.weight, job.order) {
                (Weight::Quick, Order::Free) => connection.free_pace.sample(took),
                (Weight::Quick, Order::Change | Order::Ordered) => connection.turn_pace.sample(took),
                (Weight::Long | Weight::Blocking, _) => {}
            }
        }
        if gives_up {
            self.news.tell();
        }
        let mut effects = Effects::default();
        let mut core = self.core();
        core.handle(self.now(), Input::Finished(job.key), &mut effects);
        let watched = core.watchers > 0;
        drop(core);
        if watched {
            self.announce();
        }
        effects
    }

    /// The tree has given a job back unchanged.
    fn put_aside(self: &Arc<Self>, key: wirefs_server::JobKey, request: Request) -> Effects {
        let mut effects = Effects::default();
        let mut core = self.core();
        core.handle(self.now(), Input::Parked(key, request), &mut effects);
        let watched = core.watchers > 0;
        drop(core);
        // More of its session may be taken off the wire while it waits.
        if watched {
            self.announce();
        }
        effects
    }

    fn finish(self: &Arc<Self>, key: wirefs_server::JobKey) {
        self.handle(Input::Finished(key));
        self.announce();
    }

    /// Tells the tree that a session is over.
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

    /// A session that came back is attached still; only the root's attributes may have changed.
    fn attach_again(&self, session: SessionKey, before: Attached) -> Result<Attached, Errno> {
        let request = Request::Get(Tget {
            target: Target::at(TreePath::root()),
            mode: GetMode::STAT,
            nmsgs: 1,
            offset: 0,
            count: 0,
        });
        let mut reply = OneReply::default();
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

/// Whether this reply is the last to its request.
pub(super) fn is_last(reply: &Reply) -> bool {
    match reply {
        Reply::Get(get) => get.mode.has(GotMode::LAST),
        Reply::Find(find) => find.mode.has(FindMode::LAST),
        _ => true,
    }
}

/// Keeps the first reply.
#[derive(Default)]
struct OneReply(Option<Reply>);

impl Replies for OneReply {
    fn send(&mut self, reply: Reply) -> Result<(), Stopped> {
        self.0.get_or_insert(reply);
        Ok(())
    }

    fn is_stopped(&self) -> bool {
        false
    }

    /// Whether it is promised is decided when the client is told.
    fn grant(&mut self, stats: &mut dyn Iterator<Item = &mut Stat>) {
        stats.for_each(|stat| stat.leased = true);
    }

    fn wait(&mut self) {}
}
