//! The changes that are on the server's disk, so that the journal need not keep them.

use crate::output::{Note, Output, Outputs};
use crate::requests::Requests;
use crate::view::View;
use wirefs_cache::TreeNodeId;
use wirefs_op::Kind;
use wirefs_op::message::version::BootId;

impl View {
    /// Takes in that the server's disk has all changes below a number. `boot` is the server's boot id at that time;
    /// `None` if the sync failed.
    pub(crate) fn are_durable(
        &mut self,
        requests: &Requests,
        outputs: &mut Outputs,
        below: u64,
        boot: Option<BootId>,
    ) {
        self.exclusive.unconfirmed.durable.asked = false;
        let is_same = boot == Some(self.mount.attachment.boot);
        self.exclusive.unconfirmed.durable.is_due |= !is_same;
        if is_same {
            self.forget_below(requests, outputs, below);
        }
    }

    /// Notes that a file's contents were synced, after all changes below a number.
    pub(crate) fn note_synced(&mut self, outputs: &mut Outputs, node: TreeNodeId, below: u64) {
        let file = self.names.node(node).map(|known| known.stat);
        let file = file.filter(|stat| stat.kind == Kind::File && stat.id.provisional_number().is_none());
        if let Some(stat) = file.filter(|_| self.has_journal()) {
            outputs.push(Output::JournalNote(Note::Synced(below, stat.id)));
        }
    }

    /// Takes in that the server's whole file system was synced, after all changes below a number.
    pub(crate) fn forget_below(&mut self, requests: &Requests, outputs: &mut Outputs, below: u64) {
        // Nothing that would have to be asked for was issued since.
        if below >= requests.next_number() {
            self.exclusive.unconfirmed.durable.is_due = false;
        }
        if self.mount.config.journal && below > self.exclusive.unconfirmed.durable.below {
            self.exclusive.unconfirmed.durable.below = below;
            outputs.push(Output::JournalForget(below));
        }
        self.look_for_room(requests, outputs, below);
    }
}
