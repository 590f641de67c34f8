//! Random changes of names by a mount that is alone, beside a plain list of what there is: answers come before the server has the
//! changes, and each is what it would be if it had them.

use crate::config;
use crate::deeds::{NEW, READ, handle, is_absent, listing, readdir, write};
use crate::world::{Delays, World};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use wirefs_client::Config;
use wirefs_client::call::{Answer, Call, CallId, ROOT, TreeNodeId};
use wirefs_op::{Errno, Kind, Timestamp};
use wirefs_virtual::Dice;

const DELAYS: Delays = Delays { wire: (1_000, 60_000), server: (0, 30_000), kernel: (0, 20_000) };
const DIRECTORIES: [&str; 3] = ["d0", "d1", "d2"];
const NAMES: [&[u8]; 4] = [b"a", b"b", b"c", b"d"];

struct Lone {
    world: World,
    dice: Dice,
    dirs: Vec<TreeNodeId>,
    /// The names, by directory.
    there: BTreeMap<(usize, &'static [u8]), Kind>,
    /// Calls that nobody waits for yet; none of them changes anything.
    under_way: Vec<CallId>,
    cuts: bool,
}

impl Lone {
    fn new(seed: u64, cuts: bool) -> Lone {
        let day = Timestamp { secs: 1_700_000_000, nanos: 0 };
        let world = World::new(seed, Config { journal: true, day, ..config("lease") }, 1, DELAYS);
        let mut dice = Dice::new(seed);
        let mut there = BTreeMap::new();
        for (index, dir) in DIRECTORIES.iter().enumerate() {
            world.make(dir, Kind::Directory, b"");
            for name in &NAMES {
                if dice.chance(1, 2) {
                    continue;
                }
                let text = String::from_utf8_lossy(name);
                world.make(&format!("{dir}/{text}"), Kind::File, &vec![7; dice.below(3000) as usize]);
                there.insert((index, *name), Kind::File);
            }
        }
        let mut lone = Lone { world, dice, dirs: Vec::new(), there, under_way: Vec::new(), cuts };
        lone.world.pass(Duration::from_millis(lone.dice.below(400)));
        lone.dirs = DIRECTORIES.iter().map(|dir| lone.world.lookup(0, ROOT, dir.as_bytes())).collect();
        lone
    }

    fn name(&mut self) -> (usize, &'static [u8]) {
        (self.dice.below(3) as usize, NAMES[self.dice.below(4) as usize])
    }

    fn ask(&mut self, call: Call<'_>) -> Answer {
        self.world.ask(0, call)
    }

    /// The kernel's requests before each change, when it has the directory to itself.
    fn find(&mut self, (dir, name): (usize, &'static [u8])) -> Option<TreeNodeId> {
        let answer = self.world.ask(0, Call::Lookup { parent: self.dirs[dir], name });
        let is_there = self.there.contains_key(&(dir, name));
        match answer {
            Answer::Entry(entry) if is_there => Some(entry.node),
            answer if is_absent(&answer) && !is_there => None,
            other => panic!("{}: {other:?}, there: {:?}", self.text((dir, name)), self.there),
        }
    }

    fn text(&self, (dir, name): (usize, &'static [u8])) -> String {
        format!("{}/{} at {:?}", DIRECTORIES[dir], String::from_utf8_lossy(name), self.world.now)
    }

    /// Something that needs a while, in another directory than the change that comes next, or of an object.
    fn look_aside(&mut self, besides: usize) {
        let other = (besides + 1 + self.dice.below(2) as usize) % 3;
        let call = match self.dice.below(4) {
            0 => Call::Lookup { parent: self.dirs[other], name: NAMES[self.dice.below(4) as usize] },
            1 => Call::Getattr { node: self.dirs[besides], handle: None },
            2 => Call::Opendir { node: self.dirs[other] },
            _ => Call::Statfs { node: ROOT },
        };
        let id = self.world.call(0, call);
        self.under_way.push(id);
    }

    fn list(&mut self, dir: usize) {
        let node = self.dirs[dir];
        let opened = handle(self.ask(Call::Opendir { node }));
        let (mut names, mut offset) = (BTreeSet::new(), 0);
        loop {
            let entries = listing(self.ask(readdir(node, opened, offset)));
            let Some(last) = entries.last() else { break };
            offset = last.next;
            names.extend(entries.into_iter().map(|entry| entry.name));
        }
        self.ask(Call::Releasedir { node, handle: opened });
        names.retain(|name| name != b"." && name != b"..");
        let expected: BTreeSet<Vec<u8>> =
            self.there.keys().filter(|(of, _)| *of == dir).map(|(_, name)| name.to_vec()).collect();
        assert_eq!(names, expected, "{} at {:?}", DIRECTORIES[dir], self.world.now);
    }

    fn make(&mut self, place: (usize, &'static [u8])) {
        let (kind, parent, name) = (self.dice.below(3), self.dirs[place.0], place.1);
        let was = self.find(place).is_some();
        let answer = match kind {
            0 => self.ask(Call::Mkdir { parent, name, mode: 0o755, umask: 0 }),
            1 => self.ask(Call::Symlink { parent, name, target: b"nowhere" }),
            _ => self.ask(Call::Create { parent, name, mode: 0o644, umask: 0, how: NEW }),
        };
        match answer {
            Answer::Entry(_) if !was => {}
            Answer::Created(entry, handle, _) if !was => {
                let data = vec![1; self.dice.below(2000) as usize + 1];
                self.ask(write(entry.node, handle, 0, &data));
                self.world.close(0, entry.node, handle);
            }
            Answer::Fail(Errno::Exists) if was => return,
            other => panic!("{}: {other:?}", self.text(place)),
        }
        let kind = [Kind::Directory, Kind::Symlink, Kind::File][kind as usize];
        self.there.insert(place, kind);
    }

    fn remove(&mut self, place: (usize, &'static [u8])) {
        let (parent, name) = (self.dirs[place.0], place.1);
        let Some(_) = self.find(place) else { return };
        let answer = match self.there[&place] {
            Kind::Directory => self.ask(Call::Rmdir { parent, name }),
            _ => self.ask(Call::Unlink { parent, name }),
        };
        assert_eq!(answer, Answer::Done, "{}", self.text(place));
        self.there.remove(&place);
    }

    fn rename(&mut self, from: (usize, &'static [u8]), to: (usize, &'static [u8])) {
        let (found, replaced) = (self.find(from), self.find(to));
        if found.is_none() || from == to || found == replaced {
            return;
        }
        let call = Call::Rename {
            parent: self.dirs[from.0],
            name: from.1,
            to_parent: self.dirs[to.0],
            to_name: to.1,
            flags: 0,
        };
        let (moved, replaced) = (self.there[&from], self.there.get(&to));
        let is_directory = |kind: Kind| kind == Kind::Directory;
        let expected = match replaced.map(|replaced| (is_directory(moved), is_directory(*replaced))) {
            Some((true, false)) => Answer::Fail(Errno::NotDirectory),
            Some((false, true)) => Answer::Fail(Errno::IsDirectory),
            Some(_) | None => Answer::Done,
        };
        let answer = self.ask(call);
        assert_eq!(answer, expected, "{} to {}", self.text(from), self.text(to));
        if answer == Answer::Done {
            self.there.remove(&from);
            self.there.insert(to, moved);
        }
    }

    fn link(&mut self, from: (usize, &'static [u8]), to: (usize, &'static [u8])) {
        let Some(node) = self.find(from).filter(|_| self.there[&from] == Kind::File) else { return };
        let was = self.find(to).is_some();
        match self.ask(Call::Link { node, parent: self.dirs[to.0], name: to.1 }) {
            Answer::Entry(_) if !was => drop(self.there.insert(to, Kind::File)),
            Answer::Fail(Errno::Exists) if was => {}
            other => panic!("{} to {}: {other:?}", self.text(from), self.text(to)),
        }
    }

    fn read(&mut self, place: (usize, &'static [u8])) {
        let Some(node) = self.find(place).filter(|_| self.there[&place] == Kind::File) else { return };
        let opened = handle(self.ask(Call::Open { node, how: READ }));
        let read = self.ask(Call::Read { node, handle: opened, offset: 0, count: 4096 });
        assert!(matches!(read, Answer::Data(_)), "{}: {read:?}", self.text(place));
        self.world.close(0, node, opened);
    }

    fn step(&mut self) {
        let (place, other) = (self.name(), self.name());
        for _ in 0..self.dice.below(3) {
            self.look_aside(place.0);
        }
        match self.dice.below(10) {
            0..=2 => self.make(place),
            3 | 4 => self.remove(place),
            5 => self.rename(place, other),
            6 => self.link(place, other),
            7 => self.list(place.0),
            8 => self.read(place),
            _ => drop(self.find(place)),
        }
        if self.cuts && self.dice.chance(1, 20) {
            let (back, resumed) = (self.dice.below(300), true);
            self.world.cut(0, Duration::from_millis(back), resumed);
        }
        if self.dice.chance(1, 4) {
            self.world.pass(Duration::from_millis(self.dice.below(150)));
        }
        // The kernel holds what it asks against changes there: what is asked aside ends before the next one.
        for id in std::mem::take(&mut self.under_way) {
            self.world.wait(0, id);
        }
    }
}

fn run(cuts: bool) {
    for seed in crate::property::seeds("lone", cuts, 60) {
        let _running = crate::property::Running("lone", seed);
        let mut lone = Lone::new(seed, cuts);
        for _ in 0..150 {
            lone.step();
        }
        lone.world.settle();
        for dir in 0..DIRECTORIES.len() {
            lone.list(dir);
        }
        let ahead = lone.world.seats[0].client.snapshot().ahead;
        assert_eq!(ahead.late_count, 0, "the server refused what was told to be done");
    }
}

#[test]
fn a_lone_mount_answers_as_if_the_server_had_its_changes() {
    run(false);
}

#[test]
fn a_lone_mount_answers_so_although_connections_break() {
    run(true);
}
