//! Programs that lock by names: on mounts with a journal, which may be exclusive, and at the server. Each creates a name exclusively, holds it
//! for a while and removes it.
//!
//! INVARIANT: between a successful creation of a name and the beginning of its removal by the holder, no other creation of that name succeeds;
//! and no successful creation is rejected later.

use crate::plan::{Faults, Plan};
use crate::server::plain::serve;
use crate::server::time_of_day;
use crate::truth::By;
use crate::world::{Event, World};
use std::collections::BTreeMap;
use std::time::Duration;
use wirefs_cache::Mode;
use wirefs_client::call::{Answer, Call, CallId, Entry, Handle, OpenHow, ROOT, TreeNodeId};
use wirefs_op::message::remove::Tremove;
use wirefs_op::message::target::Place;
use wirefs_op::{Kind, Reply, Request, Time, TreePath, is_lock_name};
use wirefs_server::Tree;
use wirefs_virtual::Dice;

/// Names of locks, and other names, which are used where the server's program was active.
const NAMES: [&[u8]; 4] = [b"lock", b"a.lock", b"a", b"b"];
const DIR: &[u8] = b"d";
/// The time for which a name is held, in microseconds.
const HELD: (u64, u64) = (0, 300_000);
/// The interval of steps of the server's program, in microseconds.
const ACTS: (u64, u64) = (1_000, 400_000);
/// The server's program is active while its last change is younger: a directory is contended for 60 s, by a clock that may be 16 s ahead.
const AT_WORK: Duration = Duration::from_secs(40);
/// All pending work ends within this time.
const ENDS_WITHIN: Duration = Duration::from_secs(200);
const NEW: OpenHow = OpenHow {
    read: true,
    write: true,
    append: false,
    truncate: false,
    exclusive: true,
    direct: false,
    sync: false,
};

#[derive(Clone, Debug)]
enum Step {
    FindDir,
    List,
    EndList(Handle),
    Look,
    Make(Kind),
    Close(TreeNodeId, Handle),
    Hold(Kind),
    Remove(Kind),
}

#[derive(Debug)]
struct Task {
    name: &'static [u8],
    step: Step,
    call: Option<CallId>,
}

/// The state of such a run.
#[derive(Debug, Default)]
pub(crate) struct Rivals {
    tasks: BTreeMap<(usize, usize), Task>,
    dirs: BTreeMap<usize, TreeNodeId>,
    /// The holder of each name; `None`: the program at the server.
    held: BTreeMap<&'static [u8], Option<usize>>,
    kinds: BTreeMap<&'static [u8], Kind>,
    /// The times at which the server's program changed a name.
    changed: Vec<Time>,
}

impl Plan {
    /// Returns the plan of a run with one or two mounts beside a program at the server.
    pub(crate) fn rivals(dice: &mut Dice) -> Plan {
        let hosts = if dice.chance(1, 4) { 2 } else { 1 };
        let is_rough = dice.chance(1, 3);
        let cuts = is_rough && dice.chance(1, 2);
        Plan {
            modes: vec![Mode::default(); hosts],
            faults: Faults { cuts, stalls: is_rough, outside: true, ..Faults::default() },
            wire: dice.one_of(&[(1_000, 60_000), (100, 3_000), (40_000, 300_000)]),
            server: dice.one_of(&[(0, 30_000), (0, 1_000)]),
            kernel: dice.one_of(&[(0, 0), (0, 20_000)]),
            think: dice.one_of(&[(0, 60_000), (0, 500_000)]),
            operations: 40 + dice.below(60),
            deadline: None,
            is_rivals: true,
            ..Plan::new(dice)
        }
    }
}

impl World {
    /// Starts the next step of a program on a mount.
    pub(crate) fn rival_thinks(&mut self, index: usize, life: u64, thread: usize) {
        let is_there = self.hosts.get(index).is_some_and(|host| host.life == life && host.client.is_some());
        if !is_there {
            return;
        }
        let held = self.rivals.as_ref().and_then(|rivals| rivals.tasks.get(&(index, thread)));
        match held.map(|task| task.step.clone()) {
            Some(Step::Hold(kind)) => return self.rival_goes_on(index, thread, Step::Remove(kind)),
            Some(_) => return,
            None if self.is_resting() => return,
            None => {}
        }
        self.operations_left -= 1;
        self.counts.operations += 1;
        let name = self.dice.one_of(&NAMES);
        let lists = self.dice.chance(1, 4);
        let Some(rivals) = &mut self.rivals else { return };
        let step = match rivals.dirs.contains_key(&index) {
            true if lists => Step::List,
            true => Step::Look,
            false => Step::FindDir,
        };
        rivals.tasks.insert((index, thread), Task { name, step: step.clone(), call: None });
        self.rival_goes_on(index, thread, step);
    }

    fn rival_goes_on(&mut self, index: usize, thread: usize, step: Step) {
        let Some(rivals) = &mut self.rivals else { return };
        let parent = rivals.dirs.get(&index).copied().unwrap_or(ROOT);
        let Some(task) = rivals.tasks.get_mut(&(index, thread)) else { return };
        task.step = step.clone();
        let name = task.name;
        if matches!(step, Step::Remove(_)) && rivals.held.remove(name) != Some(Some(index)) {
            return self.fail(format!("{name:?} is no longer held by client {index}"));
        }
        self.note(|| format!("client {index}.{thread}: {step:?} {}", String::from_utf8_lossy(name)));
        let call = match step {
            Step::FindDir => Call::Lookup { parent: ROOT, name: DIR },
            Step::List => Call::Opendir { node: parent },
            Step::EndList(handle) => Call::Releasedir { node: parent, handle },
            Step::Look => Call::Lookup { parent, name },
            Step::Make(Kind::Directory) => Call::Mkdir { parent, name, mode: 0o755, umask: 0 },
            Step::Make(Kind::Symlink) => Call::Symlink { parent, name, target: b"pid" },
            Step::Make(_) => Call::Create { parent, name, mode: 0o644, umask: 0, how: NEW },
            Step::Close(node, handle) => Call::Release { node, handle, flock_owner: None },
            Step::Remove(Kind::Directory) => Call::Rmdir { parent, name },
            Step::Remove(_) => Call::Unlink { parent, name },
            Step::Hold(_) => {
                let life = self.hosts.get(index).map_or(0, |host| host.life);
                let delay = self.delay(HELD);
                return self.after(delay, Event::Think(index, life, thread));
            }
        };
        let id = self.call(index, call);
        let task = self.rivals.as_mut().and_then(|rivals| rivals.tasks.get_mut(&(index, thread)));
        if let Some(task) = task {
            task.call = Some(id);
        }
    }

    /// Takes the answer to a call.
    pub(crate) fn rival_is_answered(&mut self, index: usize, id: CallId, answer: Answer) {
        let Some(rivals) = &mut self.rivals else { return };
        let found = rivals.tasks.iter_mut().find(|(key, task)| key.0 == index && task.call == Some(id));
        let Some((&(_, thread), task)) = found else {
            return self.fail(format!("client {index}: {id:?} was answered without a pending call"));
        };
        task.call = None;
        let (name, step) = (task.name, task.step.clone());
        self.note(|| format!("client {index}.{thread} gets {answer:?}").chars().take(200).collect());
        let next = match (step, answer) {
            (Step::FindDir, Answer::Entry(Entry { node, .. })) => {
                self.rivals.as_mut().map(|rivals| rivals.dirs.insert(index, node));
                Some(Step::List)
            }
            (Step::List, Answer::Opened(handle, _)) => Some(Step::EndList(handle)),
            (Step::EndList(_), Answer::Done) => Some(Step::Look),
            // The kernel does not create a name that it has found.
            (Step::Look, Answer::NoEntry(_)) if !is_lock_name(name) && !self.is_at_work() => None,
            (Step::Look, Answer::NoEntry(_)) => Some(Step::Make(self.some_kind())),
            (Step::Make(kind), Answer::Created(entry, handle, _)) => {
                self.gets(name, Some(index), kind);
                Some(Step::Close(entry.node, handle))
            }
            (Step::Make(kind), Answer::Entry(_)) => {
                self.gets(name, Some(index), kind);
                Some(Step::Hold(kind))
            }
            (Step::Close(..), _) => Some(Step::Hold(Kind::File)),
            (Step::Remove(_), Answer::Fail(errno)) => {
                return self
                    .fail(format!("client {index} cannot remove {name:?}, which it holds: {errno:?}"));
            }
            (Step::Make(_), Answer::Fail(_)) => {
                self.counts.lost += 1;
                None
            }
            (Step::Remove(_), Answer::Done) | (_, Answer::Fail(_)) | (Step::Look, Answer::Entry(_)) => None,
            (step, answer) => {
                return self.fail(format!("client {index}: {answer:?} is no answer to {step:?}"));
            }
        };
        match next {
            Some(next) => self.rival_goes_on(index, thread, next),
            None => {
                self.rivals.as_mut().map(|rivals| rivals.tasks.remove(&(index, thread)));
                self.schedule_operation(index, thread);
            }
        }
    }

    /// Returns whether the server's program changed a name recently, and each mount has been notified by now.
    fn is_at_work(&self) -> bool {
        let delay = self.plan.external_delay_max();
        let is_it = |at: &Time| (delay..AT_WORK).contains(&self.now.since(*at));
        self.rivals.as_ref().is_some_and(|rivals| rivals.changed.iter().any(is_it))
    }

    fn some_kind(&mut self) -> Kind {
        match self.dice.below(3) {
            0 => Kind::File,
            1 => Kind::Directory,
            _ => Kind::Symlink,
        }
    }

    /// Records a created name.
    fn gets(&mut self, name: &'static [u8], by: Option<usize>, kind: Kind) {
        self.counts.checks += 1;
        let is_outside = by.is_none();
        self.counts.gained_outside += u64::from(is_outside);
        self.counts.gained += u64::from(!is_outside);
        let Some(rivals) = &mut self.rivals else { return };
        rivals.kinds.insert(name, kind);
        if let Some(holder) = rivals.held.insert(name, by) {
            let name = String::from_utf8_lossy(name);
            self.fail(format!("{name:?} was created by {by:?} while {holder:?} held it"));
        }
    }

    /// Creates a name as the program at the server, or removes the one that it holds.
    pub(crate) fn rival_acts_outside(&mut self) {
        let name = self.dice.one_of(&NAMES);
        let held = self.rivals.as_ref().and_then(|rivals| rivals.held.get(name).copied());
        let Some(path) = TreePath::root().join(DIR).and_then(|dir| dir.join(name)) else { return };
        if held == Some(None) {
            let kind = self.rivals.as_mut().and_then(|rivals| {
                rivals.held.remove(name);
                rivals.kinds.get(name).copied()
            });
            let directory = kind == Some(Kind::Directory);
            let place = Place { path, dir: None };
            self.rival_serves(Request::Remove(Tremove { place, directory }));
        } else if !self.is_resting() {
            let kind = self.some_kind();
            if self.rival_serves(crate::server::outside::make(path, kind)) {
                self.gets(name, None, kind);
            } else {
                self.counts.lost_outside += 1;
            }
        }
        let is_left = self.rivals.as_ref().is_some_and(|rivals| rivals.held.values().any(Option::is_none));
        if !self.is_resting() || is_left {
            let delay = self.delay(ACTS);
            self.after(delay, Event::ActOutside);
        }
    }

    fn rival_serves(&mut self, request: Request) -> bool {
        self.note(|| format!("the program at the server: {request:?}").chars().take(160).collect());
        self.server.tree.set_time(time_of_day(self.now));
        let session = crate::server::outside::OUTSIDE;
        let is_attached = self.server.tree.attach(session, &TreePath::root()).is_ok();
        let replies = serve(&self.server.tree, session, request);
        let is_done = is_attached && !matches!(replies.first(), Some(Reply::Error(_)) | None);
        let facts = self.truth.look(&self.server.tree, self.now, By::Outside);
        let now = self.now;
        if let Some(rivals) = self.rivals.as_mut().filter(|_| is_done) {
            rivals.changed.push(now);
        }
        self.note(|| format!("applied: {is_done}"));
        self.watch(&facts);
        is_done
    }

    /// Ends the run: checks that each program has removed its names, and that nothing failed late.
    pub(crate) fn end_rivals(&mut self) {
        self.heal();
        let until = self.now + ENDS_WITHIN;
        while self.rivals.as_ref().is_some_and(|rivals| !rivals.tasks.is_empty()) && self.step() {
            if self.now > until {
                let tasks = self.rivals.as_ref().map(|rivals| format!("{:?}", rivals.tasks));
                return self.fail(format!("a program is never answered: {tasks:?}"));
            }
        }
        self.pass(Duration::from_secs(30));
        for index in 0..self.hosts.len() {
            let client = self.hosts.get(index).and_then(|host| host.client.as_ref());
            let late = client.map_or(0, |client| client.snapshot().ahead.late_count);
            if late > 0 {
                self.fail(format!("client {index}: {late} changes failed late"));
            }
        }
    }
}
