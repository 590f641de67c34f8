//! Nodes of the tree, found by their paths and held while they are used.

use crate::convert::identity;
use crate::proto::Identity;
use std::sync::Arc;
use wirefs_client::call::{Answer, Call, Caller, Entry, ROOT, TreeNodeId};
use wirefs_gate::Files;
use wirefs_op::path::is_name;
use wirefs_op::{Errno, Kind, Stat};

/// The names of one path, at most.
const NAMES_MAX: usize = 1024;

/// The tree, and the user that calls are made for.
#[derive(Clone)]
pub(crate) struct Tree {
    pub(crate) files: Arc<dyn Files>,
    pub(crate) caller: Caller,
}

/// A node, given back when dropped. The directories above it are held as long: a node is reached by its path.
pub(crate) struct Node {
    tree: Tree,
    above: Option<Box<Node>>,
    pub(crate) id: TreeNodeId,
    pub(crate) stat: Stat,
}

impl Drop for Node {
    fn drop(&mut self) {
        if self.id != ROOT {
            self.tree.call(Call::Forget { node: self.id, count: 1 });
        }
    }
}

impl Tree {
    pub(crate) fn call(&self, call: Call<'_>) -> Answer {
        self.files.call(self.caller, call)
    }

    /// Takes over an entry that the tree answered with, of a directory that the caller holds.
    pub(crate) fn node(&self, entry: Entry) -> Node {
        Node { tree: self.clone(), above: None, id: entry.node, stat: entry.stat }
    }

    pub(crate) fn stat(&self, node: TreeNodeId) -> Result<Stat, Errno> {
        match self.call(Call::Getattr { node, handle: None }) {
            Answer::Attr(stat, _) => Ok(stat),
            answer => Err(failed(&answer)),
        }
    }

    pub(crate) fn child(&self, parent: TreeNodeId, name: &[u8]) -> Result<Node, Errno> {
        self.entry(self.call(Call::Lookup { parent, name }))
    }

    /// The node of an answer that is an entry.
    pub(crate) fn entry(&self, answer: Answer) -> Result<Node, Errno> {
        match answer {
            Answer::Entry(entry) => Ok(self.node(entry)),
            Answer::NoEntry(_) => Err(Errno::NotFound),
            answer => Err(failed(&answer)),
        }
    }

    /// Walks from the root. Symbolic links are not followed.
    ///
    /// # Errors
    /// `EINVAL` for a name that no entry can have, or as a lookup.
    pub(crate) fn find(&self, path: &[u8]) -> Result<Node, Errno> {
        let mut node = Node { tree: self.clone(), above: None, id: ROOT, stat: self.stat(ROOT)? };
        for (number, name) in path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()).enumerate() {
            if number >= NAMES_MAX {
                return Err(Errno::NameTooLong);
            }
            if node.stat.kind != Kind::Directory {
                return Err(Errno::NotDirectory);
            }
            let mut child = self.child(node.id, checked(name)?)?;
            child.above = Some(Box::new(node));
            node = child;
        }
        Ok(node)
    }

    /// Walks from the root to a certain object.
    ///
    /// # Errors
    /// As [`Tree::find`]; `ESTALE` if another one is there.
    pub(crate) fn find_object(&self, path: &[u8], object: Option<&Identity>) -> Result<Node, Errno> {
        let node = self.find(path)?;
        match object {
            Some(object) if *object != identity(node.stat.id) => Err(Errno::Stale),
            Some(_) | None => Ok(node),
        }
    }

    /// Walks to the directory of a path; returns the last name too.
    ///
    /// # Errors
    /// As [`Tree::find`]; `EBUSY` for the root, which has no name.
    pub(crate) fn above<'p>(&self, path: &'p [u8]) -> Result<(Node, &'p [u8]), Errno> {
        let end = path.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
        let path = path.get(..end).unwrap_or_default();
        let start = path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
        let (above, name) = path.split_at_checked(start).unwrap_or_default();
        if name.is_empty() {
            return Err(Errno::Busy);
        }
        let dir = self.find(above)?;
        if dir.stat.kind != Kind::Directory {
            return Err(Errno::NotDirectory);
        }
        Ok((dir, checked(name)?))
    }
}

fn checked(name: &[u8]) -> Result<&[u8], Errno> {
    match is_name(name) {
        true => Ok(name),
        false if name.len() > wirefs_op::limits::NAME_BYTES_MAX => Err(Errno::NameTooLong),
        false => Err(Errno::Invalid),
    }
}

/// The error of an answer that is not what its call promises.
pub(crate) fn failed(answer: &Answer) -> Errno {
    if let Answer::Fail(errno) = answer { *errno } else { Errno::Io }
}

/// The outcome of a call that only succeeds or fails.
pub(crate) fn done(answer: &Answer) -> Result<(), Errno> {
    if *answer == Answer::Done { Ok(()) } else { Err(failed(answer)) }
}
