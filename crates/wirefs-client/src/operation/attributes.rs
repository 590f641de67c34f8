//! Getattr and setattr.

use crate::answering::Answerer;
use crate::call::{Answer, CallId, Handle, Invalidate};
use crate::core::Client;
use crate::operation::as_opened;
use crate::output::Outputs;
use crate::pending::{Getting, Pending, Setting};
use crate::steps::Step;
use crate::view::View;
use std::time::Duration;
use wirefs_cache::{Freshness, ROOT, TreeNodeId};
use wirefs_op::message::get::{GetMode, Rget, Tget};
use wirefs_op::message::put::{PutMode, Rput, Tput};
use wirefs_op::wire::Data;
use wirefs_op::{Errno, Kind, Request, SetStat, Stat, Time};

/// # Cost
/// 0 round trips while the attributes may be believed, else 1.
pub(crate) fn get(
    client: &mut Client,
    call: CallId,
    node: TreeNodeId,
    handle: Option<Handle>,
) -> Result<(), Errno> {
    let is_own = client
        .view
        .names
        .node(node)
        .is_some_and(|known| client.view.files.attributes_by_copy(node, &known.stat).is_some());
    if (is_own || client.view.is_fresh(node))
        && let Some((stat, ttl)) = client.view.shown_attr(node)
    {
        client.outputs.counters.name_hits += 1;
        client.answerer().answer(call, Answer::Attr(stat, ttl));
        return Ok(());
    }
    client.outputs.counters.name_misses += 1;
    let target = match client.view.target(node, handle) {
        Ok(target) => target,
        Err(errno) => {
            if of_removed_directory(&mut client.answerer(), call, node).is_none() {
                as_opened::attributes_failed(&mut client.answerer(), call, node, errno);
            }
            return Ok(());
        }
    };
    let keep = target.fd != wirefs_op::message::target::NOFD;
    let mode = GetMode::STAT
        .and_if(keep, GetMode::MORE)
        .and_if(client.view.files.is_writing(node), GetMode::ORDERED);
    let get = Tget { target, mode, nmsgs: 1, offset: 0, count: 0 };
    client.sender().send(Request::Get(get), Pending::Getattr(Getting { call, node }));
    Ok(())
}

/// A directory that was removed here, and that a program still has open, has no fd at the server to ask by; nothing can
/// change it any more.
fn of_removed_directory(answerer: &mut Answerer<'_>, call: CallId, node: TreeNodeId) -> Option<()> {
    let known = answerer
        .view
        .names
        .node(node)
        .filter(|known| known.stat.kind == Kind::Directory && !known.is_named())?;
    let stat = answerer.view.present(&Stat { nlink: 0, ..known.stat });
    answerer.answer(call, Answer::Attr(stat, Duration::ZERO));
    Some(())
}

pub(crate) fn not_got(answerer: &mut Answerer<'_>, getting: Getting, errno: Errno) {
    let Getting { call, node } = getting;
    let errno = gone(answerer.view, answerer.outputs, node, errno);
    as_opened::attributes_failed(answerer, call, node, errno);
}

pub(crate) fn got(client: &mut Client, getting: Getting, sent: Time, got: Rget) {
    let Getting { call, node } = getting;
    let Some(stat) = got.stat else {
        return client.answerer().fail(call, Errno::Protocol);
    };
    if client.view.names.node(node).is_some_and(|known| known.stat.id != stat.id) {
        return client.answerer().fail(call, Errno::Protocol);
    }
    client.sender().refresh(&stat, sent);
    let told = client.view.known(&stat, sent);
    // An own change that was sent later and answered earlier left newer ones, of which these may know nothing.
    let newer = client.view.names.node(node).filter(|_| client.view.files.is_known_since(node, sent));
    let (stat, known) = newer.map_or((stat, Some(told)), |newer| (newer.stat, newer.freshness));
    let mut shown = client.view.present(&stat);
    // Ordered behind the writes in progress then; later ones may have made the file longer since.
    shown.size = client.view.files.size_for_writers(node, shown.size);
    let overtaken = client.view.names.node(node).is_none_or(|known| sent < known.changed_at);
    let known = known.filter(|_| !overtaken && !client.view.files.is_writing(node));
    let ttl = known.map_or(Duration::ZERO, |known| client.view.coherency().ttl(known));
    client.answerer().answer(call, Answer::Attr(shown, ttl));
}

/// # Cost
/// 1 round trip.
pub(crate) fn set(
    client: &mut Client,
    call: CallId,
    node: TreeNodeId,
    handle: Option<Handle>,
    set: SetStat,
    kill_privileges: bool,
) -> Result<(), Errno> {
    let asked = set;
    let set = client.view.files.set_by_copy(node, handle, asked);
    if set.is_empty()
        && !asked.is_empty()
        && let Some((stat, ttl)) = client.view.shown_attr(node)
    {
        client.answerer().answer(call, Answer::Attr(stat, ttl));
        return Ok(());
    }
    let target = client.view.target(node, handle)?;
    let keep = target.fd != wirefs_op::message::target::NOFD;
    let mode = PutMode::STAT.and_if(keep, PutMode::MORE).and_if(kill_privileges, PutMode::KILL_PRIVILEGES);
    let put = Tput {
        target,
        mode,
        create: None,
        set: client.view.unpresent(set),
        offset: 0,
        data: Data::default(),
    };
    client.sender().send(Request::Put(put), Pending::Setattr(Setting { call, node, size: set.size }));
    Ok(())
}

pub(crate) fn was_set(answerer: &mut Answerer<'_>, setting: Setting, sent: Time, put: Rput) {
    let Setting { call, node, size } = setting;
    answerer.view.files.write_answered(node, 0);
    if let Some(size) = size {
        answerer.view.files.truncate_contents(node, size);
        let before = answerer
            .view
            .names
            .node(node)
            .filter(|_| answerer.view.exclusive.unconfirmed.is_optimistic)
            .map(|known| known.stat.size);
        if let Some(before) = before.filter(|_| answerer.view.mount.config.mode.fetch.is_cached()) {
            answerer.view.files.remember_hole(node, before, size);
        }
    }
    let foreign =
        took_effect(answerer.view, answerer.outputs, node, Some(put.before), put.stat.as_ref(), sent);
    if let Some(stat) = put.stat.as_ref().filter(|_| size.is_none()) {
        answerer.view.files.rebase(node, put.before, stat);
    }
    // The kernel takes what it is told here for newer than what it was told to forget since: it is told nothing for long.
    let is_promised = answerer.view.leases.are_agreed();
    let shown = answerer
        .view
        .shown_attr(node)
        .map(|(stat, ttl)| (stat, if is_promised { Duration::ZERO } else { ttl }));
    match shown {
        // Nor does it compare its pages with this: they go first.
        Some((stat, ttl)) if foreign && stat.kind == Kind::File => {
            let pages = Invalidate::Node { node, offset: 0, length: 0 };
            answerer.calls.answer_dropped(answerer.outputs, pages, call, Answer::Attr(stat, ttl));
        }
        Some((stat, ttl)) => answerer.answer(call, Answer::Attr(stat, ttl)),
        None => answerer.fail(call, Errno::Stale),
    }
    answerer.outputs.leave(Step::ChangeEnded(node));
}

pub(crate) fn not_set(answerer: &mut Answerer<'_>, setting: Setting, errno: Errno) {
    answerer.view.files.write_answered(setting.node, 0);
    fail_gone(answerer, setting.call, setting.node, errno);
    answerer.outputs.leave(Step::ChangeEnded(setting.node));
}

/// Takes in the attributes of `node` after an own change. `before` is the version before the change, according to the reply; without
/// it, the change left the contents alone, and their mtime shows changes by others. Returns whether a change by another client came
/// between: then the file is being invalidated in the kernel.
pub(crate) fn took_effect(
    view: &mut View,
    outputs: &mut Outputs,
    node: TreeNodeId,
    before: Option<u64>,
    stat: Option<&Stat>,
    sent: Time,
) -> bool {
    let (now, coherency) = (view.mount.now, view.coherency());
    // Others may have changed the object since, which a lock that was granted meanwhile has told.
    let stat = stat.filter(|_| !view.names.is_overtaken(node, sent));
    let as_of = stat.map_or(Freshness::since(sent), |stat| view.known(stat, sent));
    if view.exclusive.unconfirmed.is_optimistic {
        view.names.changed(node, stat, as_of, now);
        tell_listings(view, node, sent);
        return false;
    }
    let foreign = match stat {
        Some(stat) => {
            let known = view.names.node(node).map(|known| known.stat);
            let untouched = known.filter(|known| known.mtime == stat.mtime).map(|known| known.version);
            // No object's version is 0.
            let before = before.or(untouched).unwrap_or(0);
            view.files.advance(node, before, stat.version, as_of, &coherency)
        }
        None => false,
    };
    // What is shown is further than this.
    if view.is_ahead(node) && !foreign {
        return false;
    }
    if view.files.is_writing(node) {
        // The size that later writes made it is not undone by this one's.
        let stat = stat.map(|stat| Stat { size: view.files.size_for_writers(node, stat.size), ..*stat });
        view.names.changed(node, stat.as_ref(), as_of, now);
        view.names.invalidate(node);
    } else {
        view.names.changed(node, stat, as_of, now);
    }
    tell_listings(view, node, sent);
    if foreign && view.files.may_kernel_have(node) {
        outputs.invalidate(Invalidate::Node { node, offset: 0, length: 0 });
    }
    foreign
}

/// Takes in the attributes of `node` after an own change of names: of a directory in which a name changed, or of an object that lost
/// a name, whose attributes no reply brings.
pub(crate) fn changed(view: &mut View, node: TreeNodeId, stat: Option<&Stat>, sent: Time) {
    let as_of = stat.map_or(Freshness::since(sent), |stat| view.known(stat, sent));
    let is_further = view.files.is_ahead(node) && !view.exclusive.unconfirmed.is_optimistic;
    view.names.changed(node, stat, as_of, view.mount.now);
    if is_further {
        view.names.invalidate(node);
    }
    if let Some(known) = view.names.node(node) {
        view.drop_inactive(known.stat.id);
    }
    tell_listings(view, node, sent);
}

/// Updates the listings that name a node after an own change.
fn tell_listings(view: &mut View, node: TreeNodeId, sent: Time) {
    let Some(known) = view.names.node(node) else { return };
    let stat = Stat { leased: known.freshness.is_some_and(|known| known.leased), ..known.stat };
    let links = view.names.links(node);
    // A name that is not known here may be in a listing nevertheless.
    let others = stat.kind != Kind::Directory && stat.nlink as usize > links.len();
    let is_inactive = |(dir, _): &(TreeNodeId, Vec<u8>)| !view.directories.is_cached(*dir);
    if others || links.is_empty() || (!view.inactive.is_empty() && links.iter().any(is_inactive)) {
        view.directories.outdate(stat.id, view.mount.now);
    }
    for (dir, name) in links {
        view.directories.touched(dir, &name, &stat, sent);
    }
}

/// The errno for the caller of a failed request that named a node: if the node has moved, `Stale`, and the kernel looks the path
/// up again.
pub(crate) fn gone(view: &mut View, outputs: &mut Outputs, node: TreeNodeId, errno: Errno) -> Errno {
    match errno {
        Errno::NotFound | Errno::Stale | Errno::NotDirectory => {
            view.names.invalidate(node);
            // What is remembered of its names would lead there again.
            for (parent, name) in view.names.links(node) {
                view.directories.invalidate_name(parent, &name);
                view.invalidate_listing(outputs, parent);
            }
            Errno::Stale
        }
        other => other,
    }
}

/// The same of a request that named something in the directory `dir`. Any directory on the way to it may be another one, and the kernel
/// looks the path up only once more, so each is asked for again.
pub(crate) fn gone_above(view: &mut View, outputs: &mut Outputs, dir: TreeNodeId, errno: Errno) -> Errno {
    if errno != Errno::Stale {
        return errno;
    }
    view.directories.invalidate(dir);
    let mut at = dir;
    loop {
        gone(view, outputs, at, errno);
        let parent = view.names.parent(at);
        if at == ROOT || parent == at {
            return errno;
        }
        at = parent;
    }
}

/// Answers a call whose node is gone.
pub(crate) fn fail_gone(answerer: &mut Answerer<'_>, call: CallId, node: TreeNodeId, errno: Errno) {
    let errno = gone(answerer.view, answerer.outputs, node, errno);
    answerer.fail(call, errno);
}
