//! Attributes that replies bring: of names, and of the contents that they vouch for.

use crate::call::Invalidate;
use crate::core::Client;
use crate::output::Outputs;
use crate::requests::Requests;
use crate::view::View;
use wirefs_cache::{Freshness, TreeNodeId};
use wirefs_op::{Stat, Time};

impl Client {
    /// As [`View::refresh`].
    pub(crate) fn refresh(&mut self, stat: &Stat, sent: Time) {
        self.view.refresh(&mut self.requests, &mut self.outputs, stat, sent);
    }

    /// As [`View::learn`].
    pub(crate) fn learn(&mut self, stat: &Stat, known: Freshness) -> TreeNodeId {
        self.view.learn(&mut self.requests, &mut self.outputs, stat, known)
    }
}

impl View {
    /// As [`View::learn`], of an object that was known when they were asked for.
    pub(crate) fn refresh(
        &mut self,
        requests: &mut Requests,
        outputs: &mut Outputs,
        stat: &Stat,
        sent: Time,
    ) {
        let known = self.names.of_file(stat.id).and_then(|node| self.names.node(node));
        if known.is_some_and(|known| known.stat.kind == stat.kind) {
            let known = self.known(stat, sent);
            self.learn(requests, outputs, stat, known);
        }
    }

    /// Takes in attributes: of names, and of the contents that they vouch for.
    pub(crate) fn learn(
        &mut self,
        requests: &mut Requests,
        outputs: &mut Outputs,
        stat: &Stat,
        known: Freshness,
    ) -> TreeNodeId {
        match self.names.of_file(stat.id) {
            // INVARIANT: while own writes are in progress, what the server says is older than what the caller knows.
            Some(node) if self.files.is_writing(node) => node,
            _ => {
                let coherency = self.coherency();
                let (node, counts) = self.names.learn(stat, known, &coherency);
                if counts && self.files.observe(node, stat.version, known, &coherency) {
                    if self.files.may_kernel_have(node) {
                        outputs.invalidate(Invalidate::Node { node, offset: 0, length: 0 });
                    }
                    self.outdated(requests, outputs, node);
                }
                node
            }
        }
    }
}
