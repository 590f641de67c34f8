//! Telling the kernel what to forget.

#[cfg(test)]
mod tests;

use crate::abi::{self, notify};
use crate::answer::{put_header, put_u32, put_u64};
use crate::beliefs::{Distrust, TakenBack};
use crate::device::Connection;
use std::io;
use std::sync::Weak;
use std::time::{Duration, Instant};
use wirefs_client::call::{Invalidate, TreeNodeId};

const NOBODYS_NAME: &[u8] = b"\x01wirefs waits for who reads here\x01";

/// Tells the kernel what to forget. It does not keep the mount alive.
#[derive(Clone, Debug)]
pub struct Notifier {
    connection: Weak<Connection>,
}

impl Notifier {
    pub(crate) fn new(connection: Weak<Connection>) -> Notifier {
        Notifier { connection }
    }

    /// Returns a notifier without a kernel, for a mount that only its own process uses: nothing has to be forgotten.
    pub fn without_kernel() -> Notifier {
        Notifier::new(Weak::new())
    }

    /// Has the kernel forget. That it never knew, or that the mount is gone, is no error. Says when it must be told once more: a directory's
    /// name may be renewed by an answer on its way, and is believed until then.
    ///
    /// It may wait for calls that are under way: for a name until those that hold its directory are answered, for pages
    /// until reads and writes of them are. So it must come from a thread that no answer waits for: neither from within
    /// [`FileSystem::call`](crate::FileSystem::call) nor from the thread that receives the server's replies. For attributes
    /// alone (an offset below 0), and for a directory's listing, it waits for no call.
    ///
    /// # Errors
    /// Those of writing to the device, but for "no such node or name" and "unmounted".
    ///
    /// # Cost
    /// One system call.
    pub fn invalidate(&self, what: &Invalidate) -> io::Result<Option<Instant>> {
        let Some(connection) = self.connection.upgrade() else {
            return Ok(None);
        };
        let beliefs = connection.beliefs();
        match what {
            Invalidate::Entry { parent, .. } if beliefs.is_distrusted(*parent) => Ok(None),
            Invalidate::Entry { parent, name, is_directory } => {
                // Before the kernel is told: what is answered from now on is answered for no time.
                let TakenBack { drops, again } = beliefs.take_back(*parent, name, *is_directory);
                let again = again.map(|after| Instant::now() + after);
                tell(&connection, &encode(what, drops)).map(|()| again)
            }
            Invalidate::Node { .. } | Invalidate::Listing { .. } => {
                tell(&connection, &encode(what, false)).map(|()| None)
            }
        }
    }

    /// Waits until every call that reads this directory now has been answered and the kernel has taken the answer in: it holds the
    /// directory alone to forget a name there. This one nobody has; if somebody does, the kernel asks for it again.
    ///
    /// # Errors
    /// As [`Notifier::invalidate`].
    ///
    /// # Cost
    /// One system call, which may wait as that does.
    pub fn await_readers(&self, dir: TreeNodeId) -> io::Result<()> {
        let Some(connection) = self.connection.upgrade() else {
            return Ok(());
        };
        let what = Invalidate::Entry { parent: dir, name: NOBODYS_NAME.to_vec(), is_directory: false };
        tell(&connection, &encode(&what, false))
    }

    /// Has the kernel let go of a node that nobody uses, so that it gives back what it holds of it. These are all names that it knows
    /// the node by: a kernel that takes no numbers lets go of them one by one.
    ///
    /// # Errors
    /// As [`Notifier::invalidate`].
    ///
    /// # Cost
    /// One system call (Linux 6.18); else one a name, each of which may wait for calls under way in the directory, and come too late
    /// for who walks it.
    pub fn let_go(&self, node: TreeNodeId, names: Vec<(TreeNodeId, Vec<u8>)>) -> io::Result<()> {
        let Some(connection) = self.connection.upgrade() else {
            return Ok(());
        };
        if connection.beliefs().prunes() {
            return tell(&connection, &encode_prune(node));
        }
        for (parent, name) in names {
            tell(&connection, &encode(&Invalidate::Entry { parent, name, is_directory: false }, true))?;
        }
        Ok(())
    }

    /// Has the kernel believe no name of these directories that it was told before `since`, while calls are under way
    /// there for which [`Notifier::invalidate`] waits. Says how long that still takes.
    ///
    /// # Errors
    /// As [`Notifier::invalidate`].
    ///
    /// # Cost
    /// For a directory where it was not needed of late: all names of the mount, with what the kernel knows of those below and
    /// does not use; or 1 s, where the kernel cannot do that. In these directories each look asks from then on, until no name
    /// there was invalidated for a minute.
    pub fn distrust(&self, directories: &[TreeNodeId], since: Instant) -> io::Result<Duration> {
        let Some(connection) = self.connection.upgrade() else {
            return Ok(Duration::ZERO);
        };
        let Distrust { forgets_all, wait } = connection.beliefs().distrust(directories, since);
        if forgets_all {
            forget_names(&connection)?;
        }
        Ok(wait)
    }

    /// Has the kernel forget all names, absent ones too, without waiting for anything. Says whether it can.
    ///
    /// Entries of a listing that was answered and that a program is about to receive may count as told after it.
    ///
    /// # Errors
    /// As [`Notifier::invalidate`].
    ///
    /// # Cost
    /// One system call, however many names there are. When the kernel then comes upon a name, it drops all that it knows below
    /// that is not in use.
    pub fn forget_names(&self) -> io::Result<bool> {
        match self.connection.upgrade().filter(|connection| connection.beliefs().forgets_names()) {
            Some(connection) => forget_names(&connection).map(|()| true),
            None => Ok(false),
        }
    }
}

fn forget_names(connection: &Connection) -> io::Result<()> {
    tell(connection, &message(notify::FORGET_NAMES, |_| {}))
}

fn tell(connection: &Connection, message: &[u8]) -> io::Result<()> {
    use rustix::io::Errno;
    match connection.send_unasked(message) {
        Ok(())
        | Err(
            Errno::NOENT | Errno::INVAL | Errno::NODEV | Errno::CONNABORTED | Errno::NOTCONN | Errno::NOTDIR,
        ) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// `drops`: a name, with what is below; else it expires.
fn encode(what: &Invalidate, drops: bool) -> Vec<u8> {
    match what {
        // ino[8] off[8] len[8]
        Invalidate::Node { node, offset, length } => message(notify::INVALIDATE_INODE, |out| {
            put_u64(out, node.0);
            put_u64(out, offset.cast_unsigned());
            put_u64(out, length.cast_unsigned());
        }),
        // A directory's pages are the listing that the kernel keeps.
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

/// A message with no request to answer: call 0, and its code where an answer has its error.
fn message(code: i32, put: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = vec![0; abi::OUT_HEADER_BYTES];
    put(&mut out);
    put_header(&mut out, code, 0, 0);
    out
}
