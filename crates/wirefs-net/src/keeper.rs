//! Keeps `/net` as the table is: the thread that raises gates, says who is there, and takes away what nobody has.

use super::difference::{Difference, GATES_MAX};
use super::front::{Front, Shape};
use super::net::{NetPlan, clear, options};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use wirefs_fuse::MountOptions;
use wirefs_mount::{Gate, GatePlan, MountError};
use wirefs_node::{NodeKey, NodeName, NodeRecord};
use wirefs_nodehost::{NodeHost, NodeInfo};

/// How often the table is looked at though nothing was heard.
const LOOK_EACH: Duration = Duration::from_secs(1);
/// After a gate could not be raised, so long passes before the next try.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// Keeps `/net`.
pub(super) struct Keeper {
    plan: NetPlan,
    front: Arc<Front>,
    host: Arc<NodeHost>,
    gates: BTreeMap<String, Standing>,
    failed: BTreeMap<String, Instant>,
    /// It was said that there are more nodes than gates.
    is_full: bool,
}

/// A node in `/net`.
struct Standing {
    key: NodeKey,
    gate: Gate,
}

impl Keeper {
    pub(super) fn new(plan: NetPlan, front: Arc<Front>, host: Arc<NodeHost>) -> Keeper {
        Keeper { plan, front, host, gates: BTreeMap::new(), failed: BTreeMap::new(), is_full: false }
    }

    /// Runs until the node has left, then takes all away.
    pub(super) fn run(mut self) {
        self.show_own();
        let mut seen = 0;
        while !self.host.is_over() {
            self.follow(&self.host.nodes());
            seen = self.host.await_change(seen, LOOK_EACH);
        }
        self.take_away();
    }

    fn show_own(&self) {
        let Some(share) = &self.plan.share else { return };
        let is_root = self.plan.mounts.is_none();
        let kind = match is_root {
            true => Shape::Directory,
            false => Shape::Link(share.to_string_lossy().into_owned()),
        };
        self.front.make(NodeName::OWN, kind);
        if is_root && let Err(errno) = rustix::mount::mount_bind(share, self.plan.at.join(NodeName::OWN)) {
            complain(NodeName::OWN, &errno);
        }
        self.front.show(NodeName::OWN, true);
        let own = self.host.nodes().into_iter().find(|node| node.is_own);
        if let Some(own) = own {
            self.front.make(own.record.name.as_str(), Shape::Link(NodeName::OWN.to_owned()));
            self.front.show(own.record.name.as_str(), true);
        }
    }

    fn follow(&mut self, nodes: &[NodeInfo]) {
        let gates = self.gates.iter().map(|(name, standing)| (name.as_str(), standing.key)).collect();
        let Difference { lower, raise, is_full } = Difference::between(&gates, nodes);
        lower.iter().for_each(|name| self.lower(name));
        raise.iter().for_each(|(name, node)| self.raise(name, node));
        if is_full && !std::mem::replace(&mut self.is_full, is_full) {
            complain("the next node", &format!("there are {GATES_MAX} already"));
        }
        for (name, standing) in &self.gates {
            if let Some(node) = nodes.iter().find(|node| node.record.key == standing.key) {
                let is_up = node.state.is_up();
                standing.gate.set_up(is_up);
                standing.gate.set_room(node.record.free_bytes, node.record.all_bytes);
                self.front.show(name, is_up && node.holds_name);
            }
        }
    }

    fn raise(&mut self, name: &str, node: &NodeInfo) {
        if self.failed.get(name).is_some_and(|at| at.elapsed() < RETRY_AFTER) {
            return;
        }
        match self.try_raise(name, &node.record) {
            Ok(Some(gate)) => {
                gate.set_room(node.record.free_bytes, node.record.all_bytes);
                self.gates.insert(name.to_owned(), Standing { key: node.record.key, gate });
                self.front.show(name, true);
                self.failed.remove(name);
            }
            Ok(None) => {}
            Err(error) => {
                complain(name, &error);
                self.front.remove(name);
                self.failed.insert(name.to_owned(), Instant::now());
            }
        }
    }

    fn try_raise(&self, name: &str, record: &NodeRecord) -> Result<Option<Gate>, MountError> {
        let Some(plan) = (self.plan.reach)(record) else { return Ok(None) };
        let export = record.exports.first();
        let is_root = self.plan.mounts.is_none();
        let acts_for_callers = is_root && export.is_some_and(|export| export.acts_for_callers);
        let mountpoint = match &self.plan.mounts {
            None => {
                self.front.make(name, Shape::Directory);
                self.plan.at.join(name)
            }
            Some(mounts) => {
                let place = mounts.join(name);
                make_place(&place)?;
                self.front.make(name, Shape::Link(place.to_string_lossy().into_owned()));
                place
            }
        };
        let options = MountOptions {
            read_only: export.is_some_and(|export| export.read_only),
            ..options(name, acts_for_callers)
        };
        Gate::raise(GatePlan { mountpoint, options, acts_for_callers, plan }).map(Some)
    }

    /// Takes a node out of `/net`. What was written still goes there, on a thread of its own.
    fn lower(&mut self, name: &str) {
        if let Some(standing) = self.gates.remove(name) {
            self.front.remove(name);
            let place = standing.gate.mountpoint().to_owned();
            let is_private = self.plan.mounts.is_some();
            end_beside(standing.gate, place, is_private);
        }
    }

    fn take_away(mut self) {
        let is_private = self.plan.mounts.is_some();
        let ends: Vec<_> = std::mem::take(&mut self.gates)
            .into_values()
            .filter_map(|standing| {
                let place = standing.gate.mountpoint().to_owned();
                end_beside(standing.gate, place, is_private)
            })
            .collect();
        for end in ends {
            let _ended = end.join();
        }
        if self.plan.share.is_some() && !is_private {
            let flags = rustix::mount::UnmountFlags::DETACH | rustix::mount::UnmountFlags::NOFOLLOW;
            let _gone = rustix::mount::unmount(self.plan.at.join(NodeName::OWN), flags);
        }
    }
}

/// Ends a gate on a thread of its own, so that no node waits for another.
fn end_beside(gate: Gate, place: PathBuf, is_private: bool) -> Option<std::thread::JoinHandle<()>> {
    let end = move || {
        gate.end();
        if is_private {
            let _kept = std::fs::remove_dir(place);
        }
    };
    std::thread::Builder::new().name("wirefs-gate-end".into()).spawn(end).ok()
}

/// A directory to mount on. What a process that died has left mounted there goes first.
fn make_place(place: &Path) -> Result<(), MountError> {
    clear(place).map_err(MountError::Thread)?;
    match std::fs::create_dir(place) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(MountError::Thread(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// One line for the person who runs this; where nobody listens it is lost.
fn complain(name: &str, error: &dyn std::fmt::Display) {
    let _unheard = writeln!(std::io::stderr(), "wirefs: {name} is not in /net: {error}");
}
