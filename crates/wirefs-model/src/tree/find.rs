//! Tfind: the listings of a subtree.

use crate::fs::{InodeBody, ModelIno};
use crate::tree::ModelState;
use bytes::Bytes;
use std::iter::once;
use wirefs_op::find_listing::{FindDirectory, FindWriter};
use wirefs_op::limits::DATA_BYTES_MAX;
use wirefs_op::message::find::{FindMode, Rfind, Tfind};
use wirefs_op::wire::Data;
use wirefs_op::{Errno, Kind, Reply, Stat, TreePath};
use wirefs_server::{Replies, SessionKey};

/// The maximum size of inlined contents: two of them fill a message.
const INLINE_BYTES_MAX: u64 = 64 * 1024;

/// The listing of one directory.
struct FindListing {
    path: TreePath,
    stat: Stat,
    entries: Vec<FindListingEntry>,
}

/// An entry of a listing.
struct FindListingEntry {
    name: Vec<u8>,
    stat: Stat,
    contents: Option<Bytes>,
}

impl ModelState {
    /// Returns the listings of all directories, parents before children, siblings in listing order.
    pub(super) fn find(
        &self,
        session: SessionKey,
        request: &Tfind,
        replies: &mut dyn Replies,
    ) -> Result<Vec<Reply>, Errno> {
        let target = self.locate(session, &request.target)?;
        if target.kind != Kind::Directory {
            return Err(Errno::NotDirectory);
        }
        if self.fs.inode(target.ino)?.nlink == 0 {
            // The directory was removed; only an fd leads to it.
            return Err(Errno::NotFound);
        }
        let mut listings = Vec::new();
        let mut left = vec![(TreePath::root(), target.ino, request.depth)];
        while let Some((path, dir, depth)) = left.pop() {
            let listing = self.listing(path, dir, request.inline)?;
            if let Some(depth) = depth.checked_sub(1) {
                for entry in listing.entries.iter().rev().filter(|entry| entry.stat.kind == Kind::Directory) {
                    let path = listing.path.join(&entry.name);
                    let child = path.and_then(|path| Some((self.below(session, request, &path)?, path)));
                    // If the target was found by its fd and has moved, the paths lead to other objects.
                    if let Some((child, path)) = child.filter(|(child, _)| child.id() == entry.stat.id) {
                        left.push((path, child, depth));
                    }
                }
            }
            listings.push(listing);
        }
        replies.grant(&mut listings.iter_mut().flat_map(|listing| {
            once(&mut listing.stat).chain(listing.entries.iter_mut().map(|entry| &mut entry.stat))
        }));
        Ok(pack(&listings, request))
    }

    fn listing(&self, path: TreePath, dir: ModelIno, inline: u32) -> Result<FindListing, Errno> {
        let mut entries = Vec::new();
        for (name, entry) in self.fs.list(dir, 0)? {
            let stat = self.fs.stat(entry.ino)?;
            let is_small = inline > 0 && stat.size <= u64::from(inline).min(INLINE_BYTES_MAX);
            let contents = if is_small { self.all_of(entry.ino)? } else { None };
            entries.push(FindListingEntry { name, stat, contents });
        }
        Ok(FindListing { path, stat: self.fs.stat(dir)?, entries })
    }

    /// Returns a file's contents or a link's target.
    fn all_of(&self, ino: ModelIno) -> Result<Option<Bytes>, Errno> {
        Ok(match &self.fs.inode(ino)?.body {
            InodeBody::File(contents) => Some(Bytes::from(contents.read(0, contents.size()))),
            InodeBody::Symlink(target) => Some(Bytes::from(target.clone())),
            InodeBody::Directory { .. } | InodeBody::Node(_) => None,
        })
    }

    /// Returns the inode at a path relative to the target.
    fn below(&self, session: SessionKey, request: &Tfind, path: &TreePath) -> Option<ModelIno> {
        let path = TreePath::from_names(request.target.path.names().chain(path.names()))?;
        self.walk(self.session(session).ok()?.root, &path).ok()
    }
}

/// Packs the listings into messages, up to the limits of the request.
fn pack(listings: &[FindListing], request: &Tfind) -> Vec<Reply> {
    let mut messages = Vec::new();
    let mut bytes_left = request.bytes as usize;
    let mut writer = FindWriter::new(bytes_left.min(DATA_BYTES_MAX));
    let is_all = pack_all(listings, request.entries, &mut writer, &mut |full| {
        let message = full.finish();
        bytes_left -= message.len();
        messages.push(message);
        FindWriter::new(bytes_left.min(DATA_BYTES_MAX))
    });
    messages.push(writer.finish());
    let last = messages.len() - 1;
    let reply = |(at, data)| {
        let mode = FindMode::NONE.and_if(at == last, FindMode::LAST);
        let mode = mode.and_if(at == last && !is_all, FindMode::MORE);
        Reply::Find(Rfind { mode, data: Data(data) })
    };
    messages.into_iter().enumerate().map(reply).collect()
}

/// Packs the listings; returns whether all fit. `next` takes a full message and returns the following one.
fn pack_all(
    listings: &[FindListing],
    entries_max: u32,
    writer: &mut FindWriter,
    next: &mut dyn FnMut(FindWriter) -> FindWriter,
) -> bool {
    let mut flush = |writer: &mut FindWriter| {
        let full = std::mem::replace(writer, FindWriter::new(0));
        *writer = next(full);
    };
    let mut entries_left = entries_max;
    for FindListing { path, stat, entries } in listings {
        let begins = FindDirectory { path: path.clone(), stat: *stat, begins: true, ends: false };
        let continuation = FindDirectory { begins: false, ..begins.clone() };
        if !writer.directory(&begins) {
            flush(writer);
            if !writer.directory(&begins) {
                return false;
            }
        }
        for FindListingEntry { name, stat, contents } in entries {
            if entries_left == 0 {
                return false;
            }
            entries_left -= 1;
            if writer.entry(name, stat, contents.as_deref()) {
                continue;
            }
            flush(writer);
            let is_begun = writer.directory(&continuation);
            if !is_begun || !(writer.entry(name, stat, contents.as_deref()) || writer.entry(name, stat, None))
            {
                return false;
            }
        }
        writer.end_directory();
    }
    true
}
