//! Prefetch requests, for which no call waits yet.

use crate::pending::{Figures, FindBounds, FindStream, FindTotals, Pending, Prefetching};
use crate::requests::Requests;
use crate::sending::Sender;
use crate::view::View;
use crate::view::prefetch::window::SMALL_BYTES_MAX;
use std::time::Duration;
use wirefs_cache::{Freshness, ROOT, TreeNodeId};
use wirefs_op::message::find::Tfind;
use wirefs_op::message::get::{GetMode, Tget};
use wirefs_op::message::statfs::Tstatfs;
use wirefs_op::message::target::{NOFD, Target};
use wirefs_op::{DirEntry, Request, Tag, Time};

/// The validity of the figures of `statfs` in a mode with leases, unless this mount has changed something since.
const BELIEVED_FOR: Duration = Duration::from_secs(10);

/// Requests a stream in the background. Returns whether that was possible.
///
/// # Cost
/// 1 round trip, and as many bytes as the bounds allow.
pub(super) fn stream(sender: &mut Sender<'_>, top: TreeNodeId, bounds: FindBounds) -> bool {
    let Ok(target) = sender.view.target(top, None) else { return false };
    sender.view.names.hold(top);
    sender.view.prefetch.counted.asked += 1;
    let FindBounds { depth, entries, bytes, inline } = bounds;
    let stream = FindStream { top, bounds, current: None, totals: FindTotals::default() };
    sender.send(Request::Find(Tfind { target, depth, entries, bytes, inline }), Pending::Find(stream));
    true
}

/// Requests the contents of a small file that is listed in `dir`. Returns its node if that was possible.
pub(super) fn contents(
    sender: &mut Sender<'_>,
    dir: TreeNodeId,
    entry: &DirEntry,
    known: Freshness,
) -> Option<TreeNodeId> {
    let attributes = sender.view.directories.attributes_freshness(&entry.stat, known.at);
    let node = sender.learn(&entry.stat, attributes);
    sender.view.names.link(dir, &entry.name, node);
    // By its name: what is asked for by an open file's fd, and is not to be kept open, closes that.
    let Ok(target) = sender.view.target(node, None).map(|target| Target { fd: NOFD, ..target }) else {
        sender.view.names.evict_if_unused(node);
        return None;
    };
    sender.view.names.hold(node);
    sender.view.prefetch.counted.asked += 1;
    let mode = GetMode::STAT.and(GetMode::DATA).and(GetMode::WHOLE);
    let get = Tget { target, mode, nmsgs: 1, offset: 0, count: SMALL_BYTES_MAX };
    sender.send(Request::Get(get), Pending::Prefetch(Prefetching { node }));
    Some(node)
}

/// Requests the figures of `statfs` for a program that begins to walk a tree: it will call `statfs` in the first
/// directory.
pub(super) fn figures(sender: &mut Sender<'_>) {
    let is_known = sender.view.figures.is_some_and(|(_, at)| are_usable(sender.view, at));
    if is_known || !sender.view.mount.config.mode.takes_leases() || coming_figures(sender.requests).is_some()
    {
        return;
    }
    if let Ok(target) = sender.view.target(ROOT, None) {
        sender.send(Request::Statfs(Tstatfs { target }), Pending::Statfs(Figures(None)));
    }
}

/// Returns the request in progress for the figures of `statfs`.
pub(crate) fn coming_figures(requests: &Requests) -> Option<Tag> {
    requests.find(|pending| matches!(pending, Pending::Statfs(Figures(None))))
}

/// Whether `statfs` figures of that time may be used. They are not leased, and programs that walk a tree call `statfs`
/// in each directory to learn the kind of file system.
pub(crate) fn are_usable(view: &View, at: Time) -> bool {
    let is_recent = view.mount.config.mode.takes_leases() && view.mount.now < at + BELIEVED_FOR;
    let is_changed = view.names.is_changed_since(at) || view.files.unacknowledged() > 0;
    view.coherency().is_valid(Freshness::since(at)) || (is_recent && !is_changed)
}
