//! One client: its cache, its kernel's cache, and the machine that decides their validity.

use crate::mutations::Mutation;
use crate::store::{Fact, NAMES, Value, id};
use crate::wire::{Ask, Change, ChangeKind, Connection, Down};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use wirefs_lease::{FullInvalidation, LeaseHolder, LeaseItem, PendingRecall, Serial};
use wirefs_op::Time;
use wirefs_virtual::Dice;

/// A pending request.
pub(crate) struct Pending {
    pub(crate) ask: Ask,
    /// The sending time, on the client's clock.
    pub(crate) sent: Time,
}

/// A client's clock: started at its own time, slightly fast or slow.
#[derive(Clone, Copy)]
pub(crate) struct Clock {
    offset: u64,
    /// Nanoseconds gained per millisecond; negative for a slow clock.
    gain: i64,
    /// The time lost by a clock that stops while the machine sleeps.
    slept: u64,
}

impl Clock {
    fn new(dice: &mut Dice) -> Clock {
        // One percent is far more than the error of a real clock.
        Clock {
            offset: dice.between(0, 1_000_000_000_000),
            gain: dice.between(0, 20_000) as i64 - 10_000,
            slept: 0,
        }
    }

    pub(crate) fn read(&self, now: Time) -> Time {
        let run = now.0 - self.slept;
        let gained = run as i64 / 1_000_000 * self.gain;
        Time((self.offset + run).saturating_add_signed(gained))
    }

    /// Returns the time until this clock reads at least `at`.
    pub(crate) fn until(&self, now: Time, at: Time) -> Duration {
        let left = at.since(self.read(now));
        left + left / 50 + Duration::from_micros(1)
    }
}

pub(crate) struct SimClient {
    pub(crate) clock: Clock,
    pub(crate) holder: Option<LeaseHolder>,
    /// The current connection.
    pub(crate) connection: Option<Connection>,
    pub(crate) attached: bool,
    pub(crate) own: BTreeMap<Fact, Value>,
    pub(crate) kernel: BTreeMap<Fact, Value>,
    pub(crate) pending: BTreeMap<u64, Pending>,
    /// The end of the last own change of each fact.
    own_changed: BTreeMap<Fact, Time>,
    pub(crate) asleep: bool,
    /// Changes whose replies were lost with a connection.
    pub(crate) lost: BTreeSet<u64>,
    /// The time when a request was answered again after that.
    pub(crate) answered_again: Option<Time>,
    /// The kernel is slow to invalidate.
    pub(crate) slow_kernel: bool,
    /// The number of replies that were taken as leased, as statistics.
    pub(crate) taken: u64,
}

impl SimClient {
    pub(crate) fn new(dice: &mut Dice) -> SimClient {
        SimClient {
            clock: Clock::new(dice),
            holder: None,
            connection: None,
            attached: false,
            own: BTreeMap::new(),
            kernel: BTreeMap::new(),
            pending: BTreeMap::new(),
            own_changed: BTreeMap::new(),
            asleep: false,
            lost: BTreeSet::new(),
            answered_again: None,
            slow_kernel: false,
            taken: 0,
        }
    }

    pub(crate) fn is_valid(&self, now: Time) -> bool {
        self.holder.as_ref().is_some_and(|holder| holder.is_valid(self.clock.read(now)))
    }

    /// Advances the machine's clock. Returns a requested invalidation.
    pub(crate) fn advance(&mut self, now: Time) -> Option<FullInvalidation> {
        let local = self.clock.read(now);
        let holder = self.holder.as_mut()?;
        holder.tick(local);
        let empty = holder.poll()?;
        if empty.own_cache_too {
            self.own.clear();
        }
        Some(empty)
    }

    /// Returns when a ping is due; a client without valid leases sends none.
    pub(crate) fn renewal_at(&self) -> Option<Time> {
        let holder = self.holder.as_ref().filter(|_| self.attached && !self.own.is_empty())?;
        holder.renewal_at()
    }

    /// Records that a request is sent, with the facts that it changes.
    pub(crate) fn sends(&mut self, now: Time, request: u64, ask: Ask) {
        let sent = self.clock.read(now);
        if let Some(holder) = &mut self.holder {
            holder.request_sent(sent);
        }
        for fact in concerned(&ask) {
            self.own.remove(&fact);
            self.kernel.remove(&fact);
        }
        self.pending.insert(request, Pending { ask, sent });
    }

    /// Returns the change with the objects that the client has cached for its names.
    pub(crate) fn expects(&self, now: Time, kind: ChangeKind) -> Change {
        let valid = self.is_valid(now);
        let meaning = |(directory, name)| self.own.get(&Fact::Name(directory, name)).copied().flatten();
        let expected = kind.victims().into_iter().filter_map(meaning).filter(|_| valid).collect();
        Change { kind, expected }
    }

    pub(crate) fn lost(&mut self, now: Time) {
        self.connection = None;
        self.attached = false;
        if let Some(holder) = &mut self.holder {
            holder.disconnected();
        }
        let pending = std::mem::take(&mut self.pending);
        self.answered_again = None;
        for (request, Pending { ask, .. }) in pending {
            self.lost.extend(Some(request).filter(|_| matches!(ask, Ask::Change(_))));
            self.change_is_over(now, &concerned(&ask));
        }
    }

    fn change_is_over(&mut self, now: Time, facts: &[Fact]) {
        for fact in facts {
            self.own_changed.insert(*fact, self.clock.read(now));
            self.own.remove(fact);
            self.kernel.remove(fact);
        }
    }

    pub(crate) fn attached(&mut self, now: Time, retained: bool, mutation: Option<Mutation>) {
        let local = self.clock.read(now);
        let retained = retained || mutation == Some(Mutation::UsesVoidLeases);
        self.attached = true;
        match &mut self.holder {
            Some(holder) => holder.attached(local, wirefs_lease::limits::TERM, retained),
            None => self.holder = Some(LeaseHolder::new(local, wirefs_lease::limits::TERM)),
        }
    }

    pub(crate) fn replied(
        &mut self,
        now: Time,
        request: u64,
        reply: &[(Fact, Value, bool)],
        mutation: Option<Mutation>,
        dice: &mut Dice,
    ) {
        let local = self.clock.read(now);
        let Some(Pending { ask, sent }) = self.pending.remove(&request) else { return };
        let oldest = self.pending.values().map(|pending| pending.sent).min();
        let Some(holder) = &mut self.holder else { return };
        holder
            .reply_received(local, if mutation == Some(Mutation::CountsFromReplies) { local } else { sent });
        self.answered_again.get_or_insert(now);
        let overtaken = |fact: Fact| match fact {
            Fact::Attributes(object) => holder.is_overtaken(id(object), sent),
            Fact::Name(directory, name) => holder.is_name_overtaken(id(directory), name.as_bytes(), sent),
        };
        let is_change = matches!(ask, Ask::Change(_));
        let under_way: Vec<Fact> =
            self.pending.values().flat_map(|pending| concerned(&pending.ask)).collect();
        let mut taken = Vec::new();
        for (fact, value, leased) in reply {
            let is_overtaken = overtaken(*fact) && mutation != Some(Mutation::UsesOvertakenReplies);
            let own = under_way.contains(fact) || self.own_changed.get(fact).is_some_and(|at| *at >= sent);
            if *leased && !is_overtaken && !own {
                taken.push((*fact, *value));
            }
        }
        let valid = holder.is_valid(local);
        holder.prune(oldest);
        if is_change {
            let changed: Vec<Fact> = reply.iter().map(|(fact, ..)| *fact).collect();
            self.change_is_over(now, &changed);
        }
        for (fact, value) in taken {
            self.taken += 1;
            self.own.insert(fact, value);
            if valid && dice.chance(70, 100) {
                self.kernel.insert(fact, value);
            }
        }
    }

    /// Handles a recall: invalidates the client's cache, then the kernel's.
    fn recalled(
        &mut self,
        now: Time,
        serial: Serial,
        items: &[LeaseItem],
        mutation: Option<Mutation>,
    ) -> Next {
        let local = self.clock.read(now);
        // The server sends no recall to a client that never attached.
        let Some(holder) = &mut self.holder else { return Next::Nothing };
        let pending = holder.recalled(local, serial, items);
        if mutation == Some(Mutation::IgnoresRecalls) {
            return Next::Answer(pending, Vec::new());
        }
        let is_recalled = |fact: &Fact| items.is_empty() || items.iter().any(|item| names(item, *fact));
        self.own.retain(|fact, _| !is_recalled(fact));
        Next::Answer(pending, self.kernel.keys().copied().filter(is_recalled).collect())
    }

    /// Returns the serial to answer a recall with.
    pub(crate) fn answer(&self, pending: PendingRecall) -> Option<Serial> {
        self.holder.as_ref()?.recall_done(pending)
    }
}

/// Returns the facts that an own request changes, as far as the client has cached them.
fn concerned(ask: &Ask) -> Vec<Fact> {
    match ask {
        Ask::Change(change) => {
            let objects = change.expected.iter().map(|object| Fact::Attributes(*object));
            change.kind.facts().into_iter().chain(objects).collect()
        }
        Ask::Ping | Ask::Attributes(_) | Ask::Lookup(..) | Ask::List(_) => Vec::new(),
    }
}

fn names(item: &LeaseItem, fact: Fact) -> bool {
    match (fact, &item.name) {
        (Fact::Attributes(object), _) => item.id == id(object),
        (Fact::Name(directory, _), None) => item.id == id(directory),
        (Fact::Name(directory, name), Some(recalled)) => item.id == id(directory) && recalled == name,
    }
}

/// Returns the name of a recalled item as a static string.
pub(crate) fn static_name(name: &[u8]) -> &'static str {
    NAMES.into_iter().find(|known| known.as_bytes() == name).expect("a name in use")
}

/// The next step of a client that received a message.
pub(crate) enum Next {
    Nothing,
    /// The kernel invalidates these facts, then the recall is answered.
    Answer(PendingRecall, Vec<Fact>),
    Lost,
}

impl SimClient {
    pub(crate) fn receive(
        &mut self,
        now: Time,
        down: Down,
        mutation: Option<Mutation>,
        dice: &mut Dice,
    ) -> Next {
        match down {
            Down::Attached { retained } => self.attached(now, retained, mutation),
            Down::Reply(request, reply) => self.replied(now, request, &reply, mutation, dice),
            Down::Recall(serial, items) => return self.recalled(now, serial, &items, mutation),
            Down::Closed => return Next::Lost,
        }
        Next::Nothing
    }

    pub(crate) fn sleeps(&mut self) {
        self.asleep = true;
    }

    pub(crate) fn wakes(&mut self, slept: Duration, mutation: Option<Mutation>) {
        self.asleep = false;
        if mutation == Some(Mutation::SleepsThrough) {
            self.clock.slept += slept.as_nanos() as u64;
        }
    }
}
