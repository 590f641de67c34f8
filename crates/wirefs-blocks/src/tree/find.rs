//! Tfind: the listings of a directory and of those below it, in one stream.
//!
//! A directory is told of before what is below it, and that before its next sibling. From the present tree no stream goes
//! down into the checkpoints: they are trees of their own.

use super::BlockTree;
use super::locate::{Seat, Trees};
use super::serve::{Answers, Failure};
use crate::halt::{Halt, Wants};
use crate::key::Ino;
use bytes::Bytes;
use std::iter::once;
use wirefs_op::find_listing::{FindDirectory, FindWriter};
use wirefs_op::limits::DATA_BYTES_MAX;
use wirefs_op::message::find::{FindMode, Rfind, Tfind};
use wirefs_op::wire::Data;
use wirefs_op::{DirEntry, Errno, FileId, Kind, Reply, Stat, TreePath};

/// Contents above this many bytes never come along: two of them fill a message.
const INLINE_BYTES_MAX: u64 = 64 * 1024;
/// Contents that are read at a time, in bytes; the last may exceed it.
const CONTENTS_BYTES_MAX: u64 = 256 * 1024;
/// Directories that wait to be told of. Where there are more, the stream ends with MORE.
const WAITING_MAX: usize = 64 * 1024;

/// Whether a stream goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    All,
    /// A bound ended it.
    Over,
}

/// A directory that is to be told of.
struct Waiting {
    path: TreePath,
    id: FileId,
    /// Levels below it.
    depth: u16,
}

/// One stream.
struct Stream<'a> {
    tree: &'a BlockTree,
    request: &'a Tfind,
    writer: FindWriter,
    bytes_left: usize,
    entries_left: u32,
    answers: &'a mut dyn Answers,
}

impl BlockTree {
    pub(super) fn find(
        &self,
        session: u64,
        request: &Tfind,
        answers: &mut dyn Answers,
    ) -> Result<(), Failure> {
        let seat = self.seat(session, request.target.fd)?;
        let ((top, has_path), _) = self.look(|trees| trees.top(seat, request))?;
        let bytes_left = request.bytes as usize;
        let mut stream = Stream {
            tree: self,
            request,
            writer: FindWriter::new(bytes_left.min(DATA_BYTES_MAX)),
            bytes_left,
            entries_left: request.entries,
            answers,
        };
        // Where the directory has another place by now, found by its fd, the paths below it lead elsewhere.
        let depth = if has_path { request.depth } else { 0 };
        let mut waiting = vec![Waiting { path: TreePath::root(), id: top, depth }];
        let mut told = Told::All;
        while let (Told::All, Some(next)) = (told, waiting.pop()) {
            told = stream.tell(&next, &mut waiting)?;
        }
        stream.send(FindMode::LAST.and_if(told == Told::Over, FindMode::MORE))
    }
}

impl Trees<'_> {
    /// The directory to begin with, and whether the request's path leads there.
    fn top(&self, seat: Seat, request: &Tfind) -> Result<(FileId, bool), Halt> {
        let object = self.locate(seat, &request.target)?;
        if object.kind != Kind::Directory {
            return Err(Halt::Failed(Errno::NotDirectory));
        }
        if self.stat(object.id)?.nlink == 0 {
            // It was removed, and only an fd leads to it.
            return Err(Halt::Failed(Errno::NotFound));
        }
        match self.walk(seat.root, &request.target.path) {
            Ok(found) => Ok((object.id, found == object)),
            Err(Halt::Failed(_)) => Ok((object.id, false)),
            Err(halt) => Err(halt),
        }
    }

    /// Contents of some entries, each as it was when its attributes were told, or none.
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
            let head = self.view(stat.id.fs)?.head(Ino(stat.id.ino))?;
            if (head.generation, head.version) != (stat.id.generation, stat.version) {
                return Ok(None);
            }
            let (data, ends) = self.window(stat.id, 0, INLINE_BYTES_MAX as usize)?;
            Ok(ends.then_some(data))
        };
        match read() {
            // Whoever asks for it is told what is wrong.
            Err(Halt::Lost(_) | Halt::Failed(_)) => Ok(None),
            outcome => outcome,
        }
    }
}

impl Stream<'_> {
    /// Tells of one directory; those below it wait.
    fn tell(&mut self, dir: &Waiting, waiting: &mut Vec<Waiting>) -> Result<Told, Failure> {
        let look = |after| {
            self.tree.look(|trees| Ok((trees.stat(dir.id)?, trees.list(dir.id, after, DATA_BYTES_MAX)?)))
        };
        let Ok(((mut stat, mut listed), _)) = look(0) else {
            // It is gone.
            return Ok(Told::All);
        };
        self.grant(&mut once(&mut stat));
        let mut record = FindDirectory { path: dir.path.clone(), stat, begins: true, ends: false };
        if self.begin(&record)? == Told::Over {
            return Ok(Told::Over);
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
                    Some(Waiting { path: dir.path.join(&entry.name)?, id: entry.stat.id, depth })
                }));
            }
            self.grant(&mut listed.entries.iter_mut().map(|entry| &mut entry.stat));
            if self.add_all(&listed.entries, &record)? == Told::Over {
                return Ok(Told::Over);
            }
            if listed.ends {
                self.writer.end_directory();
                break;
            }
            match self.tree.look(|trees| trees.list(dir.id, listed.next, DATA_BYTES_MAX)) {
                Ok((next, _)) if !next.entries.is_empty() || next.ends => listed = next,
                // What was told stays true; it is just not all.
                Ok(_) | Err(_) => break,
            }
        }
        if waiting.len() + children.len() > WAITING_MAX {
            return Ok(Told::Over);
        }
        waiting.extend(children.into_iter().rev());
        Ok(Told::All)
    }

    fn grant(&mut self, stats: &mut dyn Iterator<Item = &mut Stat>) {
        self.answers.grant(&mut stats.filter(|stat| stat.id.fs == 0));
    }

    fn add_all(&mut self, entries: &[DirEntry], record: &FindDirectory) -> Result<Told, Failure> {
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
            let (part, behind) = rest.split_at_checked(count.count()).unwrap_or((rest, &[]));
            rest = behind;
            let small: Vec<DirEntry> = part.iter().filter(|entry| is_small(entry)).cloned().collect();
            let (found, _) = self.tree.look(|trees| trees.contents(&small))?;
            let mut found = found.into_iter();
            for entry in part {
                let contents = if is_small(entry) { found.next().flatten() } else { None };
                if self.add(entry, contents.as_deref(), record)? == Told::Over {
                    return Ok(Told::Over);
                }
            }
        }
        Ok(Told::All)
    }

    /// Adds a directory's record.
    fn begin(&mut self, record: &FindDirectory) -> Result<Told, Failure> {
        if self.writer.directory(record) {
            return Ok(Told::All);
        }
        self.send(FindMode::NONE)?;
        Ok(if self.writer.directory(record) { Told::All } else { Told::Over })
    }

    fn add(
        &mut self,
        entry: &DirEntry,
        contents: Option<&[u8]>,
        record: &FindDirectory,
    ) -> Result<Told, Failure> {
        let Some(entries_left) = self.entries_left.checked_sub(1) else { return Ok(Told::Over) };
        self.entries_left = entries_left;
        let DirEntry { name, stat, .. } = entry;
        if self.writer.entry(name, stat, contents) {
            return Ok(Told::All);
        }
        self.send(FindMode::NONE)?;
        let is_told = self.writer.directory(record)
            && (self.writer.entry(name, stat, contents) || self.writer.entry(name, stat, None));
        Ok(if is_told { Told::All } else { Told::Over })
    }

    fn send(&mut self, mode: FindMode) -> Result<(), Failure> {
        let full = std::mem::replace(&mut self.writer, FindWriter::new(0));
        let data = full.finish();
        self.bytes_left = self.bytes_left.saturating_sub(data.len());
        self.writer = FindWriter::new(self.bytes_left.min(DATA_BYTES_MAX));
        Ok(self.answers.send(Reply::Find(Rfind { mode, data: Data(data) }))?)
    }
}
