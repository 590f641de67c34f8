//! How far the server's disk has what was changed, so that the journal need not keep it.

use crate::core::Client;
use crate::output::Outputs;
use crate::output::{Note, Output};
use crate::pending::{Pending, Syncing};
use crate::requests::Requests;
use crate::view::View;
use wirefs_cache::TreeNodeId;
use wirefs_op::message::commit::{CommitScope, Tcommit};
use wirefs_op::message::target::Target;
use wirefs_op::message::version::BootId;
use wirefs_op::{Kind, Request, TreePath};

/// With so long nothing issued, the server's disk is asked for.
const DURABLE_IDLE: std::time::Duration = std::time::Duration::from_secs(1);

/// While changes go on, it is asked for so often.
const DURABLE_AFTER: std::time::Duration = std::time::Duration::from_secs(5);

impl View {
    /// The server's disk has all changes below a number; `boot` is the server's then, `None` where it failed.
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

    /// The contents of a file were brought to the server's disk, behind all changes below a number.
    pub(crate) fn note_synced(&mut self, outputs: &mut Outputs, node: TreeNodeId, below: u64) {
        let file = self.names.node(node).map(|known| known.stat);
        let file = file.filter(|stat| stat.kind == Kind::File && stat.id.provisional_number().is_none());
        if let Some(stat) = file.filter(|_| self.has_journal()) {
            outputs.push(Output::JournalNote(Note::Synced(below, stat.id)));
        }
    }

    /// The whole file system was brought to the server's disk, behind all changes below a number.
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

impl Client {
    /// Now and then, and when nothing else is to be done, the server is asked to bring everything to its disk, so that the journal need
    /// not keep it.
    pub(crate) fn watch_durable(&mut self) {
        let next = self.requests.next_number();
        let awaits_room = self.view.exclusive.unconfirmed.awaits_room;
        if !self.view.has_journal() || !self.requests.is_numbered() || !self.requests.link.is_up() {
            return;
        }
        let durable = &mut self.view.exclusive.unconfirmed.durable;
        if next != durable.seen {
            (durable.seen, durable.seen_at) = (next, self.view.mount.now);
        }
        let is_idle = self.view.mount.now >= durable.seen_at + DURABLE_IDLE && !self.requests.any_change();
        // Room may come without anything being changed; looking for it is not to keep the server's disk busy.
        let is_time = (is_idle && !awaits_room)
            || durable.is_urgent
            || self.view.mount.now >= durable.asked_at + DURABLE_AFTER;
        if durable.asked || !(durable.is_due || awaits_room) || !is_time {
            return;
        }
        (durable.asked, durable.is_due, durable.asked_at) = (true, false, self.view.mount.now);
        durable.is_urgent = false;
        let target = Target::at(TreePath::root());
        self.send(
            Request::Commit(Tcommit { target, scope: CommitScope::Filesystem }),
            Pending::Durable(Syncing(next)),
        );
    }
}
