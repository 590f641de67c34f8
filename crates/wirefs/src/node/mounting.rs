//! How nodes are mounted in `/net`, and what mounts of them left in their journals.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use wirefs_cache::Mode;
use wirefs_carrier::tls::{Identity, PublicKey};
use wirefs_driver::mount::{FsyncWaits, JournalPlan, MountPlan, recover_left};
use wirefs_driver::net::Reach;
use wirefs_driver::node::{NodeDial, NodeHost, Via};
use wirefs_node::{NodeName, NodeRecord};

use super::ether::Dials;
use crate::arguments::{NodeMode, NodeUp};
use crate::mount::{JOURNALS, QUARANTINE};
use crate::places;
use crate::recover::{Outcome, progress};
use crate::terminal::note;

/// How long a call waits for a silent node that is not known to be dead.
const DEADLINE: Duration = Duration::from_secs(10);
/// Memory for file contents of one node, in bytes.
const CACHE_BYTES_MAX: usize = 64 << 20;
/// Threads that read requests from the kernel, for each node.
const THREADS: usize = 2;

/// How each node is mounted.
#[derive(Clone)]
pub(super) struct Mounting {
    host: Arc<NodeHost>,
    identity: Arc<Identity>,
    dials: Dials,
    modes: Vec<NodeMode>,
    via: Via,
    user: String,
    /// The directory that has the nodes in it.
    at: PathBuf,
    /// The user's directory for journals; `None`: there is no place.
    state: Option<PathBuf>,
    keeps_journal: bool,
}

impl Mounting {
    /// As the arguments say. Where there is no place for journals, that is told.
    pub(super) fn of(
        arguments: &NodeUp,
        host: &Arc<NodeHost>,
        identity: &Arc<Identity>,
        dials: &Dials,
        at: PathBuf,
    ) -> Mounting {
        let state = places::state_dir().and_then(|dir| places::make_private(&dir).map(|()| dir));
        let state = state.inspect_err(|error| note!("wirefs: no journals are kept: {error}")).ok();
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
            keeps_journal: !arguments.no_journal,
        }
    }

    /// For `/net`: the dial of each node is remembered, so that its carrier can be told.
    pub(super) fn reach(&self) -> Reach {
        let mounting = self.clone();
        Box::new(move |record: &NodeRecord| {
            let dial = mounting.dial(record);
            mounting.dials.add(&mounting.host, record.key, Arc::clone(&dial));
            Some(mounting.plan(record, dial))
        })
    }

    /// Brings to the nodes that are there what mounts of them left in journals: those at these places, or all where none is named.
    pub(super) fn recover(&self, places: &[String]) -> Vec<Outcome> {
        let mut outcomes = Vec::new();
        for node in self.host.nodes().iter().filter(|node| node.state.is_up() && !node.is_own) {
            let plan = self.plan(&node.record, self.dial(&node.record));
            let place = self.place(&node.record);
            let is_meant = places.is_empty() || places.contains(&place);
            if !is_meant || !plan.journal.as_ref().is_some_and(JournalPlan::has_any) {
                continue;
            }
            match recover_left(&plan) {
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

    /// As the last word about it says, else as the last word about all.
    fn plan(&self, record: &NodeRecord, dial: Arc<NodeDial>) -> MountPlan {
        MountPlan {
            dial,
            path: Vec::new(),
            user: self.user.clone(),
            mode: mode_of(&record.name, &self.modes),
            deadline: Some(DEADLINE),
            cache_bytes_max: CACHE_BYTES_MAX,
            threads: THREADS,
            connections_max: wirefs_driver::mount::CONNECTIONS_MAX,
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            store: None,
            journal: self.journal(record),
            tell: |_| {},
        }
    }

    /// The journals of a node. They go by its key: it may be called something else by the time they are needed.
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
            keeps: self.keeps_journal,
            fsync: FsyncWaits::default(),
        })
    }

    /// Where it is in `/net`.
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
    fn the_last_word_about_a_node_counts_before_that_about_all() {
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
