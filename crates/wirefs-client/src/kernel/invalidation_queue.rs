//! The queue of kernel invalidations, and of the answers and frames that must follow them.
//!
//! If two clients change one directory, a deadlock is possible: an invalidation waits in the kernel for a local call,
//! the call for the server, and the server for a frame in this queue. So a frame's wait is bounded.
//! [`InvalidationQueue::overdue`] takes the frame out of a blocked queue, with everything that the kernel must
//! revalidate first ([`Overdue`]).
//!
//! An invalidation that must be repeated later ([`InvalidationQueue::repeat_at`]) delays all answers and frames after
//! it, and the items after those. Items before the invalidation are not delayed.
//!
//! | state | `next` returns | `overdue` returns |
//! |---|---|---|
//! | empty | `Wait(None)` | `Idle` |
//! | an item may be executed | the item, which is then in execution until `finish` | `Idle` or `Wait`, with frames |
//! | an answer or frame waits for a repetition | `Wait` until the repetition | `Wait` or `Send`, with frames |
//! | too many names | `DropNames` | as above |
//!
//! *Holds*: items are executed in order. Each invalidation is queued at most once, and once more for its repetition. So
//! the queue is bounded by the kernel's cached objects, and by the waiting answers and frames.

mod repeats;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use wirefs_op::Time;

use crate::call::{Invalidate, TreeNodeId};
use repeats::Repeats;

/// The maximum number of names that are invalidated one by one. The kernel takes a second for about 200,000, and must
/// have dropped all within 5 s after the server is lost for too long.
const NAMES_MAX: usize = 262_144;
/// The maximum number of nodes that wait to be released; the core requests further ones again.
const RELEASES_MAX: usize = 32_768;
/// The time that one item may take before frames no longer wait for it. Most calls are answered within it, and then no
/// kernel cache is lost.
pub const ITEM_MAX: Duration = Duration::from_millis(200);
/// The maximum wait of a frame: well below the 10 s after which a server gives up.
pub const FRAME_MAX: Duration = Duration::from_secs(3);
/// The shortest wait between two checks for overdue frames.
const CHECK_MIN: Duration = Duration::from_millis(1);

/// An item of the queue. `A` is an answer, `F` a frame.
#[derive(Debug)]
pub enum QueuedItem<A, F> {
    /// An invalidation.
    Invalidate(Invalidate),
    /// A node that the kernel releases if it is unused, and its names.
    Release(TreeNodeId, Vec<(TreeNodeId, Vec<u8>)>),
    /// An answer whose caller must see the earlier invalidations.
    Answer(A),
    /// A frame that acknowledges the earlier invalidations.
    Frame(F),
}

/// The next step of the thread that executes the queue.
#[derive(Debug)]
pub enum QueueStep<A, F> {
    /// Execute this item, then call [`InvalidationQueue::finish`].
    Execute(QueuedItem<A, F>),
    /// Invalidate all names at once if the kernel can, and report that with [`InvalidationQueue::names_dropped`].
    DropNames,
    /// Wait for a new item, or until this time.
    Wait(Option<Time>),
}

/// The next step of the thread that watches frames.
#[derive(Debug)]
pub enum WatchStep<F> {
    /// Make the kernel revalidate, then send these frames.
    Send(Overdue<F>),
    /// Check again after this time.
    Wait(Duration),
    /// Wait for a frame.
    Idle,
}

/// Frames that cannot wait any longer, and the items before them.
#[derive(Debug)]
pub struct Overdue<F> {
    /// The frames.
    pub frames: Vec<F>,
    /// Nodes whose attributes, at least, must be invalidated first.
    pub nodes: BTreeSet<TreeNodeId>,
    /// Directories whose listings must be dropped first.
    pub listings: BTreeSet<TreeNodeId>,
    /// Directories with pending invalidations of names.
    pub directories: BTreeSet<TreeNodeId>,
    /// The time at which the last of the frames was queued.
    pub since: Time,
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
#[derive(Debug)]
pub struct InvalidationQueue<A, F> {
    waiting: VecDeque<(QueuedItem<A, F>, Time)>,
    /// Invalidations to repeat, each at its time.
    repeats: Repeats,
    /// Nodes to release when nothing else waits.
    releases: VecDeque<Named>,
    /// The number of threads that are about to push items which precede later ones.
    pending_pushes: usize,
    /// The identities of the queued invalidations.
    queued: BTreeSet<Key>,
    names: usize,
    /// All names cannot be invalidated at once now; tried again after the next item.
    keeps_names: bool,
    frames: usize,
    /// The item in execution, with its start.
    current: Option<(Option<Invalidate>, Time)>,
}

impl<A, F> Default for InvalidationQueue<A, F> {
    fn default() -> InvalidationQueue<A, F> {
        InvalidationQueue {
            waiting: VecDeque::new(),
            repeats: Repeats::default(),
            releases: VecDeque::new(),
            pending_pushes: 0,
            queued: BTreeSet::new(),
            names: 0,
            keeps_names: false,
            frames: 0,
            current: None,
        }
    }
}

impl<A, F> InvalidationQueue<A, F> {
    /// Queues an item.
    pub fn push(&mut self, now: Time, item: QueuedItem<A, F>) {
        match &item {
            QueuedItem::Invalidate(what) => {
                // The queued one follows everything that the kernel was told so far.
                if !self.queued.insert(key(what)) {
                    return;
                }
                self.names += usize::from(matches!(what, Invalidate::Entry { .. }));
            }
            QueuedItem::Release(node, names) => {
                if self.releases.len() < RELEASES_MAX {
                    self.releases.push_back((*node, names.clone()));
                }
                return;
            }
            QueuedItem::Answer(_) => {}
            QueuedItem::Frame(_) => self.frames += 1,
        }
        self.waiting.push_back((item, now));
    }

    /// Repeats the invalidation of a name at a time, before the answers and frames that wait.
    pub fn repeat_at(&mut self, what: Invalidate, at: Time) {
        if let Invalidate::Entry { parent, name, .. } = what {
            self.repeats.insert(parent, name, at);
        }
    }

    /// Announces a push; the queue is not idle until [`end_push`](Self::end_push).
    pub fn begin_push(&mut self) {
        self.pending_pushes += 1;
    }

    /// Ends an announced push.
    pub fn end_push(&mut self) {
        self.pending_pushes = self.pending_pushes.saturating_sub(1);
    }

    /// Returns whether no invalidation is pending.
    pub fn is_idle(&self) -> bool {
        let is_empty = self.waiting.is_empty() && self.repeats.is_empty();
        is_empty && self.current.is_none() && self.pending_pushes == 0
    }

    /// Ends the item in execution.
    pub fn finish(&mut self) {
        self.current = None;
        self.keeps_names = false;
    }

    /// Returns the next step.
    pub fn next(&mut self, now: Time) -> QueueStep<A, F> {
        if self.names > NAMES_MAX && !self.keeps_names {
            return QueueStep::DropNames;
        }
        match self.take(now) {
            Some((item, what)) => {
                self.current = Some((what, now));
                QueueStep::Execute(item)
            }
            None => QueueStep::Wait(self.repeats.due()),
        }
    }

    /// Reports whether the kernel has invalidated all names at once.
    pub fn names_dropped(&mut self, are_dropped: bool) {
        self.keeps_names = !are_dropped;
        if are_dropped {
            let is_name = |what: &Invalidate| matches!(what, Invalidate::Entry { .. });
            self.waiting.retain(|(item, _)| !matches!(item, QueuedItem::Invalidate(what) if is_name(what)));
            self.queued.retain(|(_, _, _, name)| name.is_none());
            self.repeats.clear();
            self.names = 0;
        }
    }

    /// Takes out the frames behind an item that takes longer than `item_max`, and those that have waited for longer
    /// than `frame_max`, with all other frames.
    pub fn overdue(&mut self, now: Time, item_max: Duration, frame_max: Duration) -> WatchStep<F> {
        let Some(pushed) = self.first_frame() else { return WatchStep::Idle };
        let item = self.current.as_ref().map_or(Duration::ZERO, |(_, begun)| now.since(*begun));
        let frame = now.since(pushed);
        let is_blocked = self.current.is_some() || !self.repeats.is_empty();
        if self.current.is_some() && item >= item_max || is_blocked && frame >= frame_max {
            return WatchStep::Send(self.take_frames());
        }
        let wait = item_max.saturating_sub(item).min(frame_max.saturating_sub(frame));
        WatchStep::Wait(wait.max(CHECK_MIN))
    }

    /// Empties the queue, and returns its answers: their calls are done, and the kernel's caches end with the mount.
    pub fn stop(&mut self) -> Vec<A> {
        let waiting = std::mem::take(&mut self.waiting);
        self.repeats.clear();
        self.releases.clear();
        self.frames = 0;
        let answer = |(item, _)| match item {
            QueuedItem::Answer(answer) => Some(answer),
            QueuedItem::Invalidate(_) | QueuedItem::Release(..) | QueuedItem::Frame(_) => None,
        };
        waiting.into_iter().filter_map(answer).collect()
    }

    /// Takes the next item that may be executed now, with its invalidation.
    fn take(&mut self, now: Time) -> Option<(QueuedItem<A, F>, Option<Invalidate>)> {
        if let Some(what) = self.repeats.take_due(now) {
            return Some((QueuedItem::Invalidate(what.clone()), Some(what)));
        }
        let depends = |item: &QueuedItem<A, F>| matches!(item, QueuedItem::Answer(_) | QueuedItem::Frame(_));
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
    fn leaves(&mut self, item: &QueuedItem<A, F>) -> Option<Invalidate> {
        match item {
            QueuedItem::Invalidate(what) => {
                self.queued.remove(&key(what));
                self.names -= usize::from(matches!(what, Invalidate::Entry { .. }));
                Some(what.clone())
            }
            QueuedItem::Answer(_) | QueuedItem::Release(..) => None,
            QueuedItem::Frame(_) => {
                self.frames -= 1;
                None
            }
        }
    }

    fn first_frame(&self) -> Option<Time> {
        if self.frames == 0 {
            return None;
        }
        let first = self.waiting.iter().find(|(item, _)| matches!(item, QueuedItem::Frame(_)));
        first.map(|(_, pushed)| *pushed)
    }

    /// Takes all frames out; all other items stay.
    fn take_frames(&mut self) -> Overdue<F> {
        let mut overdue = Overdue::new();
        let current = self.current.as_ref().and_then(|(what, _)| what.as_ref());
        current.into_iter().for_each(|what| overdue.cover(what));
        overdue.directories.extend(self.repeats.directories());
        for (item, pushed) in std::mem::take(&mut self.waiting) {
            match item {
                QueuedItem::Frame(frame) => {
                    self.frames -= 1;
                    overdue.frames.push(frame);
                    overdue.since = pushed;
                    continue;
                }
                QueuedItem::Invalidate(ref what) if self.frames > 0 => overdue.cover(what),
                QueuedItem::Invalidate(_) | QueuedItem::Answer(_) | QueuedItem::Release(..) => {}
            }
            self.waiting.push_back((item, pushed));
        }
        overdue
    }
}

impl<F> Overdue<F> {
    fn new() -> Overdue<F> {
        Overdue {
            frames: Vec::new(),
            nodes: BTreeSet::new(),
            listings: BTreeSet::new(),
            directories: BTreeSet::new(),
            since: Time::default(),
        }
    }

    fn cover(&mut self, what: &Invalidate) {
        match what {
            Invalidate::Node { node, .. } => self.nodes.insert(*node),
            Invalidate::Listing { node } => self.listings.insert(*node),
            Invalidate::Entry { parent, .. } => self.directories.insert(*parent),
        };
    }
}
