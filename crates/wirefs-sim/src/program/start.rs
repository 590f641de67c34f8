//! The start of an operation: its kernel answers it, or calls the client.

use super::{Busy, Closing, Operation, Renaming};
use crate::program::own::Edit;
use crate::world::World;
use wirefs_client::call::{Call, CallId, Handle, OpenHow, STATELESS, TreeNodeId, WriteData};
use wirefs_op::{LockFamily, LockRange, SetStat};

/// The owner of all locks of a client.
const OWNER: u64 = 1;

const READ: OpenHow = OpenHow {
    read: true,
    write: false,
    append: false,
    truncate: false,
    exclusive: false,
    direct: false,
    sync: false,
};
const WRITE: OpenHow = OpenHow { write: true, ..READ };
const NEW: OpenHow = OpenHow { exclusive: true, ..WRITE };

impl World {
    /// Starts an operation of the first program while the others are idle.
    pub(crate) fn start_alone(&mut self, index: usize, operation: Operation) {
        self.start(index, 0, operation);
    }

    pub(super) fn start(&mut self, index: usize, thread: usize, operation: Operation) {
        self.note(|| format!("client {index}.{thread} {}", shown(&operation)));
        let began = self.now;
        let mut busy = Busy { operation, began, call: None };
        if self.is_answered_from_memory(index, &mut busy) {
            self.counts.kernel_hits += 1;
            return self.schedule_operation(index, thread);
        }
        self.proceed(index, thread, busy);
    }

    /// Makes the next call of an operation.
    pub(super) fn proceed(&mut self, index: usize, thread: usize, busy: Busy) {
        let operation = busy.operation.clone();
        if let Some(slot) = self.hosts.get_mut(index).and_then(|host| host.program.threads.get_mut(thread)) {
            *slot = Some(busy);
        }
        if let Some(host) = self.hosts.get_mut(index) {
            host.thread = thread as u32 + 1;
        }
        let id = self.ask(index, &operation);
        let slot = self.hosts.get_mut(index).and_then(|host| host.program.threads.get_mut(thread));
        if let Some(Some(busy)) = slot {
            busy.call = id;
        }
    }

    fn ask(&mut self, index: usize, operation: &Operation) -> Option<CallId> {
        Some(match operation {
            Operation::Look(place) => self.call(index, Call::Lookup { parent: place.node, name: place.name }),
            Operation::Stat(node) => self.call(index, Call::Getattr { node: *node, handle: None }),
            Operation::Names(renaming, places) => {
                let place = places.first()?;
                let (parent, name) = (place.node, place.name);
                let to = places.last()?;
                self.call(index, names_call(*renaming, (parent, name), (to.node, to.name)))
            }
            Operation::Open(node, writes) => {
                self.call(index, Call::Open { node: *node, how: if *writes { WRITE } else { READ } })
            }
            Operation::Read { node, has_attributes: false, .. } => {
                self.call(index, Call::Getattr { node: *node, handle: None })
            }
            Operation::Read { node, handle, offset, count, .. } => {
                let (node, handle, offset, count) = (*node, *handle, *offset, *count);
                self.call(index, Call::Read { node, handle, offset, count })
            }
            Operation::Write { node, handle, own } => self.ask_edit(index, *node, Some(*handle), *own)?,
            Operation::Set { node, own } => self.ask_edit(index, *node, None, *own)?,
            Operation::Close(node, handle, closing) => {
                // No program can use the file any more.
                if *closing == Closing::Release {
                    self.hosts.get_mut(index)?.program.handles.retain(|open| open.handle != *handle);
                }
                self.call(index, close_call(*node, *handle, *closing))
            }
            Operation::Lock(node, handle, kind) => {
                let range = LockRange { kind: *kind, start: 0, end: u64::MAX, pid: 0 };
                let (node, handle, family) = (*node, *handle, LockFamily::Posix);
                self.call(index, Call::Setlk { node, handle, owner: OWNER, family, range, wait: true })
            }
            Operation::List { node, handle: None, .. } => self.call(index, Call::Opendir { node: *node }),
            Operation::List { node, handle: Some(handle), offset, .. } => {
                let (node, handle, offset) = (*node, *handle, *offset);
                // An entry takes 160 bytes: some programs have room for few.
                let bytes_max =
                    if handle == STATELESS { self.dice.one_of(&[4096, 4096, 400, 200]) } else { 4096 };
                let call =
                    Call::Readdir { node, handle, offset, bytes_max, entry_bytes: 152, with_stats: true };
                self.call(index, call)
            }
            Operation::CloseList(node, handle) => {
                self.call(index, Call::Releasedir { node: *node, handle: *handle })
            }
        })
    }

    fn ask_edit(
        &mut self,
        index: usize,
        node: TreeNodeId,
        handle: Option<Handle>,
        own: usize,
    ) -> Option<CallId> {
        let edit = self.hosts.get(index)?.program.own.get(own)?.edit.clone();
        let set = |set| Call::Setattr { node, handle, set, kill_privileges: false };
        Some(match (&edit, handle) {
            (Edit::Write { offset, data }, Some(handle)) => {
                let (offset, data) = (*offset, WriteData::Lent(data));
                self.call(
                    index,
                    Call::Write { node, handle, offset, data, cached: false, kill_privileges: false },
                )
            }
            (Edit::Write { .. }, None) => return None,
            (Edit::Size(size), _) => {
                self.call(index, set(SetStat { size: Some(*size), ..SetStat::default() }))
            }
            (Edit::Mode(mode), _) => {
                self.call(index, set(SetStat { mode: Some(*mode), ..SetStat::default() }))
            }
        })
    }
}

fn names_call<'a>(renaming: Renaming, place: (TreeNodeId, &'a [u8]), to: (TreeNodeId, &'a [u8])) -> Call<'a> {
    let (parent, name) = place;
    match renaming {
        Renaming::Create => Call::Create { parent, name, mode: 0o644, umask: 0, how: NEW },
        Renaming::Mkdir => Call::Mkdir { parent, name, mode: 0o755, umask: 0 },
        Renaming::Symlink => Call::Symlink { parent, name, target: b"somewhere" },
        Renaming::Link(node) => Call::Link { node, parent, name },
        Renaming::Unlink => Call::Unlink { parent, name },
        Renaming::Rmdir => Call::Rmdir { parent, name },
        Renaming::Rename(flags) => Call::Rename { parent, name, to_parent: to.0, to_name: to.1, flags },
    }
}

pub(super) fn close_call(node: TreeNodeId, handle: Handle, closing: Closing) -> Call<'static> {
    match closing {
        Closing::Fsync => Call::Fsync { node, handle, data_only: false },
        Closing::Flush => Call::Flush { node, handle, owner: OWNER },
        Closing::Release => Call::Release { node, handle, flock_owner: None },
    }
}

/// Describes an operation.
pub(super) fn shown(operation: &Operation) -> String {
    let name = |place: &super::Place| format!("{}/{}", place.dir.ino, String::from_utf8_lossy(place.name));
    match operation {
        Operation::Look(place) => format!("looks up {}", name(place)),
        Operation::Names(renaming, places) => {
            format!("{renaming:?} {}", places.iter().map(name).collect::<Vec<_>>().join(" to "))
        }
        other => format!("{other:?}"),
    }
}
