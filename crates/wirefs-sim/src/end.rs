//! The end of a run: without faults, all clients see the same tree, and no state is left.

use crate::program::{Closing, NAMES, Operation, Place};
use crate::world::World;
use std::time::Duration;
use wirefs_client::Fate;
use wirefs_client::call::{ROOT, TreeNodeId};
use wirefs_op::{FileId, Kind};
use wirefs_server::limits::SESSION_TIMEOUT;

/// Without faults, all pending work ends within this time.
const SETTLED_WITHIN: Duration = Duration::from_secs(200);
/// The maximum depth of directories.
const DEPTH_MAX: usize = 12;

impl World {
    pub(crate) fn end(&mut self) {
        self.heal();
        self.settle();
        let spans = self.plan.external_delay_max().max(self.plan.outcome_delay_max());
        self.pass(spans + Duration::from_secs(2));
        self.settle();
        self.note(|| "all clients read the whole tree".into());
        for index in 0..self.hosts.len() {
            let root = self.truth.root();
            self.see_directory(index, ROOT, root, 0);
        }
        for index in 0..self.hosts.len() {
            self.give_back(index);
        }
        self.settle();
        self.pass(SESSION_TIMEOUT + Duration::from_secs(5));
        self.settle();
        self.check_left();
    }

    fn is_settled(&self) -> bool {
        let is_idle = |host: &crate::host::Host| {
            !host.is_down && host.is_settled() && host.program.busy().next().is_none()
        };
        self.server.is_idle() && self.hosts.iter().all(is_idle)
    }

    /// Waits until nothing is pending.
    fn settle(&mut self) {
        let until = self.now + SETTLED_WITHIN;
        while !self.is_settled() && self.step() {
            if self.now > until {
                let hosts: Vec<String> = self.hosts.iter().map(|host| host.shown()).collect();
                let jobs = self.server.sessions.jobs();
                self.fail(format!("pending work never ends: {jobs} jobs at the server, clients {hosts:?}"));
            }
        }
    }

    /// Runs one operation of a client to its end.
    fn see(&mut self, index: usize, operation: Operation) {
        self.start_alone(index, operation);
        while self.hosts.get(index).is_some_and(|host| host.program.busy().next().is_some()) && self.step() {}
    }

    fn see_directory(&mut self, index: usize, node: TreeNodeId, dir: FileId, depth: usize) {
        if depth > DEPTH_MAX || self.has_failed() {
            return;
        }
        self.see(index, self.list(index, node, dir));
        for name in NAMES {
            self.see(index, Operation::Look(Place { node, dir, name }));
            let found = self.hosts.get(index).and_then(|host| {
                let node = host.program.found?;
                Some((node, *host.program.nodes.get(&node)?))
            });
            match found {
                Some((node, (id, Kind::Directory))) => self.see_directory(index, node, id, depth + 1),
                Some((node, (_, Kind::File))) => self.see_file(index, node),
                Some(_) | None => {}
            }
        }
    }

    fn see_file(&mut self, index: usize, node: TreeNodeId) {
        self.see(index, Operation::Stat(node));
        self.see(index, Operation::Open(node, false));
        let Some(handle) = self.hosts.get(index).and_then(|host| host.program.last_opened(node)) else {
            return;
        };
        self.see(index, Operation::Read { node, handle, offset: 0, count: 1 << 20, has_attributes: false });
        self.see(index, Operation::Close(node, handle, Closing::Release));
    }

    /// Closes and forgets everything.
    fn give_back(&mut self, index: usize) {
        let opened = self.hosts.get(index).map(|host| host.program.opened()).unwrap_or_default();
        for (node, handle) in opened {
            self.see(index, Operation::Close(node, handle, Closing::Flush));
            self.see(index, Operation::Close(node, handle, Closing::Release));
        }
        self.forget_all(index);
    }

    /// Checks that neither the clients nor the server have state left.
    fn check_left(&mut self) {
        if self.has_failed() {
            return;
        }
        let hosts = self.hosts.len();
        let (sessions, connections) = (self.server.sessions.sessions(), self.server.sessions.connections());
        if (sessions, connections, self.server.sessions.jobs()) != (hosts, hosts, 0)
            || self.wires.len() != hosts
        {
            let wires = self.wires.len();
            self.fail(format!(
                "{sessions} sessions, {connections} connections, {wires} wires are left of {hosts} clients"
            ));
        }
        for index in 0..hosts {
            let Some(left) = self.hosts.get(index).and_then(|host| Some(host.client.as_ref()?.snapshot()))
            else {
                continue;
            };
            // Prefetched data may still be used.
            let unused = |fate: Fate| (fate.fetched - fate.used - fate.wasted) as usize;
            let ahead = left.prefetch;
            let is_clean = left.nodes <= 1 + unused(ahead.directories) + unused(ahead.files)
                && (left.nodes > 1 || left.cached_bytes == 0)
                && left.calls_waiting == 0
                && left.unacknowledged_bytes == 0
                && left.in_flight.is_empty();
            if !is_clean {
                self.fail(format!("client {index} has state left: {left:?}"));
            }
        }
    }
}
