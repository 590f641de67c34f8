//! Being ahead of the server: changes that were answered before it has them (`docs/design/0015-optimistic-execution.md`).
//!
//! ```text
//!   alone, a change whose outcome is certain  ->  journal, answer; the request follows in order      (ahead)
//!   its reply comes, and it was the last      ->  the server's word counts again
//!   others come                               ->  nothing new; once all is answered, the server is told
//! ```
//!
//! INVARIANT: what a mount that is ahead shows of an object is what its own changes made of the last that the server told under a
//! lease; nobody else sees or changes the tree before all of those changes are there.

mod durable;
mod full;
mod shown;

use crate::core::Client;
use crate::output::{Lane, Note, Output};
use crate::pending::{Pending, RoomAsking};
use crate::view::unconfirmed::{Held, LATE_MAX, LateError};
use std::time::Duration;
use wirefs_cache::TreeNodeId;
use wirefs_op::message::alone::Ralone;
use wirefs_op::message::get::GetMode;
use wirefs_op::message::recall::Trecalled;
use wirefs_op::message::statfs::Tstatfs;
use wirefs_op::message::target::Target;
use wirefs_op::message::xattr::XattrAction;
use wirefs_op::{Errno, FileId, NOTAG, Request, Time, Timestamp, TreePath};

/// Changes that were issued and are not answered, at most: past it a change waits for the server, as if nobody were ahead.
const ISSUED_MAX: usize = 16 * 1024;

/// Free room on the server's disk beyond all changes in progress, in bytes and in inodes, that optimistic execution requires: a call
/// that was answered early cannot fail for lack of room.
const ROOM_BYTES: u64 = 64 * 1024 * 1024;

const ROOM_FILES: u64 = 1024;

/// Clocks that keep time are together within so many seconds.
const CLOCKS_APART_SECS: i64 = 10;

/// For how long what the server said of its room counts.
const ROOM_FOR: Duration = Duration::from_secs(5);

/// A file's time of change is behind the clock by up to a tick of the server's kernel.
const CTIME_TICK: Duration = Duration::from_millis(10);

impl Client {
    /// Whether a change whose outcome is certain may be answered now.
    pub(crate) fn may_be_ahead(&self) -> bool {
        self.config.journal
            && self.exclusive.unconfirmed.is_alone
            && !self.attachment.read_only
            && self.view.leases.are_valid(self.now)
            && self.requests.len() < ISSUED_MAX
            && self.has_room()
    }

    /// Whether the server's disk will surely take what is on its way, and more.
    fn has_room(&self) -> bool {
        let Some((figures, _)) = self.view.figures else { return false };
        let bytes = figures.blocks_available.saturating_mul(u64::from(figures.block_bytes));
        let is_unlimited = figures.files == 0;
        bytes
            >= self
                .exclusive
                .unconfirmed
                .taken
                .0
                .saturating_add(self.view.files.unacknowledged())
                .saturating_add(ROOM_BYTES)
            && (is_unlimited
                || figures.files_free >= self.exclusive.unconfirmed.taken.1.saturating_add(ROOM_FILES))
    }

    /// Whether what this client knows of the node is what counts: own changes of it are on their way, and nobody else's can be.
    pub(crate) fn is_ahead(&self, node: TreeNodeId) -> bool {
        self.view.files.is_ahead(node)
            && self.view.names.node(node).is_some_and(|known| known.freshness.is_some())
    }

    /// Whether an own change of the node may be shown before the server has it.
    pub(crate) fn can_be_ahead(&self, node: TreeNodeId) -> bool {
        self.may_be_ahead() && self.is_fresh(node)
    }

    /// An own change of the node is about to be shown: what is shown of it is what is known from now on.
    pub(crate) fn shows_own(&mut self, node: TreeNodeId) {
        if let Some(known) = self.view.names.node_mut(node) {
            known.stat = self.exclusive.unconfirmed.shown(&known.stat);
        }
    }

    /// An own change of the node is on its way whose outcome is known.
    pub(crate) fn goes_ahead(&mut self, node: TreeNodeId) {
        self.shows_own(node);
        self.view.files.write_sent(node, 0);
        self.view.files.set_ahead(node);
        self.view.names.hold(node);
    }

    /// The time of day.
    pub(crate) fn time_of_day(&self) -> Timestamp {
        let nanos = u64::from(self.config.day.nanos) + self.now.0;
        Timestamp {
            secs: self.config.day.secs + i64::try_from(nanos / 1_000_000_000).unwrap_or(i64::MAX),
            nanos: (nanos % 1_000_000_000) as u32,
        }
    }

    /// When an object changes whose latest time of change is `ctime`: now, and not before that, since the server's clock may be ahead of
    /// ours. By more than [`CLOCKS_APART_SECS`] one of them is wrong, and ours counts.
    pub(crate) fn time_after(&self, ctime: Timestamp) -> Timestamp {
        let now = self.time_of_day();
        let is_near = ctime.secs.saturating_sub(now.secs) <= CLOCKS_APART_SECS;
        if is_near { now.max(ctime.next()) } else { now }
    }

    /// The server says whether others are there.
    pub(crate) fn exclusivity_changed(&mut self, told: Ralone) {
        self.note_alone(told.alone);
        if told.alone {
            (self.exclusive.unconfirmed.is_alone, self.exclusive.unconfirmed.shares) = (true, None);
            self.ask_room();
            // Who was here before that, nobody knows: what was changed until then is soon to be what no loss of power takes away.
            self.exclusive.unconfirmed.durable.is_urgent = self.exclusive.unconfirmed.durable.is_due;
            self.watch_durable();
        } else {
            (self.exclusive.unconfirmed.is_alone, self.exclusive.unconfirmed.shares) =
                (false, Some(told.serial));
            self.exclusive.rollback.forget();
            self.end_delegations();
            self.share();
        }
    }

    /// Changes from now on are those of a client that is alone, or not.
    pub(crate) fn note_alone(&mut self, is_alone: bool) {
        if self.config.journal {
            let from = is_alone.then(|| self.requests.next_number());
            self.output(Output::JournalNote(Note::Alone(from)));
        }
    }

    /// Somebody at the server has changed something.
    pub(crate) fn note_others(&mut self) {
        if self.exclusive.unconfirmed.is_alone {
            self.note_alone(true);
        }
    }

    /// The server tells when an object was changed by a change of this client's.
    pub(crate) fn note_seen(&mut self, at: Timestamp) {
        if self.config.journal && at > self.exclusive.unconfirmed.seen {
            self.exclusive.unconfirmed.seen = at;
            self.output(Output::JournalNote(Note::Seen(at)));
        }
    }

    /// The reply to a change that was asked for then tells when something was changed.
    pub(crate) fn note_changed(&mut self, at: Timestamp, asked: Time) {
        if at > self.exclusive.unconfirmed.seen {
            self.exclusive.unconfirmed.server_clock = Some((at, asked));
        }
        self.note_seen(at);
    }

    /// The connection of a client that is alone ends. The server would have told of changes by others until now, so what was changed until
    /// now was changed by this client, also where the reply is lost.
    pub(crate) fn note_unanswered(&mut self) {
        let now = match self.exclusive.unconfirmed.server_clock {
            Some((at, asked)) => at.after(self.now.since(asked)),
            None => self.time_of_day(),
        };
        self.note_seen(now.after(CTIME_TICK));
    }

    /// An own change of the node is about to be issued: what the server has told of it was told before.
    pub(crate) fn note_known(&mut self, node: TreeNodeId) {
        let known = self.view.names.node(node).filter(|_| !self.view.files.is_ahead(node));
        if let Some(at) = known.map(|known| known.stat.ctime) {
            self.note_seen(at);
        }
    }

    /// Others wait for what this client has changed: they are let on once all of it is answered.
    pub(crate) fn share(&mut self) {
        let Some(serial) = self
            .exclusive
            .unconfirmed
            .shares
            .filter(|_| !self.exclusive.unconfirmed.is_any() && !self.requests.any_change())
        else {
            return;
        };
        self.exclusive.unconfirmed.shares = None;
        let request = Request::Recalled(Trecalled { serial });
        let frame = request.encode(NOTAG);
        self.counters.count(&request);
        self.transmit(frame, Lane::Changes);
    }

    /// The connection is lost, or another one is there.
    pub(crate) fn alone_lost(&mut self) {
        (self.exclusive.unconfirmed.is_alone, self.exclusive.unconfirmed.shares) = (false, None);
        self.exclusive.unconfirmed.asks_room = false;
    }

    /// Asks how much room there is, where that is not known well enough.
    pub(crate) fn watch_room(&mut self) {
        let is_old = self.view.figures.is_none_or(|(_, at)| self.now >= at + ROOM_FOR);
        if self.exclusive.unconfirmed.is_alone
            && self.config.journal
            && is_old
            && self.exclusive.unconfirmed.taken != (0, 0)
        {
            self.ask_room();
        }
    }

    fn ask_room(&mut self) {
        if !self.exclusive.unconfirmed.asks_room && self.requests.link.is_up() && self.config.journal {
            self.exclusive.unconfirmed.asks_room = true;
            let target = Target::at(TreePath::root());
            self.send(Request::Statfs(Tstatfs { target }), Pending::Room(RoomAsking));
        }
    }

    /// The server has said how much room there is, all that it has by then counted.
    pub(crate) fn room_known(&mut self, is_told: bool) {
        self.exclusive.unconfirmed.asks_room = false;
        if is_told {
            self.exclusive.unconfirmed.taken = (0, 0);
        }
    }

    /// Requests that are not changes go behind those that are on their way: what they tell must have them in it. Hands it back where it
    /// may be sent.
    pub(crate) fn behind(&mut self, mut request: Request, pending: Pending) -> Option<(Request, Pending)> {
        if !self.exclusive.unconfirmed.is_any() {
            return Some((request, pending));
        }
        let waits = match &mut request {
            Request::Get(get) => {
                get.mode = get.mode.and(GetMode::ORDERED);
                false
            }
            Request::Xattr(xattr) => matches!(xattr.action, XattrAction::Read | XattrAction::List),
            Request::Seek(_) | Request::Find(_) => true,
            // What is not there yet is on some file system all the same, but only the server knows on which.
            Request::Statfs(statfs) => statfs.target.id.is_some_and(|id| id.provisional_number().is_some()),
            Request::Version(_)
            | Request::Attach(_)
            | Request::Flush(_)
            | Request::Ping(_)
            | Request::Put(_)
            | Request::Remove(_)
            | Request::Rename(_)
            | Request::Link(_)
            | Request::Allocate(_)
            | Request::Copy(_)
            | Request::Commit(_)
            | Request::Lock(_)
            | Request::Recalled(_)
            | Request::Number(_) => false,
        };
        if !waits {
            return Some((request, pending));
        }
        let until = self.exclusive.unconfirmed.issued;
        self.exclusive.unconfirmed.held.push_back(Held { request, pending, until, asked: self.now });
        None
    }

    /// Objects that what is held is about have other ids by now.
    pub(crate) fn rename_held_ids(&mut self, id_of: impl Fn(FileId) -> FileId) {
        for id in self.exclusive.unconfirmed.held.iter_mut().flat_map(|held| held.request.ids_mut()).flatten()
        {
            *id = id_of(*id);
        }
    }

    /// Sends what waited for changes that are answered by now.
    pub(crate) fn release_held(&mut self) {
        while self
            .exclusive
            .unconfirmed
            .held
            .front()
            .is_some_and(|held| held.until <= self.exclusive.unconfirmed.answered)
        {
            let Some(Held { request, pending, asked, .. }) = self.exclusive.unconfirmed.held.pop_front()
            else {
                return;
            };
            self.requests.wait(asked, request, pending);
        }
    }

    /// Whether `close` need not wait for the server to have what was written: the journal has it, and nobody else sees the file before the
    /// server does.
    pub(crate) fn closes_ahead(&self, node: TreeNodeId) -> bool {
        self.is_ahead(node) && self.may_be_ahead() && self.config.mode.publish.is_write_back()
    }

    pub(crate) fn note_late(&mut self, what: &'static str, path: TreePath, errno: Errno) {
        if self.exclusive.unconfirmed.late.len() >= LATE_MAX {
            self.exclusive.unconfirmed.late.pop_front();
        }
        self.exclusive.unconfirmed.late_count += 1;
        self.exclusive.unconfirmed.late.push_back(LateError { what, path, errno, at: self.now });
    }
}
