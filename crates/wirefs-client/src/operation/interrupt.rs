//! Interrupt: a signal for a caller that waits.
//!
//! | the call | any signal | one that asks the caller to end |
//! |---|---|---|
//! | waits for a lock | ends | ends |
//! | the server replies | goes on, as on a local disk | goes on |
//! | the server is silent | goes on | ends, unless it changes something |
//! | there is no connection | goes on | ends, as at the deadline: a change that was not sent will not be |
//!
//! A `write` whose data was accepted returns success.

use crate::call::CallId;
use crate::core::Client;
use crate::operation::lock;
use crate::pending::{Pending, Withdrawing};
use crate::sending::Sender;
use crate::steps::Step;
use wirefs_op::message::flush::Tflush;
use wirefs_op::{Errno, Request, Tag};

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
        client.sender().send_first(Request::Flush(Tflush { oldtag }), Pending::Withdraw(Withdrawing(oldtag)));
    }
}

/// It waits for the connection.
fn not_sent(client: &mut Client, call: CallId) {
    let waits = |pending: &Pending| matches!(pending, Pending::Lock(locking) if locking.call == call && locking.is_waiting());
    if let Some(Pending::Lock(locking)) = client.requests.take_waiting(waits) {
        return lock::given_up(client, locking);
    }
    lock::withdraw(&mut client.answerer(), call);
}

/// The server will not answer the lock any more.
pub(crate) fn finish(sender: &mut Sender<'_>, oldtag: Tag) {
    if let Some(pending) = sender.requests.withdraw(oldtag) {
        sender.outputs.leave(Step::Fail(pending, Errno::Interrupted));
    }
}
