//! Interrupt: a signal for a caller that waits for a lock. Other calls go on, as on a local disk.

use crate::call::CallId;
use crate::core::Client;
use crate::operation::Pending;
use wirefs_op::message::flush::Tflush;
use wirefs_op::{Errno, Request, Tag};

pub(crate) fn start(client: &mut Client, call: CallId) {
    let waits = |pending: &Pending| matches!(pending, Pending::Lock(locking) if locking.call == call);
    let Some(oldtag) = client.requests.find(waits) else {
        return;
    };
    let withdrawn = match client.requests.pending_mut(oldtag) {
        Some(Pending::Lock(locking)) => locking.withdraw(),
        _ => false,
    };
    if withdrawn {
        client.send(Request::Flush(Tflush { oldtag }), Pending::Withdraw(oldtag));
    }
}

/// The server will not answer the lock any more.
pub(crate) fn finish(client: &mut Client, oldtag: Tag) {
    if let Some(pending) = client.requests.withdraw(oldtag) {
        super::fail(client, pending, Errno::Interrupted);
    }
}
