//! The reply to an unconfirmed change: the server's attributes count again, or the optimistic reply was wrong.

use crate::call::Invalidate;
use crate::operation::{attributes, handles};
use crate::output::Outputs;
use crate::sending::Sender;
use crate::steps::Step;
use crate::view::View;
use crate::view::unconfirmed::Unconfirmed;
use wirefs_cache::{Freshness, TreeNodeId};
use wirefs_op::message::put::Rput;
use wirefs_op::{Errno, Reply, Request, Stat, Time};

/// Confirms a change.
pub(crate) fn finish(sender: &mut Sender<'_>, number: u64, sent: Time, request: &Request, reply: &Reply) {
    let Some(unconfirmed) = sender.view.exclusive.unconfirmed.unconfirmed.remove(&number) else { return };
    sender.view.exclusive.unconfirmed.answered();
    let written = answered(sender.view, &unconfirmed);
    if let (Some(made), Reply::Put(put)) = (unconfirmed.makes, reply) {
        if let Some(stat) = &put.stat {
            sender.view.identified(made.node, stat);
        }
        match made.handle {
            Some(handle) => handles::take_fd(sender, handle, put.stat.map(|stat| stat.id), put.fd),
            None => handles::give_back(sender, put.stat.map(|stat| stat.id), put.fd, true),
        }
    }
    if let (Some(opened), Reply::Put(put)) = (unconfirmed.opens, reply) {
        handles::take_written(sender, opened, put.fd);
    }
    let stats_by_node = stats_by_node(sender.view, &unconfirmed, request, reply);
    for node in written {
        let stat =
            stats_by_node.iter().find(|(stats_by_node, _)| *stats_by_node == node).map(|(_, stat)| stat);
        let before = match reply {
            Reply::Put(put) if unconfirmed.makes.is_none() => Some(put.before),
            _ => None,
        };
        caught_up(sender.view, sender.outputs, node, before, stat, sent);
        sender.outputs.leave(Step::ChangeEnded(node));
    }
}

/// The objects are not being changed by this any more.
fn answered(view: &mut View, unconfirmed: &Unconfirmed) -> Vec<TreeNodeId> {
    let made = unconfirmed.makes.map(|made| made.node);
    let nodes: Vec<TreeNodeId> = unconfirmed.nodes.iter().copied().chain(made).collect();
    for node in &nodes {
        view.files.write_answered(*node, 0);
    }
    nodes
}

/// The attributes in the reply, by node.
fn stats_by_node(
    view: &View,
    unconfirmed: &Unconfirmed,
    request: &Request,
    reply: &Reply,
) -> Vec<(TreeNodeId, Stat)> {
    let dir = |index: usize| unconfirmed.names.get(index).map(|(dir, _)| *dir);
    let stats: Vec<(Option<TreeNodeId>, Option<Stat>)> = match (request, reply) {
        (_, Reply::Put(Rput { stat, dir: dir_stat, .. })) => match unconfirmed.makes {
            Some(made) => vec![(Some(made.node), *stat), (dir(0), *dir_stat)],
            None => vec![(unconfirmed.nodes.first().copied(), *stat)],
        },
        (_, Reply::Remove(removed)) => vec![(dir(0), removed.dir)],
        (_, Reply::Link(linked)) => {
            vec![(unconfirmed.nodes.last().copied(), linked.stat), (dir(0), linked.dir)]
        }
        (_, Reply::Rename(renamed)) => {
            let moved = renamed.stat.and_then(|stat| view.names.of_file(stat.id));
            vec![(moved, renamed.stat), (dir(0), renamed.from_dir), (dir(1), renamed.to_dir)]
        }
        _ => Vec::new(),
    };
    stats.into_iter().filter_map(|(node, stat)| Some((node?, stat?))).collect()
}

/// Ends one change of the node. After the last one the server's attributes count again; if the reply has none,
/// it is asked for when it is wanted.
fn caught_up(
    view: &mut View,
    outputs: &mut Outputs,
    node: TreeNodeId,
    before: Option<u64>,
    stat: Option<&Stat>,
    sent: Time,
) {
    if view.files.is_writing(node) {
        // The chain of versions goes on; what is shown is further than this.
        if let (Some(before), Some(stat)) = (before, stat) {
            attributes::took_effect(view, outputs, node, Some(before), Some(stat), sent);
        }
        return;
    }
    let Some(shown) = view.names.node(node).filter(|known| known.freshness.is_some()).map(|known| known.stat)
    else {
        if let Some(stat) = stat {
            attributes::changed(view, node, Some(stat), sent);
        }
        return;
    };
    match (stat, before) {
        (Some(stat), Some(before)) => {
            view.caught_up(&shown, stat);
            attributes::took_effect(view, outputs, node, Some(before), Some(stat), sent);
        }
        (Some(stat), None) => {
            view.caught_up(&shown, stat);
            attributes::changed(view, node, Some(stat), sent);
        }
        (None, _) => attributes::changed(view, node, None, sent),
    }
}

/// Undoes an unconfirmed change that the server rejected, or whose outcome is unknown. Its program learns of it only through an open
/// file.
pub(crate) fn failed(sender: &mut Sender<'_>, number: u64, errno: Errno) {
    let Some(unconfirmed) = sender.view.exclusive.unconfirmed.unconfirmed.remove(&number) else { return };
    sender.view.exclusive.unconfirmed.answered();
    sender.view.note_late(unconfirmed.what, unconfirmed.path.clone(), errno);
    let nodes = answered(sender.view, &unconfirmed);
    if let Some((node, _)) = unconfirmed.opens {
        sender.view.files.write_failed(node, errno);
    }
    if let Some(made) = unconfirmed.makes {
        for (parent, name) in sender.view.names.links(made.node) {
            sender.view.names.unlink(parent, &name);
            sender.view.directories.invalidate_name(parent, &name);
            sender.view.invalidate_listing(sender.outputs, parent);
            sender.view.invalidate_name(sender.outputs, parent, name);
        }
    }
    for (parent, name) in unconfirmed.names {
        sender.view.directories.invalidate_name(parent, &name);
        sender.view.invalidate_listing(sender.outputs, parent);
        sender.view.names.remove_negative(parent, &name);
        sender.view.invalidate_name(sender.outputs, parent, name);
    }
    let now = sender.view.mount.now;
    for node in nodes {
        sender.view.files.write_failed(node, errno);
        sender.view.files.invalidate_contents(node);
        sender.view.names.changed(node, None, Freshness::since(now), now);
        if let Some(id) = sender.view.names.node(node).map(|known| known.stat.id) {
            sender.view.directories.outdate(id, now);
        }
        sender.outputs.invalidate(Invalidate::Node { node, offset: 0, length: 0 });
        sender.outputs.leave(Step::ChangeEnded(node));
    }
}
