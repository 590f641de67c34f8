//! Whether what a client was told was possible: the tree's states within the mode's window, and upon them the client's
//! own changes that the tree did not have yet.

use crate::history::Object;
use crate::program::{Busy, Deed, NAMES, OpenFile, Play, entry_of, is_gone};
use crate::world::Applied;
use std::collections::BTreeSet;
use std::ops::Range;
use wirefs_client::call::{Answer, Handle, Listed, TreeNodeId};
use wirefs_op::message::put::PutMode;
use wirefs_op::{Errno, FileId, Kind, Request, Stat, Time};

/// A change of a file by one client.
#[derive(Clone, Debug)]
pub(crate) enum OwnChange {
    Write { offset: u64, data: Vec<u8> },
    Size(u64),
    Mode(u32),
}

#[derive(Clone, Debug)]
struct Begun {
    file: FileId,
    change: OwnChange,
    at: Time,
    answered: bool,
    failed: bool,
}

/// All changes of files by one client, in order.
#[derive(Default)]
pub(crate) struct Own(Vec<Begun>);

impl Own {
    pub(crate) fn begin(&mut self, file: FileId, change: OwnChange, at: Time) -> usize {
        self.0.push(Begun { file, change, at, answered: false, failed: false });
        self.0.len() - 1
    }

    pub(crate) fn answer(&mut self, change: usize, failed: bool) {
        self.0[change].answered = true;
        self.0[change].failed = failed;
    }

    /// The changes that were answered so far.
    pub(crate) fn answered(&self) -> BTreeSet<usize> {
        (0..self.0.len()).filter(|index| self.0[*index].answered && !self.0[*index].failed).collect()
    }
}

/// The attributes that are compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    kind: Kind,
    mode: u32,
    size: u64,
    nlink: u32,
}

impl Seen {
    pub(crate) fn of(stat: &Stat) -> Seen {
        Seen { kind: stat.kind, mode: stat.mode, size: stat.size, nlink: stat.nlink }
    }
}

/// A file as one client may see it.
#[derive(Clone)]
struct View {
    mode: u32,
    data: Vec<u8>,
}

impl View {
    fn of(object: &Object) -> View {
        View { mode: object.stat.mode, data: object.data.to_vec() }
    }

    fn apply(&mut self, change: &OwnChange) {
        match change {
            OwnChange::Write { offset, data } => {
                let end = *offset as usize + data.len();
                if self.data.len() < end {
                    self.data.resize(end, 0);
                }
                self.data[*offset as usize..end].copy_from_slice(data);
            }
            OwnChange::Size(size) => self.data.resize(*size as usize, 0),
            OwnChange::Mode(mode) => self.mode = *mode,
        }
    }
}

impl Play {
    /// The states that a client may answer from, by their number in the history.
    fn states(&self, from: Time, to: Time) -> Range<usize> {
        let states = &self.world.history.0;
        let past = states.partition_point(|(at, _)| *at <= to);
        let first = states.partition_point(|(at, _)| *at < from).saturating_sub(1);
        first..past
    }

    fn believed(&self, since: Time) -> Time {
        Time(since.0 - self.window.as_nanos() as u64)
    }

    pub(crate) fn check(&self, seat: usize, busy: &Busy, answer: &Answer) {
        if let Answer::Fail(errno) = answer {
            return self.check_failure(seat, busy, *errno);
        }
        match &busy.deed {
            Deed::Lookup { dir, name } => {
                let found = entry_of(answer).map(|entry| entry.stat.id.ino);
                self.check_name(seat, busy, busy.at, (*dir, name), found);
                self.check_entry(seat, busy, answer);
            }
            Deed::Names { what, concerned, .. } if matches!(*what, "create" | "symlink" | "link") => {
                let made = entry_of(answer).map(|entry| entry.stat.id);
                let mut states = self.states(busy.at, self.world.now);
                let (dir, name) = &concerned[0];
                assert!(
                    states.any(|state| self.world.history.0[state].1.name(*dir, name) == made),
                    "made something else"
                );
            }
            Deed::Read { node, handle, offset, count } => {
                let Answer::Data(read) = answer else { panic!("{answer:?}") };
                let start = *offset as usize;
                let since = self.as_opened(seat, *node, Some(*handle)).unwrap_or(busy.at);
                self.check_file(seat, busy, (self.kernels[seat].files[node], since), |view| {
                    let end = view.data.len().min(start + *count as usize);
                    view.data.get(start.min(end)..end) == Some(read.as_ref())
                });
            }
            Deed::Getattr { node } => {
                let Answer::Attr(stat, ttl) = answer else { panic!("{answer:?}") };
                let as_opened = self.as_opened(seat, *node, None).filter(|_| ttl.is_zero());
                let file = (self.kernels[seat].files[node], as_opened.unwrap_or(busy.at));
                self.check_attributes(seat, busy, file, stat);
            }
            Deed::Set { node, .. } => {
                let Answer::Attr(stat, _) = answer else { panic!("{answer:?}") };
                assert_eq!(stat.id, self.kernels[seat].files[node]);
            }
            Deed::Readdir { dir, opened, .. } => {
                let Answer::Listing(listed) = answer else { panic!("{answer:?}") };
                self.check_listing(seat, busy, *dir, *opened, listed);
            }
            Deed::Write { change: _, .. } => assert!(matches!(answer, Answer::Count(_)), "{answer:?}"),
            Deed::Names { .. } | Deed::Open { .. } | Deed::Opendir { .. } | Deed::Close { .. } => {}
        }
    }

    fn check_failure(&self, seat: usize, busy: &Busy, errno: Errno) {
        let moved = |node| self.was_moved(self.kernels[seat].files[node]);
        let possible = match &busy.deed {
            Deed::Names { what, concerned, .. } => {
                let there = |wanted: bool, index: usize| {
                    let (dir, name) = &concerned[index];
                    let mut states = self.states(busy.at, self.world.now);
                    states.any(|state| self.world.history.0[state].1.name(*dir, name).is_some() == wanted)
                };
                match (*what, errno) {
                    (_, Errno::Io) => self.cuts,
                    ("create" | "symlink" | "link", Errno::Exists) => there(true, 0),
                    ("rename", Errno::Exists) => there(true, 1),
                    ("unlink", Errno::NotFound) => there(false, 0),
                    ("rename", Errno::NotFound) => there(false, 0) || there(false, 1),
                    ("rename", _) => errno == Errno::Invalid,
                    ("link", errno) => is_gone(errno),
                    _ => false,
                }
            }
            Deed::Open { node, .. }
            | Deed::Set { node, .. }
            | Deed::Getattr { node }
            | Deed::Read { node, .. } => is_gone(errno) && moved(node),
            Deed::Write { node, .. } => self.cuts && is_gone(errno) && moved(node),
            // A file that was opened for reading from what was known has no fd that would outlive its name.
            Deed::Close { node, handle, .. } => {
                let mut open = self.kernels[seat].handles.iter();
                let writes = open.any(|open| open.handle == *handle && open.writes);
                (self.cuts || !writes) && is_gone(errno) && moved(node)
            }
            Deed::Lookup { .. } | Deed::Opendir { .. } | Deed::Readdir { .. } => false,
        };
        assert!(possible, "seat {seat}: {:?} fails: {errno:?}", busy.deed);
    }

    /// Whether the names of an object were ever others.
    fn was_moved(&self, id: FileId) -> bool {
        if !self.world.history.last().objects.contains_key(&id) {
            return true;
        }
        let mut before = None;
        self.world.history.0.iter().filter(|(_, state)| state.objects.contains_key(&id)).any(|(_, state)| {
            let names: Vec<(FileId, Vec<u8>)> = state
                .names
                .iter()
                .flat_map(|(dir, names)| names.iter().map(move |(name, id)| (*dir, name.clone(), *id)))
                .filter(|(_, _, named)| *named == id)
                .map(|(dir, name, _)| (dir, name))
                .collect();
            let differs = before.as_ref().is_some_and(|before| *before != names);
            before = Some(names);
            differs
        })
    }

    fn check_name(
        &self,
        seat: usize,
        busy: &Busy,
        since: Time,
        (dir, name): (FileId, &[u8]),
        found: Option<u64>,
    ) {
        let floor = busy.floors.get(&(dir, name.to_vec())).copied().unwrap_or(0);
        let meant = |state: usize| self.world.history.0[state].1.name(dir, name);
        let states = self.states(self.believed(since), self.world.now);
        let states = self.world.without_own(seat, since, states, |a, b| meant(a) == meant(b));
        let mut states = states.into_iter().filter(|state| *state >= floor);
        let is_it = |state: usize| meant(state).map(|id| id.ino) == found;
        assert!(
            states.any(is_it),
            "seat {seat}: {:?} in {dir:?} was not {found:?}, neither of late nor since the own change {floor}",
            String::from_utf8_lossy(name)
        );
    }

    fn check_listing(&self, seat: usize, busy: &Busy, dir: FileId, opened: Time, listed: &[Listed]) {
        for name in NAMES {
            let mut found = listed.iter().filter(|entry| entry.name == name);
            let first = found.next();
            assert!(found.next().is_none(), "a name is listed twice");
            self.check_name(seat, busy, opened, (dir, name), first.map(|entry| entry.ino));
        }
    }

    fn check_entry(&self, seat: usize, busy: &Busy, answer: &Answer) {
        if let Some(entry) = entry_of(answer).filter(|entry| !entry.attr_ttl.is_zero()) {
            self.check_attributes(seat, busy, (entry.stat.id, busy.at), &entry.stat);
        }
    }

    /// When the file was opened that others took from its name and that may show what it was then (SEMANTICS, "Unlinked open files"):
    /// the open file, or any of the node. Leased objects are recalled before.
    fn as_opened(&self, seat: usize, node: TreeNodeId, handle: Option<Handle>) -> Option<Time> {
        let kernel = &self.kernels[seat];
        if self.window.is_zero() || !self.was_moved(kernel.files[&node]) {
            return None;
        }
        let is_it = |open: &&OpenFile| open.node == node && handle.is_none_or(|handle| open.handle == handle);
        kernel.handles.iter().filter(is_it).map(|open| open.asked).min()
    }

    fn check_attributes(&self, seat: usize, busy: &Busy, file: (FileId, Time), stat: &Stat) {
        if stat.kind == Kind::File {
            self.check_file(seat, busy, file, |view| {
                view.data.len() as u64 == stat.size && view.mode == stat.mode
            });
        }
    }

    /// Whether the file may look so: in one of the states that may be believed since then, with the own changes that it has not.
    fn check_file(
        &self,
        seat: usize,
        busy: &Busy,
        (file, since): (FileId, Time),
        is_so: impl Fn(&View) -> bool,
    ) {
        if self.cuts {
            return;
        }
        let own = self.own_of(seat, file);
        let object = |state: usize| self.world.history.0[state].1.objects.get(&file);
        let states = self.states(self.believed(since), self.world.now);
        let version = |state: usize| object(state).map(|object| object.stat.version);
        let states = self.world.without_own(seat, busy.at, states, |a, b| version(a) == version(b));
        let possible = states.into_iter().any(|state| {
            let Some(object) = self.world.history.0[state].1.objects.get(&file) else { return false };
            let mut view = View::of(object);
            let missing = own.iter().filter(|(_, _, applied)| applied.is_none_or(|applied| applied > state));
            let (known, other): (Vec<_>, Vec<_>) =
                missing.partition(|(index, ..)| busy.answered_before.contains(index));
            for (_, change, _) in known {
                view.apply(change);
            }
            if is_so(&view) {
                return true;
            }
            other.iter().any(|(_, change, _)| {
                view.apply(change);
                is_so(&view)
            })
        });
        if !possible {
            let from = self.believed(since);
            for state in self.states(Time(from.0.saturating_sub(400_000_000)), self.world.now) {
                let (at, state) = &self.world.history.0[state];
                if let Some(object) = state.objects.get(&file) {
                    eprintln!("{} version {} {:?}", at.0 / 1000, object.stat.version, runs(&object.data));
                }
            }
            for (_, change, applied) in own {
                let led_to = applied.map(|state| self.world.history.0[state].0.0 / 1000);
                match change {
                    OwnChange::Write { offset, data } => {
                        eprintln!("own {offset} {:?} {led_to:?}", runs(data))
                    }
                    other => eprintln!("own {other:?} {led_to:?}"),
                }
            }
            panic!(
                "seat {seat}: {:?} of {file:?}, asked at {}, was never so since {}",
                busy.deed,
                busy.at.0 / 1000,
                from.0 / 1000
            );
        }
    }

    /// A client's own changes of a file, each with the state that it led to.
    fn own_of(&self, seat: usize, file: FileId) -> Vec<(usize, &OwnChange, Option<usize>)> {
        let own = &self.kernels[seat].own.0;
        let of_file = own.iter().enumerate().filter(|(_, begun)| begun.file == file && !begun.failed);
        of_file.map(|(index, begun)| (index, &begun.change, self.applied(seat, begun))).collect()
    }

    fn applied(&self, seat: usize, begun: &Begun) -> Option<usize> {
        let states = &self.world.history.0;
        self.world.applied.iter().find_map(|applied| {
            let Applied { seat: whose, request, state, .. } = applied;
            let Request::Put(put) = request else { return None };
            let of_file = put.target.id == Some(begun.file) && !put.mode.has(PutMode::CREATE);
            let is_it = match &begun.change {
                OwnChange::Write { offset, data } => {
                    // What was gathered goes with what was written beside it.
                    let start = offset.checked_sub(put.offset).map(|start| start as usize);
                    start.and_then(|start| put.data.0.get(start..start + data.len())) == Some(data)
                }
                OwnChange::Size(size) => put.set.size == Some(*size),
                OwnChange::Mode(mode) => put.set.mode == Some(*mode),
            };
            (*whose == seat && of_file && is_it && states[*state].0 >= begun.at).then_some(*state)
        })
    }
}

/// Equal bytes after each other, counted.
pub(crate) fn runs(data: &[u8]) -> Vec<(u8, usize)> {
    let mut runs: Vec<(u8, usize)> = Vec::new();
    for byte in data {
        match runs.last_mut() {
            Some((last, count)) if last == byte => *count += 1,
            _ => runs.push((*byte, 1)),
        }
    }
    runs
}

impl Drop for Play {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for line in self.world.log.iter().rev().take(1500).rev() {
                eprintln!("{line}");
            }
        }
    }
}
