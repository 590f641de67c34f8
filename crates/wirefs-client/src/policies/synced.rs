//! Directories on the server's disk: a program that makes a file, syncs it and then syncs its directory, as databases do, waits once.
//!
//! A directory that programs sync is brought to the server's disk along with the next file in it that is synced. The sync of the directory
//! that follows joins that, unless a name was made, moved or removed in between, by whomever.

use crate::call::{Answer, CallId};
use crate::core::Client;
use crate::operation::{barrier, commit};
use crate::view::View;
use crate::view::rollback;
use crate::view::synced::Current;
use wirefs_cache::TreeNodeId;
use wirefs_op::message::put::PutMode;
use wirefs_op::{Change, Errno, Request, TreePath};

/// The rollback journal that a change makes, removes or changes the attributes of, if it does nothing else.
fn journal_of(request: &Request) -> Option<&TreePath> {
    let path = match request {
        Request::Put(put) if !put.mode.has(PutMode::REMOVE) && !put.mode.has(PutMode::NAMELESS) => {
            &put.target.path
        }
        Request::Remove(remove) => &remove.place.path,
        _ => return None,
    };
    path.names().next_back().is_some_and(rollback::is_journal).then_some(path)
}

/// Returns whether a request may change the names in a directory, or a directory's attributes.
fn may_concern_directory(request: &Request) -> bool {
    match request.change() {
        Some(Change::Put(put)) => {
            [PutMode::CREATE, PutMode::STAT, PutMode::REMOVE].into_iter().any(|mode| put.mode.has(mode))
        }
        Some(Change::Remove(_) | Change::Rename(_) | Change::Link(_) | Change::Xattr(_)) => true,
        Some(Change::Lock(_) | Change::Allocate(_) | Change::Copy(_)) | None => false,
    }
}

impl View {
    /// A request is about to be sent.
    pub(crate) fn watch_syncs(&mut self, request: &Request) {
        self.watch_rollback(request);
        if may_concern_directory(request) {
            match journal_of(request) {
                Some(journal) => self.exclusive.synced.journal_changed(journal),
                None => self.exclusive.synced.forget(),
            }
        }
    }

    /// The rollback journals of a directory that were made, changed or removed since it was brought to the server's disk.
    fn journals_since(&self, dir: TreeNodeId) -> Vec<TreePath> {
        let path = self.names.path(dir);
        path.map(|path| self.exclusive.synced.journals_of(dir, &path)).unwrap_or_default()
    }
}

impl Client {
    /// Sends a barrier for a directory in which nothing has changed but one rollback journal's name, if that is enough.
    fn order_directory(&mut self, dir: TreeNodeId, journals: &[TreePath]) -> bool {
        let ([journal], Some(Current::Done)) = (journals, self.view.exclusive.synced.current.get(&dir))
        else {
            return false;
        };
        let name = journal.names().next_back().map(<[u8]>::to_vec);
        let order = name.and_then(|name| self.view.orders_name(&self.requests, dir, &name));
        order.is_some_and(|order| barrier::send(self, (dir, None), order).is_ok())
    }

    /// Syncs a directory on a mount that is alone; false where it is to be done as everywhere.
    pub(crate) fn sync_directory(&mut self, dir: TreeNodeId, call: CallId) -> bool {
        if !self.view.can_be_ahead(&self.requests, dir) {
            return false;
        }
        self.view.exclusive.synced.want(dir);
        let journals = self.view.journals_since(dir);
        if self.order_directory(dir, &journals) {
            self.view.answer_journaled(&mut self.calls, &mut self.outputs, call, Answer::Done);
            return true;
        }
        match self.view.exclusive.synced.current.get(&dir).copied().filter(|_| journals.is_empty()) {
            Some(Current::Done) => self.answer(call, Answer::Done),
            Some(Current::Asked(number)) => {
                if let Some((_, calls)) = self.view.exclusive.synced.under_way.get_mut(&number) {
                    calls.push(call);
                }
            }
            None => {
                let number = self.view.exclusive.synced.begins(dir, Some(call));
                if let Err(errno) = commit::of_directory(self, dir, number) {
                    self.directory_synced(number, Err(errno));
                }
            }
        }
        true
    }

    /// A file is being synced: so is its directory, if that is likely to be next.
    pub(crate) fn sync_directory_of(&mut self, node: TreeNodeId) {
        let has_name = !self.view.names.links(node).is_empty();
        let dir = self.view.names.parent(node);
        let is_wanted = has_name && self.view.exclusive.synced.wanted.contains(&dir);
        let is_current = self.view.exclusive.synced.current.contains_key(&dir) && {
            let own = self.view.names.path(node);
            !self.view.journals_since(dir).iter().any(|journal| Some(journal) == own.as_ref())
        };
        if !is_wanted || is_current || !self.view.can_be_ahead(&self.requests, dir) {
            return;
        }
        let number = self.view.exclusive.synced.begins(dir, None);
        if let Err(errno) = commit::of_directory(self, dir, number) {
            self.directory_synced(number, Err(errno));
        }
    }

    /// A request of these was answered.
    pub(crate) fn directory_synced(&mut self, number: u64, outcome: Result<(), Errno>) {
        for call in self.view.exclusive.synced.ended(number, outcome.is_ok()) {
            match outcome {
                Ok(()) => self.answer(call, Answer::Done),
                Err(errno) => self.fail(call, errno),
            }
        }
    }
}
