//! Mounts of nodes in `/net`, and recovery of their journals.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use wirefs_cache::Mode;
use wirefs_carrier::tls::{Identity, PublicKey};
use wirefs_mount::{FsyncWaits, JournalPlan, MountPlan, recover_journals};
use wirefs_net::Reach;
use wirefs_node::{NodeName, NodeRecord};
use wirefs_nodehost::{NodeDial, NodeHost, Via};

use super::ether::Dials;
use crate::arguments::{NodeMode, NodeUp};
use crate::mount::{JOURNALS, QUARANTINE};
use crate::recover::{Outcome, progress};
use crate::terminal::note;
use crate::user_dirs;

/// The deadline of a call to a silent node that is not known to be dead.
const DEADLINE: Duration = Duration::from_secs(10);
/// The memory limit for one node, in bytes.
const CACHE_BYTES_MAX: usize = 64 << 20;
/// Threads that read requests from the kernel, per node.
const THREADS: usize = 2;

/// The settings of nodes' mounts.
#[derive(Clone)]
pub(super) struct Mounting {
    host: Arc<NodeHost>,
    identity: Arc<Identity>,
    dials: Dials,
    modes: Vec<NodeMode>,
    via: Via,
    user: String,
    /// The directory of the nodes.
    at: PathBuf,
    /// The user's state directory for journals; `None` without one.
    state: Option<PathBuf>,
    has_journal: bool,
}

impl Mounting {
    /// Returns the settings from the arguments. Prints a message if there can be no journals.
    pub(super) fn of(
        arguments: &NodeUp,
        host: &Arc<NodeHost>,
        identity: &Arc<Identity>,
        dials: &Dials,
        at: PathBuf,
    ) -> Mounting {
        let state = user_dirs::state_dir().and_then(|dir| user_dirs::create_private(&dir).map(|()| dir));
        let state = state.inspect_err(|error| note!("wirefs: no journals: {error}")).ok();
        let uid = rustix::process::geteuid().as_raw();
        Mounting {
            host: Arc::clone(host),
            identity: Arc::clone(identity),
            dials: dials.clone(),
            modes: arguments.mode.clone(),
            via: arguments.via,
            user: std::env::var("USER").unwrap_or_else(|_| uid.to_string()),
            at,
            state,
            has_journal: !arguments.no_journal,
        }
    }

    /// Returns the mount function for `/net`; it records each node's dialer for the list.
    pub(super) fn reach(&self) -> Reach {
        let mounting = self.clone();
        Box::new(move |record: &NodeRecord| {
            let dial = mounting.dial(record);
            mounting.dials.add(&mounting.host, record.key, Arc::clone(&dial));
            Some(mounting.plan(record, dial))
        })
    }

    /// Sends pending changes in journals to the nodes that are up: of mounts at these mountpoints, or of all if there
    /// are none.
    pub(super) fn recover(&self, places: &[String]) -> Vec<Outcome> {
        let mut outcomes = Vec::new();
        for node in self.host.nodes().iter().filter(|node| node.state.is_up() && !node.is_own) {
            let plan = self.plan(&node.record, self.dial(&node.record));
            let place = self.place(&node.record);
            let is_meant = places.is_empty() || places.contains(&place);
            if !is_meant || !plan.journal.as_ref().is_some_and(JournalPlan::has_any) {
                continue;
            }
            match recover_journals(&plan) {
                Ok(recovered) => {
                    outcomes.extend(recovered.iter().map(|one| Outcome::of(place.as_ref(), one)));
                }
                Err(error) => outcomes.push(Outcome::failed(place.as_ref(), &error.into())),
            }
        }
        outcomes
    }

    fn dial(&self, record: &NodeRecord) -> Arc<NodeDial> {
        Arc::new(NodeDial::new(Arc::clone(&self.host), record.key, Arc::clone(&self.identity), self.via))
    }

    /// Uses the last mode given for this node, else the last one given for all.
    fn plan(&self, record: &NodeRecord, dial: Arc<NodeDial>) -> MountPlan {
        MountPlan {
            dial,
            path: Vec::new(),
            user: self.user.clone(),
            mode: mode_of(&record.name, &self.modes),
            deadline: Some(DEADLINE),
            cache_bytes_max: CACHE_BYTES_MAX,
            threads: THREADS,
            connections_max: wirefs_mount::CONNECTIONS_MAX,
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            confines_links: true,
            store: None,
            journal: self.journal(record),
            tell: |_| {},
        }
    }

    /// Returns the journals of a node. They are identified by its key, since its name may change.
    fn journal(&self, record: &NodeRecord) -> Option<JournalPlan> {
        let state = self.state.as_ref()?;
        let key = PublicKey::from_raw(record.key.0).fingerprint();
        Some(JournalPlan {
            dir: state.join(JOURNALS),
            quarantine: state.join(QUARANTINE),
            address: key.to_string().into_bytes(),
            path: Vec::new(),
            source: self.place(record).into_bytes(),
            user: rustix::process::geteuid().as_raw(),
            tell: progress,
            keeps: self.has_journal,
            fsync: FsyncWaits::default(),
        })
    }

    /// Returns its mountpoint in `/net`.
    fn place(&self, record: &NodeRecord) -> String {
        self.at.join(record.name.as_str()).to_string_lossy().into_owned()
    }
}

fn mode_of(name: &NodeName, modes: &[NodeMode]) -> Mode {
    let for_it = modes.iter().rev().find(|mode| mode.node.as_ref() == Some(name));
    let for_all = || modes.iter().rev().find(|mode| mode.node.is_none());
    for_it.or_else(for_all).map(|mode| mode.mode).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mode_of_a_node_overrides_the_mode_of_all() {
        let mode = |node: Option<&str>, mode: &str| NodeMode {
            node: node.map(|name| NodeName::new(name).unwrap()),
            mode: Mode::parse(mode).unwrap(),
        };
        let modes = [mode(Some("a"), "strict"), mode(None, "commit"), mode(None, "session")];
        let of = |name: &str, modes: &[NodeMode]| mode_of(&NodeName::new(name).unwrap(), modes);
        assert_eq!(of("a", &modes), Mode::parse("strict").unwrap());
        assert_eq!(of("b", &modes), Mode::parse("session").unwrap());
        assert_eq!(of("b", &[]), Mode::default());
    }
}
