//! Lookup: a name in a directory. What is found brings what will be asked for next: a small file its contents, a small
//! directory its listing, a link its target.

use crate::call::{Answer, CallId};
use crate::core::Client;
use crate::operation::{Pending, list};
use wirefs_cache::{Fetch, Found, NodeId};
use wirefs_op::listing::entries;
use wirefs_op::message::get::{GetMode, GotMode, Rget, Tget};
use wirefs_op::message::target::Target;
use wirefs_op::{Errno, Kind, Request, Time};

/// Contents that come with a name, in bytes, at most: a third of a round trip's worth on a 10 Mbit/s wire of 85 ms.
const INLINE_BYTES_MAX: u32 = 32 * 1024;

#[derive(Clone, Debug)]
pub(crate) struct Looking {
    call: CallId,
    parent: NodeId,
    name: Vec<u8>,
}

/// # Cost
/// 0 round trips when the parent's listing is known, else 1.
pub(crate) fn start(client: &mut Client, call: CallId, parent: NodeId, name: &[u8]) -> Result<(), Errno> {
    let path = client.entry_path(parent, name)?;
    match client.directories.find(parent, name, client.now, client.config.mode.window()) {
        Found::Entry(stat, at) => {
            client.counters.name_hits += 1;
            let node = client.learn(&stat, at);
            client.names.link(parent, name, node);
            let entry = client.entry(node, at)?;
            client.answer(call, Answer::Entry(entry));
            return Ok(());
        }
        Found::Absent(at) => {
            client.counters.name_hits += 1;
            client.names.unlink(parent, name);
            client.answer(call, Answer::NoEntry(client.ttl(at)));
            return Ok(());
        }
        Found::Unknown => client.counters.name_misses += 1,
    }
    let (mode, count) = match client.config.mode.fetch {
        Fetch::Blocks => (GetMode::STAT.and(GetMode::DATA).and(GetMode::WHOLE), INLINE_BYTES_MAX),
        Fetch::Exact => (GetMode::STAT, 0),
    };
    let get = Tget { target: Target::at(path), mode, nmsgs: 1, offset: 0, count };
    client.send(Request::Get(get), Pending::Lookup(Looking { call, parent, name: name.to_vec() }));
    list::note_miss(client, parent);
    Ok(())
}

pub(crate) fn finish(client: &mut Client, looking: Looking, sent: Time, got: Rget, last: bool) {
    let Looking { call, parent, name } = looking;
    let Some(stat) = got.stat else {
        return client.fail(call, Errno::Protocol);
    };
    let node = client.learn(&stat, sent);
    client.names.link(parent, &name, node);
    let whole = got.mode.has(GotMode::DATA) && last && !got.mode.has(GotMode::MORE);
    if whole {
        remember(client, node, stat.kind, &got.data.0, sent);
    }
    match client.entry(node, sent) {
        Ok(entry) => client.answer(call, Answer::Entry(entry)),
        Err(errno) => client.fail(call, errno),
    }
}

fn remember(client: &mut Client, node: NodeId, kind: Kind, data: &bytes::Bytes, sent: Time) {
    match kind {
        Kind::Directory => {
            if let Ok(listing) = entries(data.clone()) {
                client.directories.store(node, listing, sent);
            }
        }
        Kind::File | Kind::Symlink => {
            let Some(known) = client.names.node(node) else {
                return;
            };
            let (version, size, overtaken) = (known.stat.version, known.stat.size, sent < known.changed_at);
            if overtaken || client.files.is_writing(node) || size != data.len() as u64 {
                return;
            }
            client.files.contents(node);
            client.files.observe(node, version, sent);
            if !client.files.is_of(node, version) {
                return;
            }
            // Small contents are copied so that they do not hold a whole receive buffer.
            client.files.remember_read(node, 0, &bytes::Bytes::copy_from_slice(data));
        }
        Kind::Fifo | Kind::Socket | Kind::CharDevice | Kind::BlockDevice => {}
    }
}

pub(crate) fn failed(client: &mut Client, looking: Looking, errno: Errno) {
    let Looking { call, parent, name } = looking;
    if errno == Errno::NotFound {
        client.names.unlink(parent, &name);
        client.answer(call, Answer::NoEntry(client.config.mode.window()));
    } else {
        client.fail(call, errno);
    }
}
