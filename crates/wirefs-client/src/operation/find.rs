//! Tfind: prefetch of the listings below a directory.

use crate::core::Client;
use crate::operation::{list, lookup};
use crate::pending::{ArrivingListing, FindStream, Pending};
use crate::steps::Step;
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
                    client.send(Request::Flush(Tflush { oldtag: tag }), Pending::IGNORE);
                }
                return ended(client, stream);
            }
        }
    }
    // What came of a directory is of use though a bound cut it off.
    if last || stream.current.as_ref().is_some_and(|current| current.ends) {
        complete(client, &mut stream, sent);
    }
    if stream.bounds.depth > 0 {
        client.directories_came();
    }
    // One stream may bring more of them than may be kept.
    client.view.drop_unused();
    if last {
        stream.totals.is_whole = !found.mode.has(FindMode::MORE);
        ended(client, stream);
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
    let node = if begins { node_at(client, stream.top, &path, &stat, sent) } else { None };
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
            take_contents(client, node, entry, contents, sent);
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
    client: &mut Client,
    top: TreeNodeId,
    path: &TreePath,
    stat: &Stat,
    sent: Time,
) -> Option<TreeNodeId> {
    let is_it = |client: &Client, node: TreeNodeId| {
        client
            .view
            .names
            .node(node)
            .is_some_and(|known| known.stat.id == stat.id && known.stat.kind == stat.kind)
    };
    if stat.kind != Kind::Directory {
        return None;
    }
    let Some((above, name)) = path.split_last() else {
        client.refresh(stat, sent);
        return Some(top).filter(|top| is_it(client, *top));
    };
    if let Some(node) = client.view.names.of_file(stat.id) {
        client.refresh(stat, sent);
        return Some(node).filter(|node| is_it(client, *node));
    }
    let parent = above.names().try_fold(top, |at, name| client.view.names.child(at, name))?;
    node_of(client, parent, name, stat, sent)
}

/// The node of this name, new if there is none. `None` if the cached name is newer.
pub(crate) fn node_of(
    client: &mut Client,
    parent: TreeNodeId,
    name: &[u8],
    stat: &Stat,
    sent: Time,
) -> Option<TreeNodeId> {
    let is_old = client.view.names.node(parent).is_none_or(|parent| sent <= parent.changed_at)
        || client.view.directories.is_changed_since(parent, name, sent)
        || client.view.is_name_taken_back(parent, name, sent);
    let other = client.view.names.child(parent, name).and_then(|child| client.view.names.node(child));
    if is_old || other.is_some_and(|other| other.stat.id != stat.id) {
        return None;
    }
    let known = client.view.known(stat, sent);
    let node = client.learn(stat, known);
    client.view.names.link(parent, name, node);
    Some(node)
}

fn take_contents(client: &mut Client, dir: TreeNodeId, entry: &DirEntry, contents: bytes::Bytes, sent: Time) {
    let DirEntry { name, stat, .. } = entry;
    let is_known = client.view.is_wholly_known(stat.id);
    let bytes = contents.len() as u64;
    if is_known {
        return client.view.fetched_known(bytes);
    }
    let Some(node) = node_of(client, dir, name, stat, sent) else { return client.view.fetched_known(bytes) };
    let known = client.view.known(stat, sent);
    let is_taken = lookup::remember(&mut client.view, &client.requests, node, stat, &contents, known);
    client.view.fetched_file(node, bytes, !is_taken);
    if !is_taken {
        client.view.names.evict_if_unused(node);
        client.view.drop_if_gone(node);
    }
}

/// Ends a stream, and releases the nodes that it held.
fn ended(client: &mut Client, mut stream: FindStream) {
    if let Some(node) = stream.current.take().and_then(|current| current.node) {
        client.view.names.release(node);
        client.view.drop_if_gone(node);
    }
    client.stream_ended(stream.top, stream.totals);
    client.contents_came(stream.top);
    client.view.names.release(stream.top);
    client.view.drop_if_gone(stream.top);
}

pub(crate) fn failed(client: &mut Client, stream: FindStream, errno: Errno) {
    if errno == Errno::NotImplemented {
        client.view.prefetch.refused();
    }
    ended(client, stream);
}
