//! The model as a program sees it: paths are walked and links followed, as a kernel does.

use crate::fs::{Body, Fs, Ino, New, ROOT, check_target};
use crate::operation::{How, Operation, SLOTS};
use crate::posix::{Outcome, Seen, World};
use wirefs_op::{Errno, Kind, SetStat, SetTime, Stat};

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

fn seen(stat: &Stat) -> Seen {
    Seen {
        kind: stat.kind,
        mode: stat.mode,
        nlink: stat.nlink,
        uid: stat.uid,
        gid: stat.gid,
        size: stat.size,
        atime: stat.atime,
        mtime: stat.mtime,
    }
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

    fn create(&mut self, path: &str, new: &New) -> Result<Outcome, Errno> {
        let (dir, name) = self.parent(path)?;
        self.fs.create(dir, name, new)?;
        Ok(Outcome::Done)
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
        let is_file = |slot: usize| {
            let opened = self.opened(slot);
            opened.is_some_and(|opened| self.fs.contents(opened.ino).is_ok())
        };
        match operation {
            Operation::Open { path, how, .. } => !self.opens_pipe(path, *how),
            Operation::Truncate { path, .. } => !self.opens_pipe(path, How::default()),
            Operation::Seek { slot, .. } => is_file(*slot),
            Operation::Copy { from, .. } if self.opened(*from).is_none() => false,
            other => other.slot().is_none_or(|slot| self.opened(slot).is_some()),
        }
    }

    fn on_open(&mut self, slot: usize, operation: &Operation) -> Result<Outcome, Errno> {
        let Some(Opened { ino, how }) = self.opened(slot) else {
            return Ok(Outcome::LeftOut);
        };
        Ok(match operation {
            Operation::Read { offset, count, .. } if how.read => {
                Outcome::Data(self.fs.read(ino, *offset, *count as u64)?)
            }
            Operation::Write { offset, data, .. } if how.write => {
                let offset = if how.append { self.fs.contents(ino)?.size() } else { *offset };
                self.fs.write(ino, offset, &data.bytes())?;
                Outcome::Count(data.len as u64)
            }
            Operation::Read { .. } | Operation::Write { .. } => return Err(Errno::BadDescriptor),
            Operation::TruncateOpen { size, .. } if how.write => {
                self.fs.resize(ino, *size)?;
                Outcome::Done
            }
            Operation::TruncateOpen { .. } => return Err(Errno::Invalid),
            Operation::Allocate { length: 0, .. } => return Err(Errno::Invalid),
            Operation::Allocate { mode, offset, length, .. } if how.write => {
                self.fs.allocate(ino, *mode, *offset, *length)?;
                Outcome::Done
            }
            Operation::Allocate { .. } => return Err(Errno::BadDescriptor),
            Operation::Copy { from, from_offset, to_offset, length, .. } => {
                let Some(source) = self.opened(*from) else {
                    return Ok(Outcome::LeftOut);
                };
                for ino in [source.ino, ino] {
                    self.fs.contents(ino)?;
                }
                if !source.how.read || !how.write || how.append {
                    return Err(Errno::BadDescriptor);
                }
                Outcome::Count(self.fs.copy((source.ino, *from_offset), (ino, *to_offset), *length)?)
            }
            Operation::Seek { offset, hole, .. } => Outcome::Place(self.fs.seek(ino, *offset, *hole)?),
            Operation::StatOpen { .. } => Outcome::Seen(seen(&self.fs.stat(ino)?)),
            _ => Outcome::Done,
        })
    }

    fn on_names(&mut self, operation: &Operation) -> Result<Outcome, Errno> {
        match operation {
            Operation::Mkdir { path, mode } => {
                return self.create(path, &self.new_object(Kind::Directory, *mode));
            }
            Operation::Mkfifo { path, mode } => {
                return self.create(path, &self.new_object(Kind::Fifo, *mode));
            }
            Operation::Symlink { target, path } => {
                // The kernel takes the target in before it looks at the path.
                check_target(target.as_bytes())?;
                let target = target.as_bytes().to_vec();
                let new = New { target, ..self.new_object(Kind::Symlink, 0o777) };
                return self.create(path, &new);
            }
            Operation::Link { from, to } => {
                let ino = self.at(from)?;
                let (dir, name) = self.parent(to)?;
                self.fs.link(ino, dir, name)?;
            }
            Operation::Rename { flags: 3, .. } => return Err(Errno::Invalid),
            Operation::Rename { from, to, flags } => {
                let (from, to) = (self.parent(from)?, self.parent(to)?);
                self.fs.rename(from, to, *flags)?;
            }
            Operation::Unlink { path } => {
                let (dir, name) = self.parent(path)?;
                self.fs.unlink(dir, name)?;
            }
            Operation::Rmdir { path } => {
                let (dir, name) = self.parent(path)?;
                self.fs.rmdir(dir, name)?;
            }
            Operation::Readlink { path } => match &self.fs.inode(self.at(path)?)?.body {
                Body::Symlink(target) => return Ok(Outcome::Data(target.clone())),
                Body::File(_) | Body::Directory { .. } | Body::Node(_) => return Err(Errno::Invalid),
            },
            Operation::List { path } => {
                let ino = self.walk(path, true)?.existing()?;
                let listed = self.fs.list(ino, 0)?;
                let _ = self.fs.accessed(ino);
                return Ok(Outcome::Names(listed.into_iter().map(|(name, _)| name).collect()));
            }
            _ => {}
        }
        Ok(Outcome::Done)
    }

    fn on_attributes(&mut self, operation: &Operation) -> Result<Outcome, Errno> {
        match operation {
            Operation::Stat { path, follow } => {
                let ino = self.walk(path, *follow)?.existing()?;
                return Ok(Outcome::Seen(seen(&self.fs.stat(ino)?)));
            }
            Operation::Truncate { path, size } => {
                let how = How { write: true, ..How::default() };
                let ino = self.open(path, how, 0)?;
                self.fs.resize(ino, *size)?;
            }
            Operation::Chmod { path, mode } => {
                let ino = self.walk(path, true)?.existing()?;
                self.fs.set(ino, &SetStat { mode: Some(*mode), ..SetStat::default() })?;
            }
            Operation::Chown { path, uid, gid } => {
                let set = SetStat { uid: Some(*uid), gid: Some(*gid), ..SetStat::default() };
                self.fs.set(self.at(path)?, &set)?;
            }
            // `utimensat` that leaves both as they are does not even walk.
            Operation::SetTimes { atime: None, mtime: None, .. } => {}
            Operation::SetTimes { path, atime, mtime } => {
                let (atime, mtime) = (atime.map(SetTime::At), mtime.map(SetTime::At));
                self.fs.set(self.at(path)?, &SetStat { atime, mtime, ..SetStat::default() })?;
            }
            Operation::SetXattr { path, name, value, flags } => {
                self.fs.set_xattr(self.at(path)?, name.as_bytes(), &value.bytes(), *flags)?;
            }
            Operation::ReadXattr { path, name } => {
                let value = self.fs.xattr(self.at(path)?, name.as_bytes())?;
                return Ok(Outcome::Data(value.to_vec()));
            }
            Operation::ListXattrs { path } => {
                let names = self.fs.xattr_names(self.at(path)?)?;
                return Ok(Outcome::Names(names.into_iter().map(<[u8]>::to_vec).collect()));
            }
            Operation::RemoveXattr { path, name } => self.fs.remove_xattr(self.at(path)?, name.as_bytes())?,
            _ => return self.on_names(operation),
        }
        Ok(Outcome::Done)
    }
}

impl World for ModelWorld {
    fn perform(&mut self, operation: &Operation) -> Outcome {
        if !self.applies(operation) {
            return Outcome::LeftOut;
        }
        match operation {
            Operation::Open { slot, path, how, mode } => {
                self.close(*slot);
                match self.open(path, *how, *mode) {
                    Ok(ino) => {
                        self.fs.hold(ino);
                        if let Some(place) = self.slots.get_mut(*slot) {
                            *place = Some(Opened { ino, how: *how });
                        }
                        Outcome::Done
                    }
                    Err(errno) => Outcome::Failed(errno),
                }
            }
            Operation::Close { slot } => {
                self.close(*slot);
                Outcome::Done
            }
            other => match other.slot() {
                Some(slot) => self.on_open(slot, other).into(),
                None => self.on_attributes(other).into(),
            },
        }
    }
}
