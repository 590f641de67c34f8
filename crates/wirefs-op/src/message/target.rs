//! How a request identifies its objects.

use crate::message::Request;
use crate::path::TreePath;
use crate::stat::FileId;
use crate::wire::{Malformed, Reader, Wire, Writer, wire_struct};

/// An open file on the server. The server chooses the number. It is a hint: a server that no longer has it
/// uses the path instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fd(pub u16);

/// No open file.
pub const NOFD: Fd = Fd(u16::MAX);

impl Wire for Fd {
    fn put(&self, writer: &mut Writer) {
        self.0.put(writer);
    }
    fn take(reader: &mut Reader) -> Result<Self, Malformed> {
        u16::take(reader).map(Fd)
    }
}

wire_struct! {
    /// An existing object. The server uses the fd if it is valid and refers to the object, otherwise the
    /// path, which must lead to the object.
    pub struct Target {
        /// The last path that the client had for the object.
        path: TreePath,
        /// The open file, or [`NOFD`].
        fd: Fd,
        /// The id of the object. If the path leads to another one, the request fails with ESTALE. `None`: any
        /// object.
        id: Option<FileId>,
    }
}

impl Target {
    /// Returns the target for any object at this path.
    pub fn at(path: TreePath) -> Target {
        Target { path, fd: NOFD, id: None }
    }
}

wire_struct! {
    /// A name in a directory, which may exist or not.
    pub struct Place {
        /// The path of the entry; not the root.
        path: TreePath,
        /// The id of the directory. If the path leads to another one, the request fails with ESTALE. `None`:
        /// any directory.
        dir: Option<FileId>,
    }
}

impl Request {
    /// Returns the ids of the objects and directories in the request.
    pub fn ids_mut(&mut self) -> [Option<&mut FileId>; 2] {
        match self {
            Request::Get(get) => [get.target.id.as_mut(), None],
            Request::Put(put) => [put.target.id.as_mut(), None],
            Request::Remove(remove) => [remove.place.dir.as_mut(), None],
            Request::Rename(rename) => [rename.from.dir.as_mut(), rename.to.dir.as_mut()],
            Request::Link(link) => [link.target.id.as_mut(), link.to.dir.as_mut()],
            Request::Xattr(xattr) => [xattr.target.id.as_mut(), None],
            Request::Statfs(statfs) => [statfs.target.id.as_mut(), None],
            Request::Lock(lock) => [lock.target.id.as_mut(), None],
            Request::Allocate(allocate) => [allocate.target.id.as_mut(), None],
            Request::Copy(copy) => [copy.from.id.as_mut(), copy.to.id.as_mut()],
            Request::Seek(seek) => [seek.target.id.as_mut(), None],
            Request::Commit(commit) => [commit.target.id.as_mut(), None],
            Request::Find(find) => [find.target.id.as_mut(), None],
            Request::Version(_)
            | Request::Attach(_)
            | Request::Flush(_)
            | Request::Ping(_)
            | Request::Recalled(_)
            | Request::Number(_) => [None, None],
        }
    }
}
