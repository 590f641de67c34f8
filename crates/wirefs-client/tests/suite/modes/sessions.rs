//! Random sessions of several clients with one file. One seed is one run.

use crate::config;
use crate::deeds::{READ, READ_WRITE, data, entry, handle, write};
use crate::world::{Delays, World};
use std::time::Duration;
use wirefs_client::call::{Answer, Call, CallId, Handle, OpenHow, ROOT, TreeNodeId};
use wirefs_op::{Errno, Time};

const UNSTEADY: Delays = Delays { wire: (1_000, 60_000), server: (0, 30_000), kernel: (0, 0) };
const SEATS: usize = 3;
const SEEDS: u64 = 8;

/// One program that works on the file.
enum Program {
    Idle,
    Looks(CallId, OpenHow),
    Opens(CallId, Time, TreeNodeId, OpenHow),
    /// How it is open, and what its copy must be; whether that was changed.
    Works(TreeNodeId, Handle, OpenHow, (Vec<u8>, bool)),
    Closes(CallId, Time, TreeNodeId, Handle, (Vec<u8>, bool)),
}

struct Sessions {
    world: World,
    programs: Vec<Program>,
    next_byte: u8,
    closed: Vec<Vec<u8>>,
}

impl Sessions {
    fn new(seed: u64) -> Sessions {
        let mut world = World::of(seed, &vec![config("session"); SEATS], UNSTEADY);
        world.record();
        world.file(0, ROOT, b"f", b"");
        let programs = (0..SEATS * 2).map(|_| Program::Idle).collect();
        Sessions { world, programs, next_byte: 0, closed: vec![Vec::new()] }
    }

    /// The contents of the files that had the name at some moment since then.
    fn held_since(&self, since: Time) -> Vec<Vec<u8>> {
        let root = self.world.root();
        let states = &self.world.history.0;
        let first = states.partition_point(|(at, _)| *at < since).saturating_sub(1);
        let held = states.iter().skip(first).filter_map(|(_, state)| {
            let id = state.name(root, b"f")?;
            Some(state.objects.get(&id)?.data.to_vec())
        });
        held.collect()
    }

    fn act(&mut self, index: usize) {
        let seat = index / 2;
        let dice = &mut self.world.dice;
        match std::mem::replace(&mut self.programs[index], Program::Idle) {
            Program::Idle => {
                let truncate = dice.chance(1, 3);
                let how = if dice.chance(1, 3) { READ } else { OpenHow { truncate, ..READ_WRITE } };
                let call = self.world.call(seat, Call::Lookup { parent: ROOT, name: b"f" });
                self.programs[index] = Program::Looks(call, how);
            }
            Program::Works(node, handle, how, (mut copy, mut is_changed)) => {
                match dice.below(if how.write { 4 } else { 2 }) {
                    0 => {
                        let call = self.world.call(seat, Call::Flush { node, handle, owner: 1 });
                        self.programs[index] =
                            Program::Closes(call, self.world.now, node, handle, (copy, is_changed));
                        return;
                    }
                    1 => {
                        let read = Call::Read { node, handle, offset: 0, count: 1 << 20 };
                        assert!(data(self.world.ask(seat, read)) == copy, "its copy is another");
                    }
                    _ => {
                        self.next_byte = self.next_byte % 250 + 1;
                        let offset = dice.one_of(&[0, 0, 100, 70_000]);
                        let bytes = vec![self.next_byte; dice.one_of(&[1, 2000, 150_000])];
                        let answer = self.world.ask(seat, write(node, handle, offset as u64, &bytes));
                        assert_eq!(answer, Answer::Count(bytes.len() as u32));
                        copy.resize(copy.len().max(offset + bytes.len()), 0);
                        copy[offset..offset + bytes.len()].copy_from_slice(&bytes);
                        is_changed = true;
                    }
                }
                self.programs[index] = Program::Works(node, handle, how, (copy, is_changed));
            }
            waiting => self.programs[index] = waiting,
        }
    }

    /// Goes on with what was answered.
    fn harvest(&mut self, index: usize) {
        let seat = index / 2;
        let call = match &self.programs[index] {
            Program::Looks(call, _) | Program::Opens(call, ..) | Program::Closes(call, ..) => *call,
            Program::Idle | Program::Works(..) => return,
        };
        let Some((_, answer)) = self.world.seats[seat].answers.remove(&call) else { return };
        match std::mem::replace(&mut self.programs[index], Program::Idle) {
            Program::Looks(_, how) => {
                let node = entry(answer).node;
                let call = self.world.call(seat, Call::Open { node, how });
                self.programs[index] = Program::Opens(call, self.world.now, node, how);
            }
            // Another file has the name by now: its kernel looks again.
            Program::Opens(_, _, _, how) if answer == Answer::Fail(Errno::Stale) => {
                let call = self.world.call(seat, Call::Lookup { parent: ROOT, name: b"f" });
                self.programs[index] = Program::Looks(call, how);
            }
            Program::Opens(_, since, node, how) => {
                let handle = handle(answer);
                let read = Call::Read { node, handle, offset: 0, count: 1 << 20 };
                let copy = data(self.world.ask(seat, read)).to_vec();
                let was_so = self.held_since(since).contains(&copy) || how.truncate && copy.is_empty();
                assert!(was_so, "seat {seat} opens what the file was at no moment since {since:?}");
                self.programs[index] = Program::Works(node, handle, how, (copy, how.truncate));
            }
            Program::Closes(_, since, node, handle, (copy, is_changed)) => {
                assert_eq!(answer, Answer::Done);
                self.world.call(seat, Call::Release { node, handle, flock_owner: None });
                assert!(
                    !is_changed || self.held_since(since).contains(&copy),
                    "what was closed was there at no moment"
                );
                self.closed.push(copy);
            }
            Program::Idle | Program::Works(..) => {}
        }
    }

    fn run(&mut self) {
        for _ in 0..800 {
            let index = self.world.dice.below(self.programs.len() as u64) as usize;
            if self.world.dice.chance(1, 3) {
                self.act(index);
            } else {
                self.world.step();
            }
            (0..self.programs.len()).for_each(|index| self.harvest(index));
            if self.world.dice.chance(1, 50) {
                self.world.pass(Duration::from_millis(700));
            }
        }
        self.world.settle();
        (0..self.programs.len()).for_each(|index| self.harvest(index));
        for held in self.held_since(Time(0)) {
            assert!(self.closed.contains(&held), "the file was what nobody closed");
        }
        let root = self.world.root();
        let last = self.world.history.last();
        let beside = last.names[&root].iter().filter(|(name, _)| name.as_slice() != b"f").collect::<Vec<_>>();
        for (name, id) in &beside {
            assert!(name.starts_with(b"f.wirefs-conflict-box-"), "left beside it: {}", name.escape_ascii());
            let held = last.objects[*id].data.to_vec();
            assert!(self.closed.contains(&held), "what was kept is what nobody closed");
        }
        let told = self.world.seats.iter().map(|seat| seat.client.snapshot().conflicts.count);
        assert_eq!(told.sum::<u64>(), beside.len() as u64, "each that is kept is told, and the reverse");
    }
}

impl Drop for Sessions {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for line in &self.world.log {
                eprintln!("{line}");
            }
        }
    }
}

/// S-26 S-27 S-28
#[test]
fn each_open_has_one_state_of_the_file_and_each_close_makes_one() {
    for seed in crate::property::seeds("session", false, SEEDS) {
        let _running = crate::property::Running("session", seed);
        Sessions::new(seed).run();
    }
}
