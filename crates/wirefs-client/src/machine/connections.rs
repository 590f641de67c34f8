//! Connections: their loss and return, silence, and the deadline of calls.

use crate::call::{Answer, CallId};
use crate::config::Attachment;
use crate::core::Client;
use crate::operation::{lookup, unstable, write};
use crate::output::{DataKey, Output};
use crate::pending::{Continuation, Pending};
use crate::requests::Outstanding;
use crate::requests::connection::{LinkState, SILENCE_BEFORE_HANG_UP, SILENCE_BEFORE_PING};
use std::time::Duration;
use wirefs_cache::TreeNodeId;
use wirefs_op::message::error::Rerror;
use wirefs_op::message::ping::Tping;
use wirefs_op::wire::Malformed;
use wirefs_op::{Errno, Request, Time};

/// The number of a session's first change: a ledger that continues there has seen none.
const FIRST: u64 = 1;

/// Whether the server knows the outcomes of the session's changes. `is_rebooted`: its machine has restarted since the last attachment. Then
/// only a properly closed ledger is left; an empty one was begun since, by a handshake that broke.
fn knows_ledger(attachment: &Attachment, resumed: bool, is_rebooted: bool) -> bool {
    match attachment.ledger {
        Some(number) if is_rebooted => number > FIRST,
        // A server's process that was started again may know the changes, though not what was open.
        Some(number) => resumed || number > 0,
        None => resumed && !is_rebooted,
    }
}

impl Client {
    /// Notes that the connection is lost. Reads, and changes that the server finds in its ledger, wait for the next connection. All
    /// other requests fail now, since their outcome is unknown.
    pub fn lost(&mut self, now: Time) {
        self.view.mount.now = now;
        if !self.requests.link.is_up() {
            return;
        }
        self.requests.link.state = LinkState::Down(now);
        self.requests.link.losses += 1;
        self.requests.close_data(&mut self.outputs);
        self.view.leases_lost();
        if self.view.exclusive.unconfirmed.is_alone() {
            self.view.note_unanswered(&mut self.outputs);
        }
        self.view.alone_lost();
        self.view.exclusive.synced.forget();
        self.view.exclusive.rollback.forget();
        self.end_delegations();
        for given_up in self.requests.interrupted(self.requests.link.is_blamed) {
            self.change_lost(given_up);
        }
    }

    /// Takes in the server's statement that this client violated the protocol. Client and server disagree about the session's changes, so
    /// sending them again unchanged would end the next connection too ([`Client::connected`]).
    pub(crate) fn blamed(&mut self, error: &Rerror) -> Malformed {
        self.requests.link.is_blamed = true;
        self.outputs.push(Output::Blamed(error.ename.to_string()));
        Malformed { what: "the server says that this client broke the protocol", at: 1 }
    }

    /// Takes in a new connection. `resumed`: the server still knows the session's open files and locks.
    ///
    /// After the server has blamed this client, its ledger counts as unknown. Idempotent changes are sent again, under
    /// new numbers above all that the server may have seen. The outcome of the other changes is unknown.
    pub fn connected(&mut self, now: Time, attachment: Attachment, resumed: bool) {
        self.view.mount.now = now;
        self.requests.link.state = LinkState::Up(now);
        self.requests.link.received(now);
        // The replay resumed the session, and opened no files.
        let is_redone = std::mem::take(&mut self.view.exclusive.is_replayed);
        self.requests.release_numbers();
        let is_lost = attachment.boot != self.view.mount.attachment.boot;
        let knows_ledger = is_redone || knows_ledger(&attachment, resumed, is_lost);
        let resumed = resumed && !is_redone && !is_lost;
        if !resumed {
            self.view.files.forget_fds();
            self.view.locks.forget_held();
        }
        // A number may stand for another open of the same file by now.
        let files = &self.view.files;
        self.requests.retain_waiting(
            |pending| !matches!(pending, Pending::Close(closing) if !resumed || files.is_used(closing.fd)),
        );
        let goes_ahead = is_lost && unstable::send_again(&mut self.sender());
        let is_blamed = std::mem::take(&mut self.requests.link.is_blamed);
        let knows_changes = !is_blamed && knows_ledger;
        for given_up in self.requests.attached(attachment.ledger, knows_changes) {
            self.change_lost(given_up);
        }
        if let Some(ledger) = attachment.ledger.filter(|_| goes_ahead) {
            self.requests.renumber(ledger);
        }
        if is_blamed && self.view.mount.config.journal && self.requests.is_numbered() {
            self.view.journal_again(&mut self.requests, &mut self.outputs);
        }
        self.view.alone_lost();
        self.view.await_exclusivity(&mut self.requests, &mut self.outputs, attachment.ledger.is_some());
        self.view.leases_attached(&mut self.outputs, attachment.leases.as_ref());
        self.requests.allow_data_connections(attachment.data_connections);
        self.view.mount.attachment = attachment;
        self.view.prefetch.attached();
        self.view.send_waiting(&mut self.requests, &mut self.outputs);
    }

    /// Whether there is a connection, and since when.
    pub fn link_state(&self) -> LinkState {
        self.requests.link.state
    }

    /// The answer to a lookup while the driver knows that the server is unreachable.
    pub fn look_up_unreachable(&mut self, now: Time, parent: TreeNodeId, name: &[u8]) -> Answer {
        self.view.mount.now = now;
        lookup::unreachable(&mut self.view, parent, name)
    }

    /// Ends the wait of a call, since the driver knows that the server is unreachable. Returns its answer.
    pub fn unreachable(&mut self, now: Time, id: CallId) -> Answer {
        let looked_up = self.requests.find_map(|pending| match pending {
            Pending::Lookup(looking) => looking.name_for(id),
            _ => None,
        });
        self.abandon(now, id, Errno::Interrupted);
        match looked_up {
            Some((parent, name)) => self.look_up_unreachable(now, parent, &name),
            None => Answer::Fail(Errno::HostDown),
        }
    }

    /// The caller of this call got a signal that asks it to end: where only a server that is away or silent keeps it waiting, it waits no
    /// longer.
    pub fn asked_to_end(&mut self, now: Time, call: CallId) {
        self.view.mount.now = now;
        if !self.calls.is_waiting(call) || !self.is_unresponsive(now) {
            return;
        }
        if matches!(self.requests.link.state, LinkState::Up(_)) {
            let is_change = |pending: &Pending| pending.change_of() == Some(call);
            if self.requests.any(is_change) {
                return;
            }
        }
        while let Some(pending) = self.requests.take_waiting(|pending| pending.change_of() == Some(call)) {
            self.request_lost(pending, Errno::Interrupted);
        }
        write::end_throttled(&mut self.answerer(), call);
        self.abandon(now, call, Errno::Interrupted);
    }

    /// Watches the first connection. Returns how long the machine slept.
    pub(crate) fn watch_link(&mut self) -> Duration {
        let slept = self.requests.link.ticked(self.view.mount.now);
        match self.requests.link.state {
            LinkState::Up(since) => self.watch_silence(since),
            LinkState::Down(_) => {
                if self.view.is_past_deadline(&self.requests) {
                    self.give_up();
                }
            }
        }
        slept
    }

    fn watch_silence(&mut self, since: Time) {
        let silence = self.requests.link.silence(self.view.mount.now).min(self.view.mount.now.since(since));
        if !self.requests.is_reply_due() {
            self.requests.link.last_received = self.view.mount.now;
            return;
        }
        if silence >= SILENCE_BEFORE_HANG_UP {
            self.outputs.push(Output::HangUp);
        } else if silence >= SILENCE_BEFORE_PING && !self.requests.link.pinged {
            self.requests.link.pinged = true;
            // Requests that wait for others are no reason for silence.
            self.sender().send_first(Request::Ping(Tping {}), Pending::IGNORE);
        }
    }

    /// Ends all calls that wait past the deadline.
    fn give_up(&mut self) {
        for pending in self.requests.give_up_waiting() {
            self.request_lost(pending, Errno::HostDown);
        }
        for call in self.calls.waiting().collect::<Vec<_>>() {
            self.answerer().fail(call, Errno::HostDown);
        }
    }

    /// Whether there is no connection, or a silent one although a reply is due.
    pub fn is_unresponsive(&self, now: Time) -> bool {
        match self.requests.link.state {
            LinkState::Up(since) => {
                let silence = self.requests.link.silence(now).min(now.since(since));
                self.requests.is_reply_due() && silence >= SILENCE_BEFORE_PING
            }
            LinkState::Down(_) => true,
        }
    }

    /// Ends a call that has just begun and would wait past the deadline. A call that waits for this machine's disk is left to the
    /// next tick.
    pub(crate) fn end_past_deadline(&mut self, call: CallId) {
        if self.view.is_past_deadline(&self.requests)
            && self.calls.is_waiting(call)
            && !self.view.disk_cache.is_loading()
        {
            self.answerer().fail(call, Errno::HostDown);
        }
    }

    /// Takes a data connection into use that [`Output::OpenData`] asked for. Returns false if it is not wanted any more, and must be
    /// closed.
    pub fn data_opened(&mut self, now: Time, key: DataKey) -> bool {
        self.view.mount.now = now;
        let is_wanted = self.requests.data_opened(now, key);
        if is_wanted {
            self.view.send_waiting(&mut self.requests, &mut self.outputs);
        }
        is_wanted
    }

    /// Notes that a data connection is lost, or could not be opened. Its requests go over the other connections.
    pub fn data_lost(&mut self, now: Time, key: DataKey) {
        self.view.mount.now = now;
        let Some(given_up) = self.requests.data_lost(now, key) else { return };
        for pending in given_up {
            self.request_lost(pending, Errno::Io);
        }
        self.view.send_waiting(&mut self.requests, &mut self.outputs);
    }

    /// Notes the number of network paths to the server. Large reads use all of them, over one connection each.
    pub fn set_paths(&mut self, now: Time, count: usize) {
        self.view.mount.now = now;
        self.requests.set_paths(count);
    }

    /// Closes idle data connections, and silent ones that owe replies.
    pub(crate) fn watch_data(&mut self, slept: Duration) {
        let now = self.view.mount.now;
        for (key, is_silent) in self.requests.overdue_data(now, slept) {
            if is_silent {
                self.outputs.push(Output::HangUpData(key));
                self.data_lost(now, key);
            } else {
                self.requests.close_idle(key, &mut self.outputs);
            }
        }
    }

    /// Drops a reply over a data connection, and sends its request over the first connection.
    pub(crate) fn ask_first(&mut self, outstanding: Outstanding) {
        if let Some(pending) = self.requests.ask_first(self.view.mount.now, outstanding) {
            self.request_lost(pending, Errno::Io);
        }
    }
}
