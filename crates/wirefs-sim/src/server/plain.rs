//! A request to the tree by a session without leases.

use wirefs_model::ModelTree;
use wirefs_op::{Reply, Request};
use wirefs_server::{Replies, SessionKey, Stopped, Tree};

struct Collected(Vec<Reply>);

impl Replies for Collected {
    fn send(&mut self, reply: Reply) -> Result<(), Stopped> {
        self.0.push(reply);
        Ok(())
    }

    fn is_stopped(&self) -> bool {
        false
    }

    fn wait(&mut self) {}
}

/// Returns the tree's replies.
pub(crate) fn serve(tree: &ModelTree, session: SessionKey, request: Request) -> Vec<Reply> {
    let mut collected = Collected(Vec::new());
    tree.serve(session, request, &mut collected);
    collected.0
}
