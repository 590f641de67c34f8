//! Directories that the server's disk has: who makes a file, syncs it and then syncs its directory, as databases do, waits once.
//!
//! A directory that programs sync is brought to the server's disk along with the next file in it that is synced. The sync of the directory
//! that follows joins that, unless a name was made, moved or removed in between, by whomever.

use crate::call::{Answer, CallId};
use crate::core::Client;
use crate::operation::commit;
use std::collections::{BTreeMap, BTreeSet};
use wirefs_cache::NodeId;
use wirefs_op::message::put::PutMode;
use wirefs_op::message::xattr::XattrAction;
use wirefs_op::{Errno, Request};

/// Directories of which is remembered that programs sync them, at most.
const WANTED_MAX: usize = 64;

/// How far the server's disk has a directory as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Current {
    /// It is asked to, by the request with this number.
    Asked(u64),
    /// It has it.
    Done,
}

/// The directories that were brought to the server's disk of late, or are on their way.
#[derive(Debug, Default)]
pub(crate) struct Synced {
    wanted: BTreeSet<NodeId>,
    current: BTreeMap<NodeId, Current>,
    under_way: BTreeMap<u64, (NodeId, Vec<CallId>)>,
    next: u64,
}

impl Synced {
    /// Names or attributes have changed.
    pub(crate) fn changed(&mut self) {
        self.current.clear();
    }

    fn want(&mut self, dir: NodeId) {
        if self.wanted.len() >= WANTED_MAX && !self.wanted.contains(&dir) {
            self.wanted.clear();
        }
        self.wanted.insert(dir);
    }

    fn begins(&mut self, dir: NodeId, call: Option<CallId>) -> u64 {
        self.next += 1;
        self.current.insert(dir, Current::Asked(self.next));
        self.under_way.insert(self.next, (dir, call.into_iter().collect()));
        self.next
    }

    /// The server's disk has what a request asked for, or not: those who waited for it.
    fn ended(&mut self, number: u64, is_done: bool) -> Vec<CallId> {
        let Some((dir, calls)) = self.under_way.remove(&number) else { return Vec::new() };
        if self.current.get(&dir) == Some(&Current::Asked(number)) {
            match is_done {
                true => self.current.insert(dir, Current::Done),
                false => self.current.remove(&dir),
            };
        }
        calls
    }
}

/// Whether a change may be one of a directory: of its names or attributes.
fn may_concern_directory(request: &Request) -> bool {
    match request {
        Request::Put(put) => {
            [PutMode::CREATE, PutMode::STAT, PutMode::REMOVE].into_iter().any(|mode| put.mode.has(mode))
        }
        Request::Remove(_) | Request::Rename(_) | Request::Link(_) => true,
        Request::Xattr(xattr) => matches!(xattr.action, XattrAction::Set | XattrAction::Remove),
        Request::Version(_)
        | Request::Attach(_)
        | Request::Flush(_)
        | Request::Ping(_)
        | Request::Get(_)
        | Request::Statfs(_)
        | Request::Lock(_)
        | Request::Allocate(_)
        | Request::Copy(_)
        | Request::Seek(_)
        | Request::Commit(_)
        | Request::Find(_)
        | Request::Recalled(_)
        | Request::Number(_) => false,
    }
}

impl Client {
    /// A request is about to be sent.
    pub(crate) fn watch_directories(&mut self, request: &Request) {
        if may_concern_directory(request) {
            self.synced.changed();
        }
    }

    /// Syncs a directory on a mount that is alone; false where it is to be done as everywhere.
    pub(crate) fn sync_directory(&mut self, dir: NodeId, call: CallId) -> bool {
        if !self.can_be_ahead(dir) {
            return false;
        }
        self.synced.want(dir);
        match self.synced.current.get(&dir).copied() {
            Some(Current::Done) => self.answer(call, Answer::Done),
            Some(Current::Asked(number)) => {
                if let Some((_, calls)) = self.synced.under_way.get_mut(&number) {
                    calls.push(call);
                }
            }
            None => {
                let number = self.synced.begins(dir, Some(call));
                if let Err(errno) = commit::of_directory(self, dir, number) {
                    self.directory_synced(number, Err(errno));
                }
            }
        }
        true
    }

    /// A file is being synced: so is its directory, if that is likely to be next.
    pub(crate) fn sync_directory_of(&mut self, node: NodeId) {
        let has_name = !self.names.links(node).is_empty();
        let dir = self.names.parent(node);
        let is_wanted = has_name && self.synced.wanted.contains(&dir);
        if !is_wanted || self.synced.current.contains_key(&dir) || !self.can_be_ahead(dir) {
            return;
        }
        let number = self.synced.begins(dir, None);
        if let Err(errno) = commit::of_directory(self, dir, number) {
            self.directory_synced(number, Err(errno));
        }
    }

    /// A request of these was answered.
    pub(crate) fn directory_synced(&mut self, number: u64, outcome: Result<(), Errno>) {
        for call in self.synced.ended(number, outcome.is_ok()) {
            match outcome {
                Ok(()) => self.answer(call, Answer::Done),
                Err(errno) => self.fail(call, errno),
            }
        }
    }
}
