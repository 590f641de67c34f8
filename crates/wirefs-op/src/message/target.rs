//! How a request says which object it means.

use crate::message::Request;
use crate::path::TreePath;
use crate::stat::FileId;
use crate::wire::{Malformed, Reader, Wire, Writer, wire_struct};

/// An open file at the server. Chosen by the server, and only a hint: a server that no longer knows it falls back to
/// the path, silently.
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
    /// An existing object: by fd where that is valid and is that object, else by path, where it must be that object.
    pub struct Target {
        /// Where it was when the client last knew.
        path: TreePath,
        /// The open file, or [`NOFD`].
        fd: Fd,
        /// Which object the client means. Another one at that path is answered with ESTALE. `None`: whatever is there.
        id: Option<FileId>,
    }
}

impl Target {
    /// Whatever is at this path.
    pub fn at(path: TreePath) -> Target {
        Target { path, fd: NOFD, id: None }
    }
}

wire_struct! {
    /// A name in a directory, taken or to be made.
    pub struct Place {
        /// The path of the entry; not the root.
        path: TreePath,
        /// Which directory the client means; another one there is answered with ESTALE. `None`: whatever is there.
        dir: Option<FileId>,
    }
}

impl Request {
    /// The ids by which it names objects and directories.
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
