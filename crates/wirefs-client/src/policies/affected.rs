//! Objects affected by a change whose outcome is unknown: the connection broke before its reply, the request was given up, or it
//! failed after a part of it may have been done. Cached data about these objects is invalidated, here and in the kernel.

use crate::call::Invalidate;
use crate::output::Outputs;
use crate::pending::{Affected, Continuation, Pending};
use crate::view::View;
use wirefs_op::message::put::PutMode;
use wirefs_op::{Errno, Request};

/// Notes the server's change times of objects before a change of them is issued.
pub(crate) fn note_known(view: &mut View, outputs: &mut Outputs, pending: &Pending) {
    let Affected { names, mut nodes } = pending.affected();
    for (dir, name) in names {
        nodes.extend([Some(dir), view.names.child(dir, &name)].into_iter().flatten());
    }
    nodes.into_iter().for_each(|node| view.note_known(outputs, node));
}

/// Whether a part of a change that failed with this error may have been done. The server sends no recall to the client that made a
/// change, and an error brings no attributes.
pub(crate) fn may_be_done(request: &Request, errno: Errno) -> bool {
    let is_refusal = matches!(
        errno,
        Errno::NotPermitted
            | Errno::NotFound
            | Errno::BadDescriptor
            | Errno::AccessDenied
            | Errno::Exists
            | Errno::CrossDevice
            | Errno::NotDirectory
            | Errno::IsDirectory
            | Errno::Invalid
            | Errno::ReadOnly
            | Errno::TooManyLinks
            | Errno::NameTooLong
            | Errno::NotEmpty
            | Errno::Loop
            | Errno::NoData
            | Errno::NotSupported
            | Errno::Stale
    );
    // What is refused is refused before it begins; of several steps, those before were done.
    is_of_object(request) && !(is_refusal && steps(request) <= 1)
}

/// Whether a request changes an object, and no name.
fn is_of_object(request: &Request) -> bool {
    match request {
        Request::Put(put) => !put.mode.has(PutMode::CREATE),
        Request::Xattr(_) | Request::Allocate(_) | Request::Copy(_) => true,
        _ => false,
    }
}

/// How many things a change does, one after the other.
fn steps(request: &Request) -> usize {
    let Request::Put(put) = request else { return 1 };
    let modes = [PutMode::KILL_PRIVILEGES, PutMode::DATA, PutMode::REMOVE];
    let set = &put.set;
    let times = set.atime.is_some() || set.mtime.is_some();
    let attributes = [set.size.is_some(), set.uid.is_some() || set.gid.is_some(), set.mode.is_some(), times];
    modes.into_iter().filter(|mode| put.mode.has(*mode)).count()
        + attributes.into_iter().filter(|is_set| *is_set && put.mode.has(PutMode::STAT)).count()
}

/// Invalidates the objects of a change whose outcome is unknown.
pub(crate) fn invalidate(view: &mut View, outputs: &mut Outputs, pending: &Pending) {
    // Without leases it all is asked for again soon.
    if !view.mount.config.mode.takes_leases() {
        return;
    }
    let Affected { names, mut nodes } = pending.affected();
    for (parent, name) in names {
        nodes.push(parent);
        nodes.extend(view.names.child(parent, &name));
        view.directories.invalidate_name(parent, &name);
        view.invalidate_listing(outputs, parent);
        view.names.remove_negative(parent, &name);
        view.invalidate_name(outputs, parent, name);
    }
    nodes.sort_unstable();
    nodes.dedup();
    for node in nodes {
        view.names.invalidate(node);
        view.files.invalidate_contents(node);
        if let Some(id) = view.names.node(node).map(|known| known.stat.id) {
            view.directories.outdate(id, view.mount.now);
        }
        // What the kernel coalesces of a listing is dropped at that one's end.
        let offset = if view.files.stateless.knows(node) { -1 } else { 0 };
        outputs.invalidate(Invalidate::Node { node, offset, length: 0 });
    }
}
