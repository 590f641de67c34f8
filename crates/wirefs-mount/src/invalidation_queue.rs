//! The queue of kernel invalidations, and of the answers and frames that must follow them.
//!
//! An invalidation may wait in the kernel for a local call, that call for the server, and the server for a frame in
//! this queue, if two clients change one directory. So a frame's wait is bounded: a watchdog thread takes it out of a
//! blocked queue, and makes the kernel revalidate what the pending items cover ([`Overdue`]).
//!
//! An invalidation that must be repeated later ([`InvalidationQueue::repeat_at`]) delays the answers and frames after
//! it until then, with everything behind them; items before it go on.
//!
//! *Holds*: items are executed in order. Each invalidation is queued at most once, and once more for its repetition. So
//! the queue is bounded by the kernel's cached objects, and by the waiting answers and frames.

mod repeats;

use super::server_sink::ServerSink;
use super::waiter::Waiter;
use repeats::Repeats;
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use wirefs_client::call::{Answer, CallId, Invalidate, TreeNodeId};
use wirefs_op::Frame;

/// The maximum number of names that are invalidated one by one. The kernel takes a second for about 200,000, and must
/// have dropped all within 5 s after the server is lost for too long.
const NAMES_MAX: usize = 262_144;
/// The maximum number of nodes that wait to be released; the core requests further ones again.
const RELEASES_MAX: usize = 32_768;
/// The time that one item may take before frames no longer wait for it. Most calls are answered within it, and then no
/// kernel cache is lost.
pub(super) const ITEM_MAX: Duration = Duration::from_millis(200);
/// The maximum wait of a frame: well below the 10 s after which a server gives up.
pub(super) const FRAME_MAX: Duration = Duration::from_secs(3);

/// An item of the queue.
pub(super) enum QueuedItem {
    Invalidate(Invalidate),
    /// A node that the kernel releases if it is unused, and its names.
    Release(TreeNodeId, Vec<(TreeNodeId, Vec<u8>)>),
    /// An answer whose caller must see the earlier invalidations.
    Answer(CallId, Waiter, Answer),
    /// A frame that acknowledges the earlier invalidations, for the connection on which they were requested.
    Frame(ServerSink, Frame),
}

/// Frames that cannot wait any longer, and the items before them.
#[derive(Debug, Default)]
pub(super) struct Overdue {
    pub(super) frames: Vec<(ServerSink, Frame)>,
    /// Nodes whose attributes, at least, must be invalidated first.
    pub(super) nodes: BTreeSet<TreeNodeId>,
    /// Directories whose listings must be dropped first.
    pub(super) listings: BTreeSet<TreeNodeId>,
    /// Directories with pending invalidations of names.
    pub(super) directories: BTreeSet<TreeNodeId>,
    /// The time at which the last of the frames was queued.
    pub(super) since: Option<Instant>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<(QueuedItem, Instant)>,
    /// Invalidations to repeat, each at its time.
    repeats: Repeats,
    /// Nodes to release when nothing else waits.
    releases: VecDeque<Named>,
    /// The number of threads that are about to push items which precede later ones.
    pending_pushes: usize,
    /// The queued invalidations.
    queued: BTreeSet<Key>,
    names: usize,
    frames: usize,
    /// The item in execution, with its start.
    current: Option<(Option<Invalidate>, Instant)>,
    is_stopped: bool,
}

/// A node with its names.
type Named = (TreeNodeId, Vec<(TreeNodeId, Vec<u8>)>);

/// The identity of an invalidation: node, offset, length, name.
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
pub(super) struct InvalidationQueue {
    queue: Mutex<Queue>,
    /// Signaled when there is an item to execute.
    item_added: Condvar,
    /// Signaled when there is a frame to watch.
    frame_added: Condvar,
}

impl InvalidationQueue {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn push(&self, item: QueuedItem) {
        let mut queue = self.lock();
        match &item {
            QueuedItem::Invalidate(what) => {
                // The queued one follows everything that the kernel was told so far.
                if !queue.queued.insert(key(what)) {
                    return;
                }
                queue.names += usize::from(matches!(what, Invalidate::Entry { .. }));
            }
            QueuedItem::Release(node, names) => {
                if queue.releases.len() < RELEASES_MAX {
                    queue.releases.push_back((*node, names.clone()));
                    self.item_added.notify_one();
                }
                return;
            }
            QueuedItem::Answer(..) => {}
            QueuedItem::Frame(..) => {
                queue.frames += 1;
                self.frame_added.notify_one();
            }
        }
        queue.waiting.push_back((item, Instant::now()));
        self.item_added.notify_one();
    }

    /// Repeats the invalidation of a name at a time, before the answers and frames that wait.
    pub(super) fn repeat_at(&self, what: Invalidate, at: Instant) {
        if let Invalidate::Entry { parent, name, .. } = what {
            self.lock().repeats.insert(parent, name, at);
        }
    }

    /// Announces a push; the queue is not idle until [`end_push`](Self::end_push).
    pub(super) fn begin_push(&self) {
        self.lock().pending_pushes += 1;
    }

    /// Ends an announced push.
    pub(super) fn end_push(&self) {
        let mut queue = self.lock();
        queue.pending_pushes = queue.pending_pushes.saturating_sub(1);
    }

    /// Returns whether no invalidation is pending.
    pub(super) fn is_idle(&self) -> bool {
        let queue = self.lock();
        let is_empty = queue.waiting.is_empty() && queue.repeats.is_empty();
        is_empty && queue.current.is_none() && queue.pending_pushes == 0
    }

    /// Ends the previous item, and waits for the next one; `None` when stopped. If too many names wait, `forget_names`
    /// may invalidate all names at once, and returns whether it did.
    pub(super) fn next(&self, forget_names: impl FnOnce() -> bool) -> Option<QueuedItem> {
        let mut queue = self.lock();
        queue.current = None;
        let mut forget_names = Some(forget_names);
        while !queue.is_stopped {
            if queue.names > NAMES_MAX && forget_names.take().is_some_and(|forget| forget()) {
                queue.drop_names();
            }
            if let Some((item, what)) = queue.take(Instant::now()) {
                queue.current = Some((what, Instant::now()));
                return Some(item);
            }
            let due = queue.repeats.due().map(|at| at.saturating_duration_since(Instant::now()));
            queue = match due {
                Some(due) => {
                    self.item_added.wait_timeout(queue, due).unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.item_added.wait(queue).unwrap_or_else(PoisonError::into_inner),
            };
        }
        None
    }

    /// Waits until frames are behind an item that takes longer than `item_max`, or have waited for longer than
    /// `frame_max`, and takes them out; `None` when stopped.
    pub(super) fn next_overdue(&self, item_max: Duration, frame_max: Duration) -> Option<Overdue> {
        let mut queue = self.lock();
        while !queue.is_stopped {
            if queue.frames == 0 {
                queue = self.frame_added.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let elapsed = queue.current.as_ref().map_or(Duration::ZERO, |(_, begun)| begun.elapsed());
            let frame = queue.first_frame().map_or(Duration::ZERO, |pushed| pushed.elapsed());
            let is_blocked = queue.current.is_some() || !queue.repeats.is_empty();
            if queue.current.is_some() && elapsed >= item_max || is_blocked && frame >= frame_max {
                return Some(queue.take_frames());
            }
            let wait = (item_max - elapsed.min(item_max)).min(frame_max - frame.min(frame_max));
            let wait = wait.max(Duration::from_millis(1));
            queue = self.frame_added.wait_timeout(queue, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
        None
    }

    /// Stops the queue, and sends its answers: their calls are done, and the kernel's caches end with the mount.
    pub(super) fn stop(&self) {
        let mut queue = self.lock();
        queue.is_stopped = true;
        let waiting = std::mem::take(&mut queue.waiting);
        queue.repeats.clear();
        queue.releases.clear();
        self.item_added.notify_all();
        self.frame_added.notify_all();
        drop(queue);
        for (item, _) in waiting {
            if let QueuedItem::Answer(_, waiting, answer) = item {
                waiting.answer(answer);
            }
        }
    }
}

impl Queue {
    /// Takes the next item that may be executed now, with its invalidation.
    fn take(&mut self, now: Instant) -> Option<(QueuedItem, Option<Invalidate>)> {
        if let Some(what) = self.repeats.take_due(now) {
            return Some((QueuedItem::Invalidate(what.clone()), Some(what)));
        }
        let depends = |item: &QueuedItem| matches!(item, QueuedItem::Answer(..) | QueuedItem::Frame(..));
        if !self.repeats.is_empty() && self.waiting.front().is_some_and(|(item, _)| depends(item)) {
            return None;
        }
        if let Some((item, _)) = self.waiting.pop_front() {
            let what = self.leaves(&item);
            return Some((item, what));
        }
        let (node, names) = self.releases.pop_front()?;
        Some((QueuedItem::Release(node, names), None))
    }

    /// Updates the counters for an item that leaves the queue.
    fn leaves(&mut self, item: &QueuedItem) -> Option<Invalidate> {
        match item {
            QueuedItem::Invalidate(what) => {
                self.queued.remove(&key(what));
                self.names -= usize::from(matches!(what, Invalidate::Entry { .. }));
                Some(what.clone())
            }
            QueuedItem::Answer(..) | QueuedItem::Release(..) => None,
            QueuedItem::Frame(..) => {
                self.frames -= 1;
                None
            }
        }
    }

    fn drop_names(&mut self) {
        let is_name = |what: &Invalidate| matches!(what, Invalidate::Entry { .. });
        self.waiting.retain(|(item, _)| !matches!(item, QueuedItem::Invalidate(what) if is_name(what)));
        self.queued.retain(|(_, _, _, name)| name.is_none());
        self.repeats.clear();
        self.names = 0;
    }

    fn first_frame(&self) -> Option<Instant> {
        let first = self.waiting.iter().find(|(item, _)| matches!(item, QueuedItem::Frame(..)));
        first.map(|(_, pushed)| *pushed)
    }

    /// Takes all frames out; all other items stay.
    fn take_frames(&mut self) -> Overdue {
        let mut overdue = Overdue::default();
        let mut left = self.frames;
        let current = self.current.as_ref().and_then(|(what, _)| what.as_ref());
        current.into_iter().for_each(|what| overdue.note(what));
        overdue.directories.extend(self.repeats.directories());
        self.waiting.retain(|(item, pushed)| match item {
            QueuedItem::Frame(sink, frame) => {
                left -= 1;
                overdue.frames.push((sink.clone(), frame.clone()));
                overdue.since = Some(*pushed);
                false
            }
            QueuedItem::Invalidate(what) => {
                if left > 0 {
                    overdue.note(what);
                }
                true
            }
            QueuedItem::Answer(..) | QueuedItem::Release(..) => true,
        });
        self.frames = 0;
        overdue
    }
}

impl Overdue {
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
