//! Random programs on two clients, and what they may see.

use crate::check::{Own, OwnChange, Seen, runs};
use crate::deeds::{READ, READ_WRITE, create, getattr, readdir, write};
use crate::world::World;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use wirefs_client::call::{Answer, Call, CallId, Entry, Handle, NodeId, ROOT};
use wirefs_op::{Errno, FileId, SetStat, Time};

/// Names that the programs use in each directory.
pub(crate) const NAMES: [&[u8]; 3] = [b"a", b"b", b"c"];
const THREADS: usize = 3;

/// One call under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    Lookup {
        dir: FileId,
        name: Vec<u8>,
    },
    /// Create, unlink, rename, link, symlink: which names it is about.
    Names {
        what: &'static str,
        concerned: Vec<(FileId, Vec<u8>)>,
        opens: bool,
    },
    Open {
        node: NodeId,
        write: bool,
    },
    Read {
        node: NodeId,
        handle: Handle,
        offset: u64,
        count: u32,
    },
    Write {
        node: NodeId,
        handle: Handle,
        change: usize,
    },
    Set {
        node: NodeId,
        change: usize,
    },
    Getattr {
        node: NodeId,
    },
    Opendir {
        dir: FileId,
        node: NodeId,
    },
    Readdir {
        dir: FileId,
        node: NodeId,
        handle: Handle,
        opened: Time,
        floor: usize,
    },
    Close {
        node: NodeId,
        handle: Handle,
        what: &'static str,
    },
}

pub(crate) struct Busy {
    pub(crate) call: CallId,
    pub(crate) at: Time,
    /// The last state before the call, and the own changes answered by then.
    pub(crate) deed: Deed,
    pub(crate) answered_before: BTreeSet<usize>,
    pub(crate) floors: BTreeMap<(FileId, Vec<u8>), usize>,
}

/// What one kernel knows.
#[derive(Default)]
pub(crate) struct Kernel {
    pub(crate) files: BTreeMap<NodeId, FileId>,
    lookups: BTreeMap<NodeId, u64>,
    pub(crate) handles: Vec<(NodeId, Handle, bool)>,
    directories: Vec<(NodeId, Handle)>,
    threads: Vec<Option<Busy>>,
    uses: BTreeMap<NodeId, u32>,
    writing: BTreeSet<NodeId>,
    names_busy: bool,
    pub(crate) own: Own,
    /// The state in the history that the last own change of a name led to, once that was answered.
    pub(crate) floors: BTreeMap<(FileId, Vec<u8>), usize>,
}

pub(crate) struct Play {
    pub(crate) world: World,
    pub(crate) kernels: Vec<Kernel>,
    pub(crate) window: Duration,
    pub(crate) cuts: bool,
    pub(crate) dirs: Vec<(FileId, Vec<NodeId>)>,
    pub(crate) log: Vec<String>,
    next_byte: u8,
}

impl Play {
    pub(crate) fn new(mut world: World, window: Duration, cuts: bool) -> Play {
        world.record();
        let mut kernels: Vec<Kernel> = (0..world.seats.len()).map(|_| Kernel::default()).collect();
        let root = world.root();
        let mut dirs = vec![(root, vec![ROOT; kernels.len()])];
        world.directory(0, ROOT, b"d");
        let mut nodes = Vec::new();
        let mut id = root;
        for (seat, kernel) in kernels.iter_mut().enumerate() {
            kernel.threads = (0..THREADS).map(|_| None).collect();
            let Answer::Entry(entry) = world.ask(seat, Call::Lookup { parent: ROOT, name: b"d" }) else {
                panic!("the directory just made is not there");
            };
            kernel.files.insert(ROOT, root);
            kernel.files.insert(entry.node, entry.stat.id);
            *kernel.lookups.entry(entry.node).or_default() += 1 + u64::from(seat == 0);
            nodes.push(entry.node);
            id = entry.stat.id;
        }
        dirs.push((id, nodes));
        Play { world, kernels, window, cuts, dirs, log: Vec::new(), next_byte: 0 }
    }

    pub(crate) fn run(&mut self, calls: usize) {
        let mut begun = 0;
        while begun < calls {
            let seat = self.world.dice.below(self.kernels.len() as u64) as usize;
            let thread = self.world.dice.below(THREADS as u64) as usize;
            if self.kernels[seat].threads[thread].is_none() {
                begun += 1;
                self.begin(seat, thread);
                self.harvest();
            }
            if self.cuts && self.world.dice.chance(1, 60) {
                let (back, resumed) = (self.world.dice.below(3000), self.world.dice.chance(2, 3));
                self.log.push(format!("{} cut {seat}, resumed {resumed}", self.world.now.0 / 1000));
                self.world.cut(seat, Duration::from_millis(back), resumed);
                self.harvest();
            }
            for _ in 0..self.world.dice.below(4) {
                self.world.step();
                self.harvest();
            }
            if self.world.dice.chance(1, 25) {
                let span = Duration::from_millis(self.world.dice.below(1500));
                self.pass(span);
            }
        }
        self.finish_calls();
    }

    fn pass(&mut self, span: Duration) {
        let until = self.world.now + span;
        while self.world.now < until {
            self.world.step();
            self.harvest();
        }
    }

    fn finish_calls(&mut self) {
        let until = self.world.now + Duration::from_secs(120);
        while self.kernels.iter().any(|kernel| kernel.threads.iter().any(Option::is_some)) {
            assert!(self.world.now < until, "calls are never answered");
            self.world.step();
            self.harvest();
        }
    }

    fn begin(&mut self, seat: usize, thread: usize) {
        let dice = &mut self.world.dice;
        let what = dice.below(24);
        let which = dice.below(self.dirs.len() as u64) as usize;
        let (dir, parent) = (self.dirs[which].0, self.dirs[which].1[seat]);
        let name = dice.one_of(&NAMES);
        match what {
            0..3 => self.start(
                seat,
                thread,
                Deed::Lookup { dir, name: name.to_vec() },
                parent,
                Call::Lookup { parent, name },
            ),
            3..9 => self.change_names(seat, thread, what, (dir, parent), name),
            9 => self.start(
                seat,
                thread,
                Deed::Opendir { dir, node: parent },
                parent,
                Call::Opendir { node: parent },
            ),
            _ => self.use_file(seat, thread, what),
        }
    }

    fn change_names(
        &mut self,
        seat: usize,
        thread: usize,
        what: u64,
        (dir, parent): (FileId, NodeId),
        name: &'static [u8],
    ) {
        if self.kernels[seat].names_busy {
            return;
        }
        let one = vec![(dir, name.to_vec())];
        let other = self.world.dice.below(self.dirs.len() as u64) as usize;
        let (to_dir, to_parent) = (self.dirs[other].0, self.dirs[other].1[seat]);
        let to_name = self.world.dice.one_of(&NAMES);
        let two = vec![(dir, name.to_vec()), (to_dir, to_name.to_vec())];
        let some = self.some_file(seat);
        let (what, concerned, opens, call) = match what {
            3..6 => ("create", one, true, create(parent, name)),
            6 => ("unlink", one, false, Call::Unlink { parent, name }),
            7 => {
                let flags = self.world.dice.one_of(&[0, 0, 0, 1, 2]);
                ("rename", two, false, Call::Rename { parent, name, to_parent, to_name, flags })
            }
            _ => match some {
                Some(node) if self.world.dice.chance(1, 2) => {
                    ("link", one, false, Call::Link { node, parent, name })
                }
                _ => ("symlink", one, false, Call::Symlink { parent, name, target: b"somewhere" }),
            },
        };
        self.kernels[seat].names_busy = true;
        self.start(seat, thread, Deed::Names { what, concerned, opens }, parent, call);
    }

    fn some_file(&mut self, seat: usize) -> Option<NodeId> {
        let known: Vec<NodeId> = self.kernels[seat]
            .files
            .keys()
            .filter(|node| !self.dirs.iter().any(|(_, nodes)| nodes[seat] == **node))
            .copied()
            .collect();
        let at = self.world.dice.below(known.len() as u64) as usize;
        known.get(at).copied()
    }

    fn use_file(&mut self, seat: usize, thread: usize, what: u64) {
        let Some(node) = self.some_file(seat) else { return };
        let id = self.kernels[seat].files[&node];
        let is_file = self.world.history.0.iter().rev().find_map(|(_, state)| state.objects.get(&id));
        let is_file = is_file.is_some_and(|object| object.stat.kind == wirefs_op::Kind::File);
        let at = self.world.dice.below(self.kernels[seat].handles.len().max(1) as u64) as usize;
        let open = self.kernels[seat].handles.get(at).copied();
        match (what, open) {
            (10..12, _) if is_file => {
                let write = self.world.dice.chance(1, 2);
                let how = if write { READ_WRITE } else { READ };
                self.start(seat, thread, Deed::Open { node, write }, node, Call::Open { node, how });
            }
            (12..16, Some((node, handle, _))) => {
                let offset = self.world.dice.one_of(&[0, 0, 0, 100, 5000, 65536]);
                let count = self.world.dice.one_of(&[300_000, 4096, 10, 70_000]);
                let deed = Deed::Read { node, handle, offset, count };
                self.start(seat, thread, deed, node, Call::Read { node, handle, offset, count });
            }
            (16..20, Some((node, handle, true))) => self.write(seat, thread, node, handle),
            (20, _) if is_file => self.set(seat, thread, node),
            (21, Some((node, handle, _))) => self.close(seat, thread, at, node, handle),
            (22, _) => self.forget(seat, node),
            _ => self.start(seat, thread, Deed::Getattr { node }, node, getattr(node)),
        }
    }

    fn write(&mut self, seat: usize, thread: usize, node: NodeId, handle: Handle) {
        if !self.kernels[seat].writing.insert(node) {
            return;
        }
        self.next_byte = self.next_byte % 250 + 1;
        let offset = self.world.dice.one_of(&[0, 0, 0, 7, 4096, 65536]);
        let len = self.world.dice.one_of(&[2000, 2000, 1, 100_000, 5000]);
        let data = vec![self.next_byte; len];
        let file = self.kernels[seat].files[&node];
        let own = OwnChange::Write { offset, data: data.clone() };
        let change = self.kernels[seat].own.begin(file, own, self.world.now);
        self.start(
            seat,
            thread,
            Deed::Write { node, handle, change },
            node,
            write(node, handle, offset, &data),
        );
    }

    fn set(&mut self, seat: usize, thread: usize, node: NodeId) {
        if !self.kernels[seat].writing.insert(node) {
            return;
        }
        let file = self.kernels[seat].files[&node];
        let (set, own) = if self.world.dice.chance(1, 2) {
            let size = self.world.dice.one_of(&[0, 10, 3000, 70_000]);
            (SetStat { size: Some(size), ..SetStat::default() }, OwnChange::Size(size))
        } else {
            let mode = 0o400 + self.world.dice.below(0o300) as u32;
            (SetStat { mode: Some(mode), ..SetStat::default() }, OwnChange::Mode(mode))
        };
        let change = self.kernels[seat].own.begin(file, own, self.world.now);
        let call = Call::Setattr { node, handle: None, set, kill_privileges: false };
        self.start(seat, thread, Deed::Set { node, change }, node, call);
    }

    fn close(&mut self, seat: usize, thread: usize, at: usize, node: NodeId, handle: Handle) {
        match self.world.dice.below(3) {
            0 => {
                let call = Call::Fsync { node, handle, data_only: false };
                self.start(seat, thread, Deed::Close { node, handle, what: "fsync" }, node, call);
            }
            1 => {
                let call = Call::Flush { node, handle, owner: 1 };
                self.start(seat, thread, Deed::Close { node, handle, what: "flush" }, node, call);
            }
            _ if self.kernels[seat].uses.get(&node).is_none_or(|uses| *uses == 0) => {
                self.kernels[seat].handles.remove(at);
                let call = Call::Release { node, handle, flock_owner: None };
                self.start(seat, thread, Deed::Close { node, handle, what: "release" }, node, call);
            }
            _ => {}
        }
    }

    fn forget(&mut self, seat: usize, node: NodeId) {
        let kernel = &mut self.kernels[seat];
        let used = kernel.uses.get(&node).is_some_and(|uses| *uses > 0)
            || kernel.handles.iter().any(|(open, ..)| *open == node);
        if used {
            return;
        }
        kernel.files.remove(&node);
        if let Some(count) = kernel.lookups.remove(&node) {
            self.world.call(seat, Call::Forget { node, count });
        }
    }

    fn start(&mut self, seat: usize, thread: usize, deed: Deed, node: NodeId, call: Call<'_>) {
        let at = self.world.now;
        let kernel = &mut self.kernels[seat];
        *kernel.uses.entry(node).or_default() += 1;
        let answered_before = kernel.own.answered();
        let floors = kernel.floors.clone();
        let shown = match &call {
            Call::Write { offset, data, .. } => {
                format!("Write {{ {offset}, {} of {:?} }}", data.len(), data.first())
            }
            other => format!("{other:?}"),
        };
        let id = self.world.call(seat, call);
        self.log.push(format!("{} seat {seat} {id:?} {shown}", at.0 / 1000));
        self.kernels[seat].threads[thread] = Some(Busy { call: id, at, deed, answered_before, floors });
    }

    /// Takes in what was answered.
    fn harvest(&mut self) {
        loop {
            let ready = self.kernels.iter().enumerate().find_map(|(seat, kernel)| {
                let done = |busy: &Busy| self.world.seats[seat].answers.contains_key(&busy.call);
                let thread = kernel.threads.iter().position(|busy| busy.as_ref().is_some_and(done))?;
                Some((seat, thread))
            });
            let Some((seat, thread)) = ready else { return };
            let Some(busy) = self.kernels[seat].threads[thread].take() else { return };
            let Some((answered, answer)) = self.world.seats[seat].answers.remove(&busy.call) else { return };
            let shown = match &answer {
                Answer::Data(data) => format!("Data({:?})", runs(data)),
                other => format!("{other:?}").chars().take(400).collect(),
            };
            self.log.push(format!("{} seat {seat} {:?} = {shown}", answered.0 / 1000, busy.call));
            self.answered(seat, thread, busy, answer);
        }
    }

    fn answered(&mut self, seat: usize, thread: usize, busy: Busy, answer: Answer) {
        let node = self.node_of(seat, &busy.deed);
        if let Some(uses) = self.kernels[seat].uses.get_mut(&node) {
            *uses -= 1;
        }
        self.floor(seat, &busy, &answer);
        self.check(seat, &busy, &answer);
        if let Some(entry) = entry_of(&answer) {
            self.count(seat, entry);
        }
        match (busy.deed, answer) {
            (Deed::Open { node, write }, Answer::Opened(handle, _)) => {
                self.kernels[seat].handles.push((node, handle, write));
            }
            (Deed::Names { opens: true, .. }, Answer::Created(entry, handle, _)) => {
                self.kernels[seat].handles.push((entry.node, handle, true));
            }
            (Deed::Write { node, .. }, _) | (Deed::Set { node, .. }, _) => {
                self.kernels[seat].writing.remove(&node);
            }
            (Deed::Opendir { dir, node }, Answer::Opened(handle, _)) => {
                let floor = 0;
                let deed = Deed::Readdir { dir, node, handle, opened: busy.at, floor };
                self.start(seat, thread, deed, node, readdir(node, handle, 0));
                if let Some(busy_again) = &mut self.kernels[seat].threads[thread] {
                    busy_again.floors = busy.floors;
                }
            }
            (Deed::Readdir { node, handle, .. }, answer) => {
                if let Answer::Listing(entries) = answer {
                    for entry in entries.iter().filter_map(|listed| listed.entry.as_ref()) {
                        self.count(seat, entry);
                    }
                }
                self.kernels[seat].directories.push((node, handle));
            }
            _ => {}
        }
        self.kernels[seat].names_busy =
            self.kernels[seat].threads.iter().flatten().any(|busy| matches!(busy.deed, Deed::Names { .. }));
    }

    fn node_of(&self, seat: usize, deed: &Deed) -> NodeId {
        match deed {
            Deed::Lookup { dir, .. } => self.dir_node(seat, *dir),
            Deed::Names { concerned, .. } => self.dir_node(seat, concerned[0].0),
            Deed::Open { node, .. }
            | Deed::Read { node, .. }
            | Deed::Write { node, .. }
            | Deed::Set { node, .. }
            | Deed::Getattr { node }
            | Deed::Opendir { node, .. }
            | Deed::Readdir { node, .. }
            | Deed::Close { node, .. } => *node,
        }
    }

    fn dir_node(&self, seat: usize, dir: FileId) -> NodeId {
        self.dirs.iter().find(|(id, _)| *id == dir).unwrap().1[seat]
    }

    fn count(&mut self, seat: usize, entry: &Entry) {
        let kernel = &mut self.kernels[seat];
        kernel.files.insert(entry.node, entry.stat.id);
        *kernel.lookups.entry(entry.node).or_default() += 1;
    }

    /// Which state an own change of names led to.
    fn floor(&mut self, seat: usize, busy: &Busy, answer: &Answer) {
        if let Deed::Write { change, .. } | Deed::Set { change, .. } = &busy.deed {
            let failed = matches!(answer, Answer::Fail(_));
            self.kernels[seat].own.answer(*change, failed);
        }
        let Deed::Names { concerned, .. } = &busy.deed else { return };
        if matches!(answer, Answer::Fail(_)) {
            return;
        }
        let last = self.world.applied.iter().rev().find(|(whose, request, _)| {
            use wirefs_op::message::put::PutMode;
            let named = match request {
                wirefs_op::Request::Put(put) => put.mode.has(PutMode::CREATE),
                other => matches!(other.name(), "Remove" | "Rename" | "Link"),
            };
            *whose == seat && named
        });
        if let Some((_, _, state)) = last {
            for name in concerned {
                self.kernels[seat].floors.insert(name.clone(), *state);
            }
        }
    }

    /// Closes and forgets everything; nothing must be left.
    pub(crate) fn clear(&mut self) {
        self.world.settle();
        for seat in 0..self.kernels.len() {
            for (node, handle) in std::mem::take(&mut self.kernels[seat].directories) {
                self.world.ask(seat, Call::Releasedir { node, handle });
            }
            for (node, handle, _) in std::mem::take(&mut self.kernels[seat].handles) {
                self.world.ask(seat, Call::Flush { node, handle, owner: 1 });
                self.world.ask(seat, Call::Release { node, handle, flock_owner: None });
            }
        }
        self.world.settle();
        self.world.pass(self.window + Duration::from_secs(1));
        self.see_the_end();
        for seat in 0..self.kernels.len() {
            for (node, count) in std::mem::take(&mut self.kernels[seat].lookups) {
                self.world.call(seat, Call::Forget { node, count });
            }
        }
        self.world.settle();
        for seat in &self.world.seats {
            let left = seat.client.snapshot();
            assert_eq!(
                (left.nodes, left.cached_bytes, left.calls_waiting),
                (1, 0, 0),
                "something is left: {left:?}"
            );
            assert_eq!(seat.hang_ups, 0, "a connection was given up though the server answers");
            assert!(seat.answers.is_empty(), "answers to nobody: {:?}", seat.answers);
        }
    }

    /// Each client sees the tree as it is.
    fn see_the_end(&mut self) {
        let last = self.world.history.last().clone();
        for seat in 0..self.kernels.len() {
            for (dir, nodes) in self.dirs.clone() {
                let parent = nodes[seat];
                let handle = crate::deeds::handle(self.world.ask(seat, Call::Opendir { node: parent }));
                let listed = crate::deeds::listing(self.world.ask(seat, readdir(parent, handle, 0)));
                self.world.ask(seat, Call::Releasedir { node: parent, handle });
                let mut names: Vec<Vec<u8>> = Vec::new();
                for entry in listed {
                    if let Some(entry) = &entry.entry {
                        self.count(seat, entry);
                    }
                    if entry.name != b"." && entry.name != b".." {
                        names.push(entry.name);
                    }
                }
                names.sort();
                let there: Vec<Vec<u8>> = last.names[&dir].keys().cloned().collect();
                assert_eq!(names, there, "seat {seat} lists {dir:?}");
                for name in NAMES {
                    let answer = self.world.ask(seat, Call::Lookup { parent, name });
                    let found = entry_of(&answer).copied();
                    if let Some(entry) = &found {
                        self.count(seat, entry);
                    }
                    assert_eq!(
                        found.map(|entry| entry.stat.id),
                        last.name(dir, name),
                        "seat {seat}, {name:?}"
                    );
                    if let Some(entry) = found {
                        self.see_file(seat, &entry, &last);
                    }
                }
            }
        }
    }

    fn see_file(&mut self, seat: usize, entry: &Entry, last: &crate::history::Snapshot) {
        let object = &last.objects[&entry.stat.id];
        let (seen, there) = (Seen::of(&entry.stat), Seen::of(&object.stat));
        assert_eq!(seen, there, "seat {seat} sees attributes of {:?}", entry.stat.id);
        if entry.stat.kind != wirefs_op::Kind::File {
            return;
        }
        let node = entry.node;
        let handle = crate::deeds::handle(self.world.ask(seat, Call::Open { node, how: READ }));
        let call = Call::Read { node, handle, offset: 0, count: 1024 * 1024 };
        let read = crate::deeds::data(self.world.ask(seat, call));
        assert!(
            read == object.data,
            "seat {seat} reads {:?} not {:?} of {entry:?}",
            runs(&read),
            runs(&object.data)
        );
        self.world.ask(seat, Call::Release { node, handle, flock_owner: None });
    }
}

pub(crate) fn entry_of(answer: &Answer) -> Option<&Entry> {
    match answer {
        Answer::Entry(entry) | Answer::Created(entry, ..) => Some(entry),
        _ => None,
    }
}

/// What may go wrong for a call because its node was moved or removed by others.
pub(crate) fn is_gone(errno: Errno) -> bool {
    matches!(errno, Errno::Stale | Errno::NotFound)
}
