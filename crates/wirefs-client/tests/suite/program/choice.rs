//! The next step of a program.

use crate::check::OwnChange;
use crate::deeds::{READ, READ_WRITE, create, getattr, write};
use crate::program::{Busy, Deed, NAMES, OpenFile, Play};
use wirefs_client::call::{Call, Handle, TreeNodeId};
use wirefs_op::{FileId, Kind, SetStat};

impl Play {
    pub(super) fn begin(&mut self, seat: usize, thread: usize) {
        let dice = &mut self.world.dice;
        let what = dice.below(24);
        let which = dice.below(self.dirs.len() as u64) as usize;
        let (dir, parent) = (self.dirs[which].0, self.dirs[which].1[seat]);
        let name = dice.one_of(&NAMES);
        match what {
            0..3 => self.start(
                seat,
                thread,
                Deed::Lookup { dir, name: name.to_vec() },
                parent,
                Call::Lookup { parent, name },
            ),
            3..9 => self.change_names(seat, thread, what, (dir, parent), name),
            9 => self.start(
                seat,
                thread,
                Deed::Opendir { dir, node: parent },
                parent,
                Call::Opendir { node: parent },
            ),
            _ => self.use_file(seat, thread, what),
        }
    }

    fn change_names(
        &mut self,
        seat: usize,
        thread: usize,
        what: u64,
        (dir, parent): (FileId, TreeNodeId),
        name: &'static [u8],
    ) {
        if self.kernels[seat].names_busy {
            return;
        }
        let one = vec![(dir, name.to_vec())];
        let other = self.world.dice.below(self.dirs.len() as u64) as usize;
        let (to_dir, to_parent) = (self.dirs[other].0, self.dirs[other].1[seat]);
        let to_name = self.world.dice.one_of(&NAMES);
        let two = vec![(dir, name.to_vec()), (to_dir, to_name.to_vec())];
        let some = self.some_file(seat);
        let (what, concerned, opens, call) = match what {
            3..6 => ("create", one, true, create(parent, name)),
            6 => ("unlink", one, false, Call::Unlink { parent, name }),
            7 => {
                let flags = self.world.dice.one_of(&[0, 0, 0, 1, 2]);
                ("rename", two, false, Call::Rename { parent, name, to_parent, to_name, flags })
            }
            _ => match some {
                Some(node) if self.world.dice.chance(1, 2) => {
                    ("link", one, false, Call::Link { node, parent, name })
                }
                _ => ("symlink", one, false, Call::Symlink { parent, name, target: b"somewhere" }),
            },
        };
        self.kernels[seat].names_busy = true;
        self.start(seat, thread, Deed::Names { what, concerned, opens }, parent, call);
    }

    fn some_file(&mut self, seat: usize) -> Option<TreeNodeId> {
        let known: Vec<TreeNodeId> = self.kernels[seat]
            .files
            .keys()
            .filter(|node| !self.dirs.iter().any(|(_, nodes)| nodes[seat] == **node))
            .copied()
            .collect();
        let at = self.world.dice.below(known.len() as u64) as usize;
        known.get(at).copied()
    }

    fn use_file(&mut self, seat: usize, thread: usize, what: u64) {
        let Some(node) = self.some_file(seat) else { return };
        let id = self.kernels[seat].files[&node];
        let is_file = self.world.history.0.iter().rev().find_map(|(_, state)| state.objects.get(&id));
        let is_file = is_file.is_some_and(|object| object.stat.kind == Kind::File);
        let at = self.world.dice.below(self.kernels[seat].handles.len().max(1) as u64) as usize;
        let open = self.kernels[seat].handles.get(at).copied();
        match (what, open) {
            (10..12, _) if is_file => {
                let write = self.world.dice.chance(1, 2);
                let how = if write { READ_WRITE } else { READ };
                self.start(seat, thread, Deed::Open { node, write }, node, Call::Open { node, how });
            }
            (12..16, Some(OpenFile { node, handle, .. })) => {
                let offset = self.world.dice.one_of(&[0, 0, 0, 100, 5000, 65536]);
                let count = self.world.dice.one_of(&[300_000, 4096, 10, 70_000]);
                let deed = Deed::Read { node, handle, offset, count };
                self.start(seat, thread, deed, node, Call::Read { node, handle, offset, count });
            }
            (16..20, Some(OpenFile { node, handle, writes: true, .. })) => {
                self.write(seat, thread, node, handle)
            }
            (20, _) if is_file => self.set(seat, thread, node),
            (21, Some(OpenFile { node, handle, .. })) => self.close(seat, thread, at, node, handle),
            (22, _) => self.forget(seat, node),
            _ => self.start(seat, thread, Deed::Getattr { node }, node, getattr(node)),
        }
    }

    fn write(&mut self, seat: usize, thread: usize, node: TreeNodeId, handle: Handle) {
        if !self.kernels[seat].writing.insert(node) {
            return;
        }
        self.next_byte = self.next_byte % 250 + 1;
        let offset = self.world.dice.one_of(&[0, 0, 0, 7, 4096, 65536]);
        let len = self.world.dice.one_of(&[2000, 2000, 1, 100_000, 5000]);
        let data = vec![self.next_byte; len];
        let file = self.kernels[seat].files[&node];
        let own = OwnChange::Write { offset, data: data.clone() };
        let change = self.kernels[seat].own.begin(file, own, self.world.now);
        self.start(
            seat,
            thread,
            Deed::Write { node, handle, change },
            node,
            write(node, handle, offset, &data),
        );
    }

    fn set(&mut self, seat: usize, thread: usize, node: TreeNodeId) {
        if !self.kernels[seat].writing.insert(node) {
            return;
        }
        let file = self.kernels[seat].files[&node];
        let (set, own) = if self.world.dice.chance(1, 2) {
            let size = self.world.dice.one_of(&[0, 10, 3000, 70_000]);
            (SetStat { size: Some(size), ..SetStat::default() }, OwnChange::Size(size))
        } else {
            let mode = 0o400 + self.world.dice.below(0o300) as u32;
            (SetStat { mode: Some(mode), ..SetStat::default() }, OwnChange::Mode(mode))
        };
        let change = self.kernels[seat].own.begin(file, own, self.world.now);
        let call = Call::Setattr { node, handle: None, set, kill_privileges: false };
        self.start(seat, thread, Deed::Set { node, change }, node, call);
    }

    fn close(&mut self, seat: usize, thread: usize, at: usize, node: TreeNodeId, handle: Handle) {
        match self.world.dice.below(3) {
            0 => {
                let call = Call::Fsync { node, handle, data_only: false };
                self.start(seat, thread, Deed::Close { node, handle, what: "fsync" }, node, call);
            }
            1 => {
                let call = Call::Flush { node, handle, owner: 1 };
                self.start(seat, thread, Deed::Close { node, handle, what: "flush" }, node, call);
            }
            _ if self.kernels[seat].uses.get(&node).is_none_or(|uses| *uses == 0) => {
                self.kernels[seat].handles.remove(at);
                let call = Call::Release { node, handle, flock_owner: None };
                self.start(seat, thread, Deed::Close { node, handle, what: "release" }, node, call);
            }
            _ => {}
        }
    }

    fn forget(&mut self, seat: usize, node: TreeNodeId) {
        let kernel = &mut self.kernels[seat];
        let used = kernel.uses.get(&node).is_some_and(|uses| *uses > 0)
            || kernel.handles.iter().any(|open| open.node == node);
        if used {
            return;
        }
        kernel.files.remove(&node);
        if let Some(count) = kernel.lookups.remove(&node) {
            self.world.call(seat, Call::Forget { node, count });
        }
    }

    pub(super) fn start(&mut self, seat: usize, thread: usize, deed: Deed, node: TreeNodeId, call: Call<'_>) {
        let at = self.world.now;
        let kernel = &mut self.kernels[seat];
        *kernel.uses.entry(node).or_default() += 1;
        let answered_before = kernel.own.answered();
        let floors = kernel.floors.clone();
        let shown = match &call {
            Call::Write { offset, data, .. } => {
                format!("Write {{ {offset}, {} of {:?} }}", data.len(), data.first())
            }
            other => format!("{other:?}"),
        };
        let id = self.world.call(seat, call);
        self.world.log.push(format!("{} seat {seat} {id:?} {shown}", at.0 / 1000));
        self.kernels[seat].threads[thread] = Some(Busy { call: id, at, deed, answered_before, floors });
    }
}
