//! Replay of the journal after the server's machine has lost changes. While this client lives, the replay uses a
//! connection of its own.
//!
//! ```text
//!   begin_redo     changes get no numbers from now on; the driver reads the journal and sends its changes again
//!   redone         objects get new ids; changes in progress are done; the others get new numbers, and are journaled
//!   connected      normal operation
//! ```
//! INVARIANT: a change that is in the journal at [`Client::begin_redo`] is never sent under its old number again, and
//! later changes are not journaled before [`Client::redone`]. So the server's ledger never mistakes one change for
//! another.

use crate::core::Client;
use crate::pending::Pending;
use crate::requests::Outstanding;
use crate::requests::connection::LinkState;
use crate::view::View;
use crate::view::shown::ino_of;
use std::collections::BTreeMap;
use wirefs_cache::TreeNodeId;
use wirefs_op::message::allocate::Rallocate;
use wirefs_op::message::copy::Rcopy;
use wirefs_op::message::error::Rerror;
use wirefs_op::message::link::Rlink;
use wirefs_op::message::put::{PutMode, Rput};
use wirefs_op::message::remove::Rremove;
use wirefs_op::message::rename::Rrename;
use wirefs_op::message::target::NOFD;
use wirefs_op::message::version::BootId;
use wirefs_op::message::xattr::Rxattr;
use wirefs_op::{Errno, FileId, Reply, Request, Stat, Time};

/// The outcome of a change whose reply was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Again {
    /// The change was sent again, and got this reply.
    Answered(Box<Reply>),
    /// The change was already done, or is obsolete. The present attributes of its object, if that has a name.
    Done(Option<Stat>),
}

/// The result of a replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redone {
    /// The boot id of the server, whose disk has all changes now.
    pub boot: BootId,
    /// A number above all numbers under which changes were sent again.
    pub next: u64,
    /// The recreated objects: the new attributes by the former id.
    pub made: BTreeMap<FileId, Stat>,
    /// The outcomes of the changes without a reply. All others may not have been sent: they are sent as new ones.
    pub again: BTreeMap<u64, Again>,
}

impl View {
    /// Gives new ids to objects that the server had lost and the replay has recreated. Local programs continue to use
    /// these objects, whose contents are those that were written here.
    ///
    /// INVARIANT: all nodes are looked up before any node gets its new id, which may be the former id of another node.
    fn made_again(&mut self, made: &BTreeMap<FileId, Stat>) {
        let others = made.iter().filter(|(id, stat)| **id != stat.id);
        let nodes = others.filter_map(|(id, stat)| Some((self.names.of_file(*id)?, *stat)));
        let nodes: BTreeMap<TreeNodeId, Stat> = nodes.collect();
        let is_same = |(node, stat): (&TreeNodeId, &Stat)| {
            self.names.node(*node).is_some_and(|known| known.stat.size == stat.size)
        };
        let changed: Vec<TreeNodeId> =
            nodes.iter().filter(|one| !is_same(*one)).map(|(node, _)| *node).collect();
        // Listings have the former ids too, also of files that no program uses, and by names that none has looked up.
        if made.iter().any(|(id, stat)| *id != stat.id) {
            self.directories.invalidate_all();
            self.files.made_again(made);
        }
        self.all_identified(&nodes);
        for node in changed {
            if !self.files.is_writing(node) {
                self.files.invalidate_contents(node);
            }
        }
    }
}

impl Client {
    /// The boot id of the server to which this client is attached.
    pub fn boot(&self) -> BootId {
        self.view.mount.attachment.boot
    }

    /// Begins a replay, since the server's machine has lost changes: new requests wait. Returns the number after the
    /// last journaled change. May be called again before [`Client::redone`].
    pub fn begin_redo(&mut self) -> u64 {
        self.requests.hold_numbers()
    }

    /// Notes that the server is busy with the replay: calls wait, and do not fail.
    pub fn is_being_redone(&mut self, now: Time) {
        if !self.requests.link.is_up() {
            self.requests.link.state = LinkState::Down(now);
        }
    }

    /// Notes that the replay's connection was lost. The server may have executed more changes than it has answered.
    pub fn redo_broke(&mut self, now: Time) {
        self.view.mount.now = now;
        self.view.note_unanswered(&mut self.outputs);
    }

    /// Ends a replay that could not be done: all changes in the journal go to the quarantine. Requests continue with the next
    /// connection, on the tree as it is.
    pub fn not_redone(&mut self, now: Time) {
        self.view.mount.now = now;
        self.requests.release_numbers();
        self.requests.release_changes();
        self.view.forget_below(&self.requests, &mut self.outputs, self.requests.next_number());
    }

    /// Ends a replay: all changes of the journal were executed again, and are on the server's disk. Called while there
    /// is no connection.
    pub fn redone(&mut self, now: Time, redone: Redone) {
        self.view.mount.now = now;
        let Redone { boot, next, made, mut again } = redone;
        self.view.mount.attachment.boot = boot;
        self.view.exclusive.is_replayed = true;
        let confirmed = self.view.confirmed_ids();
        self.view.made_again(&made);
        let id_of = |id: FileId| {
            let known = id.provisional_number().and_then(|_| confirmed.get(&ino_of(id)));
            let id = if made.contains_key(&id) { id } else { known.copied().unwrap_or(id) };
            made.get(&id).map_or(id, |stat| stat.id)
        };
        self.requests.rename_ids(id_of);
        // Nothing is given up: the server, as far as it knows the session, knows it by these changes.
        self.requests.attached(Some(next), true);
        let is_settled = |number: u64, pending: &Pending| {
            again.contains_key(&number) || matches!(pending, Pending::Confirm(_) | Pending::Barrier(_))
        };
        let departure = self.requests.outgoing.request_sent(now);
        let settled = self.requests.take_settled(now, departure, is_settled);
        self.view.forget_below(&self.requests, &mut self.outputs, self.requests.next_number());
        self.requests.hold_changes();
        self.view.journal_again(&mut self.requests, &mut self.outputs);
        // The changes were sent again before what counts as asked for now, so that their times say nothing of the server's clock.
        let server_clock = self.view.exclusive.unconfirmed.server_clock;
        for outstanding in settled {
            // INVARIANT: what was executed optimistically and changes something was in the journal, and could be followed: else it
            // is kept as what failed.
            let fate = outstanding.number.and_then(|number| again.remove(&number));
            let fate = fate.unwrap_or_else(|| unfollowed(&outstanding));
            let reply = reply(&outstanding.request, fate);
            self.reply_arrived(outstanding, reply, true);
        }
        self.view.exclusive.unconfirmed.server_clock = server_clock;
        self.view.go_on_behind(&mut self.requests, &mut self.outputs);
    }
}

fn refused() -> Reply {
    Reply::Error(Rerror::from(Errno::Io))
}

/// The outcome of a change that the replay did not track. An open changes nothing, and the open file, which may have no name any
/// more, is named by its path from now on. A barrier follows changes that the disk already has.
fn unfollowed(outstanding: &Outstanding) -> Again {
    let opening = PutMode::MORE.and(PutMode::READ).and(PutMode::WRITE).and(PutMode::SYNC);
    match (&outstanding.request, &outstanding.pending) {
        (Request::Put(put), _) if put.mode.without(opening) == PutMode::NONE => Again::Done(None),
        (_, Pending::Barrier(_)) => Again::Done(None),
        _ => Again::Answered(Box::new(refused())),
    }
}

/// The reply that the server would have sent first.
fn reply(request: &Request, fate: Again) -> Reply {
    let is_create = matches!(request, Request::Put(put) if put.mode.has(PutMode::CREATE));
    match (fate, request) {
        (Again::Answered(reply), _) => unleased(match *reply {
            // What of it was left to be done may have been less.
            Reply::Put(put) if is_create => Reply::Put(Rput { before: 0, fd: NOFD, dir: None, ..put }),
            reply => reply,
        }),
        (Again::Done(stat), Request::Put(put)) => {
            let before = stat.filter(|_| !is_create).map_or(0, |stat| stat.version);
            let count = put.data.0.len() as u32;
            Reply::Put(Rput { fd: NOFD, count, offset: put.offset, before, stat, dir: None })
        }
        (Again::Done(_), Request::Remove(_)) => Reply::Remove(Rremove { dir: None }),
        (Again::Done(stat), Request::Rename(_)) => {
            Reply::Rename(Rrename { stat, from_dir: None, to_dir: None })
        }
        (Again::Done(stat), Request::Link(_)) => Reply::Link(Rlink { stat, dir: None }),
        (Again::Done(stat), Request::Allocate(_)) => Reply::Allocate(Rallocate { stat }),
        (Again::Done(stat), Request::Copy(copy)) => Reply::Copy(Rcopy { count: copy.length, stat }),
        (Again::Done(stat), Request::Xattr(_)) => Reply::Xattr(Rxattr { stat, value: Default::default() }),
        (Again::Done(_), _) => refused(),
    }
}

/// Removes leases from a reply: those of the replay's connection were returned.
fn unleased(mut reply: Reply) -> Reply {
    let stats = match &mut reply {
        Reply::Put(put) => [put.stat.as_mut(), put.dir.as_mut(), None],
        Reply::Remove(removed) => [removed.dir.as_mut(), None, None],
        Reply::Rename(renamed) => [renamed.stat.as_mut(), renamed.from_dir.as_mut(), renamed.to_dir.as_mut()],
        Reply::Link(linked) => [linked.stat.as_mut(), linked.dir.as_mut(), None],
        Reply::Xattr(xattr) => [xattr.stat.as_mut(), None, None],
        Reply::Allocate(allocated) => [allocated.stat.as_mut(), None, None],
        Reply::Copy(copied) => [copied.stat.as_mut(), None, None],
        _ => [None, None, None],
    };
    stats.into_iter().flatten().for_each(|stat| stat.leased = false);
    reply
}
