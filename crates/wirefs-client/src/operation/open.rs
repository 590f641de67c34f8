//! Open, and the server's fds behind open files.

use crate::answering::Answerer;
use crate::call::{Answer, CallId, Caller, Invalidate, OpenHow, PageCache};
use crate::core::Client;
use crate::operation::{as_opened, attributes, fetch, lookup, make, publish, puts, session};
use crate::pending::{Opening, Pending, Prefetching};
use crate::requests::Requests;
use crate::sending::Sender;
use crate::steps::Step;
use crate::view::View;
use crate::view::prefetch::window::Joined;
use wirefs_cache::{Fetch, TreeNodeId};
use wirefs_op::limits::DATA_BYTES_MAX;
use wirefs_op::message::get::{GetMode, GotMode, Rget, Tget};
use wirefs_op::message::put::{PutMode, Rput, Tput};
use wirefs_op::message::target::{Fd, NOFD};
use wirefs_op::wire::Data;
use wirefs_op::{Errno, Request, SetStat, Time};

/// # Cost
/// 0 round trips to read a file whose contents are known and valid, or to write to one where the outcome is certain on a mount that is
/// alone; else 1, which brings the first data.
pub(crate) fn start(
    client: &mut Client,
    call: CallId,
    caller: Caller,
    node: TreeNodeId,
    how: OpenHow,
) -> Result<(), Errno> {
    let reads = !how.write
        && !how.truncate
        && !client.view.mount.config.is_uncached(how)
        && !client.view.mount.config.mode.validates_at_open();
    let cached = reads && client.view.is_fresh(node) && client.view.has_first_piece(node);
    // A name that is about to go takes a file without an fd with it.
    if cached && !loses_name(&client.view, &client.requests, node) {
        if client.view.used_ahead(&client.requests, node) {
            client.sender().file_opened(node);
        }
        opened(client, call, (node, None), how, NOFD, client.view.mount.now);
        return Ok(());
    }
    let may_load =
        reads && !cached && client.view.is_fresh(node) && !loses_name(&client.view, &client.requests, node);
    if may_load && client.view.opens_stored(&mut client.outputs, Joined { call, caller, node, how }) {
        return Ok(());
    }
    if reads && !cached && client.view.joins(Joined { call, caller, node, how }) {
        return Ok(());
    }
    ask(&mut client.sender(), call, caller, node, how)?;
    if reads && !cached {
        client.sender().file_opened(node);
    }
    Ok(())
}

/// Continues an open whose contents have arrived, or will not arrive.
pub(crate) fn go_on(client: &mut Client, joined: Joined) {
    let Joined { call, caller, node, how } = joined;
    if client.view.is_fresh(node)
        && client.view.has_first_piece(node)
        && !loses_name(&client.view, &client.requests, node)
    {
        client.view.used_ahead(&client.requests, node);
        client.sender().file_opened(node);
        opened(client, call, (node, None), how, NOFD, client.view.mount.now);
    } else if let Err(errno) = ask(&mut client.sender(), call, caller, node, how) {
        client.answerer().fail(call, errno);
    }
}

fn ask(
    sender: &mut Sender<'_>,
    call: CallId,
    caller: Caller,
    node: TreeNodeId,
    how: OpenHow,
) -> Result<(), Errno> {
    let is_whole =
        sender.view.names.node(node).is_some_and(|known| sender.view.is_wholly_known(known.stat.id));
    let uncached = sender.view.mount.config.is_uncached(how)
        || (sender.view.mount.config.mode.validates_at_open() && is_whole);
    // What is a copy is cut as such.
    let cuts = how.truncate && !sender.view.mount.config.mode.fetch.has_private_copies();
    let place = sender
        .view
        .mount
        .config
        .mode
        .fetch
        .has_private_copies()
        .then(|| publish::place_of(sender.view, node))
        .flatten();
    let mut target = sender.view.target(node, None)?;
    // Another open file's fd may have other rights; it serves when there is no path any more.
    if sender.view.names.path(node).is_some() {
        target.fd = NOFD;
    }
    let writes = how.write || how.truncate;
    let is_followed = !writes
        && !uncached
        && sender.view.mount.config.mode.fetch == Fetch::Blocks
        && !sender.view.files.is_writing(node);
    let first = if is_followed {
        fetch::first_bytes(sender.view, sender.requests, node)
    } else {
        DATA_BYTES_MAX as u64
    };
    let request = if writes {
        let mode = make::open_mode(how)
            .and_if(cuts, PutMode::STAT)
            .and_if(cuts && caller.uid != 0, PutMode::KILL_PRIVILEGES);
        let set = SetStat { size: cuts.then_some(0), ..SetStat::default() };
        Request::Put(Tput { target, mode, create: None, set, offset: 0, data: Data::default() })
    } else {
        let mode = GetMode::STAT
            .and(GetMode::MORE)
            .and_if(sender.view.files.is_writing(node), GetMode::ORDERED)
            .and_if(!uncached, GetMode::DATA);
        let count = if uncached { 0 } else { first as u32 };
        Request::Get(Tget { target, mode, nmsgs: 1, offset: 0, count })
    };
    sender.send(request, Pending::Open(Opening { call, node, how, cuts, place }));
    if is_followed {
        fetch::follow_opening(sender, node, first);
    }
    Ok(())
}

/// Whether an own change that may remove a name of the node is in progress, or a program at the server may have removed one.
fn loses_name(view: &View, requests: &Requests, node: TreeNodeId) -> bool {
    if view.is_place_contended(node) {
        return true;
    }
    let links = view.names.links(node);
    requests.any(|pending| match pending {
        Pending::Remove(removing) => links.contains(&removing.place()),
        Pending::Rename(renaming) => links.contains(&renaming.replaced()),
        _ => false,
    })
}

fn opened(
    client: &mut Client,
    call: CallId,
    (node, place): (TreeNodeId, Option<(TreeNodeId, Vec<u8>)>),
    how: OpenHow,
    fd: Fd,
    sent: Time,
) {
    client.view.names.hold(node);
    // From now on the open file keeps the contents, which no longer count as prefetched.
    client.view.used_ahead(&client.requests, node);
    let handle = client.view.files.opened(node, how, fd);
    if client.view.mount.config.mode.fetch.has_private_copies() {
        if let Some(open) = client.view.files.open_mut(handle) {
            open.opened_by = place;
        }
        return session::opened(client, call, node, handle, (how.truncate, sent));
    }
    // One that is opened to be written to has asked for its fd.
    if fd == NOFD && !how.write {
        as_opened::keep(&mut client.sender(), node, handle);
    }
    let uncached = client.view.mount.config.is_uncached(how);
    let coherency = client.view.coherency();
    let pages = client.view.files.page_cache(node, uncached, sent, &coherency);
    let pages = match pages {
        _ if !uncached && client.view.files.is_moving(node, client.view.mount.now) => PageCache::Avoid,
        PageCache::Keep if closes_quietly(&client.view, node, how) => PageCache::Quiet,
        PageCache::Bypass if closes_quietly(&client.view, node, how) => PageCache::QuietBypass,
        _ => pages,
    };
    client.answerer().answer(call, Answer::Opened(handle, pages));
}

/// Whether the kernel may close descriptors without a flush: nothing is written through the file, and no program has locked it.
fn closes_quietly(view: &View, node: TreeNodeId, how: OpenHow) -> bool {
    how.only_reads() && view.mount.config.mode.takes_leases() && !view.files.was_locked(node)
}

pub(crate) fn finish_reading(client: &mut Client, opening: Opening, sent: Time, got: Rget, last: bool) {
    let Opening { call, node, how, place, .. } = opening;
    if !last {
        return client.answerer().fail(call, Errno::Protocol);
    }
    client.view.files.contents(node);
    if let Some(stat) = got.stat.as_ref() {
        client.sender().refresh(stat, sent);
    }
    let overtaken = client.view.names.node(node).is_none_or(|known| sent < known.changed_at);
    let is_known = got.stat.is_some_and(|stat| client.view.files.is_of(node, stat.version));
    if got.mode.has(GotMode::DATA) && !overtaken && is_known {
        client.view.files.remember_read(node, 0, &got.data.0);
    }
    opened(client, call, (node, place), how, got.fd, sent);
}

pub(crate) fn finish_writing(client: &mut Client, opening: Opening, sent: Time, put: Rput) {
    let Opening { call, node, how, cuts, place } = opening;
    client.view.files.contents(node);
    if cuts {
        client.view.files.write_answered(node, 0);
        client.view.files.truncate_contents(node, 0);
        // As of a write: the kernel goes on to believe the mode that it knew.
        if puts::has_set_id(&client.view, node) {
            client.outputs.invalidate(Invalidate::Node { node, offset: -1, length: 0 });
        }
        attributes::took_effect(
            &mut client.view,
            &mut client.outputs,
            node,
            Some(put.before),
            put.stat.as_ref(),
            sent,
        );
    } else if let Some(stat) = put.stat {
        client.sender().refresh(&stat, sent);
    }
    opened(client, call, (node, place), how, put.fd, sent);
    if cuts {
        client.outputs.leave(Step::ChangeEnded(node));
    }
}

pub(crate) fn failed(answerer: &mut Answerer<'_>, opening: Opening, errno: Errno) {
    let Opening { call, node, cuts, .. } = opening;
    attributes::fail_gone(answerer, call, node, errno);
    if cuts {
        answerer.view.files.write_answered(node, 0);
        answerer.outputs.leave(Step::ChangeEnded(node));
    }
}

/// Takes in prefetched contents.
pub(crate) fn came_ahead(sender: &mut Sender<'_>, ahead: Prefetching, sent: Time, got: Rget, last: bool) {
    let (node, bytes) = (ahead.node, got.data.0.len() as u64);
    sender.view.prefetch.counted.bytes += bytes;
    let is_whole = got.mode.has(GotMode::DATA) && last && !got.mode.has(GotMode::MORE);
    if let Some(stat) = got.stat.filter(|_| is_whole) {
        let was_known = sender.view.is_wholly_known(stat.id);
        sender.refresh(&stat, sent);
        let known = sender.view.known(&stat, sent);
        let is_it = sender.view.names.of_file(stat.id) == Some(node);
        let is_taken = is_it
            && !was_known
            && lookup::remember(sender.view, sender.requests, node, &stat, &got.data.0, known);
        sender.view.fetched_file(node, bytes, !is_taken);
    }
    not_ahead(sender, ahead);
}

/// They will not come.
pub(crate) fn not_ahead(sender: &mut Sender<'_>, ahead: Prefetching) {
    sender.contents_came(ahead.node);
    sender.view.names.release(ahead.node);
    sender.view.drop_if_gone(ahead.node);
}
