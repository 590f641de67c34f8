//! The machine: its inputs, its outputs, and what they share.

use crate::ahead::Ahead;
use crate::call::{Answer, Call, CallId, Caller, Invalidate};
use crate::contended::Contended;
use crate::data_connections::{DataConnections, DataKey};
use crate::files::Files;
use crate::host::HostName;
use crate::leases::Leases;
use crate::link::Link;
use crate::locks::Locks;
use crate::operation::displaced::Displacing;
use crate::operation::list::Misses;
use crate::operation::publish::Publications;
use crate::operation::write::Throttled;
use crate::operation::{self, Pending};
use crate::predict;
use crate::requests::{Outstanding, Requests};
use crate::rollback::Rollback;
use crate::status::Counters;
use crate::stored::Stored;
use crate::streams::Streams;
use crate::synced::Synced;
use crate::trim::{self, Trim};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;
use wirefs_cache::{
    CachePiece, DirectoryCache, Freshness, InactiveListings, Mode, NameTree, PathEstimator, TreeNodeId,
};
use wirefs_op::message::attach::Leases as Terms;
use wirefs_op::message::find::FindMode;
use wirefs_op::message::get::GotMode;
use wirefs_op::message::version::BootId;
use wirefs_op::wire::Malformed;
use wirefs_op::{Errno, FileId, Frame, FsStat, NOTAG, Reply, Request, Stat, Time, Timestamp};

/// What the user chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// When to validate, publish, fetch.
    pub mode: Mode,
    /// How long a call may wait for a silent server. `None`: for ever (`--hard`).
    pub deadline: Option<Duration>,
    /// The user whose files the server user's files are shown as.
    pub uid: u32,
    /// The group likewise.
    pub gid: u32,
    /// Memory for what is known, in bytes: names, listings, and contents.
    pub cache_bytes_max: usize,
    /// The longest that the kernel may believe a name, where it cannot be told to forget all names without waiting. `None`: no
    /// bound.
    pub name_ttl_max: Option<Duration>,
    /// Whether the driver keeps a journal. Only then changes are answered before the server has them.
    pub journal: bool,
    /// Whether `fsync` is answered once the local disk has the journal; else once the server's disk has the file.
    pub fsync_here: bool,
    /// The time of day when [`Time`] was 0, for what is answered before the server says when it was.
    pub day: Timestamp,
    /// This machine, in the names of files that it keeps when somebody else's change met its own.
    pub host: HostName,
}

/// What the server said when the tree was attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// The root's attributes.
    pub root: Stat,
    /// The user that the server runs as.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// Whether it acts for the callers of each request.
    pub acts_for_callers: bool,
    /// Whether it refuses changes.
    pub read_only: bool,
    /// Its boot id.
    pub boot: BootId,
    /// Where it keeps a ledger of changes, so that those whose reply was lost can be sent again: above which numbers the session
    /// goes on.
    pub ledger: Option<u64>,
    /// Whether what comes behind a barrier waits for it there.
    pub has_barriers: bool,
    /// Data connections that it takes beside the first one, at most; 0 where it knows none, or was not asked.
    pub data_connections: usize,
    /// On what terms it leases; `None` where it does not, or was not asked to.
    pub leases: Option<Terms>,
}

/// Which requests a frame may not overtake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Changes, and reads that must see them: kept in order.
    Changes,
    /// The rest: may go first.
    Queries,
    /// Reads of much data that go over a data connection.
    Data(DataKey),
}

/// Facts about a change that its message does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// It refused it.
    Refused,
    /// It made or opened this object.
    Made(FileId),
    /// It wrote its data here.
    Went(u64),
    /// An append that is not answered writes its data here: this client is the only one, and knows the size of the file.
    Expected(u64),
}

/// What the journal notes, so that changes can be done again when the server's machine has lost them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// From the change with this number on nobody else has come between; `None`: others may.
    Alone(Option<u64>),
    /// The latest time of change that the server has told of what own changes did.
    Seen(Timestamp),
    /// What is known of this change.
    Said(u64, Said),
    /// The server's disk has the contents that the changes below this number have left in this file.
    Synced(u64, FileId),
}

/// What the driver is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Answer this call.
    Answer(CallId, Answer),
    /// Put this frame on the wire.
    Send(Frame, Lane),
    /// Tell the kernel to forget something. It may wait for calls that are under way: nothing else may wait for it,
    /// but an [`Output::AnswerAfter`] and an [`Output::SendAfter`].
    Invalidate(Invalidate),
    /// Answer this call once the kernel has forgotten what came before. Only for calls that hold no lock in the kernel: forgetting a name
    /// waits for its directory's lock, and who holds that may wait for a lock that the call holds.
    AnswerAfter(CallId, Answer),
    /// Put this frame on the wire once the kernel has forgotten what came before, ahead of others; not at all when the connection
    /// is another one by then. What the kernel forgets may wait for a call that waits for the server, which may wait for this
    /// frame: so the driver must not let it wait for long.
    SendAfter(Frame),
    /// Have the kernel let go of a node that nobody uses, by all its names, when nothing else is to be done. Nothing waits for it.
    LetGo(TreeNodeId, Vec<(TreeNodeId, Vec<u8>)>),
    /// Look for a piece of contents on disk, then tell [`Client::loaded`]. Comes only where there is a store.
    Load(CachePiece),
    /// Keep a piece of contents on disk. The same.
    Keep(CachePiece, Bytes),
    /// Append this numbered change to the journal, before anything that follows is done. The body is encoded with [`NOTAG`].
    Journal(u64, Frame),
    /// Have the kernel forget this, which is no name, then answer this call, which may hold the lock of the file or directory in the
    /// kernel. It must wait for nothing else that the kernel is to forget: that may wait for the call.
    AnswerDropped(Invalidate, CallId, Answer),
    /// Once every call that reads this directory now has been answered and has taken the answer in, say so with this number by
    /// [`Client::readers_passed`]. Nothing waits for that.
    AwaitReaders(TreeNodeId, u64),
    /// Answer this call once the local disk has all that the journal was told so far.
    AnswerJournaled(CallId, Answer),
    /// The server's disk has all changes below this number: the journal needs them no more.
    JournalForget(u64),
    /// The server's disk has all changes below this number, which are all there are, and the journal had no room: begin it anew, and then
    /// tell [`Client::journal_begun`].
    JournalAnew(u64),
    /// Note this in the journal, before anything that follows is done.
    JournalNote(Note),
    /// The server did not take this change of the journal's, or not all of it, though its program has gone on: keep it. Without a
    /// reason nobody knows whether the server has done it.
    Refused(u64, Frame, Option<Errno>),
    /// Make a data connection to the server, then tell [`Client::data_opened`] or [`Client::data_lost`].
    OpenData(DataKey),
    /// Close a data connection; nothing need be told.
    CloseData(DataKey),
    /// A data connection is dead though nobody said so: close it; nothing need be told.
    HangUpData(DataKey),
    /// The connection is dead though nobody said so: close it, then report it lost.
    HangUp,
    /// The server says with these words that this client broke the protocol: tell the user. The connection is of no use any more.
    Blamed(String),
}

/// The client of one mounted tree.
#[derive(Debug)]
pub struct Client {
    pub(crate) config: Config,
    pub(crate) attachment: Attachment,
    pub(crate) now: Time,
    pub(crate) names: NameTree,
    pub(crate) directories: DirectoryCache,
    pub(crate) files: Files,
    pub(crate) stored: Stored,
    pub(crate) shelf: InactiveListings,
    pub(crate) trim: Trim,
    pub(crate) requests: Requests,
    pub(crate) leases: Leases,
    pub(crate) link: Link,
    pub(crate) data: DataConnections,
    /// Measures what comes in.
    pub(crate) incoming: PathEstimator,
    /// Measures what goes out.
    pub(crate) outgoing: PathEstimator,
    pub(crate) counters: Counters,
    pub(crate) throttled: Throttled,
    pub(crate) publications: Publications,
    pub(crate) displacing: Displacing,
    pub(crate) misses: Misses,
    pub(crate) streams: Streams,
    pub(crate) ahead: Ahead,
    pub(crate) contended: Contended,
    /// When a program last got a lock by creating a name exclusively at the server.
    pub(crate) acquired: Option<Time>,
    /// What the server's machine lost is there again, and no connection was made since.
    pub(crate) is_redone: bool,
    pub(crate) locks: Locks,
    pub(crate) synced: Synced,
    pub(crate) rollback: Rollback,
    /// The file system's figures, and as of when.
    pub(crate) figures: Option<(FsStat, Time)>,
    calls: BTreeSet<CallId>,
    abandoned: BTreeSet<CallId>,
    /// The directories in which calls change names, that the kernel may have gathered listings of.
    changing: BTreeMap<CallId, [Option<TreeNodeId>; 2]>,
    outputs: VecDeque<Output>,
}

impl Client {
    /// A client whose tree is attached and whose connection is up.
    pub fn new(config: Config, attachment: Attachment, now: Time) -> Client {
        let leases = Leases::new(&config.mode, &attachment, now);
        let root = Freshness { at: now, leased: attachment.root.leased && leases.are_agreed() };
        let mut requests = Requests::default();
        // Nothing waits yet that could be given up.
        requests.attached(attachment.ledger, false);
        Client {
            config,
            now,
            names: trim::names_within(config.cache_bytes_max, attachment.root, root),
            leases,
            attachment,
            directories: trim::directories_within(config.cache_bytes_max),
            files: Files::new(config.cache_bytes_max),
            stored: Stored::default(),
            shelf: trim::shelf_within(config.cache_bytes_max),
            trim: Trim::within(config.cache_bytes_max),
            requests,
            link: Link::new(now),
            data: DataConnections::default(),
            incoming: PathEstimator::default(),
            outgoing: PathEstimator::default(),
            counters: Counters::default(),
            throttled: Throttled::default(),
            publications: Publications::default(),
            displacing: Displacing::default(),
            misses: Misses::default(),
            streams: Streams::default(),
            ahead: Ahead::default(),
            contended: Contended::default(),
            acquired: None,
            is_redone: false,
            locks: Locks::default(),
            synced: Synced::default(),
            rollback: Rollback::default(),
            figures: None,
            calls: BTreeSet::new(),
            abandoned: BTreeSet::new(),
            changing: BTreeMap::new(),
            outputs: VecDeque::new(),
        }
    }

    /// Takes a call. Its answer is among the outputs, now or after later inputs.
    ///
    /// # Cost
    /// 0 round trips for what may be believed; else as the operation's file says.
    pub fn call(&mut self, now: Time, id: CallId, caller: Caller, call: Call<'_>) {
        self.now = now;
        self.counters.calls += 1;
        if !matches!(call, Call::Forget { .. } | Call::Interrupt { .. }) {
            self.calls.insert(id);
        }
        if operation::unopened::goes_on(&call) {
            self.files.unopened.goes_on(caller.pid);
        }
        // Also where nothing was listed yet: a listing may overtake the change.
        if self.config.mode.takes_leases()
            && let Some(dirs) = operation::unopened::changes_names_in(&call)
        {
            dirs.into_iter().flatten().for_each(|dir| self.files.unopened.is_alone(dir));
            self.changing.insert(id, dirs);
        }
        operation::start(self, id, caller, call);
        self.end_past_deadline(id);
        self.keep_within_bounds();
    }

    /// Takes a message from the server.
    ///
    /// # Errors
    /// The server broke the protocol; the connection is of no use any more.
    pub fn receive(&mut self, now: Time, body: Bytes) -> Result<(), Malformed> {
        self.now = now;
        self.link.heard(now);
        self.take_in(None, body)
    }

    /// Takes a message that came over a data connection.
    ///
    /// # Errors
    /// The server broke the protocol; that connection is of no use any more.
    pub fn receive_data(&mut self, now: Time, key: DataKey, body: Bytes) -> Result<(), Malformed> {
        self.now = now;
        if self.data_heard(key) { self.take_in(Some(key), body) } else { Ok(()) }
    }

    fn take_in(&mut self, over: Option<DataKey>, body: Bytes) -> Result<(), Malformed> {
        self.counters.bytes_in += body.len() as u64 + 4;
        self.counters.frames_in += 1;
        let (tag, reply) = Reply::decode(body)?;
        if let (NOTAG, Reply::Error(error), None) = (tag, &reply, over) {
            return Err(self.blamed(error));
        }
        if let Reply::Recall(recall) = reply {
            if tag != NOTAG || !self.leases.are_agreed() || over.is_some() {
                return Err(Malformed { what: "a recall of what was never leased", at: 1 });
            }
            self.recalled(recall);
            return Ok(());
        }
        if let Reply::Alone(alone) = reply {
            // Also behind the journal's back: who no longer may be ahead still has to say so.
            if tag != NOTAG || !self.leases.are_agreed() || over.is_some() {
                return Err(Malformed { what: "of being alone where that was not agreed on", at: 1 });
            }
            self.alone_told(alone);
            return Ok(());
        }
        if let Reply::Limited(_) = reply {
            if tag != NOTAG || self.attachment.data_connections == 0 || over.is_some() {
                return Err(Malformed { what: "of a limit where that was not agreed on", at: 1 });
            }
            self.data_limited();
            return Ok(());
        }
        let last = match &reply {
            Reply::Get(got) => got.mode.has(GotMode::LAST),
            Reply::Find(found) => found.mode.has(FindMode::LAST),
            _ => true,
        };
        let bytes = match &reply {
            Reply::Get(got) => got.data.0.len(),
            Reply::Find(found) => found.data.0.len(),
            _ => 0,
        };
        self.incoming.data_received(bytes as u64);
        let outstanding = self.requests.reply(tag, over, last, bytes)?;
        if outstanding.is_bulk() {
            self.data.brings(self.now, over, bytes, self.requests.bytes_to_come(over));
        }
        self.measure(&outstanding, &reply, last);
        if over.is_none() {
            self.answered(outstanding.sent);
        }
        let before = self.outputs.len();
        if over.is_some() && outstanding.first_reply && !self.is_no_news(&outstanding.request, &reply) {
            self.ask_first(outstanding);
        } else {
            operation::finish(self, outstanding, reply, last);
        }
        self.answer_first(before);
        self.go_on_behind();
        self.keep_read();
        self.send_waiting();
        self.keep_within_bounds();
        Ok(())
    }

    /// Puts the answers among the outputs from `begin` on before what the kernel is to forget. It takes attributes that are answered
    /// behind an invalidation for older than that, and drops them (`fuse_change_attributes` in fs/fuse/inode.c): a read that had
    /// asked for the size would then end where the file ended before.
    fn answer_first(&mut self, begin: usize) {
        let new = self.outputs.split_off(begin.min(self.outputs.len()));
        let (answers, rest): (Vec<Output>, Vec<Output>) =
            new.into_iter().partition(|output| matches!(output, Output::Answer(..)));
        self.outputs.extend(answers.into_iter().chain(rest));
    }

    fn measure(&mut self, outstanding: &Outstanding, reply: &Reply, last: bool) {
        let now = self.now;
        if outstanding.first_reply && outstanding.is_prompt() {
            self.incoming.rtt_sample(outstanding.arrival, now);
            self.outgoing.rtt_sample(outstanding.departure, now);
        }
        let has_data = matches!(reply, Reply::Get(_) | Reply::Find(_));
        if last && has_data && outstanding.asked_bytes() >= 64 * 1024 {
            self.incoming.reply_received(outstanding.arrival, now);
        }
        if let (Request::Put(put), Reply::Put(_)) = (&outstanding.request, reply) {
            self.outgoing.data_received(put.data.0.len() as u64);
            self.outgoing.reply_received(outstanding.departure, now);
        }
    }

    /// Lets time pass: deadlines, signs of life, what is too old to be kept.
    pub fn tick(&mut self, now: Time) {
        self.now = now;
        self.watch_leases();
        self.watch_room();
        self.watch_durable();
        self.watch_locks();
        let (coherency, names) = (self.coherency(), &self.names);
        self.directories.expire(&coherency, |dir| names.node(dir).is_some());
        self.drop_unused();
        self.names.expire(now);
        self.bound_readings();
        self.keep_within_bounds();
        let slept = self.watch_link();
        self.watch_data(slept);
    }

    /// When [`Client::tick`] is due.
    pub fn deadline(&self) -> Option<Time> {
        Some(self.now + Duration::from_millis(500))
    }

    /// Gives up waiting for a call: its caller is being killed. Tells whether it was waiting.
    pub fn abandon(&mut self, now: Time, id: CallId) -> bool {
        self.now = now;
        let waits = self.calls.contains(&id);
        if waits {
            let changing = self.changing.get(&id).copied();
            self.answer(id, Answer::Fail(Errno::Interrupted));
            self.abandoned.insert(id);
            self.changing.extend(changing.map(|dirs| (id, dirs)));
        }
        waits
    }

    /// Whether a call waits for its answer.
    pub fn is_waiting(&self, id: CallId) -> bool {
        self.calls.contains(&id)
    }

    /// Whether answers are to come for which nobody waits any more.
    pub(crate) fn has_abandoned(&self) -> bool {
        !self.abandoned.is_empty()
    }

    /// How many calls wait.
    pub fn waiting(&self) -> usize {
        self.calls.len()
    }

    /// All changes with lower numbers are answered: what the journal notes, since whoever sends its changes again needs to know
    /// which replies the server has been told to forget.
    pub fn answered_below(&self) -> u64 {
        self.requests.answered_below()
    }

    /// Which directory is mounted.
    pub fn root_id(&self) -> FileId {
        self.attachment.root.id
    }

    /// Hands out what is to be done, in order.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    pub(crate) fn answer(&mut self, id: CallId, answer: Answer) {
        self.changed_names(id, !matches!(answer, Answer::Fail(_)));
        if self.calls.remove(&id) {
            self.outputs.push_back(Output::Answer(id, answer));
        } else {
            self.abandoned.remove(&id);
            operation::undo(self, id, answer);
        }
    }

    /// Answers once the kernel has forgotten what it is being told to forget.
    pub(crate) fn answer_after(&mut self, id: CallId, answer: Answer) {
        if self.calls.remove(&id) {
            self.outputs.push_back(Output::AnswerAfter(id, answer));
        } else {
            self.abandoned.remove(&id);
        }
    }

    /// Answers; where set-id bits of `node` may have fallen, once the kernel has forgotten the mode that it knew.
    pub(crate) fn answer_with_fallen(
        &mut self,
        id: CallId,
        answer: Answer,
        node: TreeNodeId,
        may_have_fallen: bool,
    ) {
        if !may_have_fallen {
            return self.answer(id, answer);
        }
        self.answer_dropped(Invalidate::Node { node, offset: -1, length: 0 }, id, answer);
    }

    /// Answers once the kernel has forgotten this, which is no name.
    pub(crate) fn answer_dropped(&mut self, what: Invalidate, id: CallId, answer: Answer) {
        if self.calls.remove(&id) {
            self.outputs.push_back(Output::AnswerDropped(what, id, answer));
        } else {
            self.abandoned.remove(&id);
            self.invalidate(what);
        }
    }

    /// Answers once the journal is on the local disk.
    pub(crate) fn answer_journaled(&mut self, id: CallId, answer: Answer) {
        self.changed_names(id, true);
        if self.calls.remove(&id) {
            self.outputs.push_back(Output::AnswerJournaled(id, answer));
        } else {
            self.abandoned.remove(&id);
        }
    }

    /// A call has its answer: the kernel knows by that of its own changes of names, unless nobody waits for it, or it says that there were
    /// none.
    fn changed_names(&mut self, id: CallId, is_told: bool) {
        let Some(dirs) = self.changing.remove(&id) else { return };
        if !is_told || !self.calls.contains(&id) {
            dirs.into_iter().flatten().for_each(|dir| self.doubt_listing(dir));
        }
    }

    pub(crate) fn fail(&mut self, id: CallId, errno: Errno) {
        self.answer(id, Answer::Fail(errno));
    }

    pub(crate) fn invalidate(&mut self, what: Invalidate) {
        self.outputs.push_back(Output::Invalidate(what));
    }

    pub(crate) fn output(&mut self, output: Output) {
        self.outputs.push_back(output);
    }

    /// Sends a request; `pending` says what its reply is for.
    pub(crate) fn send(&mut self, request: Request, pending: Pending) {
        debug_assert!(!operation::release::closes_used(self, &request), "{request:?}");
        let Some((request, pending)) = predict::foresee(self, request, pending) else { return };
        // Not before: what is known of an object counts no more while a change of unknown outcome is on its way.
        if let Some(node) = pending.begins() {
            operation::write::begins(self, node, 0);
        }
        let Some((request, pending)) = self.behind(request, pending) else { return };
        if self.is_past_deadline() && !pending.outlives_deadline() {
            operation::fail(self, pending, Errno::HostDown);
            return;
        }
        if self.config.journal && self.requests.is_numbered() && request.is_change() {
            operation::concerned::note_known(self, &pending);
            self.issue(request, |_| pending);
        } else {
            self.watch_syncs(&request);
            self.counters.count(&request);
            self.requests.wait(self.now, request, pending);
        }
        self.send_waiting();
    }

    pub(crate) fn send_waiting(&mut self) {
        while self.link.is_up() {
            let over = self.next_goes_over();
            let (arrival, departure) =
                (self.incoming.request_sent(self.now), self.outgoing.request_sent(self.now));
            let Some((frame, lane)) = self.requests.next(self.now, over, arrival, departure) else {
                break;
            };
            self.transmit(frame, lane);
        }
    }

    pub(crate) fn transmit(&mut self, frame: Frame, lane: Lane) {
        self.counters.bytes_out += frame.wire_len() as u64;
        self.counters.frames_out += 1;
        if !matches!(lane, Lane::Data(_)) {
            self.link.spoke(self.now);
            self.leases.asked(self.now);
        }
        self.output(Output::Send(frame, lane));
    }

    /// The calls that wait.
    pub(crate) fn waiting_calls(&self) -> Vec<CallId> {
        self.calls.iter().copied().collect()
    }

    /// As [`Client::learn`], of an object that was known when they were asked for.
    pub(crate) fn refresh(&mut self, stat: &Stat, sent: Time) {
        let known = self.names.of_file(stat.id).and_then(|node| self.names.node(node));
        if known.is_some_and(|known| known.stat.kind == stat.kind) {
            let known = self.known(stat, sent);
            self.learn(stat, known);
        }
    }

    /// Takes in attributes: of names, and of the contents that they vouch for.
    pub(crate) fn learn(&mut self, stat: &Stat, known: Freshness) -> TreeNodeId {
        match self.names.of_file(stat.id) {
            // INVARIANT: while own writes are under way, what the server says is older than what the caller knows.
            Some(node) if self.files.is_writing(node) => node,
            _ => {
                let coherency = self.coherency();
                let (node, counts) = self.names.learn(stat, known, &coherency);
                if counts && self.files.observe(node, stat.version, known, &coherency) {
                    if self.files.may_kernel_have(node) {
                        self.invalidate(Invalidate::Node { node, offset: 0, length: 0 });
                    }
                    operation::as_opened::outdated(self, node);
                }
                node
            }
        }
    }
}
