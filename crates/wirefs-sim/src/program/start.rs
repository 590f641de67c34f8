//! A program does something: its kernel answers it at once, or asks the client.

use super::{Busy, Closing, Deed, Renaming};
use crate::program::own::Edit;
use crate::world::World;
use wirefs_client::call::{Call, CallId, Handle, OpenHow, TreeNodeId, UNOPENED, WriteData};
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
    /// The first program does something, while the others do nothing.
    pub(crate) fn start_alone(&mut self, index: usize, deed: Deed) {
        self.start(index, 0, deed);
    }

    pub(super) fn start(&mut self, index: usize, thread: usize, deed: Deed) {
        self.note(|| format!("client {index}.{thread} {}", shown(&deed)));
        let began = self.now;
        let mut busy = Busy { deed, began, call: None };
        if self.is_answered_from_memory(index, &mut busy) {
            self.record.kernel_hits += 1;
            return self.thinks(index, thread);
        }
        self.proceed(index, thread, busy);
    }

    /// Makes the next call of a deed.
    pub(super) fn proceed(&mut self, index: usize, thread: usize, busy: Busy) {
        let deed = busy.deed.clone();
        if let Some(slot) = self.seats.get_mut(index).and_then(|seat| seat.program.threads.get_mut(thread)) {
            *slot = Some(busy);
        }
        if let Some(seat) = self.seats.get_mut(index) {
            seat.thread = thread as u32 + 1;
        }
        let id = self.ask(index, &deed);
        let slot = self.seats.get_mut(index).and_then(|seat| seat.program.threads.get_mut(thread));
        if let Some(Some(busy)) = slot {
            busy.call = id;
        }
    }

    fn ask(&mut self, index: usize, deed: &Deed) -> Option<CallId> {
        Some(match deed {
            Deed::Look(place) => self.call(index, Call::Lookup { parent: place.node, name: place.name }),
            Deed::Stat(node) => self.call(index, Call::Getattr { node: *node, handle: None }),
            Deed::Names(renaming, places) => {
                let place = places.first()?;
                let (parent, name) = (place.node, place.name);
                let to = places.last()?;
                self.call(index, names_call(*renaming, (parent, name), (to.node, to.name)))
            }
            Deed::Open(node, writes) => {
                self.call(index, Call::Open { node: *node, how: if *writes { WRITE } else { READ } })
            }
            Deed::Read { node, has_attributes: false, .. } => {
                self.call(index, Call::Getattr { node: *node, handle: None })
            }
            Deed::Read { node, handle, offset, count, .. } => {
                let (node, handle, offset, count) = (*node, *handle, *offset, *count);
                self.call(index, Call::Read { node, handle, offset, count })
            }
            Deed::Write { node, handle, own } => self.ask_edit(index, *node, Some(*handle), *own)?,
            Deed::Set { node, own } => self.ask_edit(index, *node, None, *own)?,
            Deed::Close(node, handle, closing) => {
                // Nobody can use it any more.
                if *closing == Closing::Release {
                    self.seats.get_mut(index)?.program.handles.retain(|open| open.handle != *handle);
                }
                self.call(index, close_call(*node, *handle, *closing))
            }
            Deed::Lock(node, handle, kind) => {
                let range = LockRange { kind: *kind, start: 0, end: u64::MAX, pid: 0 };
                let (node, handle, family) = (*node, *handle, LockFamily::Posix);
                self.call(index, Call::Setlk { node, handle, owner: OWNER, family, range, wait: true })
            }
            Deed::List { node, handle: None, .. } => self.call(index, Call::Opendir { node: *node }),
            Deed::List { node, handle: Some(handle), offset, .. } => {
                let (node, handle, offset) = (*node, *handle, *offset);
                // An entry takes 160: some programs have room for few.
                let bytes_max =
                    if handle == UNOPENED { self.dice.one_of(&[4096, 4096, 400, 200]) } else { 4096 };
                let call =
                    Call::Readdir { node, handle, offset, bytes_max, entry_bytes: 152, with_stats: true };
                self.call(index, call)
            }
            Deed::CloseList(node, handle) => {
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
        let edit = self.seats.get(index)?.program.own.get(own)?.edit.clone();
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

/// A deed, in words.
pub(super) fn shown(deed: &Deed) -> String {
    let name = |place: &super::Place| format!("{}/{}", place.dir.ino, String::from_utf8_lossy(place.name));
    match deed {
        Deed::Look(place) => format!("looks up {}", name(place)),
        Deed::Names(renaming, places) => {
            format!("{renaming:?} {}", places.iter().map(name).collect::<Vec<_>>().join(" to "))
        }
        other => format!("{other:?}"),
    }
}
