//! Unlink and rmdir.

use crate::answering::Answerer;
use crate::call::{Answer, CallId};
use crate::core::Client;
use crate::operation::{attributes, conflict_copies, handles, list};
use crate::pending::{Pending, Removing};
use crate::sending::Sender;
use wirefs_cache::TreeNodeId;
use wirefs_op::message::remove::{Rremove, Tremove};
use wirefs_op::{Errno, Request, Time};

/// # Cost
/// 1 round trip.
pub(crate) fn start(
    sender: &mut Sender<'_>,
    call: CallId,
    parent: TreeNodeId,
    name: &[u8],
    directory: bool,
) -> Result<(), Errno> {
    if directory && conflict_copies::holds_up(sender.view, call, parent, name) {
        return Ok(());
    }
    let place = sender.view.place(parent, name)?;
    handles::keep_alive(sender, parent, name);
    let removing =
        Removing { call, parent, name: name.to_vec(), node: sender.view.names.child(parent, name) };
    sender.send(Request::Remove(Tremove { place, directory }), Pending::Remove(removing));
    Ok(())
}

pub(crate) fn finish(client: &mut Client, removing: Removing, sent: Time, removed: Rremove) {
    let Removing { call, parent, name, node } = removing;
    let now = client.view.mount.now;
    let meant = client.view.names.child(parent, &name);
    if let Some(meant) = meant {
        // Link count and ctime changed; the reply does not bring them.
        attributes::changed(&mut client.view, meant, None, sent);
        client.view.directories.invalidate(meant);
    }
    if meant == node {
        if let Some(node) = client.view.names.unlink(parent, &name) {
            client.view.files.publish_nowhere(node);
        }
        let known = client.view.known_own(parent, &name, removed.dir.as_ref(), sent);
        client.view.directories.removed(parent, &name, known, now);
    } else {
        // It was given anew meanwhile, before the removal or behind it: where the reply was lost, a lookup overtakes what was done long ago.
        client.view.directories.changed(parent, now);
    }
    attributes::changed(&mut client.view, parent, removed.dir.as_ref(), sent);
    list::renew(&mut client.sender(), parent);
    client.answerer().answer(call, Answer::Done);
}

pub(crate) fn failed(answerer: &mut Answerer<'_>, removing: Removing, errno: Errno) {
    if matches!(errno, Errno::NotFound | Errno::Stale | Errno::IsDirectory | Errno::NotDirectory) {
        answerer.view.directories.invalidate(removing.parent);
    }
    let errno = attributes::gone_above(answerer.view, answerer.outputs, removing.parent, errno);
    answerer.fail(removing.call, errno);
}
