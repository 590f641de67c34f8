//! Lookup: a name in a directory. The reply also brings the data that programs ask for next: the contents of a small file, the
//! listing of a small directory, the target of a link.

use crate::answering::Answerer;
use crate::call::{Answer, CallId, Entry};
use crate::core::Client;
use crate::operation::{attributes, list};
use crate::pending::{Looking, Pending};
use crate::requests::Requests;
use crate::sending::Sender;
use crate::view::View;
use std::time::Duration;
use wirefs_cache::{CachedLookup, Fetch, Freshness, TreeNodeId};
use wirefs_op::listing::entries;
use wirefs_op::message::get::{GetMode, GotMode, Rget, Tget};
use wirefs_op::message::target::{NOFD, Target};
use wirefs_op::{Errno, FileId, Kind, Request, Stat, Time, TreePath};

/// Contents that come with a name, in bytes, at most: a third of a round trip's worth on a 10 Mbit/s wire of 85 ms.
const INLINE_BYTES_MAX: u32 = 32 * 1024;
/// How often one lookup asks again when what it got was overtaken by own changes.
const TRIES_MAX: u8 = 8;

/// # Cost
/// 0 round trips when the parent's listing is known, else 1.
pub(crate) fn start(client: &mut Client, call: CallId, parent: TreeNodeId, name: &[u8]) -> Result<(), Errno> {
    let path = client.view.entry_path(parent, name)?;
    match client.view.directories.find(parent, name, &client.view.coherency()) {
        CachedLookup::Entry(found) => {
            list::renew(&mut client.sender(), parent);
            client.view.used_ahead(&client.requests, parent);
            let node = client.sender().learn(&found.stat, found.attributes);
            client.view.names.link(parent, name, node);
            if client.view.may_show(node) {
                client.outputs.counters.name_hits += 1;
                let entry = client.view.entry(node, found.name)?;
                client.answerer().answer(call, Answer::Entry(entry));
                return Ok(());
            }
            client.view.names.evict_if_unused(node);
            client.outputs.counters.name_misses += 1;
        }
        CachedLookup::Negative(known) => {
            list::renew(&mut client.sender(), parent);
            client.view.used_ahead(&client.requests, parent);
            client.outputs.counters.name_hits += 1;
            client.view.names.unlink(parent, name);
            let ttl = client.view.absent_ttl(parent, name, known);
            client.answerer().answer(call, Answer::NoEntry(ttl));
            return Ok(());
        }
        CachedLookup::Miss => {
            client.outputs.counters.name_misses += 1;
            client.sender().directory_missed(parent);
        }
    }
    let asked = client.view.mount.now;
    ask(&mut client.sender(), path, Looking { call, parent, name: name.to_vec(), asked, tries: 0 });
    list::note_miss(&mut client.sender(), parent);
    Ok(())
}

fn ask(sender: &mut Sender<'_>, path: TreePath, looking: Looking) {
    let (mode, count) = match sender.view.mount.config.mode.fetch {
        Fetch::Blocks | Fetch::OnDemand | Fetch::Whole => {
            (GetMode::STAT.and(GetMode::DATA).and(GetMode::WHOLE), INLINE_BYTES_MAX)
        }
        Fetch::Exact => (GetMode::STAT, 0),
    };
    let dir = sender.view.names.node(looking.parent).map(|dir| dir.stat.id);
    let target = Target { path, fd: NOFD, id: dir };
    let get = Tget { target, mode: mode.and(GetMode::ENTRY), nmsgs: 1, offset: 0, count };
    sender.send(Request::Get(get), Pending::Lookup(looking));
}

/// Whether the reply, with the object `found`, is overtaken: this client has changed the name after the request, or a later request has
/// brought another object. The reply may then be older or newer than the known object.
fn is_overtaken(view: &View, looking: &Looking, found: Option<FileId>) -> bool {
    let Looking { parent, name, asked, .. } = looking;
    let known = view.names.child(*parent, name).and_then(|node| view.names.node(node));
    let Some(known) = known.filter(|known| found != Some(known.stat.id)) else { return false };
    view.directories.is_changed_since(*parent, name, *asked)
        || view.directories.is_fresher_than(*parent, name, *asked)
        || known.freshness.is_some_and(|known| *asked < known.at)
}

/// Whether a reply about the known object of this name arrived during the lookup, which has found another one. Servers answer in any
/// order, so either of them may be the older one.
fn is_beside(view: &View, looking: &Looking, found: Option<FileId>) -> bool {
    let known = view.names.child(looking.parent, &looking.name).and_then(|node| view.names.node(node));
    known.is_some_and(|known| found != Some(known.stat.id) && looking.asked < known.observed_at)
}

fn again(client: &mut Client, looking: Looking) {
    match client.view.entry_path(looking.parent, &looking.name) {
        Ok(path) => {
            let asked = client.view.mount.now;
            ask(&mut client.sender(), path, Looking { asked, tries: looking.tries + 1, ..looking });
        }
        Err(errno) => client.answerer().fail(looking.call, errno),
    }
}

pub(crate) fn finish(client: &mut Client, looking: Looking, sent: Time, got: Rget, last: bool) {
    let name = client.view.known_name(looking.parent, &looking.name, got.mode.has(GotMode::PLACE), sent);
    if got.mode.has(GotMode::ABSENT) {
        return absent(&mut client.answerer(), looking, name);
    }
    let Some(mut stat) = got.stat else {
        return client.answerer().fail(looking.call, Errno::Protocol);
    };
    // The recall of a name also covers the attributes of its object.
    stat.leased &= !client.view.is_name_taken_back(looking.parent, &looking.name, sent);
    let found = Some(stat.id);
    let is_first = looking.tries == 0;
    if (looking.tries < TRIES_MAX && is_overtaken(&client.view, &looking, found))
        || (is_first && is_beside(&client.view, &looking, found))
    {
        return again(client, looking);
    }
    let known_name = name;
    let Looking { call, parent, name, .. } = looking;
    let known = client.view.known(&stat, sent);
    let node = client.sender().learn(&stat, known);
    client.view.names.link(parent, &name, node);
    let found = Stat { leased: known.leased, ..stat };
    client.view.directories.record_lookup(parent, &name, Some(&found), known_name, &client.view.coherency());
    let whole = got.mode.has(GotMode::DATA) && last && !got.mode.has(GotMode::MORE);
    if whole {
        remember(&mut client.view, &client.requests, node, &stat, &got.data.0, known);
    }
    if stat.kind == Kind::Directory {
        client.sender().directory_found(parent, node);
    }
    match client.view.entry(node, known_name) {
        Ok(entry) => client.answerer().answer(call, Answer::Entry(entry)),
        Err(errno) => client.answerer().fail(call, errno),
    }
}

/// Takes in what a name, a stream or a request ahead brought beside attributes. Tells whether it is of use.
pub(crate) fn remember(
    view: &mut View,
    requests: &Requests,
    node: TreeNodeId,
    told: &Stat,
    data: &bytes::Bytes,
    as_of: Freshness,
) -> bool {
    match told.kind {
        Kind::Directory => {
            let Ok(listing) = entries(data.clone()) else { return false };
            list::store(view, requests, node, listing, as_of);
        }
        Kind::File | Kind::Symlink => {
            let Some(known) = view.names.node(node) else { return false };
            let (version, size, overtaken) =
                (known.stat.version, known.stat.size, as_of.at < known.changed_at);
            // What came later may have told of a newer version.
            let is_it = version == told.version && size == data.len() as u64;
            if overtaken || view.files.is_writing(node) || !is_it {
                return false;
            }
            view.files.contents(node);
            let coherency = view.coherency();
            view.files.observe(node, version, as_of, &coherency);
            if !view.files.is_of(node, version) {
                return false;
            }
            // Small contents are copied so that they do not hold a whole receive buffer.
            view.files.remember_read(node, 0, &bytes::Bytes::copy_from_slice(data));
        }
        Kind::Fifo | Kind::Socket | Kind::CharDevice | Kind::BlockDevice => return false,
    }
    true
}

fn absent(answerer: &mut Answerer<'_>, looking: Looking, known: Freshness) {
    // The name was absent while the call waited, and this answerer, or another one, may have made it since. An entry for it would be an
    // object without a path if the name were removed again.
    if is_overtaken(answerer.view, &looking, None) || is_beside(answerer.view, &looking, None) {
        return answerer.answer(looking.call, Answer::NoEntry(Duration::ZERO));
    }
    let Looking { call, parent, name, .. } = looking;
    answerer.view.names.unlink(parent, &name);
    answerer.view.directories.record_lookup(parent, &name, None, known, &answerer.view.coherency());
    let ttl = answerer.view.absent_ttl(parent, &name, known);
    answerer.answer(call, Answer::NoEntry(ttl));
}

/// The answer to a lookup while the server is unreachable. A directory that the kernel has by this name may be the working directory
/// of programs. After an error, the kernel would drop it (`fuse_dentry_revalidate` in fs/fuse/dir.c), and the programs would get
/// ENOENT from getcwd() even after the server is back. So the answer is the known entry, without validity: calls on it fail all the
/// same.
pub(crate) fn unreachable(view: &mut View, parent: TreeNodeId, name: &[u8]) -> Answer {
    let is_known = |node: &TreeNodeId| {
        let known = view.names.node(*node);
        known.is_some_and(|known| known.is_held_by_kernel() && known.stat.kind == Kind::Directory)
    };
    let known = view.names.child(parent, name).filter(is_known);
    match known.map(|node| view.entry(node, Freshness::since(view.mount.now))) {
        Some(Ok(entry)) => {
            Answer::Entry(Entry { entry_ttl: Duration::ZERO, attr_ttl: Duration::ZERO, ..entry })
        }
        Some(Err(_)) | None => Answer::Fail(Errno::HostDown),
    }
}

pub(crate) fn failed(answerer: &mut Answerer<'_>, looking: Looking, errno: Errno) {
    match errno {
        // Servers that do not know of ENTRY say so of a name that is not there.
        Errno::NotFound => {
            let known = Freshness::since(looking.asked);
            absent(answerer, looking, known);
        }
        Errno::HostDown => {
            let answer = unreachable(answerer.view, looking.parent, &looking.name);
            answerer.answer(looking.call, answer);
        }
        errno => {
            let errno = attributes::gone(answerer.view, answerer.outputs, looking.parent, errno);
            answerer.fail(looking.call, errno);
        }
    }
}
