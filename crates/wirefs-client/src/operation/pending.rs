//! What a reply is for, and what becomes of that when the line breaks or time is over.

use super::{
    allocate, attributes, barrier, commit, copy, displaced, fetch, find, link, list, lock, lookup, make,
    open, publish, read, readlink, release, remove, rename, write, xattr,
};
use crate::call::CallId;
use wirefs_cache::TreeNodeId;

/// What a reply is for.
#[derive(Clone, Debug)]
pub(crate) enum Pending {
    Ignore,
    /// The closing of an fd, for which nobody waits.
    Close(release::Closing),
    Lookup(lookup::Looking),
    Getattr(attributes::Getting),
    Setattr(attributes::Setting),
    Readlink(readlink::Reading),
    Make(make::Making),
    Remove(remove::Removing),
    Rename(rename::Renaming),
    Link(link::Linking),
    Open(open::Opening),
    AcquireFd(open::Acquiring),
    Fetch(fetch::Fetching),
    ReadExactly(read::Exact),
    Write(write::Writing),
    List(list::Listing),
    /// A stream, for which nobody waits.
    Find(find::Telling),
    /// Contents of a file, for which nobody waits.
    Ahead(open::Ahead),
    Xattr(xattr::Asking),
    /// Without a call nobody waits for it yet.
    Statfs(Option<CallId>),
    Lock(lock::Locking),
    /// The release of a lock, for which nobody waits.
    Unlock(TreeNodeId),
    /// Tflush of a waiting lock.
    Withdraw(wirefs_op::Tag),
    Allocate(allocate::Allocating),
    Copy(copy::Copying),
    Seek(CallId),
    Commit(commit::Committing),
    /// What comes behind it goes on without it.
    Barrier(barrier::Barrier),
    /// A copy takes the place of its file.
    Publish(publish::Publishing),
    /// What it took the place of, for which nobody waits.
    Displaced(displaced::Displaced),
    /// A change that was answered, by its number.
    Confirm(u64),
    /// How much room the server's disk has; nobody waits for it.
    Room,
    /// All changes below this number reach the server's disk; nobody waits for it.
    Durable(u64),
}

impl Pending {
    /// Whether it asks by an open file's fd and takes none from the reply for itself.
    pub(super) fn leaves_fd(&self) -> bool {
        match self {
            Pending::Fetch(fetching) => !fetching.opens(),
            Pending::Getattr(_)
            | Pending::Setattr(_)
            | Pending::ReadExactly(_)
            | Pending::Write(_)
            | Pending::Barrier(_)
            | Pending::Confirm(_) => true,
            _ => false,
        }
    }

    /// The call that waits for this change; `None` where it is none, or nobody does.
    pub(super) fn change_of(&self) -> Option<CallId> {
        match self {
            Pending::Setattr(setting) => Some(setting.call),
            Pending::Make(making) => Some(making.call),
            Pending::Remove(removing) => Some(removing.call),
            Pending::Rename(renaming) => Some(renaming.call),
            Pending::Link(linking) => Some(linking.call),
            Pending::Open(opening) if opening.truncates() => Some(opening.call),
            Pending::Xattr(asking) if asking.changed().is_some() => Some(asking.call),
            Pending::Allocate(allocating) => Some(allocating.call),
            Pending::Copy(copying) => Some(copying.call),
            Pending::Write(writing) => writing.call(),
            _ => None,
        }
    }

    /// Whether it waits past the deadline: data that its writer believes to be on its way, fds and locks that nobody else
    /// gives back.
    pub(crate) fn outlives_deadline(&self) -> bool {
        match self {
            Pending::Write(writing) => writing.is_background(),
            Pending::Close(_)
            | Pending::Confirm(_)
            | Pending::Barrier(_)
            | Pending::Displaced(_)
            | Pending::Unlock(_) => true,
            Pending::Ignore
            | Pending::Room
            | Pending::Durable(_)
            | Pending::Lookup(_)
            | Pending::Getattr(_)
            | Pending::Setattr(_)
            | Pending::Readlink(_)
            | Pending::Make(_)
            | Pending::Remove(_)
            | Pending::Rename(_)
            | Pending::Link(_)
            | Pending::Open(_)
            | Pending::AcquireFd(_)
            | Pending::Fetch(_)
            | Pending::ReadExactly(_)
            | Pending::List(_)
            | Pending::Find(_)
            | Pending::Ahead(_)
            | Pending::Xattr(_)
            | Pending::Statfs(_)
            | Pending::Lock(_)
            | Pending::Withdraw(_)
            | Pending::Allocate(_)
            | Pending::Copy(_)
            | Pending::Seek(_)
            | Pending::Commit(_)
            | Pending::Publish(_) => false,
        }
    }

    /// Makes ready to be sent again; false when that would be of no use.
    pub(crate) fn restart(&mut self) -> bool {
        match self {
            Pending::Ignore
            | Pending::Withdraw(_)
            | Pending::Find(_)
            | Pending::Ahead(_)
            | Pending::Room
            | Pending::Durable(_) => false,
            Pending::Fetch(fetching) => fetching.restart(),
            Pending::ReadExactly(exact) => exact.restart(),
            Pending::List(listing) => listing.restart(),
            Pending::Close(_)
            | Pending::Lookup(_)
            | Pending::Getattr(_)
            | Pending::Setattr(_)
            | Pending::Readlink(_)
            | Pending::Make(_)
            | Pending::Remove(_)
            | Pending::Rename(_)
            | Pending::Link(_)
            | Pending::Open(_)
            | Pending::AcquireFd(_)
            | Pending::Unlock(_)
            | Pending::Write(_)
            | Pending::Xattr(_)
            | Pending::Statfs(_)
            | Pending::Allocate(_)
            | Pending::Copy(_)
            | Pending::Seek(_)
            | Pending::Commit(_)
            | Pending::Barrier(_)
            | Pending::Confirm(_)
            | Pending::Displaced(_)
            | Pending::Publish(_) => true,
            Pending::Lock(locking) => !locking.is_withdrawn(),
        }
    }
}
