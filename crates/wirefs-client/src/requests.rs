//! The requests in progress: their tags and continuations, and the requests that wait for a tag.

mod again;
mod bulk;
pub(crate) mod connection;
pub(crate) mod data;
mod held;
pub(crate) mod late;
mod numbers;
pub(crate) mod origin;
mod sending;
pub(crate) mod shares;

use crate::call::CallId;
use crate::output::{DataKey, Lane};
use crate::pending::{Continuation, Pending};
use connection::Link;
use data::DataConnections;
use held::Held;
use numbers::{Numbers, Turn};
use origin::{Input, Origin};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use wirefs_cache::PathEstimator;
use wirefs_cache::path_estimator::RateSample;
use wirefs_metrics::Cause;
use wirefs_op::limits::REQUESTS_MAX;
use wirefs_op::message::lock::LockAction;
use wirefs_op::message::times::Rtimes;
use wirefs_op::wire::Malformed;
use wirefs_op::{Frame, NOTAG, Order, Request, Tag, Time};

/// A request that was in progress on this many connections for which the server blames this client is given up.
const BLAMES_MAX: u32 = 3;

/// One request that was sent.
#[derive(Clone, Debug)]
pub(crate) struct Outstanding {
    pub(crate) tag: Tag,
    pub(crate) request: Request,
    pub(crate) pending: Pending,
    /// The data connection that it was sent over; `None`: the first connection.
    over: Option<DataKey>,
    /// When it was sent, the last time.
    pub(crate) sent: Time,
    /// When it was sent, or a part of its reply or of an earlier request's came.
    last_progress: Time,
    /// The earliest time that the reply may describe: when the request was made. Own changes may have been answered before it was sent. A
    /// change that is sent again gets its first reply, and a query that is sent again may run before changes that followed it.
    pub(crate) told_since: Time,
    pub(crate) arrival: RateSample,
    pub(crate) departure: RateSample,
    /// Whether this reply is the first.
    pub(crate) first_reply: bool,
    /// Bytes of data that its replies brought.
    received: u64,
    /// Its position among all requests that were sent.
    pub(crate) order: u64,
    /// A change's, where they are numbered.
    pub(crate) number: Option<u64>,
    /// As of [`Waiting`].
    blames: u32,
    pub(crate) origin: Origin,
}

/// A request whose outcome will stay unknown.
#[derive(Debug)]
pub(crate) struct GivenUp {
    pub(crate) request: Request,
    pub(crate) pending: Pending,
    pub(crate) number: Option<u64>,
}

/// One request that was not sent, or whose reply was lost.
#[derive(Debug)]
struct Waiting {
    request: Request,
    pending: Pending,
    /// The number under which it was sent before.
    number: Option<u64>,
    /// As of [`Outstanding`].
    told_since: Time,
    /// Connections on which it was in progress, and for which the server blames this client.
    blames: u32,
    /// Whether a large read must take the first connection.
    is_for_first: bool,
    origin: Origin,
}

impl Waiting {
    fn new(asked: Time, request: Request, pending: Pending, origin: Origin) -> Waiting {
        Waiting { request, pending, number: None, told_since: asked, blames: 0, is_for_first: false, origin }
    }
}

/// The requests in progress, and the connections that carry them.
#[derive(Debug)]
pub(crate) struct Requests {
    sent: BTreeMap<Tag, Outstanding>,
    waiting: VecDeque<Waiting>,
    numbers: Numbers,
    /// Changes are not numbered for now.
    are_numbers_held: bool,
    held: VecDeque<Held>,
    next_tag: u16,
    next_order: u64,
    /// The first connection.
    pub(crate) link: Link,
    pub(crate) data: DataConnections,
    /// The path from the server: round trips and rates.
    pub(crate) incoming: PathEstimator,
    /// The path to the server.
    pub(crate) outgoing: PathEstimator,
    /// The present input.
    pub(crate) input: Input,
}

/// The lane of a request: the server executes it in the same order (PROTOCOL.md, "Order").
pub(crate) fn lane(request: &Request) -> Lane {
    match request.order() {
        Order::Change | Order::Ordered => Lane::Changes,
        Order::Free => Lane::Queries,
    }
}

impl Requests {
    /// No requests, over a connection that is up.
    pub(crate) fn new(now: Time) -> Requests {
        Requests {
            sent: BTreeMap::new(),
            waiting: VecDeque::new(),
            numbers: Numbers::default(),
            are_numbers_held: false,
            held: VecDeque::new(),
            next_tag: 0,
            next_order: 0,
            link: Link::new(now),
            data: DataConnections::default(),
            incoming: PathEstimator::default(),
            outgoing: PathEstimator::default(),
            input: Input { origin: Origin::new(now, Cause::Queue, None), delayed: Duration::ZERO },
        }
    }

    /// Queues a request that was made at `asked`.
    pub(crate) fn wait(&mut self, asked: Time, request: Request, pending: Pending) {
        self.wait_from(asked, request, pending, self.input.origin);
    }

    /// Queues a request with the history `origin`.
    fn wait_from(&mut self, asked: Time, request: Request, pending: Pending, origin: Origin) {
        self.waiting.push_back(Waiting::new(asked, request, pending, origin));
    }

    /// Whether changes are numbered when they are issued: from then on, in the order of their numbers.
    pub(crate) fn is_numbered(&self) -> bool {
        self.numbers.is_agreed() && !self.are_numbers_held
    }

    /// The number of the change that is issued next.
    pub(crate) fn next_number(&self) -> u64 {
        self.numbers.next()
    }

    /// Holds all changes that are issued from now on.
    pub(crate) fn hold_changes(&mut self) {
        self.numbers.held_from = Some(self.numbers.next());
    }

    /// Sends changes again.
    pub(crate) fn release_changes(&mut self) {
        self.numbers.held_from = None;
    }

    /// The number of the first change that is held, if changes are.
    pub(crate) fn held_from(&self) -> Option<u64> {
        self.numbers.held_from
    }

    /// All changes with lower numbers are answered.
    pub(crate) fn answered_below(&self) -> u64 {
        self.numbers.answered_below()
    }

    /// The statement that a barrier has failed, and that changes from now on do not depend on it.
    pub(crate) fn barrier_failed(&mut self) -> Option<Request> {
        let next = self.waiting.iter().find(|waiting| waiting.request.is_change());
        let given = next.and_then(|waiting| waiting.number);
        self.numbers.is_agreed().then(|| Request::Number(self.numbers.tell(given)))
    }

    /// Queues a change under its number, which it has from now on.
    pub(crate) fn issue(&mut self, now: Time, request: Request, pending: Pending) -> u64 {
        let number = self.numbers.issue();
        let waiting = Waiting::new(now, request, pending, self.input.origin);
        self.waiting.push_back(Waiting { number: Some(number), ..waiting });
        number
    }

    /// Whether nothing waits to be sent.
    pub(crate) fn are_all_sent(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether any change is in progress, sent or waiting.
    pub(crate) fn any_change(&self) -> bool {
        self.sent.values().any(|outstanding| outstanding.request.is_change())
            || self.waiting.iter().any(|waiting| waiting.request.is_change())
    }

    /// Queues requests ahead of all that wait, in this order.
    pub(crate) fn wait_first(&mut self, now: Time, requests: Vec<(Request, Pending)>) {
        for (request, pending) in requests.into_iter().rev() {
            self.waiting.push_front(Waiting::new(now, request, pending, self.input.origin));
        }
    }

    /// The next request that may be sent over this connection, encoded; `None` when there is none or no tag is free.
    pub(crate) fn next(
        &mut self,
        now: Time,
        over: Option<DataKey>,
        arrival: RateSample,
        departure: RateSample,
    ) -> Option<(Frame, Lane)> {
        let first = self.waiting.front_mut()?;
        // The last tag is for a ping, and for the end of a wait for a lock, which would not end otherwise.
        let may_take_last = matches!(first.request, Request::Ping(_) | Request::Flush(_));
        if self.sent.len() >= REQUESTS_MAX - usize::from(!may_take_last) {
            return None;
        }
        if first.request.is_change() {
            match self.numbers.give(&mut first.number) {
                Turn::Goes => {}
                Turn::Behind(told) => return Some((Request::Number(told).encode(NOTAG), Lane::Changes)),
                Turn::Waits => return None,
            }
        }
        let Waiting { request, pending, number, told_since, blames, mut origin, .. } =
            self.waiting.pop_front()?;
        let tag = self.free_tag();
        let encoded = (request.encode(tag), over.map_or_else(|| lane(&request), Lane::Data));
        origin.sent(now, self.link.up_since());
        self.next_order += 1;
        let order = self.next_order;
        let outstanding = Outstanding {
            tag,
            request,
            pending,
            over,
            sent: now,
            last_progress: now,
            told_since,
            arrival,
            departure,
            first_reply: true,
            received: 0,
            order,
            number,
            blames,
            origin,
        };
        self.sent.insert(tag, outstanding);
        Some(encoded)
    }

    /// INVARIANT: fewer than `REQUESTS_MAX` tags are taken, so one of the next `REQUESTS_MAX + 1` is free.
    fn free_tag(&mut self) -> Tag {
        loop {
            let tag = Tag(self.next_tag);
            self.next_tag = if self.next_tag >= u16::MAX - 1 { 0 } else { self.next_tag + 1 };
            if !self.sent.contains_key(&tag) {
                return tag;
            }
        }
    }

    /// The request of a reply with this many bytes of data. It stays known until its last reply. Its
    /// continuation is handed out; an operation that expects more replies puts it back.
    ///
    /// # Errors
    /// There is no such request over this connection, or the reply is longer than it allows.
    pub(crate) fn reply(
        &mut self,
        now: Time,
        tag: Tag,
        over: Option<DataKey>,
        last: bool,
        bytes: usize,
    ) -> Result<Outstanding, Malformed> {
        let outstanding = self.sent.get_mut(&tag).filter(|outstanding| outstanding.over == over);
        let outstanding = outstanding.ok_or(Malformed { what: "a reply to no request", at: 1 })?;
        outstanding.received += bytes as u64;
        outstanding.last_progress = now;
        if !matches!(outstanding.request, Request::Ping(_)) {
            self.link.replied(now, outstanding.order);
        }
        if outstanding.received > u64::from(outstanding.asked_bytes())
            && matches!(outstanding.request, Request::Get(_) | Request::Find(_))
        {
            return Err(Malformed { what: "more data than was asked for", at: 3 });
        }
        let is_lock = matches!(outstanding.request, Request::Lock(_));
        outstanding.origin.replied(now, std::mem::take(&mut self.input.delayed), is_lock);
        self.input.origin = outstanding.origin;
        let copy = Outstanding {
            request: outstanding.request.clone(),
            pending: std::mem::replace(&mut outstanding.pending, Pending::IGNORE),
            ..*outstanding
        };
        outstanding.first_reply = false;
        if last {
            self.numbers.answered(copy.number);
            self.sent.remove(&tag);
        }
        Ok(copy)
    }

    /// Takes in the server's report about a request.
    pub(crate) fn timed(&mut self, tag: Tag, over: Option<DataKey>, times: &Rtimes) -> Result<(), Malformed> {
        let outstanding = self.sent.get_mut(&tag).filter(|outstanding| outstanding.over == over);
        let outstanding = outstanding.ok_or(Malformed { what: "times of no request", at: 1 })?;
        outstanding.origin.timed(times);
        Ok(())
    }

    /// Returns the reason why a call waits, and the name of the request that explains it. A call may have several
    /// requests: one that waits at the server for another client explains the wait better than one in transit, and a
    /// newer one better than an older one.
    pub(crate) fn wait_of(&self, call: CallId) -> Option<(Cause, &'static str)> {
        let cause_of = |outstanding: &Outstanding| match &outstanding.request {
            _ if outstanding.origin.is_parked() => Cause::Recall,
            Request::Lock(lock) if lock.action == LockAction::Wait => Cause::Lock,
            _ => Cause::Wire,
        };
        let sent = self.sent.values().filter(|outstanding| outstanding.origin.call == Some(call));
        let sent = sent.map(|outstanding| (cause_of(outstanding), outstanding));
        if let Some((cause, outstanding)) =
            sent.max_by_key(|(cause, outstanding)| (*cause != Cause::Wire, outstanding.order))
        {
            return Some((cause, outstanding.request.name()));
        }
        let cause = if self.link.is_up() { Cause::Queue } else { Cause::Offline };
        let waiting = self.waiting.iter().map(|waiting| (waiting.origin.call, &waiting.request));
        let held = self.held.iter().map(|held| (held.origin.call, &held.request));
        let own = waiting.chain(held).find(|(origin, _)| *origin == Some(call));
        own.map(|(_, request)| (cause, request.name()))
    }

    /// Ends a request whose reply will not come.
    pub(crate) fn withdraw(&mut self, tag: Tag) -> Option<Pending> {
        let outstanding = self.sent.remove(&tag)?;
        self.numbers.answered(outstanding.number);
        Some(outstanding.pending)
    }

    /// The request that waits under this tag, to change what it is for.
    pub(crate) fn pending_mut(&mut self, tag: Tag) -> Option<&mut Pending> {
        self.sent.get_mut(&tag).map(|outstanding| &mut outstanding.pending)
    }

    /// The first request that `wanted` says yes to.
    pub(crate) fn find(&self, wanted: impl Fn(&Pending) -> bool) -> Option<Tag> {
        self.sent.values().find(|outstanding| wanted(&outstanding.pending)).map(|outstanding| outstanding.tag)
    }

    /// When the request under this tag was sent.
    pub(crate) fn sent_at(&self, tag: Tag) -> Option<Time> {
        self.sent.get(&tag).map(|outstanding| outstanding.sent)
    }

    /// The earliest time that a reply to a request in progress may describe.
    pub(crate) fn oldest(&self) -> Option<Time> {
        let sent = self.sent.values().map(|outstanding| outstanding.told_since);
        sent.chain(self.waiting.iter().map(|waiting| waiting.told_since)).min()
    }

    /// Whether `wanted` says yes to any, sent or waiting.
    pub(crate) fn any(&self, wanted: impl Fn(&Pending) -> bool) -> bool {
        self.sent.values().any(|outstanding| wanted(&outstanding.pending))
            || self.waiting.iter().any(|waiting| wanted(&waiting.pending))
    }

    /// The first result of `wanted` over all requests, sent or waiting.
    pub(crate) fn find_map<T>(&self, wanted: impl Fn(&Pending) -> Option<T>) -> Option<T> {
        let sent = self.sent.values().map(|outstanding| &outstanding.pending);
        sent.chain(self.waiting.iter().map(|waiting| &waiting.pending)).find_map(wanted)
    }

    /// How many are in progress.
    pub(crate) fn len(&self) -> usize {
        self.sent.len() + self.waiting.len()
    }

    /// Whether any but waiting locks are in progress over the first connection: a reply is due there.
    pub(crate) fn is_reply_due(&self) -> bool {
        self.sent.values().filter(|outstanding| outstanding.over.is_none()).any(|outstanding| {
            match &outstanding.request {
                Request::Lock(lock) => lock.action != LockAction::Wait,
                _ => true,
            }
        })
    }

    /// The requests in progress by kind.
    pub(crate) fn kinds(&self) -> BTreeMap<&'static str, u64> {
        let mut kinds = BTreeMap::new();
        let waiting = self.waiting.iter().map(|waiting| &waiting.request);
        for request in self.sent.values().map(|outstanding| &outstanding.request).chain(waiting) {
            *kinds.entry(request.name()).or_default() += 1;
        }
        kinds
    }

    /// Handles the loss of the connection. Returns the requests that must not be sent again, or need not; the others wait, in the order in
    /// which they were sent.
    pub(crate) fn interrupted(&mut self, is_blamed: bool) -> Vec<GivenUp> {
        let mut sent: Vec<Outstanding> = std::mem::take(&mut self.sent).into_values().collect();
        sent.sort_unstable_by_key(|outstanding| outstanding.order);
        let mut given_up = Vec::new();
        for outstanding in sent.into_iter().rev() {
            let Outstanding { request, mut pending, number, told_since, blames, origin, .. } = outstanding;
            let blames = blames + u32::from(is_blamed);
            let may_be_sent = (number.is_some() || request.traits().is_repeatable) && blames < BLAMES_MAX;
            if may_be_sent && pending.restart() {
                let waiting = Waiting::new(told_since, request, pending, origin);
                self.waiting.push_front(Waiting { number, blames, ..waiting });
            } else {
                self.numbers.answered(number);
                given_up.push(GivenUp { request, pending, number });
            }
        }
        given_up.reverse();
        given_up
    }

    /// Handles a new connection, to a server that numbers changes from `ledger` on, or not at all. `is_known`: the server knows the
    /// session's earlier changes; if not, returns the changes that must not be sent again.
    pub(crate) fn attached(&mut self, ledger: Option<u64>, is_known: bool) -> Vec<GivenUp> {
        self.numbers.attached(ledger, is_known);
        let mut given_up = Vec::new();
        if ledger.is_none() || !is_known {
            let mut is_behind = false;
            for waiting in std::mem::take(&mut self.waiting) {
                is_behind |= matches!(&waiting.request, Request::Put(put) if put.is_barrier());
                if waiting.number.is_none() || waiting.request.traits().is_repeatable && !is_behind {
                    self.waiting.push_back(Waiting { number: None, ..waiting });
                } else {
                    let Waiting { request, pending, number, .. } = waiting;
                    given_up.push(GivenUp { request, pending, number });
                }
            }
        }
        for waiting in &mut self.waiting {
            if let (Some(number), Some(ledger)) = (waiting.number, ledger)
                && number < ledger
            {
                waiting.pending.repeat();
            }
        }
        given_up
    }

    /// Renumbers the waiting changes after others with newer numbers were queued before them. Numbers only increase, so changes
    /// that the server knows by their number go first, and the others get new numbers.
    pub(crate) fn renumber(&mut self, ledger: u64) {
        let is_known = |waiting: &Waiting| waiting.number.is_some_and(|number| number < ledger);
        let (known, mut new): (VecDeque<_>, VecDeque<_>) =
            std::mem::take(&mut self.waiting).into_iter().partition(is_known);
        for waiting in &mut new {
            self.numbers.answered(waiting.number.take());
        }
        self.waiting = known.into_iter().chain(new).collect();
    }

    /// Drops the waiting requests that `keeps` says no to.
    pub(crate) fn retain_waiting(&mut self, keeps: impl Fn(&Pending) -> bool) {
        let numbers = &mut self.numbers;
        self.waiting.retain(|waiting| {
            let kept = keeps(&waiting.pending);
            if !kept {
                numbers.answered(waiting.number);
            }
            kept
        });
    }

    /// Takes out the first waiting request that `wanted` says yes to.
    pub(crate) fn take_waiting(&mut self, wanted: impl Fn(&Pending) -> bool) -> Option<Pending> {
        let at = self.waiting.iter().position(|waiting| wanted(&waiting.pending))?;
        let Waiting { pending, number, .. } = self.waiting.remove(at)?;
        self.numbers.answered(number);
        Some(pending)
    }

    /// Takes out the waiting requests that do not outlive the deadline.
    pub(crate) fn give_up_waiting(&mut self) -> Vec<Pending> {
        self.take_all_waiting(|_| true)
    }

    /// Takes out the waiting requests that `wanted` says yes to and that do not outlive the deadline.
    fn take_all_waiting(&mut self, wanted: impl Fn(&Waiting) -> bool) -> Vec<Pending> {
        let mut taken = Vec::new();
        for waiting in std::mem::take(&mut self.waiting) {
            if waiting.pending.outlives_deadline() || !wanted(&waiting) {
                self.waiting.push_back(waiting);
            } else {
                self.numbers.answered(waiting.number);
                taken.push(waiting.pending);
            }
        }
        taken
    }
}
