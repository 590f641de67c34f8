//! Telling the kernel what to forget.

#[cfg(test)]
mod tests;

use crate::abi::{self, notify};
use crate::answer::{put_header, put_u32, put_u64};
use crate::device::Connection;
use std::io;
use std::sync::Weak;
use wirefs_client::call::Invalidate;

/// Tells the kernel what to forget. It does not keep the mount alive.
#[derive(Clone, Debug)]
pub struct Notifier {
    connection: Weak<Connection>,
}

impl Notifier {
    pub(crate) fn new(connection: Weak<Connection>) -> Notifier {
        Notifier { connection }
    }

    /// Has the kernel forget. That it never knew, or that the mount is gone, is no error.
    ///
    /// It may wait for calls that are under way: for a name until those that hold its directory are answered, for pages
    /// until reads and writes of them are. So it must come from a thread that no answer waits for: neither from within
    /// [`FileSystem::call`](crate::FileSystem::call) nor from the thread that receives the server's replies.
    ///
    /// # Errors
    /// Those of writing to the device, but for "no such node or name" and "unmounted".
    ///
    /// # Cost
    /// One system call.
    pub fn invalidate(&self, what: &Invalidate) -> io::Result<()> {
        use rustix::io::Errno;
        let Some(connection) = self.connection.upgrade() else {
            return Ok(());
        };
        match connection.send_unasked(&encode(what)) {
            Ok(())
            | Err(
                Errno::NOENT
                | Errno::INVAL
                | Errno::NODEV
                | Errno::CONNABORTED
                | Errno::NOTCONN
                | Errno::NOTDIR,
            ) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// A message with no request to answer: call 0, and its code where an answer has its error.
fn encode(what: &Invalidate) -> Vec<u8> {
    let mut out = vec![0; abi::OUT_HEADER_BYTES];
    let code = match what {
        // ino[8] off[8] len[8]
        Invalidate::Node { node, offset, length } => {
            put_u64(&mut out, node.0);
            put_u64(&mut out, offset.cast_unsigned());
            put_u64(&mut out, length.cast_unsigned());
            notify::INVALIDATE_INODE
        }
        // parent[8] namelen[4] flags[4] name NUL
        Invalidate::Entry { parent, name } => {
            put_u64(&mut out, parent.0);
            put_u32(&mut out, u32::try_from(name.len()).unwrap_or(u32::MAX));
            put_u32(&mut out, 0);
            out.extend_from_slice(name);
            out.push(0);
            notify::INVALIDATE_ENTRY
        }
    };
    put_header(&mut out, code, 0, 0);
    out
}
