//! Attributes that replies bring: of names, and of the contents that they vouch for.

use crate::call::Invalidate;
use crate::core::Client;
use crate::operation::as_opened;
use wirefs_cache::{Freshness, TreeNodeId};
use wirefs_op::{Stat, Time};

impl Client {
    /// As [`Client::learn`], of an object that was known when they were asked for.
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
                    as_opened::outdated(self, node);
                }
                node
            }
        }
    }

    /// Counts a change of the node that is about to be sent: until its reply, statements of the server about the node may be
    /// older or newer than the change.
    pub(crate) fn change_begins(&mut self, node: TreeNodeId, bytes: u64) {
        as_opened::outdated(self, node);
        self.view.files.contents(node).appended = None;
        self.view.files.write_sent(node, bytes);
        self.view.names.hold(node);
    }
}
