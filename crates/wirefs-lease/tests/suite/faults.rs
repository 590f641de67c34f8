//! External changes and faults.

use crate::mutations::Mutation;
use crate::simulation::{Changer, Event, LeaseSimulation};
use crate::store::{DIRECTORIES, Fact, NAMES, Store};
use crate::wire::{Ask, Change, ChangeKind};
use std::collections::VecDeque;
use std::time::Duration;
use wirefs_lease::Grantor;
use wirefs_lease::limits::{MARGIN, TERM};
use wirefs_op::Time;
use wirefs_virtual::Dice;

impl LeaseSimulation {
    pub(crate) fn some_change(&mut self) -> ChangeKind {
        let place = |dice: &mut Dice| (dice.one_of(&DIRECTORIES), dice.one_of(&NAMES));
        let (directory, name) = place(&mut self.dice);
        match self.dice.between(0, 9) {
            0..4 => ChangeKind::Write(directory, name),
            4..6 => ChangeKind::Create(directory, name),
            6..7 => ChangeKind::Unlink(directory, name),
            7..9 => ChangeKind::Rename((directory, name), place(&mut self.dice)),
            _ => ChangeKind::Chmod(directory),
        }
    }

    pub(crate) fn inject_fault(&mut self) {
        if self.is_resting() {
            for client in &mut self.clients {
                client.slow_kernel = false;
            }
            return;
        }
        let client = self.dice.between(0, self.clients.len() as u64 - 1) as usize;
        match self.dice.between(0, 99) {
            0..15 => {
                let long = self.dice.between(100_000_000, 40_000_000_000);
                self.wires[client].stalled_until = Time(self.now.0 + long);
            }
            15..35 => self.cut(client),
            35..45 if !self.clients[client].asleep => {
                let long = Duration::from_millis(self.dice.between(100, 60_000));
                self.clients[client].sleeps();
                self.at(self.now + long, Event::Wake(client, long));
            }
            45..55 => self.clients[client].slow_kernel ^= true,
            55..57 => self.restart(),
            57..80 => self.change_externally(),
            _ => {
                let kind = self.some_change();
                self.take(None, None, 0, Ask::Change(Change { kind, expected: Vec::new() }));
            }
        }
        self.later(10_000, 4_000_000, Event::Fault);
    }

    /// Breaks a connection. Each side notices at its own time, the server possibly only when the client
    /// reconnects.
    fn cut(&mut self, client: usize) {
        let Some(connection) = self.clients[client].connection else { return };
        self.dead.push(connection);
        let most = if self.dice.chance(30, 100) { 60_000_000 } else { 1_000_000 };
        self.later(0, most, Event::CutAtServer(client, connection));
        let most = if self.dice.chance(30, 100) { 25_000_000 } else { 1_000_000 };
        self.later(0, most, Event::CutAtClient(client, connection));
    }

    /// Restarts the server after a crash.
    fn restart(&mut self) {
        let wait = (self.mutation != Some(Mutation::SkipsRecovery)).then(|| self.now + TERM + MARGIN);
        for client in 0..self.clients.len() {
            self.cut(client);
        }
        self.server.connections.fill(None);
        self.server.jobs.clear();
        self.server.lanes.iter_mut().for_each(VecDeque::clear);
        self.server.grantor = Grantor::new(self.server.config, wait);
        self.tick_at = None;
        self.schedule_tick();
    }

    fn change_externally(&mut self) {
        let kind = self.some_change();
        let changed = self.change(kind, &[], Changer::External);
        for (directory, name) in kind.names() {
            self.later(0, 300_000, Event::Watch(directory, Some(name)));
        }
        for object in changed {
            self.later(0, 300_000, Event::Watch(object, None));
        }
        if let ChangeKind::Chmod(directory) = kind {
            self.later(0, 300_000, Event::Watch(directory, None));
        }
    }

    /// Applies a change to the store. Returns the files concerned. Files for which the job was not prepared
    /// count as changed externally, since a program put them there meanwhile.
    pub(crate) fn change(&mut self, kind: ChangeKind, prepared: &[u64], changer: Changer) -> Vec<u64> {
        let meaning = |place: (u64, &'static str), store: &Store| store.name(place.0, place.1);
        let mut changed: Vec<u64> =
            kind.victims().into_iter().filter_map(|place| meaning(place, &self.store)).collect();
        let existing = changed.clone();
        match kind {
            ChangeKind::Write(directory, name) => {
                if changer != Changer::External {
                    changed = prepared.to_vec();
                } else {
                    changed = self.store.name(directory, name).into_iter().collect();
                }
                for object in &changed {
                    self.store.change(*object);
                }
            }
            ChangeKind::Create(directory, name) => {
                if self.store.name(directory, name).is_some() {
                    return Vec::new();
                }
                self.store.create(directory, name);
                changed.extend(self.store.name(directory, name));
            }
            ChangeKind::Unlink(directory, name) => {
                if existing.is_empty() {
                    return Vec::new();
                }
                self.store.bind(directory, name, None);
            }
            ChangeKind::Rename(from, to) => {
                let Some(moved) = meaning(from, &self.store).filter(|_| from != to) else {
                    return Vec::new();
                };
                self.store.bind(from.0, from.1, None);
                self.store.bind(to.0, to.1, Some(moved));
            }
            ChangeKind::Chmod(directory) => self.store.change(directory),
        }
        for fact in kind.facts() {
            self.changers.insert(fact, (changer, self.now));
        }
        for object in &changed {
            let is_prepared = prepared.contains(object) || !existing.contains(object);
            let by = if is_prepared { changer } else { Changer::External };
            self.changers.insert(Fact::Attributes(*object), (by, self.now));
            if !is_prepared && changer != Changer::External {
                self.later(0, 300_000, Event::Watch(*object, None));
            }
        }
        changed
    }
}
