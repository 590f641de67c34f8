//! Continuations of requests that publish a private copy, and that settle the file that the copy replaced.

use super::continuation::{Affected, Continuation};
use crate::view::files::Base;
use wirefs_cache::TreeNodeId;

/// One request of a publication.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Publishing {
    pub(crate) number: u64,
    pub(crate) step: PublishStep,
}

/// The steps of a publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PublishStep {
    /// Create the new file.
    Make,
    /// Write the new file.
    Fill,
    /// Exchange the new file with the old one.
    Exchange,
    /// Give the new file a name that no file has any more.
    Appear,
    /// Replace the old file, where the server's file system cannot exchange the two.
    Move,
    /// Write the old file in place.
    Write,
}

impl Continuation for Publishing {}

/// A file that a published copy replaced; no call waits.
#[derive(Clone, Debug)]
pub(crate) struct ReplacedFile {
    pub(crate) dir: TreeNodeId,
    /// The name under which the new file was made, and which the replaced file has now.
    pub(crate) temporary: Vec<u8>,
    /// The former name.
    pub(crate) name: Vec<u8>,
    /// The file from which the copy was made.
    pub(crate) base: Option<Base>,
    pub(crate) step: ReplacedStep,
    /// The name of the conflict copy, and the number of the attempt.
    pub(crate) kept_as: Vec<u8>,
    pub(crate) tries: u32,
}

/// The steps that settle a replaced file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplacedStep {
    /// Compare it with the base of the copy.
    Look,
    /// Remove it: it is the base.
    Remove,
    /// Rename it to a conflict copy.
    Keep,
}

impl ReplacedFile {
    /// The names that a request for it may change.
    fn places(&self) -> [(TreeNodeId, Vec<u8>); 2] {
        [(self.dir, self.temporary.clone()), (self.dir, self.kept_as.clone())]
    }
}

impl Continuation for ReplacedFile {
    fn affected(&self) -> Affected {
        Affected::names(self.places().to_vec())
    }

    fn outlives_deadline(&self) -> bool {
        true
    }
}
