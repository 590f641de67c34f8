//! Optimistic execution: changes that are answered before the server has them (`docs/design/0015-optimistic-execution.md`).
//!
//! ```text
//!   exclusive session, certain outcome   ->  journal, answer; the request follows in order
//!   reply to the last change of a node   ->  the server's attributes count again
//!   another session attaches             ->  no new unconfirmed changes; once all are answered, the server admits it
//! ```
//!
//! INVARIANT: an object with unconfirmed changes is shown in its last leased state plus these changes. No other session
//! sees or changes the tree before the server has all of them.

mod durable;
mod full;
mod shown;

use crate::output::{Lane, Note, Output, Outputs};
use crate::pending::Pending;
use crate::requests::Requests;
use crate::view::View;
use crate::view::unconfirmed::{LATE_MAX, LateError};
use std::time::Duration;
use wirefs_cache::TreeNodeId;
use wirefs_op::message::get::GetMode;
use wirefs_op::message::ping::Tping;
use wirefs_op::message::recall::Trecalled;
use wirefs_op::message::xattr::XattrAction;
use wirefs_op::{Errno, NOTAG, Request, Time, Timestamp, TreePath};

/// Unconfirmed changes, at most: further ones wait for the server.
const ISSUED_MAX: usize = 16 * 1024;

/// Free room on the server's disk beyond all changes in progress, in bytes and in inodes, that optimistic execution requires: a call
/// that was answered early cannot fail for lack of room.
const ROOM_BYTES: u64 = 64 * 1024 * 1024;

const ROOM_FILES: u64 = 1024;

/// Synchronized clocks differ by at most this many seconds.
const CLOCKS_APART_SECS: i64 = 10;

/// A file's time of change is behind the clock by up to a tick of the server's kernel.
const CTIME_TICK: Duration = Duration::from_millis(10);

impl View {
    /// Whether a change with a certain outcome may be answered now.
    pub(crate) fn may_be_ahead(&self, requests: &Requests) -> bool {
        self.mount.config.journal
            && self.exclusive.unconfirmed.is_alone
            && !self.mount.attachment.read_only
            && self.leases.are_valid(self.mount.now)
            && requests.len() < ISSUED_MAX
            && self.has_room()
    }

    /// Whether the server's disk has room for all changes in progress, and more.
    fn has_room(&self) -> bool {
        let Some((figures, _)) = self.figures else { return false };
        let bytes = figures.blocks_available.saturating_mul(u64::from(figures.block_bytes));
        let is_unlimited = figures.files == 0;
        bytes
            >= self
                .exclusive
                .unconfirmed
                .taken
                .0
                .saturating_add(self.files.unacknowledged())
                .saturating_add(ROOM_BYTES)
            && (is_unlimited
                || figures.files_free >= self.exclusive.unconfirmed.taken.1.saturating_add(ROOM_FILES))
    }

    /// Whether the cached attributes of a node count although changes of it are in progress: all of these are this client's own.
    pub(crate) fn is_ahead(&self, node: TreeNodeId) -> bool {
        self.files.is_ahead(node) && self.names.node(node).is_some_and(|known| known.freshness.is_some())
    }

    /// Whether a change of the node may become visible before the server has it.
    pub(crate) fn can_be_ahead(&self, requests: &Requests, node: TreeNodeId) -> bool {
        self.may_be_ahead(requests) && self.is_fresh(node)
    }

    /// Makes the shown attributes of a node its cached ones, before an unconfirmed change of it.
    pub(crate) fn shows_own(&mut self, node: TreeNodeId) {
        if let Some(known) = self.names.node_mut(node) {
            known.stat = self.exclusive.unconfirmed.shown(&known.stat);
        }
    }

    /// Notes an unconfirmed change of a node.
    pub(crate) fn goes_ahead(&mut self, node: TreeNodeId) {
        self.shows_own(node);
        self.files.write_sent(node, 0);
        self.files.set_ahead(node);
        self.names.hold(node);
    }

    /// The time of day.
    pub(crate) fn time_of_day(&self) -> Timestamp {
        let nanos = u64::from(self.mount.config.day.nanos) + self.mount.now.0;
        Timestamp {
            secs: self.mount.config.day.secs + i64::try_from(nanos / 1_000_000_000).unwrap_or(i64::MAX),
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

    /// Begins a connection, on which the session is not exclusive at first. After a replay, no change is sent before that is known: Ralone
    /// follows Rattach at once, or the reply to this ping comes without it.
    pub(crate) fn await_exclusivity(
        &mut self,
        requests: &mut Requests,
        outputs: &mut Outputs,
        is_numbered: bool,
    ) {
        if requests.held_from().is_some() && is_numbered {
            requests.wait_first(self.mount.now, vec![(Request::Ping(Tping {}), Pending::IGNORE)]);
        } else {
            self.not_exclusive(requests, outputs);
        }
    }

    /// Notes that changes are sent from now on, and that the session is not exclusive.
    fn not_exclusive(&mut self, requests: &mut Requests, outputs: &mut Outputs) {
        requests.release_changes();
        self.note_alone(requests, outputs, false);
    }

    /// Takes in a reply over the first connection: a Ralone that follows Rattach would have come before.
    pub(crate) fn exclusivity_not_granted(&mut self, requests: &mut Requests, outputs: &mut Outputs) {
        if requests.held_from().is_some() {
            self.not_exclusive(requests, outputs);
        }
    }

    /// Notes in the journal whether changes from now on are those of an exclusive session.
    pub(crate) fn note_alone(&mut self, requests: &Requests, outputs: &mut Outputs, is_alone: bool) {
        if self.mount.config.journal {
            let from = is_alone.then(|| requests.held_from().unwrap_or(requests.next_number()));
            outputs.push(Output::JournalNote(Note::Alone(from)));
        }
    }

    /// Notes in the journal that a server program has changed something.
    pub(crate) fn note_others(&mut self, requests: &Requests, outputs: &mut Outputs) {
        if self.exclusive.unconfirmed.is_alone {
            self.note_alone(requests, outputs, true);
        }
    }

    /// Notes the time that a change of this client has got at the server.
    pub(crate) fn note_seen(&mut self, outputs: &mut Outputs, at: Timestamp) {
        if self.mount.config.journal && at > self.exclusive.unconfirmed.seen {
            self.exclusive.unconfirmed.seen = at;
            outputs.push(Output::JournalNote(Note::Seen(at)));
        }
    }

    /// Takes in the change time in the reply to a change that was requested at `asked`.
    pub(crate) fn note_changed(&mut self, outputs: &mut Outputs, at: Timestamp, asked: Time) {
        if at > self.exclusive.unconfirmed.seen {
            self.exclusive.unconfirmed.server_clock = Some((at, asked));
        }
        self.note_seen(outputs, at);
    }

    /// Notes the end of an exclusive session's connection. Until now the server would have reported any change by
    /// others. So all changes up to this time are this client's, including those whose reply is lost.
    pub(crate) fn note_unanswered(&mut self, outputs: &mut Outputs) {
        let now = match self.exclusive.unconfirmed.server_clock {
            Some((at, asked)) => at.after(self.mount.now.since(asked)),
            None => self.time_of_day(),
        };
        self.note_seen(outputs, now.after(CTIME_TICK));
    }

    /// Notes the server's change time of a node, before the first own change of it.
    pub(crate) fn note_known(&mut self, outputs: &mut Outputs, node: TreeNodeId) {
        let known = self.names.node(node).filter(|_| !self.files.is_ahead(node));
        if let Some(at) = known.map(|known| known.stat.ctime) {
            self.note_seen(outputs, at);
        }
    }

    /// Lets the server admit other sessions, once all changes of this one are answered.
    pub(crate) fn share(&mut self, requests: &mut Requests, outputs: &mut Outputs) {
        let Some(serial) = self
            .exclusive
            .unconfirmed
            .shares
            .filter(|_| !self.exclusive.unconfirmed.is_any() && !requests.any_change())
        else {
            return;
        };
        self.exclusive.unconfirmed.shares = None;
        let request = Request::Recalled(Trecalled { serial });
        let frame = request.encode(NOTAG);
        outputs.counters.count(&request);
        self.transmit(requests, outputs, frame, Lane::Changes);
    }

    /// Ends the exclusive session, since its connection is lost or replaced.
    pub(crate) fn alone_lost(&mut self) {
        self.exclusive.unconfirmed.was_exclusive |= self.exclusive.unconfirmed.is_alone;
        (self.exclusive.unconfirmed.is_alone, self.exclusive.unconfirmed.shares) = (false, None);
        self.exclusive.unconfirmed.asks_room = false;
    }

    /// Takes in the room on the server's disk, which includes all changes that the server has.
    pub(crate) fn room_known(&mut self, is_told: bool) {
        self.exclusive.unconfirmed.asks_room = false;
        if is_told {
            self.exclusive.unconfirmed.taken = (0, 0);
        }
    }

    /// Orders a query after the unconfirmed changes, which its reply must include. Returns it if it may be sent now.
    pub(crate) fn behind(
        &mut self,
        requests: &mut Requests,
        mut request: Request,
        pending: Pending,
    ) -> Option<(Request, Pending)> {
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
        requests.hold(self.mount.now, self.exclusive.unconfirmed.issued, request, pending);
        None
    }

    /// Whether `close` need not wait for the server: the journal has the data, and no other session sees the file before the server has it.
    pub(crate) fn closes_ahead(&self, requests: &Requests, node: TreeNodeId) -> bool {
        self.is_ahead(node) && self.may_be_ahead(requests) && self.mount.config.mode.publish.is_write_back()
    }

    pub(crate) fn note_late(&mut self, what: &'static str, path: TreePath, errno: Errno) {
        if self.exclusive.unconfirmed.late.len() >= LATE_MAX {
            self.exclusive.unconfirmed.late.pop_front();
        }
        self.exclusive.unconfirmed.late_count += 1;
        self.exclusive.unconfirmed.late.push_back(LateError { what, path, errno, at: self.mount.now });
    }
}
