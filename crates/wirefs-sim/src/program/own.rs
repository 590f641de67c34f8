//! Own changes of files, which the programs of a client see at once, before the server has them.

use crate::truth::Object;
use wirefs_op::message::put::PutMode;
use wirefs_op::{FileId, Request, Time};

/// A change of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Edit {
    Write { offset: u64, data: Vec<u8> },
    Size(u64),
    Mode(u32),
}

impl Edit {
    /// Returns whether this request is the change.
    fn is_asked_by(&self, file: FileId, request: &Request) -> bool {
        let Request::Put(put) = request else { return false };
        if put.target.id != Some(file) || put.mode.has(PutMode::CREATE) {
            return false;
        }
        match self {
            Edit::Write { offset, data } => put.offset == *offset && put.data.0.as_ref() == data.as_slice(),
            Edit::Size(size) => put.set.size == Some(*size),
            Edit::Mode(mode) => put.set.mode == Some(*mode),
        }
    }
}

/// An own change.
#[derive(Clone, Debug)]
pub(crate) struct OwnChange {
    pub(crate) file: FileId,
    pub(crate) edit: Edit,
    pub(crate) began: Time,
    /// The time of the answer to its caller.
    pub(crate) done: Option<Time>,
    pub(crate) failed: bool,
    /// A later call on the file has failed, which may have reported the loss of this change.
    pub(crate) may_be_lost: bool,
    /// The first state of the tree with the change.
    pub(crate) applied: Option<u64>,
}

impl OwnChange {
    /// Records the state if this request is the change.
    pub(crate) fn applies(&mut self, request: &Request, state: u64) -> bool {
        let is_it = !self.failed && self.applied.is_none() && self.edit.is_asked_by(self.file, request);
        if is_it {
            self.applied = Some(state);
        }
        is_it
    }
}

/// A file as one client may see it.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) mode: u32,
    pub(crate) data: Vec<u8>,
}

impl View {
    pub(crate) fn of(object: &Object) -> View {
        View { mode: object.stat.mode, data: object.data.to_vec() }
    }

    pub(crate) fn apply(&mut self, edit: &Edit) {
        match edit {
            Edit::Write { offset, data } => {
                let (start, end) = (*offset as usize, *offset as usize + data.len());
                if self.data.len() < end {
                    self.data.resize(end, 0);
                }
                if let Some(to) = self.data.get_mut(start..end) {
                    to.copy_from_slice(data);
                }
            }
            Edit::Size(size) => self.data.resize(*size as usize, 0),
            Edit::Mode(mode) => self.mode = *mode,
        }
    }
}
