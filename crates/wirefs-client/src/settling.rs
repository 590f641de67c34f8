//! Executes the steps that operations leave. A request that was answered or failed while it was sent is continued here,
//! after its sender has returned.

pub(crate) mod waiting;

use crate::call::{Answer, CallId};
use crate::core::Client;
use crate::operation::{attributes, link, make, open, release, remove, rename};
use crate::pending::Pending;
use crate::steps::{OptimisticReply, Step};
use crate::view::View;
use crate::view::unconfirmed::Made;
use wirefs_cache::TreeNodeId;
use wirefs_op::{Errno, FileId, Reply};

impl Client {
    /// Executes the steps that were left, and those that these leave.
    pub(crate) fn settle(&mut self) {
        while let Some(step) = self.outputs.next_step() {
            match step {
                Step::TakeOptimisticReply(reply) => self.take_optimistic_reply(*reply),
                Step::Fail(pending, errno) => self.request_failed(pending, errno),
                Step::Undo(call, answer) => self.undo_answer(call, answer),
                Step::ChangeEnded(node) => self.change_ended(node),
                Step::ServeReaders(node) => {
                    waiting::serve_readers(self, node);
                    self.view.drop_if_gone(node);
                }
                Step::FailReader(reader, errno) => waiting::reader_failed(self, &reader, errno),
                Step::ServeJoined(key, all) => self.serve_joined(key, all),
                Step::PublicationEnded(node, handle, then, error) => {
                    self.publication_ended(node, handle, then, error);
                }
            }
        }
    }

    /// Takes in an optimistic reply, and answers its call.
    fn take_optimistic_reply(&mut self, optimistic: OptimisticReply) {
        let OptimisticReply { number, pending, reply, besides } = optimistic;
        let now = self.view.mount.now;
        self.view.exclusive.unconfirmed.is_optimistic = true;
        match (pending, reply) {
            (Pending::Make(making), Reply::Put(put)) => {
                let made = put.stat.map(|stat| stat.id);
                make::finish(self, making, now, put);
                note_made(&mut self.view, number, made);
            }
            (Pending::Open(opening), Reply::Put(put)) => {
                let node = opening.node;
                open::finish_writing(self, opening, now, put);
                note_opened(&mut self.view, number, node);
            }
            (Pending::Setattr(setting), Reply::Put(put)) => {
                attributes::was_set(&mut self.answerer(), setting, now, put)
            }
            (Pending::Remove(removing), Reply::Remove(removed)) => {
                remove::finish(self, removing, now, removed)
            }
            (Pending::Rename(renaming), Reply::Rename(renamed)) => {
                rename::finish(&mut self.answerer(), renaming, now, renamed)
            }
            (Pending::Link(linking), Reply::Link(linked)) => {
                link::finish(&mut self.answerer(), linking, now, linked)
            }
            // INVARIANT: each of these is executed with its own reply.
            (pending, _) => self.request_failed(pending, Errno::Protocol),
        }
        if let Some((node, stat)) = besides {
            attributes::changed(&mut self.view, node, Some(&stat), now);
        }
        self.view.exclusive.unconfirmed.is_optimistic = false;
        self.view.send_waiting(&mut self.requests, &mut self.outputs);
    }

    /// Undoes an answer whose caller is gone: releases the lookups and handles that it carries.
    fn undo_answer(&mut self, call: CallId, answer: Answer) {
        match answer {
            Answer::Entry(entry) => self.view.forget_lookups(&self.calls, entry.node, 1),
            Answer::Created(entry, handle, _) => {
                release::unwanted(self, call, handle);
                self.view.forget_lookups(&self.calls, entry.node, 1);
            }
            Answer::Opened(handle, _) => release::unwanted(self, call, handle),
            Answer::Listing(listed) => {
                for entry in listed.into_iter().filter_map(|listed| listed.entry) {
                    self.view.forget_lookups(&self.calls, entry.node, 1);
                }
            }
            Answer::Fail(_)
            | Answer::Done
            | Answer::NoEntry(_)
            | Answer::Attr(..)
            | Answer::Data(_)
            | Answer::Size(_)
            | Answer::Count(_)
            | Answer::FsStat(_)
            | Answer::Lock(_)
            | Answer::ListingEnd
            | Answer::Offset(_) => {}
        }
    }
}

/// The object is there from now on, and known by the number of its change.
fn note_made(view: &mut View, number: u64, made: Option<FileId>) {
    let Some(node) = made.and_then(|id| view.names.of_file(id)) else { return };
    view.goes_ahead(node);
    let handle = view.files.handles_of(node).next();
    if let Some(handle) = handle.and_then(|handle| view.files.open_mut(handle)) {
        handle.server.request();
    }
    if let Some(unconfirmed) = view.exclusive.unconfirmed.unconfirmed.get_mut(&number) {
        unconfirmed.makes = Some(Made { node, handle });
    }
}

/// The file is open from now on; the server's fd comes later.
fn note_opened(view: &mut View, number: u64, node: TreeNodeId) {
    let Some(handle) = view.files.handles_of(node).next_back() else { return };
    if let Some(open) = view.files.open_mut(handle) {
        open.server.request();
    }
    if let Some(unconfirmed) = view.exclusive.unconfirmed.unconfirmed.get_mut(&number) {
        unconfirmed.opens = Some((node, handle));
    }
}
