//! The choice of a program's next operation.

use super::{Closing, NAMES, Open, Operation, Place, Renaming, THREADS};
use crate::program::own::{Edit, OwnChange};
use crate::world::{Event, World};
use bytes::Bytes;
use wirefs_client::call::{Call, ROOT, STATELESS, TreeNodeId};
use wirefs_op::{FileId, Kind, LockKind};

/// Weights where programs lock files: look up, open, read, write, lock.
const LOCKING: [u64; 8] = [0, 15, 18, 18, 21, 21, 27, 27];

impl World {
    /// Starts the programs of a client.
    pub(crate) fn begin_programs(&mut self, index: usize) {
        let Some(life) = self.hosts.get(index).map(|host| host.life) else { return };
        let threads = if self.ahead.is_some() { 1 } else { THREADS };
        for thread in 0..threads {
            let delay = self.delay(self.plan.think);
            self.after(delay, Event::Think(index, life, thread));
        }
    }

    /// Schedules the next operation of a program.
    pub(crate) fn schedule_operation(&mut self, index: usize, thread: usize) {
        let Some(life) = self.hosts.get(index).map(|host| host.life) else { return };
        let mut delay = self.delay(self.plan.think);
        // Now and then a program is idle for long, so that leases must be renewed.
        if self.dice.chance(1, 40) {
            delay = self.delay((1_000_000, 12_000_000));
        }
        self.after(delay, Event::Think(index, life, thread));
    }

    /// Starts the next operation of a program.
    pub(crate) fn think(&mut self, index: usize, life: u64, thread: usize) {
        if self.ahead.is_some() {
            return self.ahead_thinks(life);
        }
        if self.rivals.is_some() {
            return self.rival_thinks(index, life, thread);
        }
        let Some(host) = self.hosts.get(index) else { return };
        let is_free = host.program.threads.get(thread).is_some_and(Option::is_none);
        if host.life != life || host.client.is_none() || !is_free || self.is_resting() {
            return;
        }
        self.operations_left -= 1;
        self.counts.operations += 1;
        match self.choose(index) {
            Some(operation) => self.start(index, thread, operation),
            None => self.schedule_operation(index, thread),
        }
    }

    fn choose(&mut self, index: usize) -> Option<Operation> {
        let what = if self.plan.locks { self.dice.one_of(&LOCKING) } else { self.dice.below(28) };
        let node = self.some_directory_of(index)?;
        let name = self.dice.one_of(&NAMES);
        let place = self.hosts.get(index)?.program.place(node, name)?;
        match what {
            _ if self.plan.lists && self.dice.chance(3, 5) => Some(self.list(index, node, place.dir)),
            0..6 => Some(Operation::Look(place)),
            6..13 => self.choose_names(index, place),
            13 => Some(self.list(index, node, place.dir)),
            14 => Some(Operation::Stat(node)),
            _ => self.choose_file(index, what),
        }
    }

    /// Lists a directory, which is opened first if the kernel does so.
    pub(crate) fn list(&self, index: usize, node: TreeNodeId, dir: FileId) -> Operation {
        let keeps_listings = self.hosts.get(index).is_some_and(|host| host.keeps_listings());
        let handle = (self.plan.spares_opendir && keeps_listings).then_some(STATELESS);
        Operation::List { node, dir, handle, offset: 0, listed: Vec::new() }
    }

    fn some_directory_of(&mut self, index: usize) -> Option<TreeNodeId> {
        if self.dice.chance(2, 5) {
            return Some(ROOT);
        }
        let nodes = &self.hosts.get(index)?.program.nodes;
        let known: Vec<TreeNodeId> =
            nodes.iter().filter(|(_, (_, kind))| *kind == Kind::Directory).map(|(node, _)| *node).collect();
        let at = self.dice.below(known.len() as u64) as usize;
        known.get(at).copied()
    }

    fn choose_names(&mut self, index: usize, place: Place) -> Option<Operation> {
        if self.hosts.get(index)?.program.is_renaming() {
            return None;
        }
        let one = |renaming| Some(Operation::Names(renaming, vec![place.clone()]));
        match self.dice.below(14) {
            0..5 => one(Renaming::Create),
            5 => one(Renaming::Mkdir),
            6 => one(Renaming::Symlink),
            7 => one(Renaming::Link(self.some_file_of(index)?)),
            8..10 => one(Renaming::Unlink),
            10 => one(Renaming::Rmdir),
            _ => {
                let other = self.some_directory_of(index)?;
                let name = self.dice.one_of(&NAMES);
                let to = self.hosts.get(index)?.program.place(other, name)?;
                let flags = self.dice.one_of(&[0, 0, 0, 1, 2]);
                Some(Operation::Names(Renaming::Rename(flags), vec![place, to]))
            }
        }
    }

    fn some_file_of(&mut self, index: usize) -> Option<TreeNodeId> {
        let files: Vec<TreeNodeId> = self.hosts.get(index)?.program.files().into_iter().collect();
        let at = self.dice.below(files.len() as u64) as usize;
        files.get(at).copied()
    }

    fn choose_file(&mut self, index: usize, what: u64) -> Option<Operation> {
        let node = self.some_file_of(index)?;
        let opened = self.hosts.get(index)?.program.handles.len() as u64;
        let at = self.dice.below(opened) as usize;
        let open = self.hosts.get(index)?.program.handles.get(at).copied();
        match (what, open) {
            (15..18, _) => Some(Operation::Open(node, self.dice.chance(2, 3))),
            (18..21, Some(Open { node, handle, .. })) => {
                // A kernel may return a mix of old and new data during a write.
                if self.hosts.get(index)?.program.is_writing(node) {
                    return None;
                }
                let offset = self.dice.one_of(&[0, 0, 0, 100, 5000]);
                let count = self.dice.one_of(&[300_000, 4096, 10]);
                Some(Operation::Read { node, handle, offset, count, has_attributes: false })
            }
            (21..24, Some(Open { node, handle, writes: true })) => {
                let offset = self.dice.one_of(&[0, 0, 0, 7, 100, 4096]);
                let len = self.dice.one_of(&[40, 40, 2000, 1, 5000, 20_000]);
                let data = self.contents(index, len).to_vec();
                let own = self.edit(index, node, Edit::Write { offset, data })?;
                Some(Operation::Write { node, handle, own })
            }
            (24, _) => {
                let edit = if self.dice.chance(1, 2) {
                    Edit::Size(self.dice.one_of(&[0, 10, 3000, 9000]))
                } else {
                    Edit::Mode(0o400 + self.dice.below(0o300) as u32)
                };
                let own = self.edit(index, node, edit)?;
                Some(Operation::Set { node, own })
            }
            (25, Some(Open { node, handle, .. })) => {
                let closing = self.dice.one_of(&[0, 1, 2, 2]);
                let closing = [Closing::Fsync, Closing::Flush, Closing::Release].get(closing)?;
                let is_shared =
                    self.hosts.get(index)?.program.busy().any(|busy| busy.operation.nodes().contains(&node));
                (*closing != Closing::Release || !is_shared)
                    .then_some(Operation::Close(node, handle, *closing))
            }
            (26, _) => {
                self.forget(index, node);
                None
            }
            (27, Some(Open { node, handle, writes: true })) => {
                let kind = if self.dice.chance(2, 3) { LockKind::Write } else { LockKind::Unlock };
                Some(Operation::Lock(node, handle, kind))
            }
            _ => Some(Operation::Stat(node)),
        }
    }

    /// Records the beginning of an own change, unless another one of this client changes the file.
    fn edit(&mut self, index: usize, node: TreeNodeId, edit: Edit) -> Option<usize> {
        let began = self.now;
        let program = &mut self.hosts.get_mut(index)?.program;
        let (file, _) = *program.nodes.get(&node)?;
        if program.is_writing(node) || program.is_reading(node) {
            return None;
        }
        program.own.push(OwnChange {
            file,
            edit,
            began,
            done: None,
            failed: false,
            may_be_lost: false,
            applied: None,
        });
        Some(program.own.len() - 1)
    }

    /// Returns bytes that were never written before.
    pub(crate) fn contents(&mut self, by: usize, len: usize) -> Bytes {
        self.written += 1;
        let mark = [self.written as u8, (self.written >> 8) as u8 ^ by as u8, 0xa0 | by as u8 & 15];
        mark.into_iter().cycle().take(len).collect()
    }

    /// Lets the kernel forget a node.
    fn forget(&mut self, index: usize, node: TreeNodeId) {
        let Some(host) = self.hosts.get_mut(index) else { return };
        if host.program.uses(node) {
            return;
        }
        host.program.nodes.remove(&node);
        if let Some(count) = host.program.lookups.remove(&node) {
            self.call(index, Call::Forget { node, count });
        }
    }

    /// Lets the kernel forget all nodes.
    pub(crate) fn forget_all(&mut self, index: usize) {
        let Some(host) = self.hosts.get_mut(index) else { return };
        for (node, count) in std::mem::take(&mut host.program.lookups) {
            self.call(index, Call::Forget { node, count });
        }
    }
}
