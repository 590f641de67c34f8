//! The thread that keeps `/net` like the table of nodes: it adds and removes automount triggers.

use super::difference::{Difference, TRIGGERS_MAX};
use super::net::{NetPlan, clear, options};
use super::root::{EntryKind, NetRoot};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use wirefs_fuse::MountOptions;
use wirefs_mount::{AutomountTrigger, MountStartError, TriggerPlan};
use wirefs_node::{NodeKey, NodeName, NodeRecord};
use wirefs_nodehost::{NodeHost, NodeInfo};

/// The maximum interval between two looks at the table.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// The pause after a trigger could not be mounted.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// The state of the updating thread.
pub(super) struct NetUpdater {
    plan: NetPlan,
    root: Arc<NetRoot>,
    host: Arc<NodeHost>,
    triggers: BTreeMap<String, MountedNode>,
    failed: BTreeMap<String, Instant>,
    /// The limit on triggers was reported.
    is_full: bool,
}

/// A node in `/net`.
struct MountedNode {
    key: NodeKey,
    trigger: AutomountTrigger,
}

impl NetUpdater {
    pub(super) fn new(plan: NetPlan, root: Arc<NetRoot>, host: Arc<NodeHost>) -> NetUpdater {
        NetUpdater { plan, root, host, triggers: BTreeMap::new(), failed: BTreeMap::new(), is_full: false }
    }

    /// Runs until the node has left, then unmounts everything.
    pub(super) fn run(mut self) {
        self.show_own();
        let mut seen = 0;
        while !self.host.is_over() {
            self.follow(&self.host.nodes());
            seen = self.host.await_change(seen, LOOK_INTERVAL);
        }
        self.unmount_all();
    }

    fn show_own(&self) {
        let Some(share) = &self.plan.share else { return };
        let is_root = self.plan.mounts.is_none();
        let kind = match is_root {
            true => EntryKind::Directory,
            false => EntryKind::Link(share.to_string_lossy().into_owned()),
        };
        self.root.make(NodeName::OWN, kind);
        if is_root && let Err(errno) = rustix::mount::mount_bind(share, self.plan.at.join(NodeName::OWN)) {
            report(NodeName::OWN, &errno);
        }
        self.root.show(NodeName::OWN, true);
        let own = self.host.nodes().into_iter().find(|node| node.is_own);
        if let Some(own) = own {
            self.root.make(own.record.name.as_str(), EntryKind::Link(NodeName::OWN.to_owned()));
            self.root.show(own.record.name.as_str(), true);
        }
    }

    fn follow(&mut self, nodes: &[NodeInfo]) {
        let triggers = self.triggers.iter().map(|(name, mounted)| (name.as_str(), mounted.key)).collect();
        let Difference { removed, added, is_full } = Difference::between(&triggers, nodes);
        removed.iter().for_each(|name| self.remove(name));
        added.iter().for_each(|(name, node)| self.add(name, node));
        if is_full && !std::mem::replace(&mut self.is_full, is_full) {
            report("the next node", &format!("there are {TRIGGERS_MAX} already"));
        }
        for (name, mounted) in &self.triggers {
            if let Some(node) = nodes.iter().find(|node| node.record.key == mounted.key) {
                let is_up = node.state.is_up();
                mounted.trigger.set_server_up(is_up);
                mounted.trigger.set_room(node.record.free_bytes, node.record.all_bytes);
                self.root.show(name, is_up && node.holds_name);
            }
        }
    }

    fn add(&mut self, name: &str, node: &NodeInfo) {
        if self.failed.get(name).is_some_and(|at| at.elapsed() < RETRY_AFTER) {
            return;
        }
        match self.try_add(name, &node.record) {
            Ok(Some(trigger)) => {
                trigger.set_room(node.record.free_bytes, node.record.all_bytes);
                self.triggers.insert(name.to_owned(), MountedNode { key: node.record.key, trigger });
                self.root.show(name, true);
                self.failed.remove(name);
            }
            Ok(None) => {}
            Err(error) => {
                report(name, &error);
                self.root.remove(name);
                self.failed.insert(name.to_owned(), Instant::now());
            }
        }
    }

    fn try_add(&self, name: &str, record: &NodeRecord) -> Result<Option<AutomountTrigger>, MountStartError> {
        let Some(plan) = (self.plan.reach)(record) else { return Ok(None) };
        let export = record.exports.first();
        let is_root = self.plan.mounts.is_none();
        let acts_for_callers = is_root && export.is_some_and(|export| export.acts_for_callers);
        let mountpoint = match &self.plan.mounts {
            None => {
                self.root.make(name, EntryKind::Directory);
                self.plan.at.join(name)
            }
            Some(mounts) => {
                let place = mounts.join(name);
                make_place(&place)?;
                self.root.make(name, EntryKind::Link(place.to_string_lossy().into_owned()));
                place
            }
        };
        let options = MountOptions {
            read_only: export.is_some_and(|export| export.read_only),
            ..options(name, acts_for_callers)
        };
        AutomountTrigger::mount(TriggerPlan { mountpoint, options, acts_for_callers, plan }).map(Some)
    }

    /// Removes a node from `/net`. A thread sends its pending writes and unmounts it.
    fn remove(&mut self, name: &str) {
        if let Some(mounted) = self.triggers.remove(name) {
            self.root.remove(name);
            let place = mounted.trigger.mountpoint().to_owned();
            let is_private = self.plan.mounts.is_some();
            end_in_thread(mounted.trigger, place, is_private);
        }
    }

    fn unmount_all(mut self) {
        let is_private = self.plan.mounts.is_some();
        let ends: Vec<_> = std::mem::take(&mut self.triggers)
            .into_values()
            .filter_map(|mounted| {
                let place = mounted.trigger.mountpoint().to_owned();
                end_in_thread(mounted.trigger, place, is_private)
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

/// Ends a trigger in a thread, so that no node waits for another.
fn end_in_thread(
    trigger: AutomountTrigger,
    place: PathBuf,
    is_private: bool,
) -> Option<std::thread::JoinHandle<()>> {
    let end = move || {
        trigger.end();
        if is_private {
            let _removed = std::fs::remove_dir(place);
        }
    };
    std::thread::Builder::new().name("wirefs-net-end".into()).spawn(end).ok()
}

/// Creates a directory to mount on. Unmounts what a killed process left there.
fn make_place(place: &Path) -> Result<(), MountStartError> {
    clear(place).map_err(MountStartError::Thread)?;
    match std::fs::create_dir(place) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(MountStartError::Thread(error))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Writes one line to standard error. A write error is ignored.
fn report(name: &str, error: &dyn std::fmt::Display) {
    wirefs_mount::log::line(format_args!("{name} is not in /net: {error}"));
}
