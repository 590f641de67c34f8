//! What changes the tree, and what goes wrong.

use crate::dice::Dice;
use crate::flaws::Flaw;
use crate::store::{DIRECTORIES, Fact, NAMES, Store};
use crate::wire::{Ask, Change, What};
use crate::world::{Changer, Event, World};
use std::collections::VecDeque;
use std::time::Duration;
use wirefs_lease::Grantor;
use wirefs_lease::limits::{MARGIN, TERM};
use wirefs_op::Time;

impl World {
    pub(crate) fn some_change(&mut self) -> What {
        let place = |dice: &mut Dice| (dice.pick(&DIRECTORIES), dice.pick(&NAMES));
        let (directory, name) = place(&mut self.dice);
        match self.dice.between(0, 9) {
            0..4 => What::Write(directory, name),
            4..6 => What::Create(directory, name),
            6..7 => What::Unlink(directory, name),
            7..9 => What::Rename((directory, name), place(&mut self.dice)),
            _ => What::Chmod(directory),
        }
    }

    pub(crate) fn trouble(&mut self) {
        if self.is_resting() {
            for seat in &mut self.seats {
                seat.slow_kernel = false;
            }
            return;
        }
        let seat = self.dice.between(0, self.seats.len() as u64 - 1) as usize;
        match self.dice.between(0, 99) {
            0..15 => {
                let long = self.dice.between(100_000_000, 40_000_000_000);
                self.ways[seat].stalled_until = Time(self.now.0 + long);
            }
            15..35 => self.cut(seat),
            35..45 if !self.seats[seat].asleep => {
                let long = Duration::from_millis(self.dice.between(100, 60_000));
                self.seats[seat].sleeps();
                self.at(self.now + long, Event::Wake(seat, long));
            }
            45..55 => self.seats[seat].slow_kernel ^= true,
            55..57 => self.restart(),
            57..80 => self.change_outside(),
            _ => {
                let what = self.some_change();
                self.take(None, None, 0, Ask::Change(Change { what, expected: Vec::new() }));
            }
        }
        self.later(10_000, 4_000_000, Event::Trouble);
    }

    /// A connection breaks: each side notices in its own time, the server perhaps only when the client is back.
    fn cut(&mut self, seat: usize) {
        let Some(connection) = self.seats[seat].connection else { return };
        self.dead.push(connection);
        let most = if self.dice.percent(30) { 60_000_000 } else { 1_000_000 };
        self.later(0, most, Event::CutAtServer(seat, connection));
        let most = if self.dice.percent(30) { 25_000_000 } else { 1_000_000 };
        self.later(0, most, Event::CutAtClient(seat, connection));
    }

    /// The server dies and starts anew.
    fn restart(&mut self) {
        let wait = (self.flaw != Some(Flaw::StartsAtOnce)).then(|| self.now + TERM + MARGIN);
        for seat in 0..self.seats.len() {
            self.cut(seat);
        }
        self.server.connections.fill(None);
        self.server.jobs.clear();
        self.server.lanes.iter_mut().for_each(VecDeque::clear);
        self.server.grantor = Grantor::new(self.server.config, wait);
        self.tick_at = None;
        self.schedule_tick();
    }

    fn change_outside(&mut self) {
        let what = self.some_change();
        let changed = self.change(what, &[], Changer::Outside);
        for (directory, name) in what.names() {
            self.later(0, 300_000, Event::Watch(directory, Some(name)));
        }
        for object in changed {
            self.later(0, 300_000, Event::Watch(object, None));
        }
        if let What::Chmod(directory) = what {
            self.later(0, 300_000, Event::Watch(directory, None));
        }
    }

    /// Changes what is true. Gives back the files concerned. Those that the change was not prepared for are as if changed
    /// from outside: a program put them there meanwhile.
    pub(crate) fn change(&mut self, what: What, prepared: &[u64], changer: Changer) -> Vec<u64> {
        let meaning = |place: (u64, &'static str), store: &Store| store.name(place.0, place.1);
        let mut changed: Vec<u64> =
            what.victims().into_iter().filter_map(|place| meaning(place, &self.store)).collect();
        let existing = changed.clone();
        match what {
            What::Write(directory, name) => {
                if changer != Changer::Outside {
                    changed = prepared.to_vec();
                } else {
                    changed = self.store.name(directory, name).into_iter().collect();
                }
                for object in &changed {
                    self.store.change(*object);
                }
            }
            What::Create(directory, name) => {
                if self.store.name(directory, name).is_some() {
                    return Vec::new();
                }
                self.store.create(directory, name);
                changed.extend(self.store.name(directory, name));
            }
            What::Unlink(directory, name) => {
                if existing.is_empty() {
                    return Vec::new();
                }
                self.store.bind(directory, name, None);
            }
            What::Rename(from, to) => {
                let Some(moved) = meaning(from, &self.store).filter(|_| from != to) else {
                    return Vec::new();
                };
                self.store.bind(from.0, from.1, None);
                self.store.bind(to.0, to.1, Some(moved));
            }
            What::Chmod(directory) => self.store.change(directory),
        }
        for fact in what.facts() {
            self.changers.insert(fact, (changer, self.now));
        }
        for object in &changed {
            let is_prepared = prepared.contains(object) || !existing.contains(object);
            let by = if is_prepared { changer } else { Changer::Outside };
            self.changers.insert(Fact::Attributes(*object), (by, self.now));
            if !is_prepared && changer != Changer::Outside {
                self.later(0, 300_000, Event::Watch(*object, None));
            }
        }
        changed
    }
}
