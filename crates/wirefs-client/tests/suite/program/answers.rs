//! The effect of answers.

use crate::check::runs;
use crate::deeds::readdir;
use crate::program::{Busy, Deed, OpenFile, Play, entry_of};
use wirefs_client::call::{Answer, Entry, TreeNodeId};
use wirefs_op::message::put::PutMode;
use wirefs_op::{FileId, Request};

impl Play {
    /// Takes in what was answered.
    pub(super) fn harvest(&mut self) {
        loop {
            let ready = self.kernels.iter().enumerate().find_map(|(seat, kernel)| {
                let done = |busy: &Busy| self.world.seats[seat].answers.contains_key(&busy.call);
                let thread = kernel.threads.iter().position(|busy| busy.as_ref().is_some_and(done))?;
                Some((seat, thread))
            });
            let Some((seat, thread)) = ready else { return };
            let Some(busy) = self.kernels[seat].threads[thread].take() else { return };
            let Some((answered, answer)) = self.world.seats[seat].answers.remove(&busy.call) else { return };
            let shown = match &answer {
                Answer::Data(data) => format!("Data({:?})", runs(data)),
                other => format!("{other:?}").chars().take(400).collect(),
            };
            self.world.log.push(format!("{} seat {seat} {:?} = {shown}", answered.0 / 1000, busy.call));
            self.answered(seat, thread, busy, answer);
        }
    }

    fn answered(&mut self, seat: usize, thread: usize, busy: Busy, answer: Answer) {
        let node = self.node_of(seat, &busy.deed);
        if let Some(uses) = self.kernels[seat].uses.get_mut(&node) {
            *uses -= 1;
        }
        self.floor(seat, &busy, &answer);
        self.check(seat, &busy, &answer);
        if let Some(entry) = entry_of(&answer) {
            self.count(seat, entry);
        }
        match (busy.deed, answer) {
            (Deed::Open { node, write }, Answer::Opened(handle, _)) => {
                self.kernels[seat].handles.push(OpenFile { node, handle, writes: write, asked: busy.at });
            }
            (Deed::Names { opens: true, .. }, Answer::Created(entry, handle, _)) => {
                let made = OpenFile { node: entry.node, handle, writes: true, asked: busy.at };
                self.kernels[seat].handles.push(made);
            }
            (Deed::Write { node, .. }, _) | (Deed::Set { node, .. }, _) => {
                self.kernels[seat].writing.remove(&node);
            }
            (Deed::Opendir { dir, node }, Answer::Opened(handle, _)) => {
                let floor = 0;
                let deed = Deed::Readdir { dir, node, handle, opened: busy.at, floor };
                self.start(seat, thread, deed, node, readdir(node, handle, 0));
                if let Some(busy_again) = &mut self.kernels[seat].threads[thread] {
                    busy_again.floors = busy.floors;
                }
            }
            (Deed::Readdir { node, handle, .. }, answer) => {
                if let Answer::Listing(entries) = answer {
                    for entry in entries.iter().filter_map(|listed| listed.entry.as_ref()) {
                        self.count(seat, entry);
                    }
                }
                self.kernels[seat].directories.push((node, handle));
            }
            _ => {}
        }
        self.kernels[seat].names_busy =
            self.kernels[seat].threads.iter().flatten().any(|busy| matches!(busy.deed, Deed::Names { .. }));
    }

    fn node_of(&self, seat: usize, deed: &Deed) -> TreeNodeId {
        match deed {
            Deed::Lookup { dir, .. } => self.dir_node(seat, *dir),
            Deed::Names { concerned, .. } => self.dir_node(seat, concerned[0].0),
            Deed::Open { node, .. }
            | Deed::Read { node, .. }
            | Deed::Write { node, .. }
            | Deed::Set { node, .. }
            | Deed::Getattr { node }
            | Deed::Opendir { node, .. }
            | Deed::Readdir { node, .. }
            | Deed::Close { node, .. } => *node,
        }
    }

    fn dir_node(&self, seat: usize, dir: FileId) -> TreeNodeId {
        self.dirs.iter().find(|(id, _)| *id == dir).unwrap().1[seat]
    }

    pub(super) fn count(&mut self, seat: usize, entry: &Entry) {
        let kernel = &mut self.kernels[seat];
        kernel.files.insert(entry.node, entry.stat.id);
        *kernel.lookups.entry(entry.node).or_default() += 1;
    }

    /// Which state an own change of names led to.
    fn floor(&mut self, seat: usize, busy: &Busy, answer: &Answer) {
        if let Deed::Write { change, .. } | Deed::Set { change, .. } = &busy.deed {
            let failed = matches!(answer, Answer::Fail(_));
            self.kernels[seat].own.answer(*change, failed);
        }
        let Deed::Names { concerned, .. } = &busy.deed else { return };
        if matches!(answer, Answer::Fail(_)) {
            return;
        }
        let last = self.world.applied.iter().rev().find(|applied| {
            let named = match &applied.request {
                Request::Put(put) => put.mode.has(PutMode::CREATE),
                other => matches!(other.name(), "Remove" | "Rename" | "Link"),
            };
            applied.seat == seat && named
        });
        if let Some(state) = last.map(|applied| applied.state) {
            for name in concerned {
                self.kernels[seat].floors.insert(name.clone(), state);
            }
        }
    }
}
