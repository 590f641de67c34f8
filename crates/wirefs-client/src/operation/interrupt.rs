//! Interrupt: a signal for a caller that waits.
//!
//! | the call | any signal | one that asks the caller to end |
//! |---|---|---|
//! | waits for a lock | ends | ends |
//! | the server replies | goes on, as on a local disk | goes on |
//! | the server is silent | goes on | ends, unless it changes something |
//! | there is no connection | goes on | ends, as at the deadline: a change that was not sent will not be |
//!
//! A `write` whose data was taken in ends as written.

use crate::call::CallId;
use crate::core::Client;
use crate::operation::{lock, write};
use crate::pending::{Continuation, Pending, Withdrawing};
use crate::requests::connection::LinkState;
use wirefs_op::message::flush::Tflush;
use wirefs_op::{Errno, Request, Tag, Time};

pub(crate) fn start(client: &mut Client, call: CallId) {
    let waits = |pending: &Pending| matches!(pending, Pending::Lock(locking) if locking.call == call);
    let Some(oldtag) = client.requests.find(waits) else {
        return not_sent(client, call);
    };
    let withdrawn = match client.requests.pending_mut(oldtag) {
        Some(Pending::Lock(locking)) => locking.withdraw(),
        _ => false,
    };
    if withdrawn {
        client.send(Request::Flush(Tflush { oldtag }), Pending::Withdraw(Withdrawing(oldtag)));
    }
}

impl Client {
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
        write::end_throttled(self, call);
        self.abandon(now, call, Errno::Interrupted);
    }
}

/// It waits for the connection.
fn not_sent(client: &mut Client, call: CallId) {
    let waits = |pending: &Pending| matches!(pending, Pending::Lock(locking) if locking.call == call && locking.is_waiting());
    if let Some(Pending::Lock(locking)) = client.requests.take_waiting(waits) {
        return lock::given_up(client, locking);
    }
    lock::withdraw(client, call);
}

/// The server will not answer the lock any more.
pub(crate) fn finish(client: &mut Client, oldtag: Tag) {
    if let Some(pending) = client.requests.withdraw(oldtag) {
        client.request_failed(pending, Errno::Interrupted);
    }
}
