//! Contents: read, write, resize, allocate, copy, seek.

use crate::contents::FileContents;
use crate::fs::{InodeBody, ModelFs, ModelIno};
use wirefs_op::{Errno, Kind};

/// `FALLOC_FL_KEEP_SIZE`.
const ALLOCATE_KEEP_SIZE: u32 = 1;
/// `FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE`.
const PUNCH: u32 = 3;
/// `FALLOC_FL_ZERO_RANGE`.
const ZERO: u32 = 16;
/// `FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE`.
const ZERO_KEEP_SIZE: u32 = 17;
/// The maximum file size: offsets are signed in POSIX.
const SIZE_MAX: u64 = i64::MAX as u64;

impl ModelFs {
    /// Returns a file's contents.
    pub(crate) fn contents(&self, ino: ModelIno) -> Result<&FileContents, Errno> {
        match &self.inode(ino)?.body {
            InodeBody::File(contents) => Ok(contents),
            body => Err(not_a_file(body)),
        }
    }

    fn contents_mut(&mut self, ino: ModelIno) -> Result<&mut FileContents, Errno> {
        match &mut self.inode_mut(ino)?.body {
            InodeBody::File(contents) => Ok(contents),
            body => Err(not_a_file(body)),
        }
    }

    pub(crate) fn read(&mut self, ino: ModelIno, offset: u64, count: u64) -> Result<Vec<u8>, Errno> {
        let bytes = self.contents(ino)?.read(offset, count);
        self.accessed(ino)?;
        Ok(bytes)
    }

    /// Updates the access time.
    pub(crate) fn accessed(&mut self, ino: ModelIno) -> Result<(), Errno> {
        let now = self.now();
        self.inode_mut(ino)?.atime = now;
        Ok(())
    }

    pub(crate) fn write(&mut self, ino: ModelIno, offset: u64, data: &[u8]) -> Result<(), Errno> {
        let contents = self.contents_mut(ino)?;
        if data.is_empty() {
            return Ok(());
        }
        check_end(offset, data.len() as u64)?;
        contents.write(offset, data);
        self.modify(ino);
        Ok(())
    }

    pub(crate) fn resize(&mut self, ino: ModelIno, size: u64) -> Result<(), Errno> {
        if size > SIZE_MAX {
            return Err(Errno::Invalid);
        }
        match self.inode(ino)?.kind() {
            Kind::File => self.contents_mut(ino)?.resize(size),
            Kind::Directory => return Err(Errno::IsDirectory),
            Kind::Symlink | Kind::Fifo | Kind::Socket | Kind::CharDevice | Kind::BlockDevice => {
                return Err(Errno::Invalid);
            }
        }
        self.modify(ino);
        Ok(())
    }

    /// `fallocate`.
    pub(crate) fn allocate(
        &mut self,
        ino: ModelIno,
        mode: u32,
        offset: u64,
        length: u64,
    ) -> Result<(), Errno> {
        if length == 0 || offset > SIZE_MAX || length > SIZE_MAX {
            return Err(Errno::Invalid);
        }
        let contents = self.contents_mut(ino)?;
        check_end(offset, length)?;
        let end = offset + length;
        match mode {
            0 => {}
            ALLOCATE_KEEP_SIZE => {}
            PUNCH | ZERO | ZERO_KEEP_SIZE => contents.punch(offset, length),
            _ => return Err(Errno::NotSupported),
        }
        if matches!(mode, 0 | ZERO) && end > contents.size() {
            contents.resize(end);
        }
        self.modify(ino);
        Ok(())
    }

    /// `copy_file_range`; returns the number of copied bytes.
    pub(crate) fn copy(
        &mut self,
        from: (ModelIno, u64),
        to: (ModelIno, u64),
        length: u64,
    ) -> Result<u64, Errno> {
        let ((from, from_offset), (to, to_offset)) = (from, to);
        for ino in [from, to] {
            match self.inode(ino)?.kind() {
                Kind::File => {}
                Kind::Directory => return Err(Errno::IsDirectory),
                Kind::Symlink | Kind::Fifo | Kind::Socket | Kind::CharDevice | Kind::BlockDevice => {
                    return Err(Errno::Invalid);
                }
            }
        }
        let count = length.min(self.contents(from)?.size().saturating_sub(from_offset));
        check_end(to_offset, count)?;
        let is_overlapping = to_offset + count > from_offset && to_offset < from_offset.saturating_add(count);
        if from == to && is_overlapping {
            return Err(Errno::Invalid);
        }
        let bytes = self.read(from, from_offset, count)?;
        self.write(to, to_offset, &bytes)?;
        Ok(count)
    }

    /// `lseek` for data or a hole.
    pub(crate) fn seek(&self, ino: ModelIno, offset: u64, hole: bool) -> Result<u64, Errno> {
        let contents = self.contents(ino)?;
        if offset >= contents.size() {
            return Err(Errno::NoSuchDevice);
        }
        if hole {
            Ok(contents.next_hole(offset))
        } else {
            contents.next_data(offset).ok_or(Errno::NoSuchDevice)
        }
    }

    /// Returns whether a result of a seek is allowed. File systems track holes with different granularity. But a
    /// reported hole must read as zeros, and only the implicit hole at the end of the file may be missing.
    pub(crate) fn is_allowed_seek_result(
        &self,
        ino: ModelIno,
        offset: u64,
        hole: bool,
        answer: Result<u64, Errno>,
    ) -> bool {
        let Ok(contents) = self.contents(ino) else {
            return false;
        };
        let size = contents.size();
        match answer {
            Err(Errno::NoSuchDevice) => offset >= size || !hole && contents.is_zero(offset, size),
            Err(_) => false,
            Ok(_) if offset >= size => false,
            Ok(found) if hole => {
                (offset..=size).contains(&found) && (found == size || contents.is_zero(found, found + 1))
            }
            Ok(found) => (offset..size).contains(&found) && contents.is_zero(offset, found),
        }
    }
}

fn check_end(offset: u64, length: u64) -> Result<(), Errno> {
    match offset.checked_add(length) {
        Some(end) if end <= SIZE_MAX => Ok(()),
        Some(_) | None => Err(Errno::FileTooBig),
    }
}

fn not_a_file(body: &InodeBody) -> Errno {
    match body {
        InodeBody::Directory { .. } => Errno::IsDirectory,
        InodeBody::File(_) | InodeBody::Symlink(_) | InodeBody::Node(_) => Errno::Invalid,
    }
}
