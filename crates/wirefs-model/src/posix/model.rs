//! The model as a program sees it: paths are walked and links followed, as a kernel does.

mod file;
mod name;
mod object;

use crate::fs::{Body, Fs, Ino, New, ROOT};
use crate::operation::{How, OnFile, OnObject, Operation, SLOTS};
use crate::posix::{Outcome, Seen, World};
use wirefs_op::{Errno, Kind, SetStat};

/// How many links a kernel follows in one path.
const LINKS_MAX: u32 = 40;

/// An open file.
#[derive(Clone, Copy, Debug)]
struct Opened {
    ino: Ino,
    how: How,
}

/// Where a path leads.
struct Walked {
    /// The directory of the last name.
    dir: Ino,
    name: Vec<u8>,
    /// What has the name, if anything.
    ino: Option<Ino>,
}

impl Walked {
    fn existing(&self) -> Result<Ino, Errno> {
        self.ino.ok_or(Errno::NotFound)
    }
}

/// The model world.
#[derive(Clone, Debug)]
pub struct ModelWorld {
    pub(super) fs: Fs,
    slots: [Option<Opened>; SLOTS],
    umask: u32,
}

impl ModelWorld {
    /// An empty world, whose root has these attributes, for a process with this umask.
    pub fn new(root: &Seen, umask: u32) -> ModelWorld {
        let mut fs = Fs::new();
        let set =
            SetStat { uid: Some(root.uid), gid: Some(root.gid), mode: Some(root.mode), ..SetStat::default() };
        // The root is a directory, whose attributes can be set.
        let _ = fs.set(ROOT, &set);
        ModelWorld { fs, slots: [None; SLOTS], umask }
    }

    fn walk(&self, path: &str, follow: bool) -> Result<Walked, Errno> {
        self.walk_from(ROOT, path.as_bytes(), follow, &mut 0)
    }

    fn walk_from(&self, start: Ino, path: &[u8], follow: bool, links: &mut u32) -> Result<Walked, Errno> {
        let mut names = path.split(|byte| *byte == b'/').peekable();
        let mut dir = start;
        loop {
            let name = names.next().ok_or(Errno::NotFound)?;
            let is_last = names.peek().is_none();
            let found = match self.fs.lookup(dir, name) {
                Ok(ino) => ino,
                Err(Errno::NotFound) if is_last => {
                    return Ok(Walked { dir, name: name.to_vec(), ino: None });
                }
                Err(errno) => return Err(errno),
            };
            let ino = match &self.fs.inode(found)?.body {
                Body::Symlink(target) if follow || !is_last => {
                    *links += 1;
                    if *links > LINKS_MAX {
                        return Err(Errno::Loop);
                    }
                    let walked = self.walk_from(dir, target, true, links)?;
                    if is_last {
                        return Ok(walked);
                    }
                    walked.existing()?
                }
                Body::Symlink(_) | Body::File(_) | Body::Directory { .. } | Body::Node(_) => found,
            };
            if is_last {
                return Ok(Walked { dir, name: name.to_vec(), ino: Some(ino) });
            }
            dir = ino;
        }
    }

    /// The directory that the last name of `path` is in, and that name, not looked up yet.
    fn parent<'a>(&self, path: &'a str) -> Result<(Ino, &'a [u8]), Errno> {
        let Some((dir, name)) = path.rsplit_once('/') else { return Ok((ROOT, path.as_bytes())) };
        let dir = self.walk(dir, true)?.existing()?;
        if !self.fs.inode(dir)?.is_directory() {
            return Err(Errno::NotDirectory);
        }
        Ok((dir, name.as_bytes()))
    }

    /// What `path` is, a link at its end itself.
    fn at(&self, path: &str) -> Result<Ino, Errno> {
        self.walk(path, false)?.existing()
    }

    fn new_object(&self, kind: Kind, mode: u32) -> New {
        New::of(kind, mode & !self.umask)
    }

    fn open(&mut self, path: &str, how: How, mode: u32) -> Result<Ino, Errno> {
        let walked = self.walk(path, !how.no_follow && !how.exclusive)?;
        let Some(ino) = walked.ino else {
            if !how.create {
                return Err(Errno::NotFound);
            }
            let new = self.new_object(Kind::File, mode);
            return self.fs.create(walked.dir, &walked.name, &new);
        };
        if how.exclusive {
            return Err(Errno::Exists);
        }
        let kind = self.fs.inode(ino)?.kind();
        match kind {
            Kind::Directory if how.create || how.write => return Err(Errno::IsDirectory),
            _ if how.directory && kind != Kind::Directory => return Err(Errno::NotDirectory),
            Kind::Symlink => return Err(Errno::Loop),
            Kind::File if how.truncate => self.fs.resize(ino, 0)?,
            Kind::File
            | Kind::Directory
            | Kind::Fifo
            | Kind::Socket
            | Kind::CharDevice
            | Kind::BlockDevice => {}
        }
        Ok(ino)
    }

    /// Whether opening `path` would open a pipe, which is no affair of a file system.
    fn opens_pipe(&self, path: &str, how: How) -> bool {
        let walked = self.walk(path, !how.no_follow && !how.exclusive);
        let ino = walked.ok().and_then(|walked| walked.ino);
        ino.is_some_and(|ino| self.fs.inode(ino).is_ok_and(|inode| matches!(inode.body, Body::Node(_))))
            && !how.exclusive
    }

    fn opened(&self, slot: usize) -> Option<Opened> {
        self.slots.get(slot).copied().flatten()
    }

    fn close(&mut self, slot: usize) {
        if let Some(opened) = self.slots.get_mut(slot).and_then(Option::take) {
            self.fs.release(opened.ino);
        }
    }

    /// The contents of what is open in a slot, for judging where a world says its holes are.
    pub(super) fn may_seek_answer(&self, slot: usize, offset: u64, hole: bool, answer: &Outcome) -> bool {
        let answer = match answer {
            Outcome::Place(place) => Ok(*place),
            Outcome::Failed(errno) => Err(*errno),
            Outcome::LeftOut
            | Outcome::Done
            | Outcome::Count(_)
            | Outcome::Data(_)
            | Outcome::Seen(_)
            | Outcome::Names(_) => return false,
        };
        let opened = self.opened(slot);
        opened.is_some_and(|opened| self.fs.may_seek_answer(opened.ino, offset, hole, answer))
    }

    /// Whether the operation makes sense at all just now.
    fn applies(&self, operation: &Operation) -> bool {
        let is_open = |slot: &usize| self.opened(*slot).is_some();
        let is_file = |slot: &usize| {
            let opened = self.opened(*slot);
            opened.is_some_and(|opened| self.fs.contents(opened.ino).is_ok())
        };
        match operation {
            Operation::Open { path, how, .. } => !self.opens_pipe(path, *how),
            Operation::Object(path, OnObject::Truncate { .. }) => !self.opens_pipe(path, How::default()),
            Operation::File(slot, OnFile::Seek { .. }) => is_file(slot),
            Operation::File(slot, OnFile::CopyFrom { from, .. }) => is_open(slot) && is_open(from),
            Operation::File(slot, _) => is_open(slot),
            Operation::Name(_) | Operation::Object(_, _) => true,
        }
    }
}

impl World for ModelWorld {
    fn perform(&mut self, operation: &Operation) -> Outcome {
        if !self.applies(operation) {
            return Outcome::LeftOut;
        }
        match operation {
            Operation::Open { slot, path, how, mode } => self.open(path, *how, *mode).map(|ino| {
                self.fs.hold(ino);
                self.close(*slot);
                if let Some(place) = self.slots.get_mut(*slot) {
                    *place = Some(Opened { ino, how: *how });
                }
                Outcome::Done
            }),
            Operation::File(slot, on_file) => self.on_file(*slot, on_file),
            Operation::Name(on_name) => self.on_name(on_name),
            Operation::Object(path, on_object) => self.on_object(path, on_object),
        }
        .into()
    }
}
