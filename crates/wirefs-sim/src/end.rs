//! The end of a run: all is well again, all clients see the same tree, and nothing is left.

use crate::program::{Closing, Deed, NAMES, Place};
use crate::world::World;
use std::time::Duration;
use wirefs_client::Fate;
use wirefs_client::call::{ROOT, TreeNodeId};
use wirefs_op::{FileId, Kind};
use wirefs_server::limits::GRACE;

/// Until then everything that was under way is done once nothing goes wrong any more.
const SETTLED_WITHIN: Duration = Duration::from_secs(200);
/// Directories within each other, at most.
const DEPTH_MAX: usize = 12;

impl World {
    pub(crate) fn end(&mut self) {
        self.heal();
        self.settle();
        let spans = self.plan.outside_is_told().max(self.plan.lost_is_told());
        self.pass(spans + Duration::from_secs(2));
        self.settle();
        self.note(|| "all clients look at everything".into());
        for index in 0..self.seats.len() {
            let root = self.truth.root();
            self.see_directory(index, ROOT, root, 0);
        }
        for index in 0..self.seats.len() {
            self.give_back(index);
        }
        self.settle();
        self.pass(GRACE + Duration::from_secs(5));
        self.settle();
        self.check_left();
    }

    fn is_settled(&self) -> bool {
        let is_idle = |seat: &crate::seat::Seat| {
            !seat.is_down && seat.is_settled() && seat.program.busy().next().is_none()
        };
        self.server.is_idle() && self.seats.iter().all(is_idle)
    }

    /// Waits until nothing is under way.
    fn settle(&mut self) {
        let until = self.now + SETTLED_WITHIN;
        while !self.is_settled() && self.step() {
            if self.now > until {
                let seats: Vec<String> = self.seats.iter().map(|seat| seat.shown()).collect();
                let jobs = self.server.sessions.jobs();
                self.fail(format!(
                    "what is under way never ends: {jobs} jobs at the server, clients {seats:?}"
                ));
            }
        }
    }

    /// One program of a client does one thing to its end.
    fn see(&mut self, index: usize, deed: Deed) {
        self.start_alone(index, deed);
        while self.seats.get(index).is_some_and(|seat| seat.program.busy().next().is_some()) && self.step() {}
    }

    fn see_directory(&mut self, index: usize, node: TreeNodeId, dir: FileId, depth: usize) {
        if depth > DEPTH_MAX || self.has_failed() {
            return;
        }
        self.see(index, self.list(index, node, dir));
        for name in NAMES {
            self.see(index, Deed::Look(Place { node, dir, name }));
            let found = self.seats.get(index).and_then(|seat| {
                let node = seat.program.found?;
                Some((node, *seat.program.nodes.get(&node)?))
            });
            match found {
                Some((node, (id, Kind::Directory))) => self.see_directory(index, node, id, depth + 1),
                Some((node, (_, Kind::File))) => self.see_file(index, node),
                Some(_) | None => {}
            }
        }
    }

    fn see_file(&mut self, index: usize, node: TreeNodeId) {
        self.see(index, Deed::Stat(node));
        self.see(index, Deed::Open(node, false));
        let Some(handle) = self.seats.get(index).and_then(|seat| seat.program.last_opened(node)) else {
            return;
        };
        self.see(index, Deed::Read { node, handle, offset: 0, count: 1 << 20, has_attributes: false });
        self.see(index, Deed::Close(node, handle, Closing::Release));
    }

    /// Closes and forgets everything.
    fn give_back(&mut self, index: usize) {
        let opened = self.seats.get(index).map(|seat| seat.program.opened()).unwrap_or_default();
        for (node, handle) in opened {
            self.see(index, Deed::Close(node, handle, Closing::Flush));
            self.see(index, Deed::Close(node, handle, Closing::Release));
        }
        self.forget_all(index);
    }

    /// Nothing is left at anybody.
    fn check_left(&mut self) {
        if self.has_failed() {
            return;
        }
        let seats = self.seats.len();
        let (sessions, connections) = (self.server.sessions.sessions(), self.server.sessions.connections());
        if (sessions, connections, self.server.sessions.jobs()) != (seats, seats, 0)
            || self.wires.len() != seats
        {
            let wires = self.wires.len();
            self.fail(format!(
                "{sessions} sessions, {connections} connections, {wires} wires are left of {seats} clients"
            ));
        }
        for index in 0..seats {
            let Some(left) = self.seats.get(index).and_then(|seat| Some(seat.client.as_ref()?.snapshot()))
            else {
                continue;
            };
            // What was fetched ahead may still come to be of use.
            let unused = |fate: Fate| (fate.fetched - fate.used - fate.wasted) as usize;
            let ahead = left.prefetch;
            let is_clean = left.nodes <= 1 + unused(ahead.directories) + unused(ahead.files)
                && (left.nodes > 1 || left.cached_bytes == 0)
                && left.calls_waiting == 0
                && left.unacknowledged_bytes == 0
                && left.in_flight.is_empty();
            if !is_clean {
                self.fail(format!("client {index} keeps something: {left:?}"));
            }
        }
    }
}
