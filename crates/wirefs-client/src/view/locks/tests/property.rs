//! Random programs here and at the server: no lock is ever granted twice, none is refused that is free here, a test finds only
//! held locks, and in the end the server has exactly the held locks.

use super::range;
use crate::call::{CallId, Handle};
use crate::view::locks::{Asked, FileLocks, Refusal, Step};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use wirefs_op::{LockKind, LockRange, LockRanges, Time};
use wirefs_virtual::Dice;

const OWNERS: u64 = 3;
/// A program at the server.
const OUTSIDE: u64 = 99;
const BYTES: u64 = 6;

/// A lock request to the server, or a release.
#[derive(Clone, Copy, Debug)]
struct Message {
    owner: u64,
    range: LockRange,
    /// The program that waits for the reply.
    call: Option<(CallId, For)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum For {
    /// All of the file.
    Delegate,
    /// A lock as it is.
    Lock,
    /// One that waits at the server.
    Wait,
    /// Nothing: whether it could be had.
    Test,
}

/// The activity of a program.
#[derive(Clone, Debug)]
struct Call {
    owner: u64,
    range: LockRange,
    waits: bool,
    is_withdrawn: bool,
    /// Somebody else held it at some moment.
    met_another: bool,
    /// The locks that its program held before.
    before: LockRanges,
}

#[derive(Default)]
struct World {
    now: Time,
    file: FileLocks,
    /// At the server, by holder.
    server: BTreeMap<u64, LockRanges>,
    /// In order, on the way there.
    sent: VecDeque<Message>,
    waiting: Vec<Message>,
    replies: VecDeque<(Message, bool)>,
    calls: BTreeMap<CallId, Call>,
    /// The locks that each program was granted.
    held: BTreeMap<u64, LockRanges>,
    next: u64,
    may_delegate: bool,
    counted: [usize; 3],
}

fn conflict(table: &BTreeMap<u64, LockRanges>, owner: u64, range: LockRange) -> Option<LockRange> {
    table.iter().filter(|(holder, _)| **holder != owner).find_map(|(_, held)| held.conflict(range))
}

impl World {
    fn new(seed: u64) -> World {
        let now = Time(1_000_000_000_000 + seed);
        World { now, may_delegate: true, ..World::default() }
    }

    fn step(&mut self, dice: &mut Dice) {
        match dice.below(12) {
            // One is busier than the others.
            0..4 => self.program(1 + dice.below(OWNERS) * dice.below(2), dice),
            4..8 => self.deliver(dice),
            8 if dice.chance(1, 3) => self.outside(dice),
            8 | 9 => self.now = self.now + Duration::from_millis(dice.below(250)),
            10 => {
                self.file.pass(self.now);
                self.tell();
            }
            _ if dice.chance(1, 12) => self.may_delegate = !self.may_delegate,
            _ => self.withdraw(dice),
        }
        if !self.may_delegate {
            self.file.reduce();
            self.tell();
        }
        self.check();
    }

    /// A program does something, unless it waits.
    fn program(&mut self, owner: u64, dice: &mut Dice) {
        if self.calls.values().any(|call| call.owner == owner) {
            return;
        }
        let start = dice.below(BYTES);
        let end = if dice.chance(1, 3) { u64::MAX } else { start + dice.below(BYTES - start) };
        self.next += 1;
        let (call, handle) = (CallId(self.next), Handle(0));
        let kind = dice.one_of(&[0u8, 1, 1, 2, 2]);
        let asked = match kind {
            0 => {
                let range = range(LockKind::Unlock, start, end);
                self.held.entry(owner).or_default().set(range);
                Asked::Unlock { handle, owner, range }
            }
            _ if dice.chance(1, 6) => {
                let kind = if dice.chance(1, 2) { LockKind::Read } else { LockKind::Write };
                let range = range(kind, start, end);
                let before = self.held.get(&owner).cloned().unwrap_or_default();
                let of = Call { owner, range, waits: false, is_withdrawn: false, met_another: false, before };
                self.calls.insert(call, of);
                self.meet();
                Asked::Test { call, handle, owner, range }
            }
            kind => {
                let kind = if kind == 1 { LockKind::Read } else { LockKind::Write };
                let (range, waits) = (range(kind, start, end), dice.chance(1, 10));
                let before = self.held.get(&owner).cloned().unwrap_or_default();
                let of = Call { owner, range, waits, is_withdrawn: false, met_another: false, before };
                self.weaken(owner, range);
                self.calls.insert(call, of);
                self.meet();
                Asked::Lock { call, handle, owner, range, waits }
            }
        };
        self.ask(asked);
    }

    /// A request for a shared lock gives up the exclusive lock there.
    fn weaken(&mut self, owner: u64, wanted: LockRange) {
        let held = self.held.entry(owner).or_default();
        for piece in held.to_vec() {
            let (start, end) = (piece.start.max(wanted.start), piece.end.min(wanted.end));
            if wanted.kind == LockKind::Read && start <= end {
                held.set(range(LockKind::Read, start, end));
            }
        }
    }

    /// It has what it had.
    fn in_vain(&mut self, call: CallId) -> Call {
        let of = self.calls.remove(&call).unwrap();
        self.held.insert(of.owner, of.before.clone());
        of
    }

    fn ask(&mut self, asked: Asked) {
        let step = self.file.ask(self.now, self.may_delegate, asked);
        self.tell();
        self.go(step);
    }

    fn tell(&mut self) {
        for (owner, range) in self.file.take_reductions() {
            self.sent.push_back(Message { owner, range, call: None });
        }
    }

    fn go(&mut self, step: Step) {
        match step {
            Step::Waits | Step::Released => {}
            Step::Granted(call) => {
                self.counted[0] += 1;
                self.granted(call);
            }
            Step::Refused(call, why) => {
                assert_eq!(why, Refusal::Held);
                self.refused(call);
            }
            Step::Found(call, found) => self.found(call, found.is_some()),
            Step::Delegate { call, owner, whole, .. } => {
                self.sent.push_back(Message { owner, range: whole, call: Some((call, For::Delegate)) });
            }
            Step::Ask(Asked::Lock { call, owner, range, waits, .. }) => {
                let what = if waits { For::Wait } else { For::Lock };
                self.sent.push_back(Message { owner, range, call: Some((call, what)) });
            }
            Step::Ask(Asked::Test { call, owner, range, .. }) => {
                self.sent.push_back(Message { owner, range, call: Some((call, For::Test)) });
            }
            Step::Ask(Asked::Unlock { owner, range, .. }) => {
                self.sent.push_back(Message { owner, range, call: None });
            }
        }
    }

    fn granted(&mut self, call: CallId) {
        let Call { owner, range, .. } = self.calls.remove(&call).unwrap();
        self.held.entry(owner).or_default().set(range);
    }

    fn refused(&mut self, call: CallId) {
        self.meet();
        let refused = self.in_vain(call);
        assert!(refused.met_another, "{refused:?} is refused and nobody had it: {:?}", self.held);
    }

    /// A test has its answer.
    fn found(&mut self, call: CallId, is_any: bool) {
        self.meet();
        self.counted[2] += usize::from(is_any);
        let test = self.in_vain(call);
        assert!(!is_any || test.met_another, "{test:?} found a lock that nobody had: {:?}", self.held);
    }

    /// Notes who meets a lock of another's, or what one that is asking right now held before.
    fn meet(&mut self) {
        let outside = self.server.get(&OUTSIDE);
        let before: Vec<(u64, LockRanges)> =
            self.calls.values().map(|call| (call.owner, call.before.clone())).collect();
        for call in self.calls.values_mut() {
            let (owner, range) = (call.owner, call.range);
            let is_outside = outside.is_some_and(|held| held.conflict(range).is_some());
            let was = |(other, held): &(u64, LockRanges)| *other != owner && held.conflict(range).is_some();
            let is_held = conflict(&self.held, owner, range).is_some();
            call.met_another |= is_outside || is_held || before.iter().any(was);
        }
    }

    fn deliver(&mut self, dice: &mut Dice) {
        match dice.below(3) {
            0 => self.serve(),
            1 => self.grant_waiting(dice),
            _ => self.reply(),
        }
    }

    fn serve(&mut self) {
        let Some(message) = self.sent.pop_front() else { return };
        let Message { owner, range, call } = message;
        let may = range.kind == LockKind::Unlock || conflict(&self.server, owner, range).is_none();
        match call {
            Some((_, For::Test)) => {}
            Some((_, For::Wait)) if !may => return self.waiting.push(message),
            _ if may => self.server.entry(owner).or_default().set(range),
            _ => {}
        }
        self.replies.push_back((message, may));
    }

    fn grant_waiting(&mut self, dice: &mut Dice) {
        if self.waiting.is_empty() {
            return;
        }
        let at = dice.below(self.waiting.len() as u64) as usize;
        let Message { owner, range, .. } = self.waiting[at];
        if conflict(&self.server, owner, range).is_none() {
            let message = self.waiting.remove(at);
            self.server.entry(owner).or_default().set(range);
            self.replies.push_back((message, true));
        }
    }

    fn reply(&mut self) {
        let Some((message, is_had)) = self.replies.pop_front() else { return };
        let Some((call, what)) = message.call else { return };
        match what {
            For::Delegate => self.lend_answered(call, is_had),
            For::Test => self.found(call, !is_had),
            For::Lock | For::Wait => {
                let range = is_had.then_some(message.range);
                self.file.asked(call, range, what != For::Wait);
                match is_had {
                    true => self.granted(call),
                    false => self.refused(call),
                }
            }
        }
    }

    fn lend_answered(&mut self, call: CallId, is_had: bool) {
        let of = self.calls[&call].clone();
        self.counted[1] += usize::from(is_had);
        if is_had {
            self.file.delegated(self.now, (!of.is_withdrawn).then_some(of.range));
            if !self.may_delegate {
                self.file.reduce();
            }
            self.tell();
            match of.is_withdrawn {
                true => drop(self.in_vain(call)),
                false => self.granted(call),
            }
        } else {
            let Call { owner, range, waits, .. } = of;
            let asked = Asked::Lock { call, handle: Handle(0), owner, range, waits };
            let step = self.file.not_delegated(self.now, true, (!of.is_withdrawn).then_some(asked));
            self.tell();
            match step {
                Some(step) => self.go(step),
                None => drop(self.in_vain(call)),
            }
        }
        while let Some(asked) = self.file.next_queued() {
            self.ask(asked);
        }
    }

    /// A program is interrupted: what is asked for on account of it comes to nothing.
    fn withdraw(&mut self, dice: &mut Dice) {
        let calls: Vec<CallId> = self.calls.keys().copied().collect();
        let at = dice.below(calls.len().max(1) as u64) as usize;
        let Some(call) = calls.get(at).copied() else { return };
        if self.file.withdraw(call) {
            self.in_vain(call);
        } else if self.is_lending(call) {
            self.calls.get_mut(&call).unwrap().is_withdrawn = true;
        }
    }

    fn is_lending(&self, call: CallId) -> bool {
        let is_it = |message: &Message| message.call == Some((call, For::Delegate));
        self.sent.iter().any(is_it) || self.replies.iter().any(|(message, _)| is_it(message))
    }

    /// A program at the server takes or releases what it can.
    fn outside(&mut self, dice: &mut Dice) {
        let kind = dice.one_of(&[0u8, 0, 0, 1, 2]);
        let kind = [LockKind::Unlock, LockKind::Read, LockKind::Write][usize::from(kind)];
        let start = dice.below(BYTES);
        let range = range(kind, start, start + dice.below(3));
        if kind == LockKind::Unlock || conflict(&self.server, OUTSIDE, range).is_none() {
            self.server.entry(OUTSIDE).or_default().set(range);
        }
    }

    fn check(&mut self) {
        self.meet();
        let nothing = LockRanges::default();
        for (owner, held) in &self.held {
            for range in held.to_vec() {
                let outside = self.server.get(&OUTSIDE).and_then(|outside| outside.conflict(range));
                assert_eq!(outside, None, "{owner} and a program at the server have {range:?}");
                assert_eq!(conflict(&self.held, *owner, range), None, "two have {range:?}");
                let server = self.server.get(owner).unwrap_or(&nothing);
                for byte in range.start..=range.end.min(BYTES + 1) {
                    let there = server.to_vec().into_iter().find(|it| it.start <= byte && byte <= it.end);
                    let is_had = there.is_some_and(|it| it.kind == range.kind || it.kind == LockKind::Write);
                    assert!(is_had, "{owner} does not have {byte} of {range:?}: {there:?}");
                }
            }
        }
    }

    /// All that is under way comes to its end.
    fn settle(&mut self, dice: &mut Dice) {
        self.may_delegate = false;
        for _ in 0..1000 {
            self.step_on(dice);
        }
        self.held.retain(|_, held| !held.is_empty());
        let at_server = self.server.iter().filter(|(holder, held)| **holder != OUTSIDE && !held.is_empty());
        let at_server: Vec<_> = at_server.map(|(holder, held)| (*holder, held.to_vec())).collect();
        let held: Vec<_> = self.held.iter().map(|(owner, held)| (*owner, held.to_vec())).collect();
        assert_eq!(at_server, held, "the server has other locks than the programs");
    }

    fn step_on(&mut self, dice: &mut Dice) {
        self.server.remove(&OUTSIDE);
        self.file.reduce();
        self.tell();
        self.deliver(dice);
        // Who waits for somebody who does nothing any more has to have that one let go.
        let stuck = self.sent.is_empty() && self.replies.is_empty();
        let first = self.calls.first_key_value().filter(|_| stuck).map(|(_, call)| call.clone());
        if let Some(call) = first
            && let Some(other) = self.held.keys().copied().find(|owner| {
                *owner != call.owner && !self.calls.values().any(|waiting| waiting.owner == *owner)
            })
        {
            let range = range(LockKind::Unlock, 0, u64::MAX);
            self.held.remove(&other);
            self.ask(Asked::Unlock { handle: Handle(0), owner: other, range });
        } else if stuck && self.calls.len() > 1 {
            self.break_deadlock();
        }
        self.check();
    }

    /// Two wait for each other, which nobody looks for: one of them is ended.
    fn break_deadlock(&mut self) {
        let Some((call, of)) = self.calls.pop_first() else { return };
        self.waiting.retain(|message| message.call.is_none_or(|(waiting, _)| waiting != call));
        self.file.asked(call, None, true);
        self.held.remove(&of.owner);
        let range = range(LockKind::Unlock, 0, u64::MAX);
        self.ask(Asked::Unlock { handle: Handle(0), owner: of.owner, range });
    }
}

#[test]
fn whatever_programs_do_no_lock_is_granted_twice_and_none_stays_behind() {
    let mut counted = [0; 3];
    for seed in 0..400 {
        let mut dice = Dice::new(seed);
        let mut world = World::new(seed);
        for _ in 0..400 {
            world.step(&mut dice);
        }
        world.settle(&mut dice);
        for (sum, count) in counted.iter_mut().zip(world.counted) {
            *sum += count;
        }
    }
    let [answered_here, delegated, found] = counted;
    assert!(answered_here > 300 && delegated > 300 && found > 30, "{counted:?}");
}
