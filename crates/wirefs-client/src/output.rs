//! Actions for the driver, in the order in which it must execute them.

use crate::call::{Answer, CallId, Invalidate};
use crate::counters::Counters;
use crate::steps::Step;
use bytes::Bytes;
use std::collections::VecDeque;
use wirefs_cache::{CachePiece, TreeNodeId};
use wirefs_op::{Errno, FileId, Frame, Timestamp, TreePath};

/// Names a data connection; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DataKey(pub u64);

/// The requests that a frame must not overtake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Changes, and reads that must see them: kept in order.
    Changes,
    /// Other requests: may go first.
    Queries,
    /// Large reads, over a data connection.
    Data(DataKey),
}

/// Facts about a change that its message does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeFact {
    /// The server rejected the change.
    Rejected,
    /// The change created or opened this object.
    Created(FileId),
    /// The append wrote its data at this offset.
    WroteAt(u64),
    /// The append, not answered yet, is expected at this offset: an exclusive session knows the size of the file.
    WillWriteAt(u64),
}

/// Notes in the journal, for a replay after the server's machine has lost changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// No other session or server program made changes from this change number on; `None`: others may.
    Alone(Option<u64>),
    /// The latest change time that the server has reported for changes of this session.
    Seen(Timestamp),
    /// A fact about the change with this number.
    Fact(u64, ChangeFact),
    /// The server's disk has the contents that the changes below this number left in this file.
    Synced(u64, FileId),
}

/// An action for the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Answer this call.
    Answer(CallId, Answer),
    /// Send this frame.
    Send(Frame, Lane),
    /// Invalidate a part of the kernel's cache. The kernel may block behind calls that are in progress: only
    /// [`Output::AnswerAfter`] and [`Output::SendAfter`] may wait for it.
    Invalidate(Invalidate),
    /// Answer this call once the kernel has executed the invalidations before it. Only for calls that hold no lock in the
    /// kernel: invalidating a name takes its directory's lock, and the holder of that lock may wait for one that the call holds.
    AnswerAfter(CallId, Answer),
    /// Send this frame, before others, once the kernel has executed the invalidations before it; not at all if the connection
    /// has changed by then. An invalidation may wait for a call, that call for the server, and the server for this frame: the
    /// driver must not delay the frame for long.
    SendAfter(Frame),
    /// Let the kernel release an unused node by all its names, with the lowest priority. Nothing waits for it.
    LetGo(TreeNodeId, Vec<(TreeNodeId, Vec<u8>)>),
    /// Read a piece of contents from the disk cache, then call [`Client::loaded`](crate::Client::loaded). Only with a disk cache.
    Load(CachePiece),
    /// Write a piece of contents to the disk cache. Only with a disk cache.
    Keep(CachePiece, Bytes),
    /// Append this numbered change to the journal before any later output. The body is encoded with [`NOTAG`](wirefs_op::NOTAG).
    Journal(u64, Frame),
    /// Invalidate this, which is no name, in the kernel, then answer this call, which may hold the kernel's lock of the file or
    /// directory. Must not wait for other invalidations: they may wait for the call.
    AnswerDropped(Invalidate, CallId, Answer),
    /// Call [`Client::readers_passed`](crate::Client::readers_passed) with this number once each call that reads this directory
    /// now has its answer. Nothing waits for that.
    AwaitReaders(TreeNodeId, u64),
    /// Answer this call once the local disk has all earlier records of the journal.
    AnswerJournaled(CallId, Answer),
    /// Drop all changes below this number from the journal: they are on the server's disk.
    JournalForget(u64),
    /// Restart the full journal, then call [`Client::journal_begun`](crate::Client::journal_begun): all changes, which are those
    /// below this number, are on the server's disk.
    JournalAnew(u64),
    /// Append this note to the journal before any later output.
    JournalNote(Note),
    /// Quarantine this journaled change: the server rejected all or a part of it, but its program has continued. No errno: the
    /// outcome is unknown.
    Refused(u64, Frame, Option<Errno>),
    /// Open a data connection, then call [`Client::data_opened`](crate::Client::data_opened) or
    /// [`Client::data_lost`](crate::Client::data_lost).
    OpenData(DataKey),
    /// Close a data connection, without a report.
    CloseData(DataKey),
    /// Close a dead data connection, without a report.
    HangUpData(DataKey),
    /// Close the dead connection, then report it lost.
    HangUp,
    /// Tell the user that the server blames this client, in these words, for a protocol violation. The connection is useless.
    Blamed(String),
    /// Tell the user that this link of the server, with this target, leads out of the mount and is not followed. Only for the
    /// first such link.
    RefusedLink(TreePath, Bytes),
}

/// The queue of actions for the driver, that of steps for the client itself, and the counts of all that came and went.
#[derive(Debug, Default)]
pub(crate) struct Outputs {
    queue: VecDeque<Output>,
    steps: VecDeque<Step>,
    pub(crate) counters: Counters,
}

impl Outputs {
    pub(crate) fn push(&mut self, output: Output) {
        self.queue.push_back(output);
    }

    pub(crate) fn invalidate(&mut self, what: Invalidate) {
        self.push(Output::Invalidate(what));
    }

    /// Invalidates the kernel's pages of a file that others have changed.
    pub(crate) fn invalidate_pages(&mut self, node: TreeNodeId) {
        self.invalidate(Invalidate::Node { node, offset: 0, length: 0 });
    }

    pub(crate) fn pop(&mut self) -> Option<Output> {
        self.queue.pop_front()
    }

    /// Leaves a step to be executed before the input ends.
    pub(crate) fn leave(&mut self, step: Step) {
        self.steps.push_back(step);
    }

    pub(crate) fn next_step(&mut self) -> Option<Step> {
        self.steps.pop_front()
    }

    /// Whether an optimistic reply is still to be taken in.
    pub(crate) fn has_optimistic_reply(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::TakeOptimisticReply(_)))
    }

    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Moves the answers among the outputs from `begin` on before the invalidations. The kernel discards attributes that arrive
    /// behind an invalidation (`fuse_change_attributes` in fs/fuse/inode.c): a read that had asked for the size would then stop
    /// at the former end of the file.
    pub(crate) fn put_answers_first(&mut self, begin: usize) {
        let new = self.queue.split_off(begin.min(self.queue.len()));
        let (answers, rest): (Vec<Output>, Vec<Output>) =
            new.into_iter().partition(|output| matches!(output, Output::Answer(..)));
        self.queue.extend(answers.into_iter().chain(rest));
    }
}
