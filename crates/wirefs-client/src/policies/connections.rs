//! The effect of the connection's state (up, down, past the deadline) on requests and replies.

use crate::output::{Output, Outputs};
use crate::requests::Requests;
use crate::view::View;
use wirefs_op::{Reply, Request};

impl View {
    /// Gives new numbers to the waiting changes, and journals them under these.
    pub(crate) fn journal_again(&mut self, requests: &mut Requests, outputs: &mut Outputs) {
        for (number, frame) in requests.number_again() {
            outputs.push(Output::Journal(number, frame));
            self.exclusive.unconfirmed.changes();
        }
    }

    /// Whether the connection has been lost for longer than callers wait.
    pub(crate) fn is_past_deadline(&self, requests: &Requests) -> bool {
        requests.link.is_past(self.mount.now, self.mount.config.deadline)
    }

    /// Whether a first reply over a data connection has the version that is known.
    pub(crate) fn is_no_news(&self, request: &Request, reply: &Reply) -> bool {
        let (Request::Get(get), Reply::Get(got)) = (request, reply) else { return false };
        let node = get.target.id.and_then(|id| self.names.of_file(id));
        let known = node.and_then(|node| Some((node, self.names.node(node)?.stat)));
        match (known, got.stat) {
            (Some((node, known)), Some(told)) => {
                told.id == known.id && told.version == known.version && self.files.is_of(node, told.version)
            }
            (Some(_), None) | (None, _) => false,
        }
    }
}
