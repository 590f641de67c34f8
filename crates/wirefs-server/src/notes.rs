//! What a server notes of numbered changes, so that its process may be killed and started again without losing one or
//! doing one twice.
//!
//! The driver keeps the notes of each session ([`Output::Note`](crate::Output::Note)) where they outlive the process, and
//! hands back what they come to when the session is named again ([`Noted`]).
//!
//! ```text
//!   a change comes ──► Begun ──► the tree does it ──► Done ──► the reply is sent
//! ```
//! *Begun* is noted only of changes that are not the same when they are done twice. One that was begun and is not known to
//! be done is undecided: when it is sent again, what it has found before tells whether it was done ([`crate::repeat`]).

pub use crate::creations::Creations;
use std::collections::BTreeMap;
use wirefs_op::message::target::NOFD;
use wirefs_op::{FileId, Reply, Stat};

/// What a change found right before it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// What had the name that changes; of a rename, the name that it gives.
    pub at: Option<FileId>,
    /// The object that gets a name: it is moved or linked.
    pub of: Option<FileId>,
    /// The file's size in bytes, of an append.
    pub size: u64,
}

/// A change that began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begun {
    /// Tells its kind and its names from others ([`crate::repeat::about`]).
    pub about: u64,
    /// What it found.
    pub found: Found,
}

/// What is to be kept of one change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// It is about to be carried out.
    Begun {
        /// Its number.
        number: u64,
        /// What it found.
        begun: Begun,
    },
    /// It was carried out, or has failed.
    Done {
        /// Its number.
        number: u64,
        /// What it created.
        created: Option<FileId>,
        /// What the client is told, whenever it asks.
        reply: Box<Reply>,
    },
    /// The client has the replies to all changes below this number. May be kept together with the next note.
    Answered(u64),
}

/// What is known of one change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It began; whether it was done is not known.
    Begun(Begun),
    /// It was done: this was answered.
    Done(Box<Reply>),
}

/// What the notes of a session come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Noted {
    /// Above the numbers of all changes that have begun.
    pub next: u64,
    /// The client has the replies to all changes below.
    pub answered: u64,
    /// The changes from there on. One below may still be carried out: its client does not ask for its outcome any more.
    pub outcomes: BTreeMap<u64, Outcome>,
    /// What changes have created.
    pub created: Creations,
}

impl Noted {
    /// Takes the next note.
    pub fn take(&mut self, note: Note) {
        match note {
            Note::Begun { number, begun } => {
                self.next = self.next.max(number.saturating_add(1));
                // One that was begun again found what it had done itself; another one has taken the number of one that its client forgot.
                let is_another =
                    |noted: &Outcome| matches!(noted, Outcome::Begun(first) if first.about != begun.about);
                if number >= self.answered && self.outcomes.get(&number).is_none_or(is_another) {
                    self.outcomes.insert(number, Outcome::Begun(begun));
                }
            }
            Note::Done { number, created, reply } => {
                self.next = self.next.max(number.saturating_add(1));
                if number >= self.answered {
                    self.outcomes.insert(number, Outcome::Done(reply));
                }
                if let Some(id) = created {
                    self.created.insert(number, id);
                }
            }
            Note::Answered(below) => {
                self.answered = self.answered.max(below);
                self.next = self.next.max(below);
                self.outcomes = self.outcomes.split_off(&self.answered);
            }
        }
    }
}

/// A reply as it may be given by another process than the one that made it: that one's open files and promises are gone.
pub(crate) fn without_promises(reply: &Reply) -> Reply {
    let mut reply = reply.clone();
    if let Reply::Put(put) = &mut reply {
        put.fd = NOFD;
    }
    unlease(&mut reply);
    reply
}

/// Takes back what a reply to a change promised: it is given over another connection than it was made for, and what was
/// recalled meanwhile may have been recalled before the change was sent there.
pub(crate) fn unlease(reply: &mut Reply) {
    for stat in stats_mut(reply).into_iter().flatten() {
        stat.leased = false;
    }
}

/// The attributes that the reply to a change tells.
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
        | Reply::Limited(_) => [None, None, None],
    }
}
