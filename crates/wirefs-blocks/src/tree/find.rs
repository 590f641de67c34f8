//! Tfind: the listings of a directory and of its descendants in one stream.
//!
//! The order is depth-first: a directory, its subdirectories, its next sibling. A stream of the live tree
//! does not descend into checkpoints, since they are separate file systems.

use super::BlockTree;
use super::locate::{RequestContext, Trees};
use super::serve::{Failure, ReplySink};
use crate::halt::{Halt, Wants};
use crate::key::Ino;
use bytes::Bytes;
use std::iter::once;
use wirefs_op::find_listing::{FindDirectory, FindWriter};
use wirefs_op::limits::DATA_BYTES_MAX;
use wirefs_op::message::find::{FindMode, Rfind, Tfind};
use wirefs_op::wire::Data;
use wirefs_op::{DirEntry, Errno, FileId, Kind, Reply, Stat, TreePath};

/// Larger files are never sent inline: two of this size fill a message. In bytes.
const INLINE_BYTES_MAX: u64 = 64 * 1024;
/// File data that is read at a time, in bytes; the last file may exceed it.
const CONTENTS_BYTES_MAX: u64 = 256 * 1024;
/// The maximum number of queued directories. With more, the stream ends with MORE.
const PENDING_MAX: usize = 64 * 1024;

/// Whether the limits of the request allow more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Budget {
    Left,
    /// A limit was reached; the stream ends.
    UsedUp,
}

/// A directory to list.
struct PendingDirectory {
    path: TreePath,
    id: FileId,
    /// Levels to descend below it.
    depth: u16,
}

/// The state of one stream.
struct Stream<'a> {
    tree: &'a BlockTree,
    request: &'a Tfind,
    writer: FindWriter,
    bytes_left: usize,
    entries_left: u32,
    replies: &'a mut dyn ReplySink,
}

impl BlockTree {
    pub(super) fn find(
        &self,
        session: u64,
        request: &Tfind,
        replies: &mut dyn ReplySink,
    ) -> Result<(), Failure> {
        let context = self.context(session, request.target.fd)?;
        let ((top, has_path), _) = self.read_tree(|trees| trees.top(context, request))?;
        let bytes_left = request.bytes as usize;
        let mut stream = Stream {
            tree: self,
            request,
            writer: FindWriter::new(bytes_left.min(DATA_BYTES_MAX)),
            bytes_left,
            entries_left: request.entries,
            replies,
        };
        // If the directory was found by its fd and has moved, paths below the requested path are unknown.
        let depth = if has_path { request.depth } else { 0 };
        let mut pending = vec![PendingDirectory { path: TreePath::root(), id: top, depth }];
        let mut budget = Budget::Left;
        while let (Budget::Left, Some(next)) = (budget, pending.pop()) {
            budget = stream.send_directory(&next, &mut pending)?;
        }
        stream.send(FindMode::LAST.and_if(budget == Budget::UsedUp, FindMode::MORE))
    }
}

impl Trees<'_> {
    /// Returns the start directory, and whether the path of the request still leads to it.
    fn top(&self, context: RequestContext, request: &Tfind) -> Result<(FileId, bool), Halt> {
        let object = self.locate(context, &request.target)?;
        if object.kind != Kind::Directory {
            return Err(Halt::Failed(Errno::NotDirectory));
        }
        if self.stat(object.id)?.nlink == 0 {
            // A removed directory that only an fd refers to.
            return Err(Halt::Failed(Errno::NotFound));
        }
        match self.walk(context.root, &request.target.path) {
            Ok(found) => Ok((object.id, found == object)),
            Err(Halt::Failed(_)) => Ok((object.id, false)),
            Err(halt) => Err(halt),
        }
    }

    /// Returns the data of entries whose attributes are unchanged; `None` for others.
    fn contents(&self, entries: &[DirEntry]) -> Result<Vec<Option<Bytes>>, Halt> {
        let mut wants = Wants::default();
        let mut found = Vec::with_capacity(entries.len());
        for entry in entries {
            found.push(wants.of(self.contents_of(&entry.stat))?.flatten());
        }
        wants.settle()?;
        Ok(found)
    }

    fn contents_of(&self, stat: &Stat) -> Result<Option<Bytes>, Halt> {
        let read = || {
            let view = self.view(stat.id.fs)?;
            let head = view.head(Ino(stat.id.ino))?;
            if (head.generation, view.version_of(&head)) != (stat.id.generation, stat.version) {
                return Ok(None);
            }
            let (data, ends) = self.window(stat.id, 0, INLINE_BYTES_MAX as usize)?;
            Ok(ends.then_some(data))
        };
        match read() {
            // A read of this file reports the error.
            Err(Halt::Lost(_) | Halt::Failed(_)) => Ok(None),
            outcome => outcome,
        }
    }
}

impl Stream<'_> {
    /// Sends one directory and queues its subdirectories.
    fn send_directory(
        &mut self,
        dir: &PendingDirectory,
        pending: &mut Vec<PendingDirectory>,
    ) -> Result<Budget, Failure> {
        let look = |after| {
            self.tree.read_tree(|trees| Ok((trees.stat(dir.id)?, trees.list(dir.id, after, DATA_BYTES_MAX)?)))
        };
        let Ok(((mut stat, mut listed), _)) = look(0) else {
            // The directory was removed.
            return Ok(Budget::Left);
        };
        self.grant(&mut once(&mut stat));
        let mut record = FindDirectory { path: dir.path.clone(), stat, begins: true, ends: false };
        if self.begin(&record)? == Budget::UsedUp {
            return Ok(Budget::UsedUp);
        }
        record.begins = false;
        let mut children = Vec::new();
        loop {
            if let Some(depth) = dir.depth.checked_sub(1) {
                let below = listed
                    .entries
                    .iter()
                    .filter(|entry| entry.stat.kind == Kind::Directory && entry.stat.id.fs == dir.id.fs);
                children.extend(below.filter_map(|entry| {
                    Some(PendingDirectory { path: dir.path.join(&entry.name)?, id: entry.stat.id, depth })
                }));
            }
            self.grant(&mut listed.entries.iter_mut().map(|entry| &mut entry.stat));
            if self.add_all(&listed.entries, &record)? == Budget::UsedUp {
                return Ok(Budget::UsedUp);
            }
            if listed.ends {
                self.writer.end_directory();
                break;
            }
            match self.tree.read_tree(|trees| trees.list(dir.id, listed.next, DATA_BYTES_MAX)) {
                Ok((next, _)) if !next.entries.is_empty() || next.ends => listed = next,
                // The entries sent so far are correct; the listing stays incomplete.
                Ok(_) | Err(_) => break,
            }
        }
        if pending.len() + children.len() > PENDING_MAX {
            return Ok(Budget::UsedUp);
        }
        pending.extend(children.into_iter().rev());
        Ok(Budget::Left)
    }

    fn grant(&mut self, stats: &mut dyn Iterator<Item = &mut Stat>) {
        self.replies.grant(&mut stats.filter(|stat| stat.id.fs == 0));
    }

    fn add_all(&mut self, entries: &[DirEntry], record: &FindDirectory) -> Result<Budget, Failure> {
        let inline = u64::from(self.request.inline).min(INLINE_BYTES_MAX);
        let is_small = |entry: &DirEntry| {
            inline > 0 && matches!(entry.stat.kind, Kind::File | Kind::Symlink) && entry.stat.size <= inline
        };
        let mut rest = entries;
        while !rest.is_empty() {
            let mut bytes = 0;
            let count = rest.iter().take_while(|entry| {
                let is_room = bytes < CONTENTS_BYTES_MAX;
                bytes += if is_small(entry) { entry.stat.size } else { 0 };
                is_room
            });
            let (part, following) = rest.split_at_checked(count.count()).unwrap_or((rest, &[]));
            rest = following;
            let small: Vec<DirEntry> = part.iter().filter(|entry| is_small(entry)).cloned().collect();
            let (found, _) = self.tree.read_tree(|trees| trees.contents(&small))?;
            let mut found = found.into_iter();
            for entry in part {
                let contents = if is_small(entry) { found.next().flatten() } else { None };
                if self.add(entry, contents.as_deref(), record)? == Budget::UsedUp {
                    return Ok(Budget::UsedUp);
                }
            }
        }
        Ok(Budget::Left)
    }

    /// Adds the record of a directory.
    fn begin(&mut self, record: &FindDirectory) -> Result<Budget, Failure> {
        if self.writer.directory(record) {
            return Ok(Budget::Left);
        }
        self.send(FindMode::NONE)?;
        Ok(if self.writer.directory(record) { Budget::Left } else { Budget::UsedUp })
    }

    fn add(
        &mut self,
        entry: &DirEntry,
        contents: Option<&[u8]>,
        record: &FindDirectory,
    ) -> Result<Budget, Failure> {
        let Some(entries_left) = self.entries_left.checked_sub(1) else { return Ok(Budget::UsedUp) };
        self.entries_left = entries_left;
        let DirEntry { name, stat, .. } = entry;
        if self.writer.entry(name, stat, contents) {
            return Ok(Budget::Left);
        }
        self.send(FindMode::NONE)?;
        let is_told = self.writer.directory(record)
            && (self.writer.entry(name, stat, contents) || self.writer.entry(name, stat, None));
        Ok(if is_told { Budget::Left } else { Budget::UsedUp })
    }

    fn send(&mut self, mode: FindMode) -> Result<(), Failure> {
        let full = std::mem::replace(&mut self.writer, FindWriter::new(0));
        let data = full.finish();
        self.bytes_left = self.bytes_left.saturating_sub(data.len());
        self.writer = FindWriter::new(self.bytes_left.min(DATA_BYTES_MAX));
        Ok(self.replies.send(Reply::Find(Rfind { mode, data: Data(data) }))?)
    }
}
