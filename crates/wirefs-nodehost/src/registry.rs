//! A registry tells where nodes are that are on no segment of this one: the node says where it is under a lease, and hears of changes.
//! What it hears are addresses to announce itself to, and no more: who is there, under which key and name, is said by the nodes.

mod etcd;
mod http;

pub use etcd::EtcdPlace;

use http::Telling;
use std::io;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use wirefs_node::NodeKey;

/// How long a node is registered that does not say that it lives.
const LEASE: Duration = Duration::from_secs(10);
/// How often it says so.
const KEEP_EACH: Duration = Duration::from_secs(3);
/// How soon a registry that failed is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// The longest wait for news, so that an end is noticed.
const NEWS_WAIT: Duration = Duration::from_millis(200);

/// A registry in use.
pub(super) struct Registry {
    place: EtcdPlace,
    key: NodeKey,
    /// Why it was not reached last; `None`: it was, or was not tried yet.
    failure: Mutex<Option<String>>,
}

impl Registry {
    pub(super) fn new(place: EtcdPlace, key: NodeKey) -> Registry {
        Registry { place, key, failure: Mutex::new(Some("it was not asked yet".to_owned())) }
    }

    /// How it is, for people.
    pub(super) fn status(&self) -> String {
        match &*self.failure.lock().unwrap_or_else(PoisonError::into_inner) {
            None => format!("{}: registered", self.place),
            Some(failure) => format!("{}: NOT REACHED: {failure}", self.place),
        }
    }

    /// Registers a node that is at `own`, and tells where the others are whenever that changes, until it is over.
    ///
    /// While the registry cannot be reached, what it said before stands.
    pub(super) fn run(
        &self,
        own: impl Fn() -> Vec<SocketAddr>,
        mut tell: impl FnMut(&[SocketAddr]),
        is_over: impl Fn() -> bool,
    ) {
        while !is_over() {
            let mut lease = None;
            if let Err(error) = self.follow(&mut lease, &own, &mut tell, &is_over) {
                self.note(Some(error.to_string()));
            }
            if let Some(lease) = lease.filter(|_| is_over()) {
                // One that cannot be told forgets this node when the lease is over.
                let _kept = self.place.revoke(&lease);
                return;
            }
            let again = Instant::now() + RETRY_AFTER;
            while !is_over() && Instant::now() < again {
                std::thread::sleep(NEWS_WAIT);
            }
        }
    }

    fn follow(
        &self,
        lease: &mut Option<String>,
        own: &impl Fn() -> Vec<SocketAddr>,
        tell: &mut impl FnMut(&[SocketAddr]),
        is_over: &impl Fn() -> bool,
    ) -> io::Result<()> {
        let granted = self.place.grant(LEASE.as_secs())?;
        let granted = lease.insert(granted).clone();
        self.place.put(&self.key, &own(), &granted)?;
        // First, so that no change falls between the two.
        let mut changes: Telling = self.place.watch()?;
        tell(&self.place.others(&self.key)?);
        self.note(None);
        let mut kept = Instant::now();
        while !is_over() {
            if changes.has_news(NEWS_WAIT)? {
                tell(&self.place.others(&self.key)?);
            }
            if kept.elapsed() >= KEEP_EACH {
                kept = Instant::now();
                if !self.place.keep(&granted)? {
                    return Err(io::Error::other("the lease was over before it was renewed"));
                }
            }
        }
        Ok(())
    }

    fn note(&self, failure: Option<String>) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = failure;
    }
}
