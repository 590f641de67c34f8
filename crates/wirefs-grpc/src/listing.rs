//! Listings of directories and of subtrees.

use crate::node::{Node, Tree, done, failed};
use std::collections::VecDeque;
use wirefs_client::call::{Answer, Call, Listed};
use wirefs_op::{Errno, Kind, Stat};

/// The bytes of one listing call.
const LISTING_BYTES: u32 = 64 * 1024;
/// The bytes of an entry besides its name, as the core counts them.
const ENTRY_BYTES: u32 = 152;
/// The directories that wait to be listed in one Find, at most.
const PENDING_MAX: usize = 1_000_000;

/// An entry: its name or path, and its attributes.
pub(crate) type Found = (Vec<u8>, Stat);

/// Gives each entry of a directory to `take`, until that wants no more.
pub(crate) fn list(tree: &Tree, dir: &Node, take: &mut dyn FnMut(Found) -> bool) -> Result<(), Errno> {
    if dir.stat.kind != Kind::Directory {
        return Err(Errno::NotDirectory);
    }
    let handle = match tree.call(Call::Opendir { node: dir.id }) {
        Answer::Opened(handle, _) => handle,
        answer => return Err(failed(&answer)),
    };
    let mut offset = 0;
    let outcome = loop {
        let call = Call::Readdir {
            node: dir.id,
            handle,
            offset,
            bytes_max: LISTING_BYTES,
            entry_bytes: ENTRY_BYTES,
            with_stats: true,
        };
        let listed = match tree.call(call) {
            Answer::Listing(listed) if !listed.is_empty() => listed,
            Answer::Listing(_) | Answer::ListingEnd => break Ok(()),
            answer => break Err(failed(&answer)),
        };
        let mut wants = true;
        for Listed { name, next, entry, .. } in listed {
            offset = next;
            if let Some(entry) = entry {
                let stat = tree.node(entry).stat;
                wants = wants && take((name, stat));
            }
        }
        if !wants {
            break Ok(());
        }
    };
    tree.call(Call::Releasedir { node: dir.id, handle });
    outcome
}

/// Waits until the names in a directory are on the server's disk.
pub(crate) fn sync(tree: &Tree, dir: &Node) -> Result<(), Errno> {
    let handle = match tree.call(Call::Opendir { node: dir.id }) {
        Answer::Opened(handle, _) => handle,
        answer => return Err(failed(&answer)),
    };
    let synced = done(&tree.call(Call::Fsyncdir { node: dir.id, handle, data_only: false }));
    tree.call(Call::Releasedir { node: dir.id, handle });
    synced
}

/// Gives each entry below a directory to `take`, level by level, by its path from there.
pub(crate) fn find(
    tree: &Tree,
    path: &[u8],
    depth: u32,
    take: &mut dyn FnMut(Found) -> bool,
) -> Result<(), Errno> {
    let mut pending = VecDeque::from([(Vec::new(), 1)]);
    while let Some((below, level)) = pending.pop_front() {
        let full: Vec<u8> = [path, b"/", &below].concat();
        let dir = match tree.find(&full) {
            Ok(dir) => dir,
            // Gone meanwhile, but for the directory that was asked for.
            Err(Errno::NotFound) if !below.is_empty() => continue,
            Err(errno) => return Err(errno),
        };
        let mut wants = true;
        list(tree, &dir, &mut |(name, stat)| {
            let entry = if below.is_empty() { name } else { [&below, &b"/"[..], &name].concat() };
            let descends = stat.kind == Kind::Directory && (depth == 0 || level < depth);
            if descends && pending.len() < PENDING_MAX {
                pending.push_back((entry.clone(), level + 1));
            }
            wants = take((entry, stat));
            wants
        })?;
        if !wants {
            return Ok(());
        }
    }
    Ok(())
}
