//! Random programs on two clients, and what they may see.

mod answers;
mod choice;
mod end;

use crate::check::Own;
use crate::world::World;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use wirefs_client::call::{Answer, Call, CallId, Entry, Handle, ROOT, TreeNodeId};
use wirefs_op::{Errno, FileId, Time};

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
        node: TreeNodeId,
        write: bool,
    },
    Read {
        node: TreeNodeId,
        handle: Handle,
        offset: u64,
        count: u32,
    },
    Write {
        node: TreeNodeId,
        handle: Handle,
        change: usize,
    },
    Set {
        node: TreeNodeId,
        change: usize,
    },
    Getattr {
        node: TreeNodeId,
    },
    Opendir {
        dir: FileId,
        node: TreeNodeId,
    },
    Readdir {
        dir: FileId,
        node: TreeNodeId,
        handle: Handle,
        opened: Time,
        floor: usize,
    },
    Close {
        node: TreeNodeId,
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

/// An open file of one kernel.
#[derive(Clone, Copy)]
pub(crate) struct OpenFile {
    pub(crate) node: TreeNodeId,
    pub(crate) handle: Handle,
    pub(crate) writes: bool,
    /// When it was asked to be opened.
    pub(crate) asked: Time,
}

/// The state of one kernel.
#[derive(Default)]
pub(crate) struct Kernel {
    pub(crate) files: BTreeMap<TreeNodeId, FileId>,
    lookups: BTreeMap<TreeNodeId, u64>,
    pub(crate) handles: Vec<OpenFile>,
    directories: Vec<(TreeNodeId, Handle)>,
    threads: Vec<Option<Busy>>,
    uses: BTreeMap<TreeNodeId, u32>,
    writing: BTreeSet<TreeNodeId>,
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
    /// The top of the tree comes along now and then, as when a mount is made.
    pub(crate) greets: bool,
    pub(crate) dirs: Vec<(FileId, Vec<TreeNodeId>)>,
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
        Play { world, kernels, window, cuts, greets: false, dirs, next_byte: 0 }
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
            if self.greets && self.world.dice.chance(1, 20) {
                self.world.greet(seat);
            }
            if self.cuts && self.world.dice.chance(1, 60) {
                let (back, resumed) = (self.world.dice.below(3000), self.world.dice.chance(2, 3));
                let line = format!("{} cut {seat}, resumed {resumed}", self.world.now.0 / 1000);
                self.world.log.push(line);
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
}

pub(crate) fn entry_of(answer: &Answer) -> Option<&Entry> {
    match answer {
        Answer::Entry(entry) | Answer::Created(entry, ..) => Some(entry),
        _ => None,
    }
}

/// Errors that a call may get because others moved or removed its node.
pub(crate) fn is_gone(errno: Errno) -> bool {
    matches!(errno, Errno::Stale | Errno::NotFound)
}
