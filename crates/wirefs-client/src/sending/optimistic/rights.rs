//! Permissions at the server, as far as they are certain. The kernel has checked the caller's permissions (`default_permissions`);
//! these functions check those of the user that the server acts as.

use crate::config::Attachment;
use wirefs_op::{Cred, Kind, Stat};

/// Whether the server's user may do what only an object's owner may.
pub(super) fn owns(server: &Attachment, stat: &Stat) -> bool {
    server.uid == 0 || stat.uid == server.uid
}

/// Whether the server's user has these rights on the object, given as the owner's bits.
pub(super) fn may(server: &Attachment, stat: &Stat, bits: u32) -> bool {
    // ACLs are extended attributes; they do not bind root.
    server.uid == 0 || stat.without_xattrs && stat.uid == server.uid && stat.mode & bits == bits
}

/// Whether names may be created, moved and removed in this directory. Its owner may do so even if it is sticky.
pub(super) fn may_change_names(server: &Attachment, dir: &Stat) -> bool {
    dir.kind == Kind::Directory && may(server, dir, 0o300)
}

/// Whether an object may be created in this directory on behalf of `cred`, with a predictable mode.
pub(super) fn may_make(server: &Attachment, dir: &Stat, cred: &Cred) -> bool {
    // A default ACL would decide about the mode.
    let is_plain = dir.without_xattrs && may_change_names(server, dir);
    let is_callers = cred.uid == 0 || dir.uid == cred.uid && dir.mode & 0o300 == 0o300;
    is_plain && (!server.acts_for_callers || is_callers)
}

/// The owner of a new object in this directory for this caller.
pub(super) fn owner(server: &Attachment, dir: &Stat, cred: &Cred) -> (u32, u32) {
    let (uid, gid) = if server.acts_for_callers { (cred.uid, cred.gid) } else { (server.uid, server.gid) };
    (uid, if dir.mode & 0o2000 != 0 { dir.gid } else { gid })
}
