//! Opendir and readdir: whole directories with their attributes, in one request.

use crate::call::{Answer, CallId, Handle, Listed, PageCache};
use crate::core::Client;
use crate::files::{OpenDirectory, WaitingReaddir};
use crate::operation::{Pending, attributes};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use wirefs_cache::{Fetch, NodeId};
use wirefs_op::listing::entries;
use wirefs_op::message::flush::Tflush;
use wirefs_op::message::get::{GetMode, GotMode, Rget, Tget};
use wirefs_op::{DirEntry, Errno, Kind, Request, Tag, Time};

/// Names that were asked for singly in one directory before its listing is fetched.
const MISSES_BEFORE_LISTING: u32 = 2;
/// A listing fetched for the sake of lookups is at most this long, in bytes.
const UNASKED_BYTES_MAX: u32 = 256 * 1024;
/// A listing is at most this long, in bytes: about two million entries, which take as much memory again.
const LISTING_BYTES_MAX: u32 = 256 * 1024 * 1024;
/// A listing fetched ahead of a walk is at most this long, in bytes.
const AHEAD_BYTES_MAX: u32 = 64 * 1024;
/// A listing is renewed before it is too old when it has so many entries at most: about 32 KiB.
const RENEWED_ENTRIES_MAX: usize = 256;
/// Directories that are listed ahead of a walk.
const AHEAD_MAX: usize = 16;
/// Directories whose misses are counted, at most.
const MISSES_MAX: usize = 1024;

/// Events by directory, each since when: lookups that no listing answered, listings of directories in it.
#[derive(Debug, Default)]
pub(crate) struct Misses(BTreeMap<NodeId, (u32, Time)>);

impl Misses {
    /// Counts one more; they are forgotten after `span`.
    fn count(&mut self, dir: NodeId, now: Time, span: Duration) -> u32 {
        if self.0.len() >= MISSES_MAX {
            self.0.retain(|_, (_, since)| now < *since + span);
            if self.0.len() >= MISSES_MAX {
                self.0.clear();
            }
        }
        let (count, since) = self.0.entry(dir).or_insert((0, now));
        if now >= *since + span {
            (*count, *since) = (0, now);
        }
        *count += 1;
        *count
    }
}

/// A listing under way.
#[derive(Clone, Debug)]
pub(crate) struct Listing {
    node: NodeId,
    /// The open directory that it is for; `None`: fetched for the sake of lookups.
    handle: Option<Handle>,
    /// The opendir that waits for its beginning.
    opening: Option<CallId>,
    gathered: Vec<DirEntry>,
    /// It was asked for to its end.
    is_whole: bool,
}

impl Listing {
    pub(crate) fn restart(&mut self) -> bool {
        self.gathered.clear();
        self.handle.is_some() || self.opening.is_some()
    }
}

/// Counts a name that had to be asked for; from the second on, its directory's listing is worth having.
pub(crate) fn note_miss(client: &mut Client, dir: NodeId) {
    if client.config.mode.fetch == Fetch::Exact {
        return;
    }
    let (now, window) = (client.now, client.config.mode.window());
    if client.misses.count(dir, now, window) == MISSES_BEFORE_LISTING {
        ask_unasked(client, dir, UNASKED_BYTES_MAX);
    }
}

/// Fetches a listing that nobody waits for.
fn ask_unasked(client: &mut Client, dir: NodeId, bytes_max: u32) {
    if let Ok(target) = client.target(dir, None) {
        let mode = GetMode::DATA.and(GetMode::STAT);
        let get = Tget { target, mode, nmsgs: 0, offset: 0, count: bytes_max };
        let listing =
            Listing { node: dir, handle: None, opening: None, gathered: Vec::new(), is_whole: false };
        client.send(Request::Get(get), Pending::List(listing));
    }
}

/// A directory is being worked in: a short listing is asked for again before it is too old, so that nobody waits for it.
pub(crate) fn renew(client: &mut Client, dir: NodeId) {
    let Some((entries, at)) = client.directories.extent(dir) else { return };
    let is_old = client.now.since(at) * 2 >= client.config.mode.window();
    let is_coming = |pending: &Pending| matches!(pending, Pending::List(listing) if listing.node == dir);
    if is_old && entries <= RENEWED_ENTRIES_MAX && !client.requests.any(is_coming) {
        ask_unasked(client, dir, AHEAD_BYTES_MAX);
    }
}

/// Who lists a second directory within another is walking the tree: the next ones are listed ahead of it.
fn walk_ahead(client: &mut Client, node: NodeId) {
    let (now, window) = (client.now, client.config.mode.window());
    let parent = client.names.parent(node);
    if client.config.mode.fetch == Fetch::Exact || parent == node {
        return;
    }
    // Slower than that, and what is listed ahead is too old when its turn comes.
    if client.walks.count(parent, now, window) < 2 {
        return;
    }
    let links = client.names.links(node);
    let Some((_, name)) = links.iter().find(|(dir, _)| *dir == parent) else { return };
    for next in client.names.directories_after(parent, name, AHEAD_MAX) {
        let is_coming = |pending: &Pending| matches!(pending, Pending::List(listing) if listing.node == next);
        if !client.directories.is_fresh(next, now, window) && !client.requests.any(is_coming) {
            ask_unasked(client, next, AHEAD_BYTES_MAX);
        }
    }
}

/// Takes the listing for an opendir that is on its way already, if it was asked for within the window.
fn join(client: &mut Client, call: CallId, node: NodeId) -> bool {
    let is_free = |pending: &Pending| {
        matches!(pending, Pending::List(listing)
            if listing.node == node && listing.handle.is_none() && listing.opening.is_none())
    };
    let Some(tag) = client.requests.find(is_free) else { return false };
    let window = client.config.mode.window();
    if client.requests.sent_at(tag).is_none_or(|sent| client.now >= sent + window) {
        return false;
    }
    match client.requests.pending_mut(tag) {
        Some(Pending::List(listing)) => {
            listing.opening = Some(call);
            true
        }
        _ => false,
    }
}

/// # Cost
/// 0 round trips when the listing is known and valid, else 1.
pub(crate) fn open(client: &mut Client, call: CallId, node: NodeId) -> Result<(), Errno> {
    let known = client.directories.snapshot(node, client.now, client.config.mode.window());
    if let Some((entries, listed_at)) = known {
        client.counters.name_hits += 1;
        let handle = opened(client, node, entries, listed_at, true);
        client.answer(call, Answer::Opened(handle, PageCache::Drop));
    } else {
        client.counters.name_misses += 1;
        if !join(client, call, node) {
            ask(client, node, None, Some(call))?;
        }
    }
    walk_ahead(client, node);
    Ok(())
}

fn opened(
    client: &mut Client,
    node: NodeId,
    entries: Arc<Vec<DirEntry>>,
    listed_at: Time,
    complete: bool,
) -> Handle {
    client.names.hold(node);
    client.files.directory_opened(OpenDirectory {
        node,
        entries,
        listed_at,
        complete,
        error: None,
        read: false,
        waiting: Vec::new(),
    })
}

fn ask(
    client: &mut Client,
    node: NodeId,
    handle: Option<Handle>,
    opening: Option<CallId>,
) -> Result<(), Errno> {
    let target = client.target(node, None)?;
    let mode = GetMode::DATA.and(GetMode::STAT);
    let get = Tget { target, mode, nmsgs: 0, offset: 0, count: LISTING_BYTES_MAX };
    let listing = Listing { node, handle, opening, gathered: Vec::new(), is_whole: true };
    client.send(Request::Get(get), Pending::List(listing));
    Ok(())
}

pub(crate) fn finish(client: &mut Client, tag: Tag, mut listing: Listing, sent: Time, got: Rget, last: bool) {
    let node = listing.node;
    if let Some(stat) = got.stat {
        client.refresh(&stat, sent);
    }
    let Ok(mut new) = entries(got.data.0.clone()) else {
        return failed(client, listing, Errno::Protocol);
    };
    if let Some(call) = listing.opening.take() {
        let begun = Arc::new(std::mem::take(&mut listing.gathered));
        let handle = opened(client, node, begun, sent, false);
        listing.handle = Some(handle);
        client.answer(call, Answer::Opened(handle, PageCache::Drop));
    }
    let handle = listing.handle;
    match handle.map(|handle| client.files.directory_mut(handle)) {
        Some(Some(open)) => Arc::make_mut(&mut open.entries).append(&mut new),
        // Its reader closed early: the rest is not worth its way.
        Some(None) if !last => return client.send(Request::Flush(Tflush { oldtag: tag }), Pending::Ignore),
        Some(None) => return,
        None => listing.gathered.append(&mut new),
    }
    if !last {
        if let Some(pending) = client.requests.pending_mut(tag) {
            *pending = Pending::List(listing);
        }
    } else if got.mode.has(GotMode::MORE) {
        // Longer than we can hold. Told by an error rather than by leaving names out.
        if listing.is_whole && handle.is_some() {
            return failed(client, listing, Errno::Overflow);
        }
        // Asked for ahead and then wanted: from the start once more, in the same order.
        if let Some(open) = handle.and_then(|handle| client.files.directory_mut(handle)) {
            open.entries = Arc::default();
            open.listed_at = client.now;
            if let Err(errno) = ask(client, node, handle, None) {
                return failed(client, listing, errno);
            }
        }
    } else {
        let open = handle.and_then(|handle| client.files.directory_mut(handle));
        let gathered = match open {
            Some(open) => {
                open.complete = true;
                open.entries.as_ref().clone()
            }
            None => listing.gathered,
        };
        if client.config.mode.fetch == Fetch::Blocks {
            client.directories.store(node, gathered, sent);
        }
    }
    if let Some(handle) = handle {
        serve_waiting(client, handle);
    }
}

pub(crate) fn failed(client: &mut Client, listing: Listing, errno: Errno) {
    let errno = attributes::gone(client, listing.node, errno);
    if let Some(call) = listing.opening {
        client.fail(call, errno);
    }
    if let Some(handle) = listing.handle
        && let Some(open) = client.files.directory_mut(handle)
    {
        open.complete = true;
        open.error = Some(errno);
        serve_waiting(client, handle);
    }
}

pub(crate) fn read(
    client: &mut Client,
    node: NodeId,
    handle: Handle,
    wanted: WaitingReaddir,
) -> Result<(), Errno> {
    let (now, window) = (client.now, client.config.mode.window());
    let open = client.files.directory_mut(handle).ok_or(Errno::BadDescriptor)?;
    // rewinddir: POSIX wants the directory as it is by then.
    let again = wanted.offset == 0 && open.read && open.complete && now >= open.listed_at + window;
    open.read = true;
    open.waiting.push(wanted);
    if again {
        open.entries = Arc::default();
        open.complete = false;
        open.error = None;
        open.listed_at = now;
        return ask(client, node, Some(handle), None);
    }
    serve_waiting(client, handle);
    Ok(())
}

/// Answers the readdirs that the listing reaches far enough for.
fn serve_waiting(client: &mut Client, handle: Handle) {
    let Some(open) = client.files.directory_mut(handle) else {
        return;
    };
    let (node, entries, complete, error) = (open.node, Arc::clone(&open.entries), open.complete, open.error);
    let past = entries.len() as u64 + 2;
    let (ready, waiting): (Vec<_>, Vec<_>) =
        std::mem::take(&mut open.waiting).into_iter().partition(|wanted| complete || wanted.offset < past);
    open.waiting = waiting;
    for wanted in ready {
        let answer = match error {
            Some(errno) if wanted.offset >= past => Answer::Fail(errno),
            _ => Answer::Listing(pack(client, node, &entries, handle, &wanted)),
        };
        client.answer(wanted.call, answer);
    }
}

/// The entries from `offset` on that fit. Offset 0 is `.`, 1 is `..`, 2 the first entry.
fn pack(
    client: &mut Client,
    dir: NodeId,
    entries: &[DirEntry],
    handle: Handle,
    wanted: &WaitingReaddir,
) -> Vec<Listed> {
    let listed_at = client.files.directory_mut(handle).map_or(client.now, |open| open.listed_at);
    let mut room = wanted.bytes_max as usize;
    let mut listing = Vec::new();
    for (index, name) in [b".".as_slice(), b".."].into_iter().enumerate().skip(wanted.offset as usize) {
        let cost = (wanted.entry_bytes as usize + name.len()).next_multiple_of(8);
        if cost > room {
            return listing;
        }
        room -= cost;
        let node = if index == 0 { dir } else { client.names.parent(dir) };
        let ino = client.names.node(node).map_or(1, |known| client.present(&known.stat).id.ino);
        let st_mode = Kind::Directory.mode_bits();
        listing.push(Listed { name: name.to_vec(), next: index as u64 + 1, ino, st_mode, entry: None });
    }
    let first = (wanted.offset as usize).saturating_sub(2);
    // A listing older than an own change of the directory must not bring a removed name back: it is then shown without
    // attributes, upon which the kernel remembers nothing of it.
    let current = client.names.node(dir).is_some_and(|known| listed_at >= known.changed_at);
    for (index, entry) in entries.iter().enumerate().skip(first) {
        let cost = (wanted.entry_bytes as usize + entry.name.len()).next_multiple_of(8);
        if cost > room {
            break;
        }
        room -= cost;
        let shown = client.present(&entry.stat);
        let node = (wanted.with_stats && current).then(|| {
            let node = client.learn(&entry.stat, listed_at);
            client.names.link(dir, &entry.name, node);
            node
        });
        listing.push(Listed {
            name: entry.name.clone(),
            next: index as u64 + 3,
            ino: shown.id.ino,
            st_mode: shown.st_mode(),
            entry: node.and_then(|node| client.entry(node, listed_at).ok()),
        });
    }
    listing
}
