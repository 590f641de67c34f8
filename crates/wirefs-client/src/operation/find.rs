//! Tfind: prefetch of the listings below a directory.

use crate::core::Client;
use crate::operation::{list, lookup};
use crate::pending::{ArrivingListing, FindStream, Pending};
use crate::sending::Sender;
use crate::steps::Step;
use crate::view::View;
use std::collections::BTreeMap;
use wirefs_cache::TreeNodeId;
use wirefs_op::find_listing::{FindDirectory, FindEntry, FindReader, FindRecord};
use wirefs_op::message::find::{FindMode, Rfind};
use wirefs_op::message::flush::Tflush;
use wirefs_op::{DirEntry, Errno, Kind, Request, Stat, Tag, Time, TreePath};

pub(crate) fn finish(
    client: &mut Client,
    tag: Tag,
    mut stream: FindStream,
    sent: Time,
    found: Rfind,
    last: bool,
) {
    let bytes = found.data.0.len();
    client.view.prefetch.counted.bytes += bytes as u64;
    stream.totals.bytes = stream.totals.bytes.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
    for record in FindReader::new(found.data.0) {
        match record {
            Ok(FindRecord::Directory(directory)) => begin(client, &mut stream, sent, directory),
            Ok(FindRecord::Entry(entry)) if stream.totals.entries < stream.bounds.entries => {
                stream.totals.entries += 1;
                add(&mut stream, entry);
            }
            // More than was asked for, or nonsense: no more of it.
            Ok(FindRecord::Entry(_)) | Err(_) => {
                if !last {
                    client.sender().send(Request::Flush(Tflush { oldtag: tag }), Pending::IGNORE);
                }
                return ended(&mut client.sender(), stream);
            }
        }
    }
    // What came of a directory is of use though a bound cut it off.
    if last || stream.current.as_ref().is_some_and(|current| current.ends) {
        complete(client, &mut stream, sent);
    }
    if stream.bounds.depth > 0 {
        client.sender().directories_came();
    }
    // One stream may bring more of them than may be kept.
    client.view.drop_unused();
    if last {
        stream.totals.is_whole = !found.mode.has(FindMode::MORE);
        ended(&mut client.sender(), stream);
    } else {
        client.outputs.leave(Step::ServeJoined(stream.top, false));
        if let Some(pending) = client.requests.pending_mut(tag) {
            *pending = Pending::Find(stream);
        }
    }
}

/// Begins a directory: the next entries are in it.
fn begin(client: &mut Client, stream: &mut FindStream, sent: Time, record: FindDirectory) {
    let FindDirectory { path, stat, begins, ends } = record;
    if let Some(current) = stream.current.as_mut()
        && !begins
        && current.path == path
        && current.stat.id == stat.id
    {
        current.ends = ends;
        return;
    }
    complete(client, stream, sent);
    let node = if begins { node_at(&mut client.sender(), stream.top, &path, &stat, sent) } else { None };
    if let Some(node) = node {
        client.view.names.hold(node);
    }
    stream.current = Some(ArrivingListing {
        path,
        node,
        stat,
        is_whole: begins,
        ends,
        entries: Vec::new(),
        contents: BTreeMap::new(),
    });
}

fn add(stream: &mut FindStream, entry: FindEntry) {
    let Some(current) = stream.current.as_mut().filter(|current| current.node.is_some()) else { return };
    let FindEntry { name, stat, contents } = entry;
    if let Some(contents) = contents {
        current.contents.insert(current.entries.len(), contents);
    }
    current.entries.push(DirEntry { name, next: 1, stat });
}

/// Ends the current directory.
fn complete(client: &mut Client, stream: &mut FindStream, sent: Time) {
    let Some(current) = stream.current.take() else { return };
    let ArrivingListing { node: Some(node), stat, is_whole, ends, entries, contents, .. } = current else {
        return;
    };
    let known = client.view.known_object(stat.id, stat.leased, sent);
    for (index, contents) in contents {
        if let Some(entry) = entries.get(index) {
            take_contents(&mut client.sender(), node, entry, contents, sent);
        }
    }
    if is_whole && ends {
        stream.totals.directories += 1;
        let is_known = client.view.is_listed(node);
        list::store(&mut client.view, &client.requests, node, entries, known);
        let is_believed = client.view.directories.is_fresh(node, &client.view.coherency());
        stream.totals.believed += usize::from(is_believed);
        // Where it begins is known as a rule, and then comes along since it has to.
        if node != stream.top || !is_known {
            client.view.fetched_directory(node, is_known || !is_believed);
        }
        list::serve_openings(client, node);
        client.view.deactivate_surplus(&client.calls);
    }
    client.view.names.release(node);
    client.view.drop_if_gone(node);
}

/// The node of a directory in the stream, new if there is none. `None` if the cached name is newer.
fn node_at(
    sender: &mut Sender<'_>,
    top: TreeNodeId,
    path: &TreePath,
    stat: &Stat,
    sent: Time,
) -> Option<TreeNodeId> {
    let is_it = |view: &View, node: TreeNodeId| {
        view.names.node(node).is_some_and(|known| known.stat.id == stat.id && known.stat.kind == stat.kind)
    };
    if stat.kind != Kind::Directory {
        return None;
    }
    let Some((above, name)) = path.split_last() else {
        sender.refresh(stat, sent);
        return Some(top).filter(|top| is_it(sender.view, *top));
    };
    if let Some(node) = sender.view.names.of_file(stat.id) {
        sender.refresh(stat, sent);
        return Some(node).filter(|node| is_it(sender.view, *node));
    }
    let parent = above.names().try_fold(top, |at, name| sender.view.names.child(at, name))?;
    node_of(sender, parent, name, stat, sent)
}

/// The node of this name, new if there is none. `None` if the cached name is newer.
pub(crate) fn node_of(
    sender: &mut Sender<'_>,
    parent: TreeNodeId,
    name: &[u8],
    stat: &Stat,
    sent: Time,
) -> Option<TreeNodeId> {
    let is_old = sender.view.names.node(parent).is_none_or(|parent| sent <= parent.changed_at)
        || sender.view.directories.is_changed_since(parent, name, sent)
        || sender.view.is_name_taken_back(parent, name, sent);
    let other = sender.view.names.child(parent, name).and_then(|child| sender.view.names.node(child));
    if is_old || other.is_some_and(|other| other.stat.id != stat.id) {
        return None;
    }
    let known = sender.view.known(stat, sent);
    let node = sender.learn(stat, known);
    sender.view.names.link(parent, name, node);
    Some(node)
}

fn take_contents(
    sender: &mut Sender<'_>,
    dir: TreeNodeId,
    entry: &DirEntry,
    contents: bytes::Bytes,
    sent: Time,
) {
    let DirEntry { name, stat, .. } = entry;
    let is_known = sender.view.is_wholly_known(stat.id);
    let bytes = contents.len() as u64;
    if is_known {
        return sender.view.fetched_known(bytes);
    }
    let Some(node) = node_of(sender, dir, name, stat, sent) else { return sender.view.fetched_known(bytes) };
    let known = sender.view.known(stat, sent);
    let is_taken = lookup::remember(sender.view, sender.requests, node, stat, &contents, known);
    sender.view.fetched_file(node, bytes, !is_taken);
    if !is_taken {
        sender.view.names.evict_if_unused(node);
        sender.view.drop_if_gone(node);
    }
}

/// Ends a stream, and releases the nodes that it held.
fn ended(sender: &mut Sender<'_>, mut stream: FindStream) {
    if let Some(node) = stream.current.take().and_then(|current| current.node) {
        sender.view.names.release(node);
        sender.view.drop_if_gone(node);
    }
    sender.stream_ended(stream.top, stream.totals);
    sender.contents_came(stream.top);
    sender.view.names.release(stream.top);
    sender.view.drop_if_gone(stream.top);
}

pub(crate) fn failed(sender: &mut Sender<'_>, stream: FindStream, errno: Errno) {
    if errno == Errno::NotImplemented {
        sender.view.prefetch.refused();
    }
    ended(sender, stream);
}
