//! The leases of this client.

use crate::config::Attachment;
use std::collections::BTreeMap;
use std::time::Duration;
use wirefs_cache::{Mode, TreeNodeId};
use wirefs_lease::{LeaseHolder, PendingRecall, Serial};
use wirefs_op::Time;
use wirefs_op::message::attach::{Leases as Terms, Watch};

/// The leases of this client.
#[derive(Debug)]
pub(crate) struct Leases {
    pub(crate) holder: Option<LeaseHolder>,
    pub(crate) watch: Watch,
    /// Requests up to this time grant no lease any more.
    pub(crate) since: Time,
    /// Whether anything was leased since then.
    pub(crate) holds_any: bool,
    /// The number of answered recalls.
    pub(crate) recalls: u64,
    /// Recalls that are answered once an fd of the file has arrived.
    pub(crate) acquiring: BTreeMap<TreeNodeId, Vec<Serial>>,
    /// Recalls that wait for fds, each with their number.
    pub(crate) waiting: BTreeMap<Serial, (PendingRecall, usize)>,
}

pub(crate) fn term(terms: &Terms) -> Duration {
    Duration::from_millis(u64::from(terms.term_ms))
}

impl Leases {
    pub(crate) fn new(mode: &Mode, attachment: &Attachment, now: Time) -> Leases {
        let terms = attachment.leases.as_ref().filter(|_| mode.takes_leases());
        Leases {
            holder: terms.map(|terms| LeaseHolder::new(now, term(terms))),
            watch: terms.map_or(Watch::None, |terms| terms.watch),
            since: Time(0),
            holds_any: false,
            recalls: 0,
            acquiring: BTreeMap::new(),
            waiting: BTreeMap::new(),
        }
    }

    /// Whether the server grants leases.
    pub(crate) fn are_agreed(&self) -> bool {
        self.holder.is_some()
    }

    pub(crate) fn watch(&self) -> Watch {
        self.watch
    }

    pub(crate) fn holder_mut(&mut self) -> Option<&mut LeaseHolder> {
        self.holder.as_mut()
    }

    /// Whether granted leases are valid at this time.
    pub(crate) fn are_valid(&self, now: Time) -> bool {
        self.holder.as_ref().is_some_and(|holder| holder.is_valid(now))
    }

    /// Notes that a request is being sent.
    pub(crate) fn asked(&mut self, now: Time) {
        if let Some(holder) = &mut self.holder {
            holder.request_sent(now);
        }
    }

    /// Requests up to this time grant no lease any more.
    pub(crate) fn leased_since(&self) -> Time {
        self.since
    }

    /// Notes that data is leased without a reply that said so.
    pub(crate) fn hold_some(&mut self) {
        self.holds_any = true;
    }

    /// Drops the unanswered recalls of a lost connection.
    pub(crate) fn abandon_recalls(&mut self) {
        self.acquiring.clear();
        self.waiting.clear();
    }
}
