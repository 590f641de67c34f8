//! The part of a ledger that outlives the server's process. After a crash no numbered change is lost or applied
//! twice.
//!
//! The driver stores the records of each session
//! ([`ServerOutput::AppendLedger`](crate::ServerOutput::AppendLedger)). When a client names the session again, the
//! driver returns their sum ([`SavedLedger`]).
//!
//! ```text
//!   change received ──► Started ──► the tree applies it ──► Done ──► reply sent
//! ```
//! *Started* is recorded only for changes that are not idempotent. A change with *Started* but without *Done* is
//! undecided. When it is sent again, its prior state tells whether it was made ([`crate::repeat`]).

pub use crate::creations::Creations;
use std::collections::BTreeMap;
use wirefs_op::message::target::NOFD;
use wirefs_op::{FileId, Reply, Stat};

/// The state of the tree right before a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PriorState {
    /// The object that had the changed name; for a rename, the one that had the new name.
    pub named: Option<FileId>,
    /// The object that gets a name by a rename or link.
    pub object: Option<FileId>,
    /// For an append, the size of the file in bytes.
    pub size: u64,
}

/// A change that began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartedChange {
    /// Identifies its kind and paths ([`crate::repeat::fingerprint`]).
    pub fingerprint: u64,
    /// The state before it.
    pub prior: PriorState,
}

/// One record in a session's saved ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LedgerRecord {
    /// The key that began the session. Precedes all other records of a session whose client proved a key.
    Owner([u8; 32]),
    /// The change is about to be executed.
    Started {
        /// The number of the change.
        number: u64,
        /// The state before the change.
        started: StartedChange,
    },
    /// The change was executed, or has failed.
    Done {
        /// The number of the change.
        number: u64,
        /// The object that it created.
        created: Option<FileId>,
        /// The reply, for each repetition of the change.
        reply: Box<Reply>,
    },
    /// The client has the replies to all changes below this number. May be stored together with the next record.
    Acknowledged(u64),
}

/// The recorded state of one change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SavedOutcome {
    /// It began; whether it was completed is unknown.
    Started(StartedChange),
    /// It was completed with this reply.
    Done(Box<Reply>),
}

/// The sum of a session's ledger records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SavedLedger {
    /// The key that began the session; `None` if its client proved none.
    pub owner: Option<[u8; 32]>,
    /// Higher than the numbers of all changes that began.
    pub next: u64,
    /// The client has the replies to all changes below this number.
    pub answered: u64,
    /// The changes from `answered` on. A change below it may still be running: the client does not need its reply.
    pub outcomes: BTreeMap<u64, SavedOutcome>,
    /// The objects that changes created.
    pub created: Creations,
}

impl SavedLedger {
    /// Whether a client with this key may continue the session: it proved the key that began the session, or the
    /// ledger has no change.
    pub(crate) fn belongs_to(&self, key: Option<[u8; 32]>) -> bool {
        let is_empty = self.owner.is_none() && self.next == 0;
        is_empty || self.owner == key
    }

    /// Applies the next record.
    pub fn apply(&mut self, record: LedgerRecord) {
        match record {
            LedgerRecord::Owner(key) => self.owner = Some(key),
            LedgerRecord::Started { number, started } => {
                self.next = self.next.max(number.saturating_add(1));
                // A repeated start found the change's own effects, so the first one counts. A start with another
                // fingerprint belongs to a new change, whose client forgot its numbers.
                let is_another = |saved: &SavedOutcome| match saved {
                    SavedOutcome::Started(first) => first.fingerprint != started.fingerprint,
                    SavedOutcome::Done(_) => false,
                };
                if number >= self.answered && self.outcomes.get(&number).is_none_or(is_another) {
                    self.outcomes.insert(number, SavedOutcome::Started(started));
                }
            }
            LedgerRecord::Done { number, created, reply } => {
                self.next = self.next.max(number.saturating_add(1));
                if number >= self.answered {
                    self.outcomes.insert(number, SavedOutcome::Done(reply));
                }
                if let Some(id) = created {
                    self.created.insert(number, id);
                }
            }
            LedgerRecord::Acknowledged(below) => {
                self.answered = self.answered.max(below);
                self.next = self.next.max(below);
                self.outcomes = self.outcomes.split_off(&self.answered);
            }
        }
    }
}

/// The reply for another process, in which the open file and the leases do not exist.
pub(crate) fn for_other_process(reply: &Reply) -> Reply {
    let mut reply = reply.clone();
    if let Reply::Put(put) = &mut reply {
        put.fd = NOFD;
    }
    unlease(&mut reply);
    reply
}

/// Removes the leases from a reply that is sent over another connection. A recall of them may have preceded the
/// change there.
pub(crate) fn unlease(reply: &mut Reply) {
    for stat in stats_mut(reply).into_iter().flatten() {
        stat.leased = false;
    }
}

/// The attributes in the reply to a change.
fn stats_mut(reply: &mut Reply) -> [Option<&mut Stat>; 3] {
    match reply {
        Reply::Put(put) => [put.stat.as_mut(), put.dir.as_mut(), None],
        Reply::Remove(remove) => [remove.dir.as_mut(), None, None],
        Reply::Rename(rename) => [rename.stat.as_mut(), rename.from_dir.as_mut(), rename.to_dir.as_mut()],
        Reply::Link(link) => [link.stat.as_mut(), link.dir.as_mut(), None],
        Reply::Xattr(xattr) => [xattr.stat.as_mut(), None, None],
        Reply::Allocate(allocate) => [allocate.stat.as_mut(), None, None],
        Reply::Copy(copy) => [copy.stat.as_mut(), None, None],
        Reply::Lock(lock) => [lock.stat.as_mut(), None, None],
        Reply::Version(_)
        | Reply::Attach(_)
        | Reply::Error(_)
        | Reply::Flush(_)
        | Reply::Ping(_)
        | Reply::Get(_)
        | Reply::Statfs(_)
        | Reply::Seek(_)
        | Reply::Commit(_)
        | Reply::Find(_)
        | Reply::Recall(_)
        | Reply::Alone(_)
        | Reply::Limited(_)
        | Reply::Times(_) => [None, None, None],
    }
}
