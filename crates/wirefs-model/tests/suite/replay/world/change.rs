//! One change: its journal record, and its request to the server.

use wirefs_journal::{ChangeOutcome, Record};
use wirefs_op::message::put::PutMode;
use wirefs_op::{FileId, Request};

/// A change: its journal record, and its request to the server.
#[derive(Clone)]
pub(in crate::replay) struct Change {
    pub(super) text: String,
    pub(in crate::replay) record: Record,
    pub(in crate::replay) outcome: ChangeOutcome,
    pub(super) asked: Request,
    pub(super) is_done: bool,
    /// The object that it created.
    pub(super) made: Option<FileId>,
    pub(in crate::replay) is_journaled: bool,
}

impl Change {
    /// Returns the file whose contents or attributes it changes.
    pub(super) fn file(&self) -> Option<FileId> {
        match &self.asked {
            Request::Put(put) if put.mode.has(PutMode::CREATE) => self.made,
            Request::Put(put) => put.target.id,
            Request::Xattr(xattr) => xattr.target.id,
            _ => None,
        }
    }
}

impl std::fmt::Debug for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} done: {} {:?}", self.record.number, self.text, self.is_done, self.outcome)
    }
}

/// Returns whether a request changes names.
pub(super) fn changes_names(request: &Request) -> bool {
    match request {
        Request::Put(put) => put.mode.has(PutMode::CREATE),
        other => matches!(other, Request::Remove(_) | Request::Rename(_) | Request::Link(_)),
    }
}
