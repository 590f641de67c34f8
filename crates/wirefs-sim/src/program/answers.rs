//! The checks of answers, and the next step of each operation.

use super::{Busy, Closing, Locked, Open, Operation, Place, Renaming};
use crate::world::World;
use wirefs_client::call::{Answer, CallId, Entry, Handle, Listed, STATELESS, TreeNodeId};
use wirefs_op::{Errno, FileId, Kind, LockKind, Request, Time};

impl World {
    /// Takes the answer to a call.
    pub(crate) fn program_is_answered(&mut self, index: usize, id: CallId, answer: Answer) {
        if self.ahead.is_some() {
            return self.ahead_answered(id, answer);
        }
        if self.rivals.is_some() {
            return self.rival_is_answered(index, id, answer);
        }
        let Some(host) = self.hosts.get_mut(index) else { return };
        let waits = |busy: &Option<Busy>| busy.as_ref().is_some_and(|busy| busy.call == Some(id));
        let Some(thread) = host.program.threads.iter().position(waits) else {
            return self
                .fail(format!("client {index}: {id:?} was answered without a pending call: {answer:?}"));
        };
        let Some(busy) = host.program.threads.get_mut(thread).and_then(Option::take) else { return };
        self.note(|| format!("client {index}.{thread} gets {}", cut_short(&answer)));
        self.counts(&answer);
        match self.take(index, busy, answer) {
            Some(next) => self.proceed(index, thread, next),
            None => self.schedule_operation(index, thread),
        }
    }

    fn counts(&mut self, answer: &Answer) {
        match answer {
            Answer::Fail(Errno::Io) => self.counts.unknown_outcomes += 1,
            Answer::Fail(Errno::HostDown) => self.counts.hosts_down += 1,
            _ => {}
        }
    }

    /// Compares an answer with the true state. Returns the rest of the operation.
    fn take(&mut self, index: usize, mut busy: Busy, answer: Answer) -> Option<Busy> {
        let now = self.now;
        if let Operation::Write { own, .. } | Operation::Set { own, .. } = busy.operation
            && let Some(own) = self.hosts.get_mut(index).and_then(|host| host.program.own.get_mut(own))
        {
            own.failed = matches!(answer, Answer::Fail(_));
            own.done = Some(now);
        }
        if let Answer::Fail(errno) = answer {
            self.failed(index, &busy, errno);
            if let Operation::Write { node, .. } | Operation::Close(node, ..) = busy.operation {
                self.hosts.get_mut(index)?.program.may_have_lost(node);
            }
            let is_given_up = matches!(errno, Errno::Io | Errno::HostDown | Errno::TimedOut)
                && matches!(busy.operation, Operation::Names(..));
            self.hosts.get_mut(index)?.program.has_given_up |= is_given_up;
            // A kernel closes an opened directory after any result.
            if let Operation::List { node, handle: Some(handle), .. } = busy.operation {
                return Some(Busy { operation: Operation::CloseList(node, handle), ..busy });
            }
            return None;
        }
        match (&mut busy.operation, answer) {
            (Operation::Look(place), answer) => {
                let place = place.clone();
                self.looked(index, &busy, &place, answer);
            }
            (Operation::Stat(_), Answer::Attr(stat, _)) => self.check_stat(index, busy.began, &stat),
            (Operation::Names(renaming, places), answer) => {
                let (renaming, places) = (*renaming, places.clone());
                self.renamed(index, &busy, renaming, &places, answer);
            }
            (Operation::Open(node, writes), Answer::Opened(handle, _)) => {
                let open = Open { node: *node, handle, writes: *writes };
                self.hosts.get_mut(index)?.program.handles.push(open);
            }
            (Operation::Read { node, handle, offset, count, has_attributes }, Answer::Attr(stat, _)) => {
                *has_attributes = true;
                let (what, range) = ((*node, *handle), (*offset, u64::from(*count)));
                return (!self.is_read(index, &busy, what, range, stat.size)).then_some(busy);
            }
            (Operation::Read { node, offset, count, .. }, Answer::Data(data)) => {
                let (node, range) = (*node, (*offset, u64::from(*count)));
                self.check_data(index, busy.began, node, range, &data);
            }
            (Operation::Write { .. }, Answer::Count(_)) => {}
            (Operation::Set { .. }, Answer::Attr(..)) => {}
            (Operation::Close(node, handle, Closing::Fsync), Answer::Done) => {
                let (node, handle) = (*node, *handle);
                self.check_synced(index, busy.began, node, handle);
            }
            (Operation::Lock(node, handle, LockKind::Write), Answer::Done) => {
                return self.locked(index, busy.began, *node, *handle);
            }
            (Operation::Close(..) | Operation::Lock(..), Answer::Done) => {}
            (Operation::List { handle, .. }, Answer::Opened(opened, _)) => {
                *handle = Some(opened);
                return Some(busy);
            }
            (Operation::List { .. }, Answer::ListingEnd) => return self.listed(index, busy, Vec::new()),
            (Operation::List { .. }, Answer::Listing(listed)) => return self.listed(index, busy, listed),
            (Operation::CloseList(..), Answer::Done) => {}
            (operation, answer) => {
                let text = format!("client {index}: {answer:?} is no answer to {operation:?}");
                self.fail(text);
            }
        }
        None
    }

    /// Takes a granted lock. Later reads are no older than the grant; its program reads at once.
    fn locked(&mut self, index: usize, pending_call: Time, node: TreeNodeId, handle: Handle) -> Option<Busy> {
        let host = self.hosts.get_mut(index)?;
        let (file, _) = *host.program.nodes.get(&node)?;
        if let Some(granted) = self.server.granted_since(index, host.life, file, pending_call) {
            host.program.locked.insert(file, Locked { granted, answered: self.now });
        }
        if host.program.is_writing(node) {
            return None;
        }
        let operation = Operation::Read { node, handle, offset: 0, count: 4096, has_attributes: false };
        Some(Busy { operation, began: self.now, call: None })
    }

    fn looked(&mut self, index: usize, busy: &Busy, place: &Place, answer: Answer) {
        let meaning = match answer {
            Answer::Entry(entry) => {
                if let Some(host) = self.hosts.get_mut(index) {
                    host.program.note_node(&entry);
                    host.program.found = Some(entry.node);
                }
                if !entry.attr_ttl.is_zero() {
                    self.check_stat(index, busy.began, &entry.stat);
                }
                if self.may_be_as_it_was(index, busy, &entry) {
                    self.counts.hosts_down += 1;
                    return;
                }
                Some(entry.stat.id)
            }
            Answer::NoEntry(_) => {
                if let Some(host) = self.hosts.get_mut(index) {
                    host.program.found = None;
                }
                None
            }
            other => return self.fail(format!("client {index}: {other:?} is no answer to a lookup")),
        };
        self.check_meaning(index, busy.began, place, meaning, "by a lookup");
    }

    /// Returns whether a directory may be reported as it was cached: while the server is unreachable, processes keep their working directory.
    fn may_be_as_it_was(&self, index: usize, busy: &Busy, entry: &Entry) -> bool {
        let is_valid_for_no_time = entry.entry_ttl.is_zero() && entry.attr_ttl.is_zero();
        let was_disconnected =
            self.hosts.get(index).is_some_and(|host| host.was_disconnected_since(busy.began));
        entry.stat.kind == Kind::Directory && is_valid_for_no_time && was_disconnected
    }

    /// Checks a change of names.
    fn renamed(&mut self, index: usize, busy: &Busy, renaming: Renaming, places: &[Place], answer: Answer) {
        if let Answer::Entry(entry) | Answer::Created(entry, ..) = &answer
            && let Some(host) = self.hosts.get_mut(index)
        {
            host.program.note_node(entry);
        }
        let (Some(place), Some(to)) = (places.first(), places.last()) else { return };
        match (renaming, answer) {
            (Renaming::Create, Answer::Created(entry, handle, _)) => {
                if let Some(host) = self.hosts.get_mut(index) {
                    host.program.handles.push(Open { node: entry.node, handle, writes: true });
                }
                self.check_done(index, busy, place, |meaning| meaning == Some(entry.stat.id));
            }
            (Renaming::Mkdir | Renaming::Symlink | Renaming::Link(_), Answer::Entry(entry)) => {
                self.check_done(index, busy, place, |meaning| meaning == Some(entry.stat.id));
            }
            (Renaming::Unlink | Renaming::Rmdir, Answer::Done) => {
                self.check_done(index, busy, place, |meaning: Option<FileId>| meaning.is_none());
            }
            (Renaming::Rename(_), Answer::Done) => {
                self.check_done(index, busy, to, |meaning: Option<FileId>| meaning.is_some());
            }
            (renaming, answer) => {
                self.fail(format!("client {index}: {answer:?} is no answer to {renaming:?}"));
            }
        }
    }

    /// Takes a part of a listing; an empty part is its end.
    fn listed(&mut self, index: usize, mut busy: Busy, part: Vec<Listed>) -> Option<Busy> {
        let program = &mut self.hosts.get_mut(index)?.program;
        let Operation::List { node, dir, handle, offset, listed } = &mut busy.operation else { return None };
        let (node, dir, handle) = (*node, *dir, (*handle)?);
        if part.is_empty() {
            let listed = std::mem::take(listed);
            self.check_listing(index, busy.began, dir, &listed);
            if handle == STATELESS {
                return None;
            }
            return Some(Busy { operation: Operation::CloseList(node, handle), ..busy });
        }
        for entry in part {
            *offset = entry.next;
            if let Some(found) = &entry.entry {
                program.note_node(found);
            }
            // The model has one file system and never reuses an inode number.
            listed.push((entry.name, FileId { fs: 0, ino: entry.ino, generation: 1 }));
        }
        // Now and then the program stops reading, or its kernel has cached the rest meanwhile.
        if handle == STATELESS && (self.dice.chance(1, 8) || self.is_listed(index, &mut busy)) {
            return None;
        }
        Some(busy)
    }

    /// Assigns a change that the server applied to a client's own change.
    pub(crate) fn applied(&mut self, change: usize, request: &Request) {
        let state = self.truth.state();
        let Some(change) = self.truth.changes.get(change) else { return };
        let (host, life) = (change.host, change.life);
        let Some(host) = self.hosts.get_mut(host).filter(|host| host.life == life) else { return };
        host.program.own.iter_mut().any(|own| own.applies(request, state));
    }
}

fn cut_short(answer: &Answer) -> String {
    match answer {
        Answer::Data(data) => format!("{} bytes, {:02x?}", data.len(), data.get(..8.min(data.len()))),
        other => format!("{other:?}").chars().take(300).collect(),
    }
}
