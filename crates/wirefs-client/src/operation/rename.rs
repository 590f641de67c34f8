//! Rename.

use crate::call::{Answer, CallId};
use crate::core::Client;
use crate::operation::{attributes, handles};
use crate::output::Outputs;
use crate::pending::{Pending, Renaming};
use crate::steps::Step;
use crate::view::View;
use wirefs_cache::{Freshness, TreeNodeId};
use wirefs_op::message::rename::{EXCHANGE, Rrename, Trename};
use wirefs_op::{Errno, Kind, Request, Stat, Time};

/// # Cost
/// 1 round trip.
pub(crate) fn start(
    client: &mut Client,
    call: CallId,
    from: (TreeNodeId, &[u8]),
    to: (TreeNodeId, &[u8]),
    flags: u32,
) -> Result<(), Errno> {
    let rename =
        Trename { from: client.view.place(from.0, from.1)?, to: client.view.place(to.0, to.1)?, flags };
    handles::keep_alive(client, to.0, to.1);
    let moved = client.view.names.child(from.0, from.1);
    let renaming =
        Renaming { call, from: (from.0, from.1.to_vec()), to: (to.0, to.1.to_vec()), flags, moved };
    client.send(Request::Rename(rename), Pending::Rename(renaming));
    Ok(())
}

pub(crate) fn finish(client: &mut Client, renaming: Renaming, sent: Time, renamed: Rrename) {
    let Renaming { call, from, to, flags, moved: moving } = renaming;
    if let Some(moving) = moving {
        client.view.files.write_answered(moving, 0);
    }
    let now = client.view.mount.now;
    let exchange = flags & EXCHANGE != 0;
    let moved = client.view.names.child(from.0, &from.1);
    let replaced = client.view.names.child(to.0, &to.1).filter(|replaced| Some(*replaced) != moved);
    // Between two names of one file rename does nothing: of one with several names, the old may be there still.
    let linked = |stat: &Stat| stat.kind != Kind::Directory && stat.nlink > 1;
    let linked = renamed.stat.as_ref().is_some_and(linked);
    let id = renamed.stat.as_ref().map(|stat| stat.id);
    let stays = client.view.names.child(to.0, &to.1);
    let stays = stays.filter(|node| client.view.names.node(*node).map(|known| known.stat.id) == id);
    // Others had put something else there: that is what was moved.
    let known = moved.and_then(|moved| client.view.names.node(moved));
    let is_another = !exchange && id.is_some() && known.is_some_and(|known| Some(known.stat.id) != id);
    let came_later = known.and_then(|known| known.freshness).is_some_and(|known| sent < known.at);
    if is_another {
        if !came_later {
            client.view.names.unlink(from.0, &from.1);
        }
        if stays.is_none() {
            client.view.names.unlink(to.0, &to.1);
        }
    } else if exchange || stays.is_none() {
        client.view.names.rename((from.0, &from.1), (to.0, &to.1), exchange);
    } else if from != to && (stays != moved || !linked) {
        client.view.names.unlink(from.0, &from.1);
    }
    if let Some(replaced) = replaced {
        attributes::changed(&mut client.view, replaced, None, sent);
        client.view.files.publish_nowhere(replaced);
    }
    if let (Some(moved), Some(stat)) = (moved, renamed.stat.as_ref()) {
        let is_it = client.view.names.node(moved).is_some_and(|node| node.stat.id == stat.id);
        if is_it {
            attributes::took_effect(&mut client.view, &mut client.outputs, moved, None, Some(stat), sent);
        }
    }
    let gone = client.view.known_own(from.0, &from.1, renamed.from_dir.as_ref(), sent);
    let there = client.view.known_own(to.0, &to.1, renamed.to_dir.as_ref(), sent);
    match (exchange || linked, renamed.stat.as_ref()) {
        (false, Some(stat)) => {
            let stat = Stat { leased: client.view.known(stat, sent).leased, ..*stat };
            client.view.directories.removed(from.0, &from.1, gone, now);
            client.view.directories.added(to.0, &to.1, &stat, there, now);
        }
        _ => {
            client.view.directories.changed(from.0, now);
            client.view.directories.changed(to.0, now);
        }
    }
    attributes::changed(&mut client.view, from.0, renamed.from_dir.as_ref(), sent);
    attributes::changed(&mut client.view, to.0, renamed.to_dir.as_ref(), sent);
    client.answer(call, Answer::Done);
    let moved = [(from, gone), (to, there)];
    forget_carried(&mut client.view, &mut client.outputs, &moved[usize::from(!exchange)..], is_another);
    if let Some(moving) = moving {
        client.outputs.leave(Step::ChangeEnded(moving));
    }
}

/// Invalidates names that took another's place: the kernel keeps the validity of the replaced entry. This is wrong without a lease, or if
/// others had replaced the entry. Within a window the kernel may have got it before that.
fn forget_carried(
    view: &mut View,
    outputs: &mut Outputs,
    names: &[((TreeNodeId, Vec<u8>), Freshness)],
    is_another: bool,
) {
    let takes_leases = view.mount.config.mode.takes_leases();
    if !takes_leases && view.mount.config.mode.window().is_zero() {
        return;
    }
    for ((parent, name), known) in names {
        if !takes_leases || is_another || !view.coherency().is_valid(*known) {
            view.invalidate_name(outputs, *parent, name.clone());
        }
    }
}

pub(crate) fn failed(client: &mut Client, renaming: Renaming, errno: Errno) {
    client.view.directories.invalidate(renaming.from.0);
    client.view.directories.invalidate(renaming.to.0);
    for (dir, _) in renaming.places() {
        attributes::gone_above(&mut client.view, &mut client.outputs, dir, errno);
    }
    client.fail(renaming.call, errno);
    if let Some(moving) = renaming.moved {
        client.view.files.write_answered(moving, 0);
        client.outputs.leave(Step::ChangeEnded(moving));
    }
}
