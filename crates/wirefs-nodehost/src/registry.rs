//! A registry tells the addresses of nodes in other segments. The node registers its own addresses under a lease, and
//! watches for changes. The registry gives addresses only: keys, names and states come from the nodes themselves.

mod etcd;
mod http;

pub use etcd::EtcdPlace;

use http::EventStream;
use std::io;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use wirefs_node::NodeKey;

/// The time after which the registry drops a node that does not renew its lease.
const LEASE: Duration = Duration::from_secs(10);
/// The interval at which the lease is renewed.
const RENEW_INTERVAL: Duration = Duration::from_secs(3);
/// The pause before a failed registry is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// The maximum wait for a change, after which the end of the node is checked.
const EVENT_WAIT: Duration = Duration::from_millis(200);

/// A registry in use.
pub(super) struct Registry {
    place: EtcdPlace,
    key: NodeKey,
    /// The last failure; `None` while the registry is reachable.
    failure: Mutex<Option<String>>,
}

impl Registry {
    pub(super) fn new(place: EtcdPlace, key: NodeKey) -> Registry {
        Registry { place, key, failure: Mutex::new(Some("not contacted yet".to_owned())) }
    }

    /// Returns the state for people.
    pub(super) fn status(&self) -> String {
        match &*self.failure.lock().unwrap_or_else(PoisonError::into_inner) {
            None => format!("{}: registered", self.place),
            Some(failure) => format!("{}: NOT REACHED: {failure}", self.place),
        }
    }

    /// Registers the addresses `own`, and reports the addresses of other nodes on each change, until the node ends.
    ///
    /// While the registry is unreachable, its last addresses stay in use.
    pub(super) fn run(
        &self,
        own: impl Fn() -> Vec<SocketAddr>,
        mut report: impl FnMut(&[SocketAddr]),
        is_over: impl Fn() -> bool,
    ) {
        while !is_over() {
            let mut lease = None;
            if let Err(error) = self.follow(&mut lease, &own, &mut report, &is_over) {
                self.note(Some(error.to_string()));
            }
            if let Some(lease) = lease.filter(|_| is_over()) {
                // Otherwise the registry drops this node when the lease expires.
                let _kept = self.place.revoke(&lease);
                return;
            }
            let again = Instant::now() + RETRY_AFTER;
            while !is_over() && Instant::now() < again {
                std::thread::sleep(EVENT_WAIT);
            }
        }
    }

    fn follow(
        &self,
        lease: &mut Option<String>,
        own: &impl Fn() -> Vec<SocketAddr>,
        report: &mut impl FnMut(&[SocketAddr]),
        is_over: &impl Fn() -> bool,
    ) -> io::Result<()> {
        let granted = self.place.grant(LEASE.as_secs())?;
        let granted = lease.insert(granted).clone();
        self.place.put(&self.key, &own(), &granted)?;
        // Before the list is read, so that no change is missed.
        let mut changes: EventStream = self.place.watch()?;
        report(&self.place.others(&self.key)?);
        self.note(None);
        let mut kept = Instant::now();
        while !is_over() {
            if changes.has_event(EVENT_WAIT)? {
                report(&self.place.others(&self.key)?);
            }
            if kept.elapsed() >= RENEW_INTERVAL {
                kept = Instant::now();
                if !self.place.renew(&granted)? {
                    return Err(io::Error::other("the lease expired before it was renewed"));
                }
            }
        }
        Ok(())
    }

    fn note(&self, failure: Option<String>) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = failure;
    }
}
