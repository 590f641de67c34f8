//! One change of a journal: its description for people, and its form for a replay, in which no file is open.

use bytes::Bytes;
use wirefs_op::message::put::{PutMode, Tput};
use wirefs_op::message::target::{NOFD, Target};
use wirefs_op::message::xattr::XattrAction;
use wirefs_op::{Change, Request, SetStat};

/// A change, described for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// The action, as in `write 4096 bytes at 0`.
    pub what: String,
    /// The path below the mount when the change was made.
    pub path: Vec<u8>,
    /// The bytes that the change writes.
    pub data: Bytes,
}

/// Returns the change as a replay sends it: without fds and without opening a file, because nothing would close it. `None` for an opening
/// and a lock, which are useless without their program.
pub fn replayed(request: Request) -> Option<Request> {
    match request {
        Request::Put(put) => Some(closed(put)).filter(|put| put.mode != PutMode::NONE).map(Request::Put),
        Request::Link(mut link) => {
            link.target = without_fd(link.target);
            Some(Request::Link(link))
        }
        Request::Allocate(mut allocate) => {
            allocate.target = without_fd(allocate.target);
            Some(Request::Allocate(allocate))
        }
        Request::Copy(mut copy) => {
            (copy.from, copy.to) = (without_fd(copy.from), without_fd(copy.to));
            Some(Request::Copy(copy))
        }
        Request::Xattr(mut xattr) => {
            xattr.target = without_fd(xattr.target);
            Some(Request::Xattr(xattr))
        }
        Request::Remove(_) | Request::Rename(_) => Some(request),
        _ => None,
    }
}

fn without_fd(target: Target) -> Target {
    Target { fd: NOFD, ..target }
}

/// Keeps a nameless file open, since it exists only while it is open; it stays until the session ends. Drops `SYNC` from writes, because one
/// commit at the end makes all of them durable. A barrier stays a barrier for the changes after it.
fn closed(put: Tput) -> Tput {
    let opening = PutMode::MORE.and(PutMode::READ).and(PutMode::WRITE);
    let dropped = match put.mode {
        _ if put.is_barrier() => opening,
        mode if mode.has(PutMode::NAMELESS) => PutMode::SYNC,
        _ => opening.and(PutMode::SYNC),
    };
    Tput { target: without_fd(put.target), mode: PutMode(put.mode.0 & !dropped.0), ..put }
}

/// Describes a change for people.
pub fn describe(request: &Request) -> Description {
    let Some(change) = request.change() else {
        let what = format!("no change: {}", request.name());
        return Description { what, path: Vec::new(), data: Bytes::new() };
    };
    let (what, path, data) = match change {
        Change::Put(put) => (written(put), &put.target.path, put.data.0.clone()),
        Change::Remove(remove) if remove.directory => {
            ("remove the directory".to_owned(), &remove.place.path, Bytes::new())
        }
        Change::Remove(remove) => ("remove".to_owned(), &remove.place.path, Bytes::new()),
        Change::Rename(rename) => {
            (format!("rename to {}", shown(rename.to.path.as_bytes())), &rename.from.path, Bytes::new())
        }
        Change::Link(link) => {
            (format!("link as {}", shown(link.to.path.as_bytes())), &link.target.path, Bytes::new())
        }
        Change::Allocate(allocate) => (
            format!("allocate {} bytes at {} (mode {})", allocate.length, allocate.offset, allocate.mode),
            &allocate.target.path,
            Bytes::new(),
        ),
        Change::Copy(copy) => (
            format!(
                "copy {} bytes at {} from {} at {}",
                copy.length,
                copy.to_offset,
                shown(copy.from.path.as_bytes()),
                copy.from_offset
            ),
            &copy.to.path,
            Bytes::new(),
        ),
        Change::Xattr(xattr) => {
            let verb = if xattr.action == XattrAction::Remove { "remove" } else { "set" };
            let name = shown(xattr.name.as_bytes());
            (format!("{verb} the extended attribute {name}"), &xattr.target.path, xattr.value.0.clone())
        }
        Change::Lock(lock) => ("lock or unlock".to_owned(), &lock.target.path, Bytes::new()),
    };
    Description { what, path: path.as_bytes().to_vec(), data }
}

/// Escapes control characters, invalid UTF-8 and `\\`, so that any bytes fit on one line.
pub fn shown(bytes: &[u8]) -> String {
    let mut line = String::new();
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            if letter == '\\' || letter.is_control() {
                line.extend(letter.escape_default());
            } else {
                line.push(letter);
            }
        }
        line.extend(chunk.invalid().iter().flat_map(|byte| byte.escape_ascii()).map(char::from));
    }
    line
}

fn written(put: &Tput) -> String {
    let mut parts = Vec::new();
    if let Some(create) = &put.create {
        parts.push(format!("create {:?} with mode {:o}", create.kind, create.mode).to_lowercase());
    }
    if put.mode.has(PutMode::STAT) {
        parts.push(format!("set {}", attributes(&put.set)));
    }
    if put.mode.has(PutMode::DATA) && put.mode.has(PutMode::APPEND) {
        parts.push(format!("append {} bytes", put.data.0.len()));
    } else if put.mode.has(PutMode::DATA) {
        parts.push(format!("write {} bytes at {}", put.data.0.len(), put.offset));
    }
    if put.is_barrier() {
        parts.push("wait for the server's disk".to_owned());
    }
    if parts.is_empty() { "open or close".to_owned() } else { parts.join(", ") }
}

fn attributes(set: &SetStat) -> String {
    let named = [
        ("mode", set.mode.is_some()),
        ("owner", set.uid.is_some()),
        ("group", set.gid.is_some()),
        ("size", set.size.is_some()),
        ("time of access", set.atime.is_some()),
        ("time of change", set.mtime.is_some()),
    ];
    let names: Vec<&str> = named.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name).collect();
    names.join(", ")
}

#[cfg(test)]
pub(crate) mod tests;
