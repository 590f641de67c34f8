//! Packs the entries of a listing into the answer of a readdir: as many as fit, with their attributes.

use crate::call::{Entry, Handle, Listed};
use crate::sending::Sender;
use crate::view::files::WaitingReaddir;
use std::collections::BTreeSet;
use wirefs_cache::{Freshness, ListingPage, TreeNodeId};
use wirefs_op::{DirEntry, Kind};

/// The entries of the page from `offset` on that fit. Offset 0 is `.`, 1 is `..`, 2 the first entry.
pub(super) fn pack(
    sender: &mut Sender<'_>,
    dir: TreeNodeId,
    page: &ListingPage,
    handle: Handle,
    wanted: &WaitingReaddir,
) -> Vec<Listed> {
    let now = (Freshness::since(sender.view.mount.now), sender.view.mount.now, BTreeSet::new());
    let open = sender.view.files.directory_mut(handle);
    let (listed, taken_at, invalidated) =
        open.map_or(now, |open| (open.listed, open.taken_at, open.invalidated.clone()));
    let mut room = wanted.bytes_max as usize;
    let mut listing = Vec::new();
    for (index, name) in [b".".as_slice(), b".."].into_iter().enumerate().skip(wanted.offset as usize) {
        let cost = (wanted.entry_bytes as usize + name.len()).next_multiple_of(8);
        if cost > room {
            return listing;
        }
        room -= cost;
        let node = if index == 0 { dir } else { sender.view.names.parent(dir) };
        let ino = sender.view.names.node(node).map_or(1, |known| sender.view.present(&known.stat).id.ino);
        let st_mode = Kind::Directory.mode_bits();
        listing.push(Listed { name: name.to_vec(), next: index as u64 + 1, ino, st_mode, entry: None });
    }
    let first = (wanted.offset as usize).saturating_sub(2).saturating_sub(page.first);
    // Entries taken before an own change of the directory must not bring a removed name back: it is then shown without
    // attributes, upon which the kernel remembers nothing of it.
    let current = sender.view.names.node(dir).is_some_and(|known| taken_at >= known.changed_at);
    for (index, entry) in page.entries.iter().enumerate().skip(first) {
        let cost = (wanted.entry_bytes as usize + entry.name.len()).next_multiple_of(8);
        if cost > room {
            break;
        }
        room -= cost;
        let shown = sender.view.present(&entry.stat);
        let is_invalidated = invalidated.contains(&entry.name);
        let shown_entry = (wanted.with_stats && current)
            .then(|| entry_of(sender, dir, entry, listed, is_invalidated))
            .flatten();
        listing.push(Listed {
            name: entry.name.clone(),
            next: (page.first + index) as u64 + 3,
            ino: shown.id.ino,
            st_mode: shown.st_mode(),
            entry: shown_entry,
        });
    }
    listing
}

/// The answer to a lookup of a listed entry.
fn entry_of(
    sender: &mut Sender<'_>,
    dir: TreeNodeId,
    entry: &DirEntry,
    listed: Freshness,
    is_invalidated: bool,
) -> Option<Entry> {
    let mut known = sender.view.directories.attributes_freshness(&entry.stat, listed.at);
    known.leased &= !is_invalidated;
    let node = sender.learn(&entry.stat, known);
    sender.view.names.link(dir, &entry.name, node);
    if sender.view.may_show(node) {
        return sender.view.entry(node, listed).ok();
    }
    sender.view.names.evict_if_unused(node);
    None
}
