//! Executes operations on the model: resolves paths and symlinks like a kernel.

mod file;
mod name;
mod object;

use crate::fs::{InodeBody, ModelFs, ModelIno, NewInode, ROOT};
use crate::operation::{FileCall, ObjectCall, OpenFlags, Operation, SLOTS};
use crate::posix::{Executor, ObservedStat, OperationOutcome};
use wirefs_op::{Errno, Kind, SetStat};

/// The maximum number of symlinks in one path resolution.
const LINKS_MAX: u32 = 40;

/// An open file.
#[derive(Clone, Copy, Debug)]
struct OpenModelFile {
    ino: ModelIno,
    open_flags: OpenFlags,
}

/// The result of a path resolution.
struct ResolvedPath {
    /// The directory of the last name.
    dir: ModelIno,
    name: Vec<u8>,
    /// The inode of the name, if it exists.
    ino: Option<ModelIno>,
}

impl ResolvedPath {
    fn existing(&self) -> Result<ModelIno, Errno> {
        self.ino.ok_or(Errno::NotFound)
    }
}

/// The model, and the files open in it.
#[derive(Clone, Debug)]
pub struct ModelExecutor {
    pub(super) fs: ModelFs,
    slots: [Option<OpenModelFile>; SLOTS],
    umask: u32,
}

impl ModelExecutor {
    /// Returns an empty model whose root has these attributes, for a process with this umask.
    pub fn new(root: &ObservedStat, umask: u32) -> ModelExecutor {
        let mut fs = ModelFs::new();
        let set =
            SetStat { uid: Some(root.uid), gid: Some(root.gid), mode: Some(root.mode), ..SetStat::default() };
        // The root is a directory, so this cannot fail.
        let _ = fs.set(ROOT, &set);
        ModelExecutor { fs, slots: [None; SLOTS], umask }
    }

    fn resolve(&self, path: &str, follow: bool) -> Result<ResolvedPath, Errno> {
        self.resolve_from(ROOT, path.as_bytes(), follow, &mut 0)
    }

    fn resolve_from(
        &self,
        start: ModelIno,
        path: &[u8],
        follow: bool,
        links: &mut u32,
    ) -> Result<ResolvedPath, Errno> {
        let mut names = path.split(|byte| *byte == b'/').peekable();
        let mut dir = start;
        loop {
            let name = names.next().ok_or(Errno::NotFound)?;
            let is_last = names.peek().is_none();
            let found = match self.fs.lookup(dir, name) {
                Ok(ino) => ino,
                Err(Errno::NotFound) if is_last => {
                    return Ok(ResolvedPath { dir, name: name.to_vec(), ino: None });
                }
                Err(errno) => return Err(errno),
            };
            let ino = match &self.fs.inode(found)?.body {
                InodeBody::Symlink(target) if follow || !is_last => {
                    *links += 1;
                    if *links > LINKS_MAX {
                        return Err(Errno::Loop);
                    }
                    let resolved = self.resolve_from(dir, target, true, links)?;
                    if is_last {
                        return Ok(resolved);
                    }
                    resolved.existing()?
                }
                InodeBody::Symlink(_)
                | InodeBody::File(_)
                | InodeBody::Directory { .. }
                | InodeBody::Node(_) => found,
            };
            if is_last {
                return Ok(ResolvedPath { dir, name: name.to_vec(), ino: Some(ino) });
            }
            dir = ino;
        }
    }

    /// Returns the directory of the last name of `path`, and that name, without its lookup.
    fn parent<'a>(&self, path: &'a str) -> Result<(ModelIno, &'a [u8]), Errno> {
        let Some((dir, name)) = path.rsplit_once('/') else { return Ok((ROOT, path.as_bytes())) };
        let dir = self.resolve(dir, true)?.existing()?;
        if !self.fs.inode(dir)?.is_directory() {
            return Err(Errno::NotDirectory);
        }
        Ok((dir, name.as_bytes()))
    }

    /// Returns the inode at `path`, without following a last symlink.
    fn at(&self, path: &str) -> Result<ModelIno, Errno> {
        self.resolve(path, false)?.existing()
    }

    fn new_object(&self, kind: Kind, mode: u32) -> NewInode {
        NewInode::of(kind, mode & !self.umask)
    }

    fn open(&mut self, path: &str, open_flags: OpenFlags, mode: u32) -> Result<ModelIno, Errno> {
        let resolved = self.resolve(path, !open_flags.no_follow && !open_flags.exclusive)?;
        let Some(ino) = resolved.ino else {
            if !open_flags.create {
                return Err(Errno::NotFound);
            }
            let new = self.new_object(Kind::File, mode);
            return self.fs.create(resolved.dir, &resolved.name, &new);
        };
        if open_flags.exclusive {
            return Err(Errno::Exists);
        }
        let kind = self.fs.inode(ino)?.kind();
        match kind {
            Kind::Directory if open_flags.create || open_flags.write => return Err(Errno::IsDirectory),
            _ if open_flags.directory && kind != Kind::Directory => return Err(Errno::NotDirectory),
            Kind::Symlink => return Err(Errno::Loop),
            Kind::File if open_flags.truncate => self.fs.resize(ino, 0)?,
            Kind::File
            | Kind::Directory
            | Kind::Fifo
            | Kind::Socket
            | Kind::CharDevice
            | Kind::BlockDevice => {}
        }
        Ok(ino)
    }

    /// Returns whether opening `path` would open a pipe, which is outside the scope of a file system.
    fn opens_pipe(&self, path: &str, open_flags: OpenFlags) -> bool {
        let resolved = self.resolve(path, !open_flags.no_follow && !open_flags.exclusive);
        let ino = resolved.ok().and_then(|resolved| resolved.ino);
        ino.is_some_and(|ino| self.fs.inode(ino).is_ok_and(|inode| matches!(inode.body, InodeBody::Node(_))))
            && !open_flags.exclusive
    }

    fn opened(&self, slot: usize) -> Option<OpenModelFile> {
        self.slots.get(slot).copied().flatten()
    }

    fn close(&mut self, slot: usize) {
        if let Some(opened) = self.slots.get_mut(slot).and_then(Option::take) {
            self.fs.release(opened.ino);
        }
    }

    /// Returns whether `answer` is an allowed result of a seek in the file of a slot.
    pub(super) fn is_allowed_seek_result(
        &self,
        slot: usize,
        offset: u64,
        hole: bool,
        answer: &OperationOutcome,
    ) -> bool {
        let answer = match answer {
            OperationOutcome::Offset(place) => Ok(*place),
            OperationOutcome::Failed(errno) => Err(*errno),
            OperationOutcome::Skipped
            | OperationOutcome::Done
            | OperationOutcome::Count(_)
            | OperationOutcome::Data(_)
            | OperationOutcome::Stat(_)
            | OperationOutcome::Names(_) => return false,
        };
        let opened = self.opened(slot);
        opened.is_some_and(|opened| self.fs.is_allowed_seek_result(opened.ino, offset, hole, answer))
    }

    /// Returns whether the operation is applicable in the current state.
    fn applies(&self, operation: &Operation) -> bool {
        let is_open = |slot: &usize| self.opened(*slot).is_some();
        let is_file = |slot: &usize| {
            let opened = self.opened(*slot);
            opened.is_some_and(|opened| self.fs.contents(opened.ino).is_ok())
        };
        match operation {
            Operation::Open { path, open_flags, .. } => !self.opens_pipe(path, *open_flags),
            Operation::Object(path, ObjectCall::Truncate { .. }) => {
                !self.opens_pipe(path, OpenFlags::default())
            }
            Operation::File(slot, FileCall::Seek { .. }) => is_file(slot),
            Operation::File(slot, FileCall::CopyFrom { from, .. }) => is_open(slot) && is_open(from),
            Operation::File(slot, _) => is_open(slot),
            Operation::Name(_) | Operation::Object(_, _) => true,
        }
    }
}

impl Executor for ModelExecutor {
    fn perform(&mut self, operation: &Operation) -> OperationOutcome {
        if !self.applies(operation) {
            return OperationOutcome::Skipped;
        }
        match operation {
            Operation::Open { slot, path, open_flags, mode } => {
                self.open(path, *open_flags, *mode).map(|ino| {
                    self.fs.hold(ino);
                    self.close(*slot);
                    if let Some(place) = self.slots.get_mut(*slot) {
                        *place = Some(OpenModelFile { ino, open_flags: *open_flags });
                    }
                    OperationOutcome::Done
                })
            }
            Operation::File(slot, file_call) => self.file_call(*slot, file_call),
            Operation::Name(name_call) => self.name_call(name_call),
            Operation::Object(path, object_call) => self.object_call(path, object_call),
        }
        .into()
    }
}
