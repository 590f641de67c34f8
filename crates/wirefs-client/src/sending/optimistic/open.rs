//! Optimistic open of an existing file for writing.

use super::{Outcome, rights};
use crate::view::View;
use wirefs_cache::TreeNodeId;
use wirefs_op::message::put::{PutMode, Rput, Tput};
use wirefs_op::message::target::NOFD;
use wirefs_op::{Kind, Reply, Stat};

/// Returns the outcome if the server is certain to open the file: its user may write to it, and no program can be
/// executing it (`ETXTBSY`), since nobody may.
pub(super) fn to_write(view: &View, put: &Tput, node: TreeNodeId) -> Option<Outcome> {
    let is_usual =
        !view.mount.config.mode.validates_at_open() && !view.mount.config.mode.fetch.has_private_copies();
    let known = view.names.node(node).filter(|_| view.is_fresh(node) && is_usual)?;
    // One whose name is being taken away is reached by an fd alone.
    let has_name = view.names.path(node).is_some() && !view.is_place_contended(node);
    let stat = view.exclusive.unconfirmed.shown(&known.stat);
    let is_plain = stat.kind == Kind::File && stat.mode & 0o7111 == 0 && stat.without_xattrs;
    let reads = if put.mode.has(PutMode::READ) { 0o400 } else { 0 };
    if !put.mode.has(PutMode::WRITE)
        || !has_name
        || !is_plain
        || !rights::may(&view.mount.attachment, &stat, 0o200 | reads)
    {
        return None;
    }
    let now = view.time_of_day();
    let cut = put.set.size.map(|size| Stat { size, blocks: 0, mtime: now, ctime: now, leased: true, ..stat });
    let reply = Rput { fd: NOFD, count: 0, offset: 0, before: stat.version, stat: cut, dir: None };
    Some(Outcome {
        reply: Reply::Put(reply),
        nodes: cut.map(|_| node).into_iter().collect(),
        names: Vec::new(),
        besides: None,
        inodes: 0,
    })
}
