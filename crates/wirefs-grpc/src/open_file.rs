//! A file that is open for the length of one request.

use crate::node::{Node, Tree, done, failed};
use bytes::Bytes;
use wirefs_client::call::{Answer, Call, Handle, OpenHow, TreeNodeId, WriteData};
use wirefs_op::{Errno, Kind, LockFamily, LockRange};

/// The data of one call, at most, in bytes.
const CALL_BYTES_MAX: usize = 128 * 1024;

/// An open file, closed when dropped.
pub(crate) struct OpenFile {
    tree: Tree,
    node: TreeNodeId,
    handle: Handle,
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        let (node, handle) = (self.node, self.handle);
        self.tree.call(Call::Release { node, handle, flock_owner: None });
    }
}

impl OpenFile {
    /// Opens a regular file to read it or to write it.
    pub(crate) fn open(tree: &Tree, node: &Node, writes: bool) -> Result<OpenFile, Errno> {
        Self::open_as(tree, node, OpenHow { read: !writes, write: writes, ..OpenHow::default() })
    }

    /// Opens a regular file so that each write goes to its end.
    pub(crate) fn open_to_append(tree: &Tree, node: &Node) -> Result<OpenFile, Errno> {
        Self::open_as(tree, node, OpenHow { write: true, append: true, ..OpenHow::default() })
    }

    /// Opens a regular file for locks of all kinds, or for shared ones if it may only be read.
    pub(crate) fn open_to_lock(tree: &Tree, node: &Node) -> Result<OpenFile, Errno> {
        let how = OpenHow { read: true, write: true, ..OpenHow::default() };
        match Self::open_as(tree, node, how) {
            Err(Errno::AccessDenied | Errno::ReadOnly) => Self::open(tree, node, false),
            opened => opened,
        }
    }

    fn open_as(tree: &Tree, node: &Node, how: OpenHow) -> Result<OpenFile, Errno> {
        match node.stat.kind {
            Kind::File => {}
            Kind::Directory => return Err(Errno::IsDirectory),
            Kind::Symlink => return Err(Errno::Loop),
            Kind::Fifo | Kind::Socket | Kind::CharDevice | Kind::BlockDevice => {
                return Err(Errno::NoSuchDevice);
            }
        }
        match tree.call(Call::Open { node: node.id, how }) {
            Answer::Opened(handle, _) => Ok(OpenFile { tree: tree.clone(), node: node.id, handle }),
            answer => Err(failed(&answer)),
        }
    }

    /// Creates a file, and opens it to write.
    pub(crate) fn create(
        tree: &Tree,
        dir: &Node,
        name: &[u8],
        mode: u32,
        exclusive: bool,
    ) -> Result<(Node, OpenFile), Errno> {
        let how = OpenHow { write: true, exclusive, ..OpenHow::default() };
        let call = Call::Create { parent: dir.id, name, mode: mode & 0o7777, umask: 0, how };
        match tree.call(call) {
            Answer::Created(entry, handle, _) => {
                let node = tree.node(entry);
                let open = OpenFile { tree: tree.clone(), node: node.id, handle };
                Ok((node, open))
            }
            answer => Err(failed(&answer)),
        }
    }

    /// Reads as many bytes as there are, up to `count`.
    pub(crate) fn read(&self, offset: u64, count: usize) -> Result<Bytes, Errno> {
        let mut bytes = Vec::new();
        while bytes.len() < count {
            let wanted = (count - bytes.len()).min(CALL_BYTES_MAX);
            let at = offset.checked_add(bytes.len() as u64).ok_or(Errno::Invalid)?;
            let call = Call::Read { node: self.node, handle: self.handle, offset: at, count: wanted as u32 };
            match self.tree.call(call) {
                Answer::Data(data) if data.len() == wanted && wanted == count => return Ok(data),
                Answer::Data(data) => {
                    bytes.extend_from_slice(&data);
                    if data.len() < wanted {
                        break;
                    }
                }
                answer => return Err(failed(&answer)),
            }
        }
        Ok(Bytes::from(bytes))
    }

    /// Writes all.
    pub(crate) fn write(&self, offset: u64, data: &Bytes) -> Result<u32, Errno> {
        let mut done = 0;
        while done < data.len() {
            let piece = data.slice(done..data.len().min(done + CALL_BYTES_MAX));
            let offset = offset.checked_add(done as u64).ok_or(Errno::Invalid)?;
            let call = Call::Write {
                node: self.node,
                handle: self.handle,
                offset,
                data: WriteData::Shared(&piece),
                cached: false,
                kill_privileges: false,
            };
            match self.tree.call(call) {
                Answer::Count(0) => return Err(Errno::Io),
                Answer::Count(count) => done += count as usize,
                answer => return Err(failed(&answer)),
            }
        }
        Ok(done as u32)
    }

    /// Takes or releases a lock, without a wait.
    pub(crate) fn lock(&self, owner: u64, family: LockFamily, range: LockRange) -> Result<(), Errno> {
        let (node, handle) = (self.node, self.handle);
        done(&self.tree.call(Call::Setlk { node, handle, owner, family, range, wait: false }))
    }

    /// The lock that stands in the way of another.
    pub(crate) fn conflict(
        &self,
        owner: u64,
        family: LockFamily,
        range: LockRange,
    ) -> Result<Option<LockRange>, Errno> {
        let (node, handle) = (self.node, self.handle);
        match self.tree.call(Call::Getlk { node, handle, owner, family, range }) {
            Answer::Lock(found) => Ok(found),
            answer => Err(failed(&answer)),
        }
    }

    /// Sends what was written to the server.
    pub(crate) fn flush(&self) -> Result<(), Errno> {
        done(&self.tree.call(Call::Flush { node: self.node, handle: self.handle, owner: 0 }))
    }

    /// Waits for the server's disk.
    pub(crate) fn sync(&self) -> Result<(), Errno> {
        done(&self.tree.call(Call::Fsync { node: self.node, handle: self.handle, data_only: false }))
    }
}
