//! Renewal of leases, and their return at the end of the mount.

use crate::core::Client;
use crate::output::{Lane, Output};
use crate::pending::Pending;
use wirefs_op::message::ping::Tping;
use wirefs_op::message::recall::{RELEASE_ALL, Trecalled};
use wirefs_op::{NOTAG, Request, Time};

impl Client {
    /// Returns all leases, since the mount has ended.
    pub fn rest(&mut self, now: Time) {
        self.view.mount.now = now;
        if self.view.leases.are_agreed() && self.requests.link.is_up() {
            let told = Request::Recalled(Trecalled { serial: RELEASE_ALL }).encode(NOTAG);
            self.outputs.push(Output::Send(told, Lane::Changes));
        }
    }

    /// Lets time pass: invalidates expired leases, and renews the others.
    pub(crate) fn watch_leases(&mut self) {
        let (now, oldest) = (self.view.mount.now, self.requests.oldest());
        let Some(holder) = self.view.leases.holder_mut() else { return };
        holder.tick(now);
        holder.prune(oldest);
        let is_due = holder.renewal_at().is_some_and(|at| now >= at);
        self.view.empty(&mut self.outputs);
        if is_due && self.view.leases.holds_any && self.requests.link.is_up() {
            self.sender().send(Request::Ping(Tping {}), Pending::IGNORE);
        }
    }
}
