//! Exclusive sessions: how they begin and end, and how much room the server has for unconfirmed changes.

use crate::core::Client;
use crate::pending::{Pending, RoomAsking, Syncing};
use crate::sending::Sender;
use std::time::Duration;
use wirefs_op::message::alone::Ralone;
use wirefs_op::message::commit::{CommitScope, Tcommit};
use wirefs_op::message::statfs::Tstatfs;
use wirefs_op::message::target::Target;
use wirefs_op::{Request, Time, TreePath};

/// Validity of the figures of the server's room.
const ROOM_FOR: Duration = Duration::from_secs(5);

/// If no change was issued for this long, the server is asked to sync.
const DURABLE_IDLE: std::time::Duration = std::time::Duration::from_secs(1);

/// While changes continue, the server is asked to sync at this interval.
const DURABLE_AFTER: std::time::Duration = std::time::Duration::from_secs(5);

impl Client {
    /// Takes in the server's statement whether the session is exclusive.
    pub(crate) fn exclusivity_changed(&mut self, told: Ralone) {
        self.view.note_alone(&self.requests, &mut self.outputs, told.alone);
        self.requests.release_changes();
        self.view.exclusive.unconfirmed.was_exclusive = false;
        if told.alone {
            (self.view.exclusive.unconfirmed.is_alone, self.view.exclusive.unconfirmed.shares) = (true, None);
            ask_room(&mut self.sender());
            // Other sessions may have been there before: earlier changes are made durable soon.
            self.view.exclusive.unconfirmed.durable.is_urgent =
                self.view.exclusive.unconfirmed.durable.is_due;
            self.watch_durable();
        } else {
            (self.view.exclusive.unconfirmed.is_alone, self.view.exclusive.unconfirmed.shares) =
                (false, Some(told.serial));
            self.view.exclusive.rollback.forget();
            self.end_delegations();
            self.view.share(&mut self.requests, &mut self.outputs);
        }
        self.view.send_waiting(&mut self.requests, &mut self.outputs);
    }

    /// Asks for the room on the server's disk, if the figures are old.
    pub(crate) fn watch_room(&mut self) {
        let is_old = self.view.figures.is_none_or(|(_, at)| self.view.mount.now >= at + ROOM_FOR);
        if self.view.exclusive.unconfirmed.is_alone
            && self.view.mount.config.journal
            && is_old
            && self.view.exclusive.unconfirmed.taken != (0, 0)
        {
            ask_room(&mut self.sender());
        }
    }
}

fn ask_room(sender: &mut Sender<'_>) {
    if !sender.view.exclusive.unconfirmed.asks_room
        && sender.requests.link.is_up()
        && sender.view.mount.config.journal
    {
        sender.view.exclusive.unconfirmed.asks_room = true;
        let target = Target::at(TreePath::root());
        sender.send(Request::Statfs(Tstatfs { target }), Pending::Room(RoomAsking));
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
        self.sender().send(
            Request::Commit(Tcommit { target, scope: CommitScope::Filesystem }),
            Pending::Durable(Syncing(next)),
        );
    }
}

impl Client {
    /// Notes that the journal has failed: from now on no change is answered before the server has it.
    pub fn journal_failed(&mut self, now: Time) {
        self.view.mount.now = now;
        (self.view.mount.config.journal, self.view.exclusive.unconfirmed.awaits_room) = (false, false);
    }

    /// The same for as long as there is no room for it on the local disk: now and then, when the server's disk has everything, what
    /// [`Output::JournalAnew`] says is tried.
    pub fn journal_full(&mut self, now: Time) {
        self.view.mount.now = now;
        if self.view.mount.config.journal {
            (self.view.mount.config.journal, self.view.exclusive.unconfirmed.awaits_room) = (false, true);
        }
    }

    /// The journal was begun anew, with nothing in it.
    pub fn journal_begun(&mut self, now: Time) {
        self.view.mount.now = now;
        (self.view.mount.config.journal, self.view.exclusive.unconfirmed.awaits_room) = (true, false);
        self.view.note_alone(&self.requests, &mut self.outputs, self.view.exclusive.unconfirmed.is_alone());
    }
}
