//! What the kernel is to forget, and what waits for that: the queue between the core and the thread that tells the kernel.
//!
//! Telling may wait for a call that is under way, this for the server, and the server, where two clients change one
//! directory, for a frame that says that we have told. So a frame does not wait for long: another thread takes it out of a
//! queue that is stuck, with what is to be made up for ([`Stuck`]).
//!
//! What the kernel must be told once more after a time ([`Notices::again`]) holds up answers and frames until then, with what is behind them;
//! what is before them goes on.
//!
//! *Holds*: what is carried out is carried out in order; each thing to forget waits at most once, and once more for its time, so
//! the queue is no longer than what the kernel knows, and the answers and frames that wait.

mod later;

use super::engine::Waiting;
use super::outlet::Outlet;
use later::Later;
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use wirefs_client::call::{Answer, CallId, Invalidate, TreeNodeId};
use wirefs_op::Frame;

/// Names that the kernel is told to forget one by one, at most: it takes a second for about 200,000, and must have
/// forgotten all within 5 s when the server is gone for too long.
const NAMES_MAX: usize = 262_144;
/// Nodes that wait to be let go of, at most; who wants more gone asks again.
const LET_GO_MAX: usize = 32_768;
/// How long one thing may take before frames behind it no longer wait. Most calls are answered within this time, and then
/// nothing is lost.
pub(super) const ONE_MAX: Duration = Duration::from_millis(200);
/// How long a frame waits for what is before it, however much that is: well below the 10 s after which a server gives up.
pub(super) const FRAME_MAX: Duration = Duration::from_secs(3);

/// What is to be told, in order.
pub(super) enum Notice {
    Invalidate(Invalidate),
    /// A node that the kernel is to let go of, as far as nobody uses it, and its names.
    LetGo(TreeNodeId, Vec<(TreeNodeId, Vec<u8>)>),
    /// An answer whose caller must not go on before what came earlier is forgotten.
    Answer(CallId, Waiting, Answer),
    /// A frame that says that what came earlier is forgotten, for the connection on which that was asked: another one's outlet
    /// is another.
    Frame(Outlet, Frame),
}

/// Frames that could not wait any longer, and what was before them.
#[derive(Debug, Default)]
pub(super) struct Stuck {
    pub(super) frames: Vec<(Outlet, Frame)>,
    /// Nodes of which attributes at least must be forgotten first.
    pub(super) nodes: BTreeSet<TreeNodeId>,
    /// Directories whose listings must be dropped first.
    pub(super) listings: BTreeSet<TreeNodeId>,
    /// Directories of which names were to be forgotten.
    pub(super) directories: BTreeSet<TreeNodeId>,
    /// What was told before this moment.
    pub(super) since: Option<Instant>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<(Notice, Instant)>,
    /// What is to be carried out once more, each at its time.
    again: Later,
    /// Nodes to let go of, when nothing else waits: nobody waits for that.
    let_go: VecDeque<Named>,
    /// Who is about to push something that comes before what is pushed from now on.
    coming: usize,
    /// The invalidations among them.
    known: BTreeSet<Key>,
    names: usize,
    frames: usize,
    /// What is being carried out, and since when.
    current: Option<(Option<Invalidate>, Instant)>,
    is_stopped: bool,
}

/// A node with its names.
type Named = (TreeNodeId, Vec<(TreeNodeId, Vec<u8>)>);

/// An invalidation: node, offset, length, name.
type Key = (TreeNodeId, i64, i64, Option<Vec<u8>>);

fn key(what: &Invalidate) -> Key {
    match what {
        Invalidate::Node { node, offset, length } => (*node, *offset, *length, None),
        Invalidate::Listing { node } => (*node, 0, i64::MIN, None),
        Invalidate::Entry { parent, name, is_directory } => {
            (*parent, i64::from(*is_directory), 0, Some(name.clone()))
        }
    }
}

/// The queue.
#[derive(Default)]
pub(super) struct Notices {
    queue: Mutex<Queue>,
    /// There is something to carry out.
    filled: Condvar,
    /// There is a frame to look after.
    framed: Condvar,
}

impl Notices {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn push(&self, notice: Notice) {
        let mut queue = self.lock();
        match &notice {
            Notice::Invalidate(what) => {
                // One that waits already comes after all that the kernel was told until now, and before what follows.
                if !queue.known.insert(key(what)) {
                    return;
                }
                queue.names += usize::from(matches!(what, Invalidate::Entry { .. }));
            }
            Notice::LetGo(node, names) => {
                if queue.let_go.len() < LET_GO_MAX {
                    queue.let_go.push_back((*node, names.clone()));
                    self.filled.notify_one();
                }
                return;
            }
            Notice::Answer(..) => {}
            Notice::Frame(..) => {
                queue.frames += 1;
                self.framed.notify_one();
            }
        }
        queue.waiting.push_back((notice, Instant::now()));
        self.filled.notify_one();
    }

    /// This name of a directory is to be told once more at that time, ahead of the answers and frames that wait.
    pub(super) fn again(&self, what: Invalidate, at: Instant) {
        if let Invalidate::Entry { parent, name, .. } = what {
            self.lock().again.note(parent, name, at);
        }
    }

    /// Something is about to be pushed; until it [`came`](Self::came) the queue is not idle.
    pub(super) fn comes(&self) {
        self.lock().coming += 1;
    }

    /// What was about to be pushed was.
    pub(super) fn came(&self) {
        let mut queue = self.lock();
        queue.coming = queue.coming.saturating_sub(1);
    }

    /// Whether nothing is to be forgotten that was not.
    pub(super) fn is_idle(&self) -> bool {
        let queue = self.lock();
        let is_empty = queue.waiting.is_empty() && queue.again.is_empty();
        is_empty && queue.current.is_none() && queue.coming == 0
    }

    /// Says that the one before is done, and waits for the next; `None` when stopped. Where too many names wait,
    /// `forget_names` may make all of them forgotten at once, and says whether it did.
    pub(super) fn next(&self, forget_names: impl FnOnce() -> bool) -> Option<Notice> {
        let mut queue = self.lock();
        queue.current = None;
        let mut forget_names = Some(forget_names);
        while !queue.is_stopped {
            if queue.names > NAMES_MAX && forget_names.take().is_some_and(|forget| forget()) {
                queue.drop_names();
            }
            if let Some((notice, what)) = queue.take(Instant::now()) {
                queue.current = Some((what, Instant::now()));
                return Some(notice);
            }
            let due = queue.again.due().map(|at| at.saturating_duration_since(Instant::now()));
            queue = match due {
                Some(due) => self.filled.wait_timeout(queue, due).unwrap_or_else(PoisonError::into_inner).0,
                None => self.filled.wait(queue).unwrap_or_else(PoisonError::into_inner),
            };
        }
        None
    }

    /// Waits until frames are behind something that takes longer than `one_max`, or have waited for longer than `frame_max`
    /// themselves, and takes them out; `None` when stopped.
    pub(super) fn next_stuck(&self, one_max: Duration, frame_max: Duration) -> Option<Stuck> {
        let mut queue = self.lock();
        while !queue.is_stopped {
            if queue.frames == 0 {
                queue = self.framed.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let one = queue.current.as_ref().map_or(Duration::ZERO, |(_, begun)| begun.elapsed());
            let frame = queue.first_frame().map_or(Duration::ZERO, |pushed| pushed.elapsed());
            let is_held_up = queue.current.is_some() || !queue.again.is_empty();
            if queue.current.is_some() && one >= one_max || is_held_up && frame >= frame_max {
                return Some(queue.take_frames());
            }
            let wait = (one_max - one.min(one_max)).min(frame_max - frame.min(frame_max));
            let wait = wait.max(Duration::from_millis(1));
            queue = self.framed.wait_timeout(queue, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
        None
    }

    /// What waits to be answered is answered: it is done, and the kernel believes nothing any more.
    pub(super) fn stop(&self) {
        let mut queue = self.lock();
        queue.is_stopped = true;
        let waiting = std::mem::take(&mut queue.waiting);
        queue.again.clear();
        queue.let_go.clear();
        self.filled.notify_all();
        self.framed.notify_all();
        drop(queue);
        for (notice, _) in waiting {
            if let Notice::Answer(_, waiting, answer) = notice {
                waiting.answer(answer);
            }
        }
    }
}

impl Queue {
    /// The next that may be carried out now, and what of it the kernel is told to forget.
    fn take(&mut self, now: Instant) -> Option<(Notice, Option<Invalidate>)> {
        if let Some(what) = self.again.take_due(now) {
            return Some((Notice::Invalidate(what.clone()), Some(what)));
        }
        let relies = |notice: &Notice| matches!(notice, Notice::Answer(..) | Notice::Frame(..));
        if !self.again.is_empty() && self.waiting.front().is_some_and(|(notice, _)| relies(notice)) {
            return None;
        }
        if let Some((notice, _)) = self.waiting.pop_front() {
            let what = self.taken(&notice);
            return Some((notice, what));
        }
        let (node, names) = self.let_go.pop_front()?;
        Some((Notice::LetGo(node, names), None))
    }

    /// A notice that is out of the queue.
    fn taken(&mut self, notice: &Notice) -> Option<Invalidate> {
        match notice {
            Notice::Invalidate(what) => {
                self.known.remove(&key(what));
                self.names -= usize::from(matches!(what, Invalidate::Entry { .. }));
                Some(what.clone())
            }
            Notice::Answer(..) | Notice::LetGo(..) => None,
            Notice::Frame(..) => {
                self.frames -= 1;
                None
            }
        }
    }

    fn drop_names(&mut self) {
        let is_name = |what: &Invalidate| matches!(what, Invalidate::Entry { .. });
        self.waiting.retain(|(notice, _)| !matches!(notice, Notice::Invalidate(what) if is_name(what)));
        self.known.retain(|(_, _, _, name)| name.is_none());
        self.again.clear();
        self.names = 0;
    }

    fn first_frame(&self) -> Option<Instant> {
        let first = self.waiting.iter().find(|(notice, _)| matches!(notice, Notice::Frame(..)));
        first.map(|(_, pushed)| *pushed)
    }

    /// Takes all frames out; the rest stays as it is.
    fn take_frames(&mut self) -> Stuck {
        let mut stuck = Stuck::default();
        let mut left = self.frames;
        let current = self.current.as_ref().and_then(|(what, _)| what.as_ref());
        current.into_iter().for_each(|what| stuck.note(what));
        stuck.directories.extend(self.again.directories());
        self.waiting.retain(|(notice, pushed)| match notice {
            Notice::Frame(outlet, frame) => {
                left -= 1;
                stuck.frames.push((outlet.clone(), frame.clone()));
                stuck.since = Some(*pushed);
                false
            }
            Notice::Invalidate(what) => {
                if left > 0 {
                    stuck.note(what);
                }
                true
            }
            Notice::Answer(..) | Notice::LetGo(..) => true,
        });
        self.frames = 0;
        stuck
    }
}

impl Stuck {
    fn note(&mut self, what: &Invalidate) {
        match what {
            Invalidate::Node { node, .. } => self.nodes.insert(*node),
            Invalidate::Listing { node } => self.listings.insert(*node),
            Invalidate::Entry { parent, .. } => self.directories.insert(*parent),
        };
    }
}

#[cfg(test)]
mod tests;
