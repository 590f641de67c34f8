//! Takes in the attributes in replies: of names, and of the contents whose version they state.

use crate::call::Invalidate;
use crate::sending::Sender;
use wirefs_cache::{Freshness, TreeNodeId};
use wirefs_op::{Stat, Time};

impl Sender<'_> {
    /// As [`Sender::learn`], for an object that was known when its attributes were requested.
    pub(crate) fn refresh(&mut self, stat: &Stat, sent: Time) {
        let known = self.view.names.of_file(stat.id).and_then(|node| self.view.names.node(node));
        if known.is_some_and(|known| known.stat.kind == stat.kind) {
            let known = self.view.known(stat, sent);
            self.learn(stat, known);
        }
    }

    /// Takes in attributes: of names, and of the contents that they vouch for.
    pub(crate) fn learn(&mut self, stat: &Stat, known: Freshness) -> TreeNodeId {
        match self.view.names.of_file(stat.id) {
            // INVARIANT: while own writes are in progress, what the server says is older than what the caller knows.
            Some(node) if self.view.files.is_writing(node) => node,
            _ => {
                let coherency = self.view.coherency();
                let (node, counts) = self.view.names.learn(stat, known, &coherency);
                if counts && self.view.files.observe(node, stat.version, known, &coherency) {
                    if self.view.files.may_kernel_have(node) {
                        self.outputs.invalidate(Invalidate::Node { node, offset: 0, length: 0 });
                    }
                    self.outdated(node);
                }
                node
            }
        }
    }
}
