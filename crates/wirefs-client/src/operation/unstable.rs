//! Unstable writes, in modes where close guarantees durability. They are kept until they are on the server's disk, and
//! are sent again after each restart of the server's machine.

use crate::operation::{commit, puts};
use crate::pending::Pending;
use crate::sending::Sender;
use crate::view::View;
use crate::view::files::Change;
use wirefs_cache::TreeNodeId;
use wirefs_op::message::put::{PutMode, Tput};
use wirefs_op::message::target::Target;
use wirefs_op::wire::Data;
use wirefs_op::{Request, SetStat};

/// The maximum number of kept bytes, over all files. If more data is lost in a crash of the server's machine, an error
/// is reported.
const KEPT_BYTES_MAX: usize = 64 * 1024 * 1024;
/// With this many kept bytes, the files are synced in the background.
const KEPT_BYTES_MANY: usize = KEPT_BYTES_MAX / 2;

/// A change was answered that had this place in the order of requests.
pub(crate) fn note(sender: &mut Sender<'_>, pending: &Pending, request: &Request, order: u64) {
    if !sender.view.mount.config.mode.publish.is_committed() {
        return;
    }
    let (node, change) = match (pending, request) {
        (Pending::Write(writing), Request::Put(put)) => (writing.node, change(put)),
        (Pending::Setattr(setting), Request::Put(put)) if put.set.size.is_some() => {
            (setting.node, change(put))
        }
        (Pending::Open(opening), Request::Put(put)) if opening.cuts => (opening.node, change(put)),
        (Pending::Allocate(allocating), _) => (allocating.node, None),
        (Pending::Copy(copying), _) => (copying.to, None),
        _ => return,
    };
    let before = sender.view.files.kept_bytes();
    let fits = before <= KEPT_BYTES_MAX;
    let contents = sender.view.files.contents(node);
    contents.uncommitted = true;
    match change.filter(|_| fits) {
        Some(change) => contents.changes.add(order, change),
        None => contents.changes.lose(),
    }
    if before < KEPT_BYTES_MANY && sender.view.files.kept_bytes() >= KEPT_BYTES_MANY {
        for node in sender.view.files.kept_nodes() {
            commit::ahead(sender, node);
        }
    }
}

/// The change to repeat; `None` if a repetition would have another effect.
fn change(put: &Tput) -> Option<Change> {
    match put.set.size {
        _ if put.mode.has(PutMode::APPEND) => None,
        Some(size) => Some(Change::Size(size)),
        None => Some(Change::Data(put.offset, put.data.0.clone())),
    }
}

/// The server's machine was started again: what it may have lost is sent once more, ahead of all that waits. Whether anything is.
pub(crate) fn send_again(sender: &mut Sender<'_>) -> bool {
    let mut is_any = false;
    for node in sender.view.files.uncommitted() {
        let changes = sender.view.files.contents(node).changes.take();
        match (changes, sender.view.target(node, None)) {
            (Some(changes), Ok(target)) => {
                let again = changes.into_iter().map(|change| {
                    let request = Request::Put(put(&target, change));
                    let pending = puts::again(sender, node, &request);
                    (request, pending)
                });
                let again: Vec<(Request, Pending)> = again.collect();
                is_any |= !again.is_empty();
                sender.requests.wait_first(sender.view.mount.now, again);
            }
            (None, _) | (_, Err(_)) => sender.view.files.lost_uncommitted(node),
        }
    }
    is_any
}

fn put(target: &Target, change: Change) -> Tput {
    let put = Tput {
        target: target.clone(),
        mode: PutMode::NONE,
        create: None,
        set: SetStat::default(),
        offset: 0,
        data: Data::default(),
    };
    match change {
        Change::Data(offset, data) => Tput { mode: PutMode::DATA, offset, data: Data(data), ..put },
        Change::Size(size) => {
            let set = SetStat { size: Some(size), ..SetStat::default() };
            Tput { mode: PutMode::STAT, set, ..put }
        }
    }
}

/// Everything up to a request, and the changes that were answered by then, is on the server's disk.
pub(crate) fn committed(view: &mut View, node: TreeNodeId, order: u64) {
    view.files.contents(node).changes.committed(order);
}
