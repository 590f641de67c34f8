//! Rename.

use crate::answering::Answerer;
use crate::call::{Answer, CallId};
use crate::operation::{attributes, handles};
use crate::output::Outputs;
use crate::pending::{Pending, Renaming};
use crate::sending::Sender;
use crate::steps::Step;
use crate::view::View;
use wirefs_cache::{Freshness, TreeNodeId};
use wirefs_op::message::rename::{EXCHANGE, Rrename, Trename};
use wirefs_op::{Errno, Kind, Request, Stat, Time};

/// # Cost
/// 1 round trip.
pub(crate) fn start(
    sender: &mut Sender<'_>,
    call: CallId,
    from: (TreeNodeId, &[u8]),
    to: (TreeNodeId, &[u8]),
    flags: u32,
) -> Result<(), Errno> {
    let rename =
        Trename { from: sender.view.place(from.0, from.1)?, to: sender.view.place(to.0, to.1)?, flags };
    handles::keep_alive(sender, to.0, to.1);
    let moved = sender.view.names.child(from.0, from.1);
    let renaming =
        Renaming { call, from: (from.0, from.1.to_vec()), to: (to.0, to.1.to_vec()), flags, moved };
    sender.send(Request::Rename(rename), Pending::Rename(renaming));
    Ok(())
}

pub(crate) fn finish(answerer: &mut Answerer<'_>, renaming: Renaming, sent: Time, renamed: Rrename) {
    let Renaming { call, from, to, flags, moved: moving } = renaming;
    if let Some(moving) = moving {
        answerer.view.files.write_answered(moving, 0);
    }
    let now = answerer.view.mount.now;
    let exchange = flags & EXCHANGE != 0;
    let moved = answerer.view.names.child(from.0, &from.1);
    let replaced = answerer.view.names.child(to.0, &to.1).filter(|replaced| Some(*replaced) != moved);
    // Between two names of one file rename does nothing: of one with several names, the old may be there still.
    let linked = |stat: &Stat| stat.kind != Kind::Directory && stat.nlink > 1;
    let linked = renamed.stat.as_ref().is_some_and(linked);
    let id = renamed.stat.as_ref().map(|stat| stat.id);
    let stays = answerer.view.names.child(to.0, &to.1);
    let stays = stays.filter(|node| answerer.view.names.node(*node).map(|known| known.stat.id) == id);
    // Others had put something else there: that is what was moved.
    let known = moved.and_then(|moved| answerer.view.names.node(moved));
    let is_another = !exchange && id.is_some() && known.is_some_and(|known| Some(known.stat.id) != id);
    let came_later = known.and_then(|known| known.freshness).is_some_and(|known| sent < known.at);
    if is_another {
        if !came_later {
            answerer.view.names.unlink(from.0, &from.1);
        }
        if stays.is_none() {
            answerer.view.names.unlink(to.0, &to.1);
        }
    } else if exchange || stays.is_none() {
        answerer.view.names.rename((from.0, &from.1), (to.0, &to.1), exchange);
        if !answerer.calls.is_waiting(call) {
            let nodes = moved.into_iter().chain(replaced.filter(|_| exchange));
            nodes.for_each(|node| answerer.view.names.moved_without_kernel(node));
        }
    } else if from != to && (stays != moved || !linked) {
        answerer.view.names.unlink(from.0, &from.1);
    }
    if let Some(replaced) = replaced {
        attributes::changed(answerer.view, replaced, None, sent);
        answerer.view.files.publish_nowhere(replaced);
    }
    if let (Some(moved), Some(stat)) = (moved, renamed.stat.as_ref()) {
        let is_it = answerer.view.names.node(moved).is_some_and(|node| node.stat.id == stat.id);
        if is_it {
            attributes::took_effect(answerer.view, answerer.outputs, moved, None, Some(stat), sent);
        }
    }
    let gone = answerer.view.known_own(from.0, &from.1, renamed.from_dir.as_ref(), sent);
    let there = answerer.view.known_own(to.0, &to.1, renamed.to_dir.as_ref(), sent);
    match (exchange || linked, renamed.stat.as_ref()) {
        (false, Some(stat)) => {
            let stat = Stat { leased: answerer.view.known(stat, sent).leased, ..*stat };
            answerer.view.directories.removed(from.0, &from.1, gone, now);
            answerer.view.directories.added(to.0, &to.1, &stat, there, now);
        }
        _ => {
            answerer.view.directories.changed(from.0, now);
            answerer.view.directories.changed(to.0, now);
        }
    }
    attributes::changed(answerer.view, from.0, renamed.from_dir.as_ref(), sent);
    attributes::changed(answerer.view, to.0, renamed.to_dir.as_ref(), sent);
    answerer.answer(call, Answer::Done);
    let moved = [(from, gone), (to, there)];
    forget_carried(answerer.view, answerer.outputs, &moved[usize::from(!exchange)..], is_another);
    if let Some(moving) = moving {
        answerer.outputs.leave(Step::ChangeEnded(moving));
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

pub(crate) fn failed(answerer: &mut Answerer<'_>, renaming: Renaming, errno: Errno) {
    answerer.view.directories.invalidate(renaming.from.0);
    answerer.view.directories.invalidate(renaming.to.0);
    for (dir, _) in renaming.places() {
        attributes::gone_above(answerer.view, answerer.outputs, dir, errno);
    }
    answerer.fail(renaming.call, errno);
    if let Some(moving) = renaming.moved {
        answerer.view.files.write_answered(moving, 0);
        answerer.outputs.leave(Step::ChangeEnded(moving));
    }
}
