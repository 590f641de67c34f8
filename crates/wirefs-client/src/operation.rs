//! The operations: one file each, with its call, its request and its reply.

pub(crate) mod access;
pub(crate) mod allocate;
pub(crate) mod as_opened;
pub(crate) mod attributes;
pub(crate) mod barrier;
pub(crate) mod coalesce;
pub(crate) mod commit;
pub(crate) mod confirm;
pub(crate) mod conflict_copies;
pub(crate) mod copy;
pub(crate) mod fetch;
pub(crate) mod find;
pub(crate) mod flush;
pub(crate) mod handles;
pub(crate) mod interrupt;
pub(crate) mod link;
pub(crate) mod list;
pub(crate) mod lock;
pub(crate) mod lookup;
pub(crate) mod make;
pub(crate) mod open;
pub(crate) mod publish;
pub(crate) mod puts;
pub(crate) mod read;
pub(crate) mod readlink;
pub(crate) mod refused;
pub(crate) mod release;
pub(crate) mod remove;
pub(crate) mod rename;
pub(crate) mod seek;
pub(crate) mod session;
pub(crate) mod stateless;
pub(crate) mod statfs;
mod synced;
pub(crate) mod unstable;
pub(crate) mod write;
pub(crate) mod xattr;

use crate::call::{Call, CallId, Caller, STATELESS};
use crate::core::Client;
use crate::pending::{ListingReader, LockWanted};

use wirefs_op::Errno;

/// Starts a call.
pub(crate) fn start(client: &mut Client, id: CallId, caller: Caller, call: Call<'_>) {
    for node in call.nodes().into_iter().flatten() {
        client.view.names.used(node);
        client.view.reactivate(node);
    }
    coalesce::before(&mut client.sender(), &call);
    if let Err(errno) = try_start(client, id, caller, call) {
        client.answerer().fail(id, errno);
    }
}

// tidy: long because it is the table of all calls.
fn try_start(client: &mut Client, id: CallId, caller: Caller, call: Call<'_>) -> Result<(), Errno> {
    match call {
        Call::Lookup { parent, name } => lookup::start(client, id, parent, name),
        Call::Forget { node, count } => {
            client.view.forget_lookups(&client.calls, node, count);
            Ok(())
        }
        Call::Getattr { node, handle } => attributes::get(client, id, node, handle),
        Call::Setattr { node, handle, set, kill_privileges } => {
            attributes::set(client, id, node, handle, set, kill_privileges)
        }
        Call::Readlink { node } => readlink::start(client, id, node),
        Call::Mknod { parent, name, mode, umask, rdev } => {
            make::node(&mut client.sender(), id, caller, parent, name, (mode, umask, rdev))
        }
        Call::Mkdir { parent, name, mode, umask } => {
            make::directory(&mut client.sender(), id, caller, parent, name, (mode, umask))
        }
        Call::Symlink { parent, name, target } => {
            make::symlink(&mut client.sender(), id, caller, parent, name, target)
        }
        Call::Create { parent, name, mode, umask, how } => {
            make::file(&mut client.sender(), id, caller, parent, name, (mode, umask), how)
        }
        Call::Tmpfile { parent, mode, umask, how } => {
            make::nameless(&mut client.sender(), id, caller, parent, (mode, umask), how)
        }
        Call::Unlink { parent, name } => remove::start(&mut client.sender(), id, parent, name, false),
        Call::Rmdir { parent, name } => remove::start(&mut client.sender(), id, parent, name, true),
        Call::Rename { parent, name, to_parent, to_name, flags } => {
            rename::start(&mut client.sender(), id, (parent, name), (to_parent, to_name), flags)
        }
        Call::Link { node, parent, name } => link::start(&mut client.sender(), id, node, parent, name),
        Call::Open { node, how } => open::start(client, id, caller, node, how),
        Call::Read { node, handle, offset, count } => read::start(client, id, node, handle, offset, count),
        Call::Write { node, handle, offset, data, cached, kill_privileges } => {
            write::start(client, id, node, handle, offset, data, (cached, kill_privileges))
        }
        Call::Flush { node, handle, owner } => flush::start(client, id, node, handle, owner),
        Call::Release { node, handle, flock_owner } => release::file(client, id, node, handle, flock_owner),
        Call::Fsync { node, handle, data_only } => commit::file(client, id, node, handle, data_only),
        Call::Opendir { node } => list::open(client, ListingReader::Opendir(id), node),
        Call::Readdir { node, handle, offset, bytes_max, entry_bytes, with_stats } => {
            let thread = caller.pid;
            let number = None;
            let wanted = crate::view::files::WaitingReaddir {
                call: id,
                offset,
                bytes_max,
                entry_bytes,
                with_stats,
                number,
                thread,
            };
            match handle {
                STATELESS => stateless::read(client, node, wanted),
                _ => list::read(client, node, handle, wanted),
            }
        }
        Call::Releasedir { node, handle } => release::directory(&mut client.answerer(), id, node, handle),
        Call::Fsyncdir { node, handle: _, data_only } => commit::directory(client, id, node, data_only),
        Call::Syncfs { node } => commit::filesystem(&mut client.sender(), id, node),
        Call::Statfs { node } => statfs::start(client, id, node),
        Call::Setxattr { node, name, value, flags, kill_sgid } => {
            xattr::set(&mut client.sender(), id, node, name, value, (flags, kill_sgid))
        }
        Call::Getxattr { node, name, size_max } => {
            xattr::read(&mut client.sender(), id, node, name, size_max)
        }
        Call::Listxattr { node, size_max } => xattr::list(client, id, node, size_max),
        Call::Removexattr { node, name } => xattr::remove(&mut client.sender(), id, node, name),
        Call::Access { node, mask } => access::start(&mut client.answerer(), id, caller, node, mask),
        Call::Getlk { node, handle, owner, family, range } => {
            lock::test(client, id, node, handle, LockWanted { owner, family, range });
            Ok(())
        }
        Call::Setlk { node, handle, owner, family, range, wait } => {
            lock::set(client, id, node, handle, LockWanted { owner, family, range }, wait);
            Ok(())
        }
        Call::Fallocate { node, handle, offset, length, mode } => {
            allocate::start(client, id, caller, (node, handle), (offset, length, mode))
        }
        Call::Lseek { node, handle, offset, whence } => seek::start(client, id, node, handle, offset, whence),
        Call::CopyRange { from, from_handle, from_offset, to, to_handle, to_offset, length } => copy::start(
            &mut client.sender(),
            id,
            caller,
            (from, from_handle, from_offset),
            (to, to_handle, to_offset),
            length,
        ),
        Call::Interrupt { call } => {
            interrupt::start(client, call);
            Ok(())
        }
    }
}
