//! `fsync` of a directory. A directory that programs sync is synced along with the next file in it, so a program that
//! syncs both waits once.

use crate::answering::Answerer;
use crate::call::{Answer, CallId};
use crate::core::Client;
use crate::operation::{barrier, commit};
use crate::view::synced::Current;
use wirefs_cache::TreeNodeId;
use wirefs_op::{Errno, TreePath};

impl Client {
    /// Sends a barrier for a directory in which nothing has changed but one rollback journal's name, if that is enough.
    fn order_directory(&mut self, dir: TreeNodeId, journals: &[TreePath]) -> bool {
        let ([journal], Some(Current::Done)) = (journals, self.view.exclusive.synced.current.get(&dir))
        else {
            return false;
        };
        let name = journal.names().next_back().map(<[u8]>::to_vec);
        let order = name.and_then(|name| self.view.orders_name(&self.requests, dir, &name));
        order.is_some_and(|order| barrier::send(&mut self.sender(), (dir, None), order).is_ok())
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
            Some(Current::Done) => self.answerer().answer(call, Answer::Done),
            Some(Current::Asked(number)) => {
                if let Some((_, calls)) = self.view.exclusive.synced.under_way.get_mut(&number) {
                    calls.push(call);
                }
            }
            None => {
                let number = self.view.exclusive.synced.begins(dir, Some(call));
                if let Err(errno) = commit::of_directory(&mut self.sender(), dir, number) {
                    self.answerer().directory_synced(number, Err(errno));
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
        if let Err(errno) = commit::of_directory(&mut self.sender(), dir, number) {
            self.answerer().directory_synced(number, Err(errno));
        }
    }
}

impl Answerer<'_> {
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
