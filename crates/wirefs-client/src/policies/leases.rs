//! Leases: their validity, their loss, and the requests that renew them.

use crate::output::Outputs;
use crate::view::View;
use crate::view::leases::term;
use wirefs_cache::{Coherency, Freshness, TreeNodeId};
use wirefs_lease::LeaseHolder;
use wirefs_op::message::attach::{Leases as Terms, Watch};
use wirefs_op::{DirEntry, FileId, Stat, Time};

impl View {
    /// The rules by which cached data may be used now.
    pub(crate) fn coherency(&self) -> Coherency {
        Coherency {
            now: self.mount.now,
            window: self.mount.config.mode.window(),
            requested_after: self.exclusive.acquired,
            leased_since: self.leases.holder.as_ref().map(|_| self.leases.since),
            leases_valid: self.leases.are_valid(self.mount.now),
        }
    }

    /// The freshness of attributes in the reply to a request sent at `sent`.
    pub(crate) fn known(&mut self, stat: &Stat, sent: Time) -> Freshness {
        self.known_object(stat.id, stat.leased, sent)
    }

    /// The freshness of data about an object, whose reply says whether it is leased.
    pub(crate) fn known_object(&mut self, id: FileId, leased: bool, sent: Time) -> Freshness {
        let holder = self.leases.holder.as_ref().filter(|_| leased);
        let leased = holder.is_some_and(|holder| !holder.is_overtaken(id, sent));
        self.leases.holds_any |= leased;
        Freshness { at: sent, leased }
    }

    /// Whether a name was recalled since a request was sent at `sent`.
    pub(crate) fn is_name_taken_back(&self, dir: TreeNodeId, name: &[u8], sent: Time) -> bool {
        let id = self.names.node(dir).map(|dir| dir.stat.id);
        let is_overtaken =
            |holder: &LeaseHolder| id.is_none_or(|id: FileId| holder.is_name_overtaken(id, name, sent));
        self.leases.holder.as_ref().is_some_and(is_overtaken)
    }

    /// The freshness of a name in the reply to a request sent at `sent`, with a lease on the directory if `leased`.
    pub(crate) fn known_name(&mut self, dir: TreeNodeId, name: &[u8], leased: bool, sent: Time) -> Freshness {
        let leased = leased && self.leases.are_agreed() && !self.is_name_taken_back(dir, name, sent);
        self.leases.holds_any |= leased;
        Freshness { at: sent, leased }
    }

    /// Removes the leases of entries, in a listing requested at `sent`, whose names were recalled since.
    pub(crate) fn take_back(&self, dir: TreeNodeId, entries: &mut [DirEntry], sent: Time) {
        let id = self.names.node(dir).map(|dir| dir.stat.id);
        let Some((holder, id)) = self.leases.holder.as_ref().zip(id) else { return };
        for entry in entries.iter_mut().filter(|entry| entry.stat.leased) {
            entry.stat.leased = !holder.is_name_overtaken(id, &entry.name, sent);
        }
    }

    /// The freshness of a name that this client changed, if the reply brings the directory's attributes.
    pub(crate) fn known_own(
        &mut self,
        dir: TreeNodeId,
        name: &[u8],
        stat: Option<&Stat>,
        sent: Time,
    ) -> Freshness {
        self.known_name(dir, name, stat.is_some_and(|stat| stat.leased), sent)
    }

    /// Notes the reply to a request that was sent at `sent`.
    pub(crate) fn answered(&mut self, outputs: &mut Outputs, sent: Time) {
        let now = self.mount.now;
        if let Some(holder) = self.leases.holder_mut() {
            holder.reply_received(now, sent);
            self.empty(outputs);
        }
    }

    /// The connection is gone.
    pub(crate) fn leases_lost(&mut self) {
        self.leases.abandon_recalls();
        if let Some(holder) = self.leases.holder_mut() {
            holder.disconnected();
        }
    }

    /// The tree is attached again.
    pub(crate) fn leases_attached(&mut self, outputs: &mut Outputs, terms: Option<&Terms>) {
        let now = self.mount.now;
        match (terms.filter(|_| self.mount.config.mode.takes_leases()), self.leases.holder_mut()) {
            (Some(terms), Some(holder)) => holder.attached(now, term(terms), terms.kept),
            (Some(terms), None) => self.leases.holder = Some(LeaseHolder::new(now, term(terms))),
            (None, Some(_)) => {
                self.leases.holder = None;
                self.forget_leased(outputs);
                self.empty_kernel(outputs);
            }
            (None, None) => {}
        }
        self.leases.watch = terms.map_or(Watch::None, |terms| terms.watch);
        self.empty(outputs);
    }

    /// Ends all leases.
    pub(crate) fn forget_leased(&mut self, outputs: &mut Outputs) {
        self.leases.since = self.mount.now;
        self.leases.holds_any = false;
        self.directories.invalidate_all();
        drop(self.inactive.drain());
        self.invalidate_listings(outputs);
    }

    pub(crate) fn empty(&mut self, outputs: &mut Outputs) {
        while let Some(empty) = self.leases.holder_mut().and_then(LeaseHolder::poll) {
            if empty.own_cache_too {
                self.forget_leased(outputs);
            }
            self.empty_kernel(outputs);
            if let Some(holder) = self.leases.holder_mut() {
                holder.invalidated();
            }
        }
    }
}
