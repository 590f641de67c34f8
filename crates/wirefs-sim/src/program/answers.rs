//! What becomes of what was answered.

use super::{Busy, Closing, Deed, Locked, Open, Place, Renaming};
use crate::world::World;
use wirefs_client::call::{Answer, CallId, Entry, Handle, Listed, TreeNodeId, UNOPENED};
use wirefs_op::{Errno, FileId, Kind, LockKind, Request, Time};

impl World {
    /// The answer to a call is there.
    pub(crate) fn program_is_answered(&mut self, index: usize, id: CallId, answer: Answer) {
        if self.ahead.is_some() {
            return self.ahead_answered(id, answer);
        }
        if self.rivals.is_some() {
            return self.rival_is_answered(index, id, answer);
        }
        let Some(seat) = self.seats.get_mut(index) else { return };
        let waits = |busy: &Option<Busy>| busy.as_ref().is_some_and(|busy| busy.call == Some(id));
        let Some(thread) = seat.program.threads.iter().position(waits) else {
            return self.fail(format!("client {index}: {id:?} was answered and did not wait: {answer:?}"));
        };
        let Some(busy) = seat.program.threads.get_mut(thread).and_then(Option::take) else { return };
        self.note(|| format!("client {index}.{thread} is told {}", cut_short(&answer)));
        self.counts(&answer);
        match self.take(index, busy, answer) {
            Some(next) => self.proceed(index, thread, next),
            None => self.thinks(index, thread),
        }
    }

    fn counts(&mut self, answer: &Answer) {
        match answer {
            Answer::Fail(Errno::Io) => self.record.unknown_outcomes += 1,
            Answer::Fail(Errno::HostDown) => self.record.hosts_down += 1,
            _ => {}
        }
    }

    /// Compares an answer with the truth, and tells how the deed goes on.
    fn take(&mut self, index: usize, mut busy: Busy, answer: Answer) -> Option<Busy> {
        let now = self.now;
        if let Deed::Write { own, .. } | Deed::Set { own, .. } = busy.deed
            && let Some(own) = self.seats.get_mut(index).and_then(|seat| seat.program.own.get_mut(own))
        {
            own.failed = matches!(answer, Answer::Fail(_));
            own.done = Some(now);
        }
        if let Answer::Fail(errno) = answer {
            self.failed(index, &busy, errno);
            if let Deed::Write { node, .. } | Deed::Close(node, ..) = busy.deed {
                self.seats.get_mut(index)?.program.may_have_lost(node);
            }
            let is_given_up =
                matches!(errno, Errno::Io | Errno::HostDown) && matches!(busy.deed, Deed::Names(..));
            self.seats.get_mut(index)?.program.has_given_up |= is_given_up;
            // A kernel closes what was opened, whatever became of it.
            if let Deed::List { node, handle: Some(handle), .. } = busy.deed {
                return Some(Busy { deed: Deed::CloseList(node, handle), ..busy });
            }
            return None;
        }
        match (&mut busy.deed, answer) {
            (Deed::Look(place), answer) => {
                let place = place.clone();
                self.looked(index, &busy, &place, answer);
            }
            (Deed::Stat(_), Answer::Attr(stat, _)) => self.check_stat(index, busy.began, &stat),
            (Deed::Names(renaming, places), answer) => {
                let (renaming, places) = (*renaming, places.clone());
                self.renamed(index, &busy, renaming, &places, answer);
            }
            (Deed::Open(node, writes), Answer::Opened(handle, _)) => {
                let open = Open { node: *node, handle, writes: *writes };
                self.seats.get_mut(index)?.program.handles.push(open);
            }
            (Deed::Read { node, handle, offset, count, has_attributes }, Answer::Attr(stat, _)) => {
                *has_attributes = true;
                let (what, range) = ((*node, *handle), (*offset, u64::from(*count)));
                return (!self.is_read(index, &busy, what, range, stat.size)).then_some(busy);
            }
            (Deed::Read { node, offset, count, .. }, Answer::Data(data)) => {
                let (node, range) = (*node, (*offset, u64::from(*count)));
                self.check_data(index, busy.began, node, range, &data);
            }
            (Deed::Write { .. }, Answer::Count(_)) => {}
            (Deed::Set { .. }, Answer::Attr(..)) => {}
            (Deed::Close(node, handle, Closing::Fsync), Answer::Done) => {
                let (node, handle) = (*node, *handle);
                self.check_synced(index, busy.began, node, handle);
            }
            (Deed::Lock(node, handle, LockKind::Write), Answer::Done) => {
                return self.locked(index, busy.began, *node, *handle);
            }
            (Deed::Close(..) | Deed::Lock(..), Answer::Done) => {}
            (Deed::List { handle, .. }, Answer::Opened(opened, _)) => {
                *handle = Some(opened);
                return Some(busy);
            }
            (Deed::List { .. }, Answer::ListingEnd) => return self.listed(index, busy, Vec::new()),
            (Deed::List { .. }, Answer::Listing(listed)) => return self.listed(index, busy, listed),
            (Deed::CloseList(..), Answer::Done) => {}
            (deed, answer) => {
                let text = format!("client {index}: {answer:?} is no answer to {deed:?}");
                self.fail(text);
            }
        }
        None
    }

    /// A lock was granted. What is read from now on is no older than the grant; its program reads at once.
    fn locked(&mut self, index: usize, asked: Time, node: TreeNodeId, handle: Handle) -> Option<Busy> {
        let seat = self.seats.get_mut(index)?;
        let (file, _) = *seat.program.nodes.get(&node)?;
        if let Some(granted) = self.server.granted_since(index, seat.life, file, asked) {
            seat.program.locked.insert(file, Locked { granted, answered: self.now });
        }
        if seat.program.is_writing(node) {
            return None;
        }
        let deed = Deed::Read { node, handle, offset: 0, count: 4096, has_attributes: false };
        Some(Busy { deed, began: self.now, call: None })
    }

    fn looked(&mut self, index: usize, busy: &Busy, place: &Place, answer: Answer) {
        let meaning = match answer {
            Answer::Entry(entry) => {
                if let Some(seat) = self.seats.get_mut(index) {
                    seat.program.meets(&entry);
                    seat.program.found = Some(entry.node);
                }
                if !entry.attr_ttl.is_zero() {
                    self.check_stat(index, busy.began, &entry.stat);
                }
                if self.may_be_as_it_was(index, busy, &entry) {
                    self.record.hosts_down += 1;
                    return;
                }
                Some(entry.stat.id)
            }
            Answer::NoEntry(_) => {
                if let Some(seat) = self.seats.get_mut(index) {
                    seat.program.found = None;
                }
                None
            }
            other => return self.fail(format!("client {index}: {other:?} is no answer to a lookup")),
        };
        self.check_meaning(index, busy.began, place, meaning, "by a lookup");
    }

    /// While the server cannot be asked, a directory that the kernel has is told as it was, so that who stands there keeps it: that says nothing.
    fn may_be_as_it_was(&self, index: usize, busy: &Busy, entry: &Entry) -> bool {
        let is_told_for_no_time = entry.entry_ttl.is_zero() && entry.attr_ttl.is_zero();
        let is_troubled = self.seats.get(index).is_some_and(|seat| seat.is_troubled_since(busy.began));
        entry.stat.kind == Kind::Directory && is_told_for_no_time && is_troubled
    }

    /// A change of names was done.
    fn renamed(&mut self, index: usize, busy: &Busy, renaming: Renaming, places: &[Place], answer: Answer) {
        if let Answer::Entry(entry) | Answer::Created(entry, ..) = &answer
            && let Some(seat) = self.seats.get_mut(index)
        {
            seat.program.meets(entry);
        }
        let (Some(place), Some(to)) = (places.first(), places.last()) else { return };
        match (renaming, answer) {
            (Renaming::Create, Answer::Created(entry, handle, _)) => {
                if let Some(seat) = self.seats.get_mut(index) {
                    seat.program.handles.push(Open { node: entry.node, handle, writes: true });
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

    /// A part of a listing; an empty one is its end.
    fn listed(&mut self, index: usize, mut busy: Busy, part: Vec<Listed>) -> Option<Busy> {
        let program = &mut self.seats.get_mut(index)?.program;
        let Deed::List { node, dir, handle, offset, listed } = &mut busy.deed else { return None };
        let (node, dir, handle) = (*node, *dir, (*handle)?);
        if part.is_empty() {
            let listed = std::mem::take(listed);
            self.check_listing(index, busy.began, dir, &listed);
            if handle == UNOPENED {
                return None;
            }
            return Some(Busy { deed: Deed::CloseList(node, handle), ..busy });
        }
        for entry in part {
            *offset = entry.next;
            if let Some(found) = &entry.entry {
                program.meets(found);
            }
            // The model has one file system, and uses no number twice.
            listed.push((entry.name, FileId { fs: 0, ino: entry.ino, generation: 1 }));
        }
        // Now and then it has seen enough, or its kernel has gathered the rest meanwhile.
        if handle == UNOPENED && (self.dice.chance(1, 8) || self.is_listed(index, &mut busy)) {
            return None;
        }
        Some(busy)
    }

    /// The server carried a change out: which of a client's own was it?
    pub(crate) fn applied(&mut self, change: usize, request: &Request) {
        let state = self.truth.state();
        let Some(change) = self.truth.changes.get(change) else { return };
        let (seat, life) = (change.seat, change.life);
        let Some(seat) = self.seats.get_mut(seat).filter(|seat| seat.life == life) else { return };
        seat.program.own.iter_mut().any(|own| own.applies(request, state));
    }
}

fn cut_short(answer: &Answer) -> String {
    match answer {
        Answer::Data(data) => format!("{} bytes, {:02x?}", data.len(), data.get(..8.min(data.len()))),
        other => format!("{other:?}").chars().take(300).collect(),
    }
}
