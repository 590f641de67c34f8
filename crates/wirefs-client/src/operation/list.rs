//! Opendir and readdir: whole directories with their attributes, in one request.

mod packing;

use crate::call::{Answer, Handle, PageCache};
use crate::core::Client;
use crate::operation::{attributes, stateless};
use crate::pending::{Listing, ListingReader, Pending};
use crate::requests::Requests;
use crate::sending::Sender;
use crate::view::View;
use crate::view::files::{OpenDirectory, WaitingReaddir};
use packing::pack;
use std::collections::BTreeSet;
use std::sync::Arc;
use wirefs_cache::{Freshness, LongListing, TreeNodeId};
use wirefs_op::listing::entries;
use wirefs_op::message::flush::Tflush;
use wirefs_op::message::get::{GetMode, GotMode, Rget, Tget};
use wirefs_op::{DirEntry, Errno, Request, Stat, Tag, Time};

/// The number of lookups in one directory after which its listing is fetched.
const MISSES_BEFORE_LISTING: u32 = 2;
/// The maximum size of a listing that is fetched for lookups, in bytes.
const UNASKED_BYTES_MAX: u32 = 256 * 1024;
/// The maximum size of a listing, in bytes: about two million entries. They take a third of that while the directory is
/// open.
const LISTING_BYTES_MAX: u32 = 256 * 1024 * 1024;
/// The maximum size of a renewed listing, in bytes.
const RENEWED_BYTES_MAX: u32 = 64 * 1024;
/// The maximum number of entries of a listing that is renewed before it expires: about 32 KiB.
const RENEWED_ENTRIES_MAX: usize = 256;
/// Counts a lookup that missed the cache. From the second miss on, the client fetches the directory's listing.
pub(crate) fn note_miss(sender: &mut Sender<'_>, dir: TreeNodeId) {
    if !sender.view.mount.config.mode.fetch.prefetches() || !sender.view.may_fetch_ahead(sender.requests) {
        return;
    }
    let (now, span) = (sender.view.mount.now, sender.view.mount.config.mode.prefetch_window());
    if sender.view.prefetch.misses.count(dir, now, span) == MISSES_BEFORE_LISTING
        && !sender.streams_instead(dir)
    {
        ask_unasked(sender, dir, UNASKED_BYTES_MAX);
    }
}

/// Fetches a listing in the background.
fn ask_unasked(sender: &mut Sender<'_>, dir: TreeNodeId, bytes_max: u32) {
    if let Ok(target) = sender.view.target(dir, None) {
        let mode = GetMode::DATA.and(GetMode::STAT);
        let get = Tget { target, mode, nmsgs: 0, offset: 0, count: bytes_max };
        sender.send(Request::Get(get), Pending::List(Listing { is_whole: false, ..Listing::of(dir) }));
    }
}

/// Renews a short listing of a directory in use before it expires, so that no call waits for it.
pub(crate) fn renew(sender: &mut Sender<'_>, dir: TreeNodeId) {
    let Some((entries, known)) = sender.view.directories.extent(dir) else { return };
    let window = sender.view.mount.config.mode.window();
    let is_old = sender.view.mount.now.since(known.at) * 2 >= window;
    if window.is_zero() || sender.view.coherency().is_leased(known) {
        return;
    }
    let is_coming = |pending: &Pending| matches!(pending, Pending::List(listing) if listing.node == dir);
    if is_old && entries <= RENEWED_ENTRIES_MAX && !sender.requests.any(is_coming) {
        ask_unasked(sender, dir, RENEWED_BYTES_MAX);
    }
}

/// Lets a reader wait for a listing that is in transit, if its request is within the window, or may bring a lease.
fn join(view: &mut View, requests: &mut Requests, opening: ListingReader, node: TreeNodeId) -> bool {
    let is_free = |pending: &Pending| {
        matches!(pending, Pending::List(listing)
            if listing.node == node && listing.handle.is_none() && listing.opening.is_none())
    };
    let Some(tag) = requests.find(is_free) else { return false };
    let (now, coherency) = (view.mount.now, view.coherency());
    let may_do = |sent| coherency.leases_valid || coherency.is_valid(Freshness::since(sent));
    if !requests.sent_at(tag).is_some_and(may_do) {
        return false;
    }
    match requests.pending_mut(tag) {
        Some(Pending::List(listing)) => {
            listing.opening = Some((opening, now));
            true
        }
        _ => false,
    }
}

/// # Cost
/// 0 round trips when the listing is known and valid, else 1.
pub(crate) fn open(client: &mut Client, opening: ListingReader, node: TreeNodeId) -> Result<(), Errno> {
    if open_known(client, opening, node) {
        client.outputs.counters.name_hits += 1;
    } else {
        client.outputs.counters.name_misses += 1;
        if !join(&mut client.view, &mut client.requests, opening, node) {
            let now = client.view.mount.now;
            ask(&mut client.sender(), node, None, Some((opening, now)))?;
        }
        client.sender().directory_missed(node);
    }
    client.view.directory_opened(&client.requests, node);
    Ok(())
}

/// Opens a directory whose listing is known; false when it is not.
fn open_known(client: &mut Client, opening: ListingReader, node: TreeNodeId) -> bool {
    let coherency = client.view.coherency();
    let Some((entries, listed)) = client.view.directories.snapshot(node, &coherency) else { return false };
    client.view.used_ahead(&client.requests, node);
    let opened = OpenDirectory { complete: true, ..begun(node, entries, listed, client.view.mount.now) };
    match opening {
        ListingReader::Opendir(call) => {
            let is_kept = coherency.is_leased(listed) && client.view.files.keeps_listing(node);
            let handle = opened_with(&mut client.view, OpenDirectory { is_kept, ..opened });
            let pages = if is_kept { PageCache::Keep } else { PageCache::Drop };
            client.answerer().answer(call, Answer::Opened(handle, pages));
        }
        ListingReader::Readdir(wanted) => {
            let handle = client.view.files.reading_begins(opened);
            go_on(client, handle, wanted);
        }
    }
    true
}

fn opened_with(view: &mut View, opened: OpenDirectory) -> Handle {
    view.names.hold(opened.node);
    view.files.directory_opened(opened)
}

fn begun(node: TreeNodeId, entries: Arc<Vec<DirEntry>>, listed: Freshness, taken_at: Time) -> OpenDirectory {
    OpenDirectory {
        node,
        entries: entries.into(),
        before: Vec::new(),
        listed,
        taken_at,
        invalidated: BTreeSet::new(),
        is_kept: false,
        complete: false,
        error: None,
        read: false,
        waiting: Vec::new(),
    }
}

fn ask(
    sender: &mut Sender<'_>,
    node: TreeNodeId,
    handle: Option<Handle>,
    opening: Option<(ListingReader, Time)>,
) -> Result<(), Errno> {
    let target = sender.view.target(node, None)?;
    let mode = GetMode::DATA.and(GetMode::STAT);
    let get = Tget { target, mode, nmsgs: 0, offset: 0, count: LISTING_BYTES_MAX };
    let listing = Listing { handle, opening, ..Listing::of(node) };
    sender.send(Request::Get(get), Pending::List(listing));
    Ok(())
}

pub(crate) fn finish(client: &mut Client, tag: Tag, mut listing: Listing, sent: Time, got: Rget, last: bool) {
    let node = listing.node;
    if let Some(stat) = got.stat {
        client.sender().refresh(&stat, sent);
        listing.is_leased = stat.leased;
    }
    let mut listed = listed(&mut client.view, &listing, sent);
    let Ok(mut new) = entries(got.data.0.clone()) else {
        return failed(client, listing, Errno::Protocol);
    };
    // What fits one message is listed in the order in which what is in it is fetched ahead.
    if last && !got.mode.has(GotMode::MORE) && listing.handle.is_none() && listing.received.is_empty() {
        new.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    }
    client.view.take_back(node, &mut new, sent);
    if let Some(opening) = listing.opening.take() {
        open_with(client, &mut listing, opening, sent, listed);
    }
    let handle = listing.handle;
    match handle.map(|handle| client.view.files.directory_mut(handle)) {
        Some(Some(open)) => {
            listing.fill(open, &mut new, listed, sent);
            handle.into_iter().for_each(|handle| client.view.files.stateless.weigh(handle));
        }
        // Its reader closed early: the rest is not worth its way.
        Some(None) if !last => {
            return client.sender().send(Request::Flush(Tflush { oldtag: tag }), Pending::IGNORE);
        }
        Some(None) => return,
        None => listing.received.append(&mut new),
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
        if let Some(open) = handle.and_then(|handle| client.view.files.directory_mut(handle)) {
            open.entries = LongListing::default();
            open.invalidated.clear();
            (open.listed, open.taken_at) = (Freshness::since(client.view.mount.now), client.view.mount.now);
            handle.into_iter().for_each(|handle| client.view.files.stateless.weigh(handle));
            if let Err(errno) = ask(&mut client.sender(), node, handle, None) {
                return failed(client, listing, errno);
            }
        }
    } else {
        let (is_kept, most) =
            (client.view.mount.config.mode.fetch.is_cached(), client.view.directories.entries_max());
        let open = handle.and_then(|handle| client.view.files.directory_mut(handle));
        let received = match open {
            Some(open) => {
                open.complete = true;
                listed = open.listed;
                is_kept.then(|| open.entries.whole(most)).flatten()
            }
            None => Some(listing.received),
        };
        if let Some(received) = received.filter(|_| is_kept) {
            store(&mut client.view, &client.requests, node, received, listed);
        }
    }
    if let Some(handle) = handle {
        serve_waiting(client, handle);
    }
}

/// Continues the call that waits for the beginning of a listing since `since`.
fn open_with(
    client: &mut Client,
    listing: &mut Listing,
    (opening, since): (ListingReader, Time),
    sent: Time,
    listed: Freshness,
) {
    let node = listing.node;
    // Asked for before that, and not promised: it may be too old. Of what was changed here since it does not tell.
    let is_old = !client.view.coherency().is_valid_since(listed, since)
        || client.view.directories.has_changed_since(node, sent);
    if sent < since && is_old {
        if let Err(errno) = ask(&mut client.sender(), node, None, Some((opening, since))) {
            client.answerer().fail(opening.call(), errno);
        }
        return;
    }
    let mut begun = std::mem::take(&mut listing.received);
    client.view.take_back(node, &mut begun, sent);
    let begun = Arc::new(begun);
    let mut opened = self::begun(node, begun, listed, sent);
    match opening {
        ListingReader::Opendir(call) => {
            let handle = opened_with(&mut client.view, opened);
            listing.handle = Some(handle);
            client.answerer().answer(call, Answer::Opened(handle, PageCache::Drop));
        }
        // Answered when this part of the listing is in it.
        ListingReader::Readdir(wanted) => {
            opened.waiting.push(wanted);
            listing.handle = Some(client.view.files.reading_begins(opened));
        }
    }
}

/// The freshness of a listing that was requested at `sent`.
fn listed(view: &mut View, listing: &Listing, sent: Time) -> Freshness {
    let id = view.names.node(listing.node).map(|dir| dir.stat.id);
    id.map_or(Freshness::since(sent), |id| view.known_object(id, listing.is_leased, sent))
}

/// Caches the listing of a directory that this client has just made.
pub(crate) fn store_made(view: &mut View, requests: &Requests, dir: TreeNodeId, known: Freshness) {
    view.directories.store(dir, Vec::new(), known, &view.coherency());
    view.directory_listed(requests, dir);
}

/// Caches a listing. Its attributes may be older than this client's changes since the request.
pub(crate) fn store(
    view: &mut View,
    requests: &Requests,
    dir: TreeNodeId,
    mut entries: Vec<DirEntry>,
    known: Freshness,
) {
    view.note_listed(dir);
    for entry in &mut entries {
        match view.names.changed_since(entry.stat.id, known.at) {
            Some(Some((stat, as_of))) => entry.stat = Stat { leased: as_of.leased, ..stat },
            Some(None) => entry.stat.leased = false,
            None => {}
        }
    }
    view.take_back(dir, &mut entries, known.at);
    view.directories.store(dir, entries, known, &view.coherency());
    view.directory_listed(requests, dir);
}

/// Continues the calls that wait for a listing, which a stream has brought.
pub(crate) fn serve_openings(client: &mut Client, dir: TreeNodeId) {
    let waits = |pending: &Pending| {
        matches!(pending, Pending::List(listing)
            if listing.node == dir && listing.opening.is_some() && listing.received.is_empty())
    };
    while client.view.directories.is_fresh(dir, &client.view.coherency()) {
        let Some(tag) = client.requests.find(waits) else { return };
        let opening = match client.requests.pending_mut(tag) {
            Some(Pending::List(listing)) => listing.opening.take(),
            _ => None,
        };
        let Some((opening, _)) = opening else { return };
        open_known(client, opening, dir);
    }
}

pub(crate) fn failed(client: &mut Client, listing: Listing, errno: Errno) {
    let errno = attributes::gone(&mut client.view, &mut client.outputs, listing.node, errno);
    if let Some((opening, _)) = listing.opening {
        client.answerer().fail(opening.call(), errno);
    }
    if let Some(handle) = listing.handle
        && let Some(open) = client.view.files.directory_mut(handle)
    {
        open.complete = true;
        open.error = Some(errno);
        serve_waiting(client, handle);
    }
}

pub(crate) fn read(
    client: &mut Client,
    node: TreeNodeId,
    handle: Handle,
    wanted: WaitingReaddir,
) -> Result<(), Errno> {
    let coherency = client.view.coherency();
    let open = client.view.files.directory_mut(handle).ok_or(Errno::BadDescriptor)?;
    let begins = wanted.offset == 0 && open.complete;
    let mut again = begins && !open.is_kept && open.read && !coherency.is_valid(open.listed);
    // The kernel keeps what it reads now: that must be the directory as it is, not as it was when it was opened.
    if begins && open.is_kept {
        match client.view.directories.snapshot(node, &coherency) {
            Some((entries, listed)) => {
                (open.entries, open.listed, open.taken_at) = (entries.into(), listed, client.view.mount.now);
                open.invalidated.clear();
            }
            None => again = true,
        }
    }
    open.read = true;
    open.waiting.push(wanted);
    // rewinddir: POSIX wants the directory as it is by then.
    if again {
        open.entries = LongListing::default();
        open.invalidated.clear();
        open.complete = false;
        open.error = None;
        (open.listed, open.taken_at) = (Freshness::since(client.view.mount.now), client.view.mount.now);
        if open.is_kept {
            client.view.files.keeps_not(node);
        }
        return ask(&mut client.sender(), node, Some(handle), None);
    }
    serve_waiting(client, handle);
    Ok(())
}

/// Handles a readdir that continues where an earlier one ended.
pub(crate) fn go_on(client: &mut Client, handle: Handle, wanted: WaitingReaddir) {
    if let Some(open) = client.view.files.directory_mut(handle) {
        open.waiting.push(wanted);
    }
    serve_waiting(client, handle);
}

/// Answers the readdirs whose entries have arrived.
fn serve_waiting(client: &mut Client, handle: Handle) {
    if !stateless::may_answer(&mut client.view, handle) {
        return;
    }
    let Some(open) = client.view.files.directory_mut(handle) else {
        return;
    };
    let (node, complete, error) = (open.node, open.complete, open.error);
    let past = open.entries.len() as u64 + 2;
    let (ready, waiting): (Vec<_>, Vec<_>) =
        std::mem::take(&mut open.waiting).into_iter().partition(|wanted| complete || wanted.offset < past);
    open.waiting = waiting;
    for wanted in ready {
        let answer = match error {
            Some(errno) if wanted.offset >= past => Answer::Fail(errno),
            _ => match client.view.files.page(handle, (wanted.offset as usize).saturating_sub(2)) {
                Some(page) => Answer::Listing(pack(&mut client.sender(), node, &page, handle, &wanted)),
                None => Answer::Fail(Errno::Io),
            },
        };
        stateless::answer(&mut client.answerer(), handle, &wanted, answer);
    }
}
