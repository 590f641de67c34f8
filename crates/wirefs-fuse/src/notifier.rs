//! Notifications to the kernel: invalidation of names, attributes and pages.

#[cfg(test)]
mod tests;

use crate::abi::{self, notify};
use crate::answer::{put_header, put_u32, put_u64};
use crate::device::Connection;
use crate::name_cache::{Expiry, NameInvalidation};
use std::io;
use std::sync::Weak;
use std::time::{Duration, Instant};
use wirefs_client::call::{Invalidate, TreeNodeId};

const UNUSED_NAME: &[u8] = b"\x01wirefs waits for who reads here\x01";

/// Sends invalidations to the kernel. It does not keep the mount alive.
#[derive(Clone, Debug)]
pub struct Notifier {
    connection: Weak<Connection>,
}

impl Notifier {
    pub(crate) fn new(connection: Weak<Connection>) -> Notifier {
        Notifier { connection }
    }

    /// Returns a notifier without a kernel, for a mount that only its own process uses: nothing needs invalidation.
    pub fn without_kernel() -> Notifier {
        Notifier::new(Weak::new())
    }

    /// Invalidates cached data. Unknown nodes and names, and a gone mount, are not errors. Returns when the
    /// invalidation must be repeated: an answer in transit may renew a directory's name until then.
    ///
    /// It may wait for calls in progress: for a name until the calls that hold its directory are answered, for
    /// pages until reads and writes of them are. So it must run in a thread that no answer depends on: neither
    /// within [`FileSystem::call`](crate::FileSystem::call) nor in the thread that receives the server's replies.
    /// For attributes alone (an offset below 0), and for a directory's listing, it does not wait.
    ///
    /// # Errors
    /// Those of writing to the device, except for "no such node or name" and "unmounted".
    ///
    /// # Cost
    /// One system call.
    pub fn invalidate(&self, what: &Invalidate) -> io::Result<Option<Instant>> {
        let Some(connection) = self.connection.upgrade() else {
            return Ok(None);
        };
        let name_cache = connection.name_cache();
        match what {
            Invalidate::Entry { parent, .. } if name_cache.are_names_untrusted(*parent) => Ok(None),
            Invalidate::Entry { parent, name, is_directory } => {
                // Before the kernel is notified: answers from now on get no validity.
                let NameInvalidation { drops, repeat_after } =
                    name_cache.begin_invalidation(*parent, name, *is_directory);
                let repeat_after = repeat_after.map(|after| Instant::now() + after);
                send(&connection, &encode(what, drops)).map(|()| repeat_after)
            }
            Invalidate::Node { .. } | Invalidate::Listing { .. } => {
                send(&connection, &encode(what, false)).map(|()| None)
            }
        }
    }

    /// Waits until all present readdir calls of this directory are answered and the kernel has processed the
    /// answers: to invalidate a name it locks the directory exclusively. The name used here does not exist; if it
    /// does, it is only looked up again.
    ///
    /// # Errors
    /// As [`Notifier::invalidate`].
    ///
    /// # Cost
    /// One system call, which may wait as described there.
    pub fn await_readers(&self, dir: TreeNodeId) -> io::Result<()> {
        let Some(connection) = self.connection.upgrade() else {
            return Ok(());
        };
        let what = Invalidate::Entry { parent: dir, name: UNUSED_NAME.to_vec(), is_directory: false };
        send(&connection, &encode(&what, false))
    }

    /// Evicts an unused inode from the kernel, so that the kernel sends FORGET. `names` are all names that the
    /// kernel knows it by: a kernel without PRUNE drops them one by one.
    ///
    /// # Errors
    /// As [`Notifier::invalidate`].
    ///
    /// # Cost
    /// One system call (Linux 6.18); else one per name, each of which may wait for calls in progress in the
    /// directory, and may be too late for a program that walks it.
    pub fn prune(&self, node: TreeNodeId, names: Vec<(TreeNodeId, Vec<u8>)>) -> io::Result<()> {
        let Some(connection) = self.connection.upgrade() else {
            return Ok(());
        };
        if connection.name_cache().prunes() {
            return send(&connection, &encode_prune(node));
        }
        for (parent, name) in names {
            send(&connection, &encode(&Invalidate::Entry { parent, name, is_directory: false }, true))?;
        }
        Ok(())
    }

    /// Makes names of these directories invalid that were answered before `since`, while calls in progress there
    /// would block [`Notifier::invalidate`]. Returns how long that still takes.
    ///
    /// # Errors
    /// As [`Notifier::invalidate`].
    ///
    /// # Cost
    /// For a directory that is not contended: all names of the mount, with unused inodes below them; or 1 s if the
    /// kernel cannot invalidate all names. After that, every lookup in these directories becomes a call, until no
    /// name there was invalidated for a minute.
    pub fn expire_directories(&self, directories: &[TreeNodeId], since: Instant) -> io::Result<Duration> {
        let Some(connection) = self.connection.upgrade() else {
            return Ok(Duration::ZERO);
        };
        let Expiry { invalidates_all, wait } = connection.name_cache().expire_directories(directories, since);
        if invalidates_all {
            invalidate_all_names(&connection)?;
        }
        Ok(wait)
    }

    /// Invalidates all names, including absent ones, without waiting. Returns whether the kernel supports it.
    ///
    /// Entries of an answered listing that a program is about to receive may count as later ones.
    ///
    /// # Errors
    /// As [`Notifier::invalidate`].
    ///
    /// # Cost
    /// One system call, however many names there are. At the next use of a name the kernel drops everything unused
    /// below it.
    pub fn invalidate_all_names(&self) -> io::Result<bool> {
        match self.connection.upgrade().filter(|connection| connection.name_cache().invalidates_all_names()) {
            Some(connection) => invalidate_all_names(&connection).map(|()| true),
            None => Ok(false),
        }
    }
}

fn invalidate_all_names(connection: &Connection) -> io::Result<()> {
    send(connection, &message(notify::INC_EPOCH, |_| {}))
}

fn send(connection: &Connection, message: &[u8]) -> io::Result<()> {
    use rustix::io::Errno;
    match connection.send_notification(message) {
        Ok(())
        | Err(
            Errno::NOENT | Errno::INVAL | Errno::NODEV | Errno::CONNABORTED | Errno::NOTCONN | Errno::NOTDIR,
        ) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// `drops`: the name is dropped with everything below it; else it expires.
fn encode(what: &Invalidate, drops: bool) -> Vec<u8> {
    match what {
        // ino[8] off[8] len[8]
        Invalidate::Node { node, offset, length } => message(notify::INVALIDATE_INODE, |out| {
            put_u64(out, node.0);
            put_u64(out, offset.cast_unsigned());
            put_u64(out, length.cast_unsigned());
        }),
        // The cached listing of a directory is stored in its pages.
        Invalidate::Listing { node } => {
            encode(&Invalidate::Node { node: *node, offset: 0, length: 0 }, drops)
        }
        // parent[8] namelen[4] flags[4] name NUL
        Invalidate::Entry { parent, name, .. } => message(notify::INVALIDATE_ENTRY, |out| {
            put_u64(out, parent.0);
            put_u32(out, u32::try_from(name.len()).unwrap_or(u32::MAX));
            put_u32(out, if drops { 0 } else { notify::EXPIRE_ONLY });
            out.extend_from_slice(name);
            out.push(0);
        }),
    }
}

/// `count[4] padding[4] spare[8] node[8]…`
fn encode_prune(node: TreeNodeId) -> Vec<u8> {
    message(notify::PRUNE, |out| {
        put_u32(out, 1);
        put_u32(out, 0);
        put_u64(out, 0);
        put_u64(out, node.0);
    })
}

/// A notification: call 0, and the code in place of an error.
fn message(code: i32, put: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = vec![0; abi::OUT_HEADER_BYTES];
    put(&mut out);
    put_header(&mut out, code, 0, 0);
    out
}
