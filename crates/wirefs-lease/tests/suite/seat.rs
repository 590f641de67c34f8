//! One client: its cache, its kernel's, and the machine that says what of them counts.

use crate::dice::Dice;
use crate::flaws::Flaw;
use crate::store::{Fact, NAMES, Value, id};
use crate::wire::{Ask, Change, Connection, Down, What};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use wirefs_lease::{Empty, Forgetting, Holder, Item, Serial};
use wirefs_op::Time;

/// A request under way.
pub(crate) struct Pending {
    pub(crate) ask: Ask,
    /// On the client's clock.
    pub(crate) sent: Time,
}

/// A clock of its own: it began some time ago, and runs a bit fast or slow.
#[derive(Clone, Copy)]
pub(crate) struct Clock {
    offset: u64,
    /// Nanoseconds gained in a millisecond; lost if negative.
    gain: i64,
    /// What a clock that stands while the machine sleeps has lost.
    slept: u64,
}

impl Clock {
    fn new(dice: &mut Dice) -> Clock {
        // One per cent is far more than any clock.
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

    /// How long to wait until this clock reads `at`, or a little longer.
    pub(crate) fn until(&self, now: Time, at: Time) -> Duration {
        let left = at.since(self.read(now));
        left + left / 50 + Duration::from_micros(1)
    }
}

pub(crate) struct Seat {
    pub(crate) clock: Clock,
    pub(crate) holder: Option<Holder>,
    /// Where its requests go.
    pub(crate) connection: Option<Connection>,
    pub(crate) attached: bool,
    pub(crate) own: BTreeMap<Fact, Value>,
    pub(crate) kernel: BTreeMap<Fact, Value>,
    pub(crate) pending: BTreeMap<u64, Pending>,
    /// When the last own change of a fact was over.
    own_changed: BTreeMap<Fact, Time>,
    pub(crate) asleep: bool,
    /// Changes that were lost with their connection.
    pub(crate) lost: BTreeSet<u64>,
    /// When a request was answered again after that.
    pub(crate) answered_again: Option<Time>,
    /// The kernel takes its time to forget what is recalled.
    pub(crate) slow_kernel: bool,
    /// Replies that were taken as leased, for the record.
    pub(crate) taken: u64,
}

impl Seat {
    pub(crate) fn new(dice: &mut Dice) -> Seat {
        Seat {
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

    /// Lets its machine see the time. Gives back what has to be emptied.
    pub(crate) fn pass(&mut self, now: Time) -> Option<Empty> {
        let local = self.clock.read(now);
        let holder = self.holder.as_mut()?;
        holder.tick(local);
        let empty = holder.poll()?;
        if empty.own_too {
            self.own.clear();
        }
        Some(empty)
    }

    /// Whether a ping is due; one that believes nothing sends none.
    pub(crate) fn renewal_at(&self) -> Option<Time> {
        let holder = self.holder.as_ref().filter(|_| self.attached && !self.own.is_empty())?;
        holder.renewal_at()
    }

    /// A request is sent: own changes are known.
    pub(crate) fn sends(&mut self, now: Time, request: u64, ask: Ask) {
        let sent = self.clock.read(now);
        if let Some(holder) = &mut self.holder {
            holder.asked(sent);
        }
        for fact in concerned(&ask) {
            self.own.remove(&fact);
            self.kernel.remove(&fact);
        }
        self.pending.insert(request, Pending { ask, sent });
    }

    /// What a client takes the name for, if it knows.
    pub(crate) fn expects(&self, now: Time, what: What) -> Change {
        let valid = self.is_valid(now);
        let meaning = |(directory, name)| self.own.get(&Fact::Name(directory, name)).copied().flatten();
        let expected = what.victims().into_iter().filter_map(meaning).filter(|_| valid).collect();
        Change { what, expected }
    }

    pub(crate) fn lost(&mut self, now: Time) {
        self.connection = None;
        self.attached = false;
        if let Some(holder) = &mut self.holder {
            holder.lost();
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

    pub(crate) fn attached(&mut self, now: Time, kept: bool, flaw: Option<Flaw>) {
        let local = self.clock.read(now);
        let kept = kept || flaw == Some(Flaw::KeepsTheUnkept);
        self.attached = true;
        match &mut self.holder {
            Some(holder) => holder.attached(local, wirefs_lease::limits::TERM, kept),
            None => self.holder = Some(Holder::new(local, wirefs_lease::limits::TERM)),
        }
    }

    pub(crate) fn replied(
        &mut self,
        now: Time,
        request: u64,
        told: &[(Fact, Value, bool)],
        flaw: Option<Flaw>,
        dice: &mut Dice,
    ) {
        let local = self.clock.read(now);
        let Some(Pending { ask, sent }) = self.pending.remove(&request) else { return };
        let oldest = self.pending.values().map(|pending| pending.sent).min();
        let Some(holder) = &mut self.holder else { return };
        holder.answered(local, if flaw == Some(Flaw::CountsFromReplies) { local } else { sent });
        self.answered_again.get_or_insert(now);
        let overtaken = |fact: Fact| match fact {
            Fact::Attributes(object) => holder.is_overtaken(id(object), sent),
            Fact::Name(directory, name) => holder.is_name_overtaken(id(directory), name.as_bytes(), sent),
        };
        let is_change = matches!(ask, Ask::Change(_));
        let under_way: Vec<Fact> =
            self.pending.values().flat_map(|pending| concerned(&pending.ask)).collect();
        let mut taken = Vec::new();
        for (fact, value, leased) in told {
            let is_overtaken = overtaken(*fact) && flaw != Some(Flaw::BelievesTheOvertaken);
            let own = under_way.contains(fact) || self.own_changed.get(fact).is_some_and(|at| *at >= sent);
            if *leased && !is_overtaken && !own {
                taken.push((*fact, *value));
            }
        }
        let valid = holder.is_valid(local);
        holder.prune(oldest);
        if is_change {
            let changed: Vec<Fact> = told.iter().map(|(fact, ..)| *fact).collect();
            self.change_is_over(now, &changed);
        }
        for (fact, value) in taken {
            self.taken += 1;
            self.own.insert(fact, value);
            if valid && dice.percent(70) {
                self.kernel.insert(fact, value);
            }
        }
    }

    /// A recall came: the own cache forgets, then the kernel.
    fn recalled(&mut self, now: Time, serial: Serial, items: &[Item], flaw: Option<Flaw>) -> Next {
        let local = self.clock.read(now);
        // A server recalls nothing from whoever never attached.
        let Some(holder) = &mut self.holder else { return Next::Nothing };
        let forgetting = holder.recalled(local, serial, items);
        if flaw == Some(Flaw::KeepsTheRecalled) {
            return Next::Answer(forgetting, Vec::new());
        }
        let is_recalled = |fact: &Fact| items.is_empty() || items.iter().any(|item| names(item, *fact));
        self.own.retain(|fact, _| !is_recalled(fact));
        Next::Answer(forgetting, self.kernel.keys().copied().filter(is_recalled).collect())
    }

    /// The number to answer a recall with.
    pub(crate) fn answer(&self, forgetting: Forgetting) -> Option<Serial> {
        self.holder.as_ref()?.forgotten(forgetting)
    }
}

/// The facts that an own request changes, as far as the client knows.
fn concerned(ask: &Ask) -> Vec<Fact> {
    match ask {
        Ask::Change(change) => {
            let objects = change.expected.iter().map(|object| Fact::Attributes(*object));
            change.what.facts().into_iter().chain(objects).collect()
        }
        Ask::Ping | Ask::Attributes(_) | Ask::Lookup(..) | Ask::List(_) => Vec::new(),
    }
}

fn names(item: &Item, fact: Fact) -> bool {
    match (fact, &item.name) {
        (Fact::Attributes(object), _) => item.id == id(object),
        (Fact::Name(directory, _), None) => item.id == id(directory),
        (Fact::Name(directory, name), Some(recalled)) => item.id == id(directory) && recalled == name,
    }
}

/// What an item that is recalled names in the tree.
pub(crate) fn static_name(name: &[u8]) -> &'static str {
    NAMES.into_iter().find(|known| known.as_bytes() == name).expect("a name in use")
}

/// What a client does next with what came to it.
pub(crate) enum Next {
    Nothing,
    /// The kernel forgets this, then the recall is answered.
    Answer(Forgetting, Vec<Fact>),
    Lost,
}

impl Seat {
    pub(crate) fn receive(&mut self, now: Time, down: Down, flaw: Option<Flaw>, dice: &mut Dice) -> Next {
        match down {
            Down::Attached { kept } => self.attached(now, kept, flaw),
            Down::Reply(request, told) => self.replied(now, request, &told, flaw, dice),
            Down::Recall(serial, items) => return self.recalled(now, serial, &items, flaw),
            Down::Closed => return Next::Lost,
        }
        Next::Nothing
    }

    pub(crate) fn sleeps(&mut self) {
        self.asleep = true;
    }

    pub(crate) fn wakes(&mut self, slept: Duration, flaw: Option<Flaw>) {
        self.asleep = false;
        if flaw == Some(Flaw::SleepsThrough) {
            self.clock.slept += slept.as_nanos() as u64;
        }
    }
}
