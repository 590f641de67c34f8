//! Private copies that are being published.

use crate::call::{CallId, Handle};
use crate::view::files::private::Private;
use std::collections::BTreeMap;
use wirefs_cache::TreeNodeId;
use wirefs_op::{Errno, Stat};

/// The call that waits for a publication.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AfterPublishing {
    Nobody,
    Flush { call: CallId, owner: u64 },
    Fsync { call: CallId },
}

/// One copy that is being published.
#[derive(Debug)]
pub(crate) struct Publication {
    pub(crate) node: TreeNodeId,
    pub(crate) handle: Handle,
    pub(crate) copy: Private,
    pub(crate) then: AfterPublishing,
    pub(crate) stat: Stat,
    /// As `Open::opened_by`, for when that is closed.
    pub(crate) opened_by: Option<(TreeNodeId, Vec<u8>)>,
    /// The new file's name, and which try that is.
    pub(crate) temporary: Option<(TreeNodeId, Vec<u8>)>,
    pub(crate) tries: u32,
    /// Requests that are not answered yet.
    pub(crate) left: usize,
    pub(crate) error: Option<Errno>,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Publications {
    pub(crate) next: u64,
    pub(crate) names: u32,
    pub(crate) under_way: BTreeMap<u64, Publication>,
}
