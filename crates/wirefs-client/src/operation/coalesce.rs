//! Coalescing of small writes, in modes that ask for it. They are sent once there is enough data, and before any other
//! request about their file.

use crate::call::{Call, Handle};
use crate::operation::puts;
use crate::sending::Sender;
use crate::steps::Step;
use crate::view::files::Stretch;
use bytes::Bytes;
use wirefs_cache::TreeNodeId;

/// Coalesced bytes of all files, at most.
const COALESCED_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Takes in what was written to a file.
pub(crate) fn add(
    sender: &mut Sender<'_>,
    node: TreeNodeId,
    handle: Handle,
    offset: u64,
    data: &Bytes,
    kills_privileges: bool,
) {
    let enough = sender.view.mount.config.mode.publish.coalesced_bytes();
    if sender.view.files.contents(node).coalesced.is_empty() {
        sender.change_begins(node, 0);
    }
    let written = Stretch::new(handle, offset, data, kills_privileges);
    let is_enough = sender.view.files.coalesce(node, written, enough);
    // Whoever waits for the file's writes waits for these too.
    let is_waited_for = !sender.view.files.contents(node).drained.is_empty();
    if is_enough || is_waited_for || sender.view.files.coalesced_bytes() > COALESCED_BYTES_MAX {
        send(sender, node);
    }
}

/// Sends the coalesced writes of a file.
pub(crate) fn send(sender: &mut Sender<'_>, node: TreeNodeId) {
    if sender.view.files.known(node).is_none_or(|contents| contents.coalesced.is_empty()) {
        return;
    }
    for stretch in sender.view.files.take_coalesced(node) {
        let (handle, offset, kills_privileges) = (stretch.handle, stretch.offset, stretch.kills_privileges);
        let data = stretch.into_data();
        if let Err(errno) = puts::behind(sender, node, handle, offset, &data, kills_privileges) {
            sender.view.files.forget_contents(node);
            sender.view.files.write_failed(node, errno);
        }
    }
    sender.view.files.write_answered(node, 0);
    sender.outputs.leave(Step::ChangeEnded(node));
}

/// A call is about to begin: what it is about is sent first, unless it adds to that or may be answered without.
pub(crate) fn before(sender: &mut Sender<'_>, call: &Call<'_>) {
    if sender.view.mount.config.mode.publish.coalesced_bytes() == 0 {
        return;
    }
    let named = |parent: TreeNodeId, name: &[u8]| sender.view.names.child(parent, name);
    let nodes = match *call {
        Call::Write { .. } | Call::Read { .. } => return,
        Call::Unlink { parent, name } | Call::Create { parent, name, .. } => [named(parent, name), None],
        Call::Rename { parent, name, to_parent, to_name, .. } => {
            [named(parent, name), named(to_parent, to_name)]
        }
        _ => call.nodes(),
    };
    for node in nodes.into_iter().flatten() {
        send(sender, node);
    }
}
