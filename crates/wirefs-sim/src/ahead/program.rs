//! The choice of the program's next task, and its calls.

use super::act::{Open, Step, TEXT, Task, lookups};
use super::believed::{ObjectImage, TreeImage};
use super::{Ahead, HOST};
use crate::flaw::Flaw;
use crate::program::NAMES;
use crate::world::World;
use wirefs_client::call::{Answer, Call, CallId, OpenHow, WriteData};
use wirefs_op::{Kind, SetStat, TreePath};

/// The maximum depth of directories.
const DEPTH_MAX: usize = 3;
/// The maximum number of files that are kept open.
const OPEN_MAX: usize = 3;

const READ: OpenHow = OpenHow {
    read: true,
    write: false,
    append: false,
    truncate: false,
    exclusive: false,
    direct: false,
    sync: false,
};
const WRITE: OpenHow = OpenHow { write: true, ..READ };
const APPEND: OpenHow = OpenHow { append: true, ..WRITE };
const NEW: OpenHow = OpenHow { exclusive: true, ..WRITE };

impl World {
    /// Starts the next task of the program.
    pub(crate) fn ahead_thinks(&mut self, life: u64) {
        let is_there = self.hosts.get(HOST).is_some_and(|host| host.life == life && host.client.is_some());
        let is_free = self.ahead.as_ref().is_some_and(|ahead| ahead.is_idle() && !ahead.is_over);
        if !is_there || !is_free || self.is_resting() {
            return;
        }
        self.operations_left -= 1;
        self.counts.operations += 1;
        match self.choose_act() {
            Some((steps, open)) if !steps.is_empty() => {
                let now = self.now;
                self.note(|| format!("the program: {steps:?}").chars().take(400).collect());
                if let Some(ahead) = &mut self.ahead {
                    ahead.task = Some(Task::new(steps, open, now));
                }
                self.next_step();
            }
            _ => self.schedule_operation(HOST, 0),
        }
    }

    fn choose_act(&mut self) -> Option<(Vec<Step>, Option<Open>)> {
        let tree_image = self.ahead.as_ref()?.believed.now()?.clone();
        let (path, other) = (self.some_path(&tree_image)?, self.some_path(&tree_image)?);
        let what = self.dice.below(30);
        let there = tree_image.get(&path);
        let mut steps = lookups(&tree_image, &path);
        match (what, there) {
            (0..7, None) => {
                steps.push(Step::Create(path));
                self.some_writes(&mut steps);
            }
            (7..9, None) => steps.push(Step::Mkdir(path)),
            (9, None) => steps.push(Step::Symlink(path)),
            (10, None) => {
                let from = self.some_file(&tree_image)?;
                steps.extend(lookups(&tree_image, &from));
                steps.push(Step::Link(from, path));
            }
            (0..2, Some(ObjectImage { kind: Kind::File, data, .. })) => {
                steps.push(Step::OpenEnd(path));
                let mut size = data.len() as u64;
                for _ in 0..self.dice.one_of(&[1, 1, 3]) {
                    let len = self.dice.one_of(&[40, 1, 2000]);
                    steps.push(Step::Write(size, self.contents(HOST, len)));
                    size += len as u64;
                }
                steps.extend([Step::Flush, Step::Release]);
            }
            (2..5, Some(ObjectImage { kind: Kind::File, .. })) => {
                steps.push(Step::Open(path));
                self.some_writes(&mut steps);
            }
            (5..10, Some(seen)) => steps.push(Step::Remove(path, seen.kind)),
            (11..16, Some(_)) => return self.choose_rename(&tree_image, path, other),
            (16, Some(seen)) if seen.kind != Kind::Symlink => {
                let bits = self.dice.below(0o100) as u32;
                let own = if seen.kind == Kind::Directory { 0o700 } else { 0o600 };
                steps.push(Step::Mode(path, own | bits));
            }
            (17, Some(ObjectImage { kind: Kind::File, .. })) => {
                let size = self.dice.one_of(&[0, 10, 3000]);
                steps.push(Step::Cut(path, size));
            }
            (18..20, Some(ObjectImage { kind: Kind::File, .. })) => {
                steps.extend([Step::Open(path), Step::Read, Step::Flush, Step::Release]);
            }
            (18..20, Some(ObjectImage { kind: Kind::Directory, .. })) => steps.push(Step::List(path)),
            (20, _) => return Some((vec![Step::List(TreePath::root())], None)),
            (21, _) => return Some((vec![Step::Syncfs], None)),
            (22, Some(_)) => steps.push(Step::Stat(path)),
            (23..30, _) => return self.choose_open(),
            _ => {}
        }
        Some((steps, None))
    }

    fn some_path(&mut self, tree_image: &TreeImage) -> Option<TreePath> {
        let is_near = |path: &TreePath| path.names().count() < DEPTH_MAX;
        let known = tree_image.iter().filter(|(path, seen)| seen.kind == Kind::Directory && is_near(path));
        let mut dirs: Vec<TreePath> = known.map(|(path, _)| path.clone()).collect();
        dirs.push(TreePath::root());
        let at = self.dice.below(dirs.len() as u64) as usize;
        let name = self.dice.one_of(&NAMES);
        dirs.get(at)?.join(name)
    }

    fn some_file(&mut self, tree_image: &TreeImage) -> Option<TreePath> {
        let files: Vec<&TreePath> =
            tree_image.iter().filter(|(_, seen)| seen.kind == Kind::File).map(|(path, _)| path).collect();
        let at = self.dice.below(files.len() as u64) as usize;
        files.get(at).map(|path| (*path).clone())
    }

    /// Adds writes to the file that was opened last, which is then closed or kept open.
    fn some_writes(&mut self, steps: &mut Vec<Step>) {
        for _ in 0..self.dice.one_of(&[0, 1, 1, 1, 2, 4]) {
            let offset = self.dice.one_of(&[0, 0, 0, 7, 1000]);
            let len = self.dice.one_of(&[40, 40, 1, 2000, 6000]);
            let data = self.contents(HOST, len);
            steps.push(Step::Write(offset, data));
        }
        let opened = self.ahead.as_ref().map_or(0, |ahead| ahead.opened.len());
        if self.dice.chance(1, 6) {
            steps.push(Step::Fsync);
        }
        if self.dice.chance(1, 6) && opened < OPEN_MAX {
            return steps.push(Step::Keep);
        }
        steps.extend([Step::Flush, Step::Release]);
    }

    fn choose_rename(
        &mut self,
        tree_image: &TreeImage,
        from: TreePath,
        to: TreePath,
    ) -> Option<(Vec<Step>, Option<Open>)> {
        let is_below = |path: &TreePath, dir: &TreePath| {
            let mut names = path.names();
            dir.names().all(|name| names.next() == Some(name))
        };
        // The kernel itself handles a rename between two names of one object.
        let is_same = tree_image.get(&from).map(|seen| seen.id) == tree_image.get(&to).map(|seen| seen.id);
        if is_same || is_below(&from, &to) || is_below(&to, &from) {
            return None;
        }
        let flags = if tree_image.contains_key(&to) { self.dice.one_of(&[0, 0, 0, 2]) } else { 0 };
        let mut steps = lookups(tree_image, &from);
        steps.extend(lookups(tree_image, &to));
        steps.push(Step::Rename(from, to, flags));
        Some((steps, None))
    }

    /// Chooses a task with a file that is kept open.
    fn choose_open(&mut self) -> Option<(Vec<Step>, Option<Open>)> {
        let ahead = self.ahead.as_mut()?;
        let at = self.dice.below(ahead.opened.len() as u64) as usize;
        let open = *ahead.opened.get(at)?;
        ahead.opened.remove(at);
        if ahead.believed.path_of(open.id).is_none() {
            return Some((vec![Step::Release], Some(open)));
        }
        let mut steps = Vec::new();
        if self.dice.chance(1, 4) {
            steps.push(Step::Read);
        }
        self.some_writes(&mut steps);
        Some((steps, Some(open)))
    }

    /// Makes the call of the next step. The program goes on after the answer.
    pub(super) fn next_step(&mut self) {
        let Some(task) = self.ahead.as_mut().and_then(|ahead| ahead.task.as_mut()) else { return };
        let Some(step) = task.steps.front().cloned() else { return self.act_ends() };
        task.is_journaled = false;
        if step == Step::Keep {
            return self.act_ends();
        }
        let Some(id) = self.step_call(&step) else {
            return self.fail(format!("there is no call for {step:?}"));
        };
        if step == Step::Fsync && self.flaw == Some(Flaw::AnswersFsyncEarly) {
            return self.step_is_answered(Answer::Done);
        }
        if let Some(task) = self.ahead.as_mut().and_then(|ahead| ahead.task.as_mut()) {
            task.call = Some(id);
        }
    }

    fn act_ends(&mut self) {
        if let Some(ahead) = &mut self.ahead {
            let ended = ahead.task.take();
            let kept = ended.filter(|task| task.steps.front() == Some(&Step::Keep));
            ahead.opened.extend(kept.and_then(|task| task.open));
        }
        self.schedule_operation(HOST, 0);
    }

    fn step_call(&mut self, step: &Step) -> Option<CallId> {
        let task = self.ahead.as_ref()?.task.as_ref()?;
        let node = |path: &TreePath| task.node(path);
        let open = task.open;
        Some(match step {
            Step::Stat(path) => {
                let node = node(path)?;
                self.call(HOST, Call::Getattr { node, handle: None })
            }
            Step::Mode(path, mode) => {
                let set = SetStat { mode: Some(*mode), ..SetStat::default() };
                let node = node(path)?;
                self.call(HOST, Call::Setattr { node, handle: None, set, kill_privileges: false })
            }
            Step::Cut(path, size) => {
                let set = SetStat { size: Some(*size), ..SetStat::default() };
                let node = node(path)?;
                self.call(HOST, Call::Setattr { node, handle: None, set, kill_privileges: false })
            }
            Step::Open(path) => {
                let node = node(path)?;
                self.call(HOST, Call::Open { node, how: WRITE })
            }
            Step::OpenEnd(path) => {
                let node = node(path)?;
                self.call(HOST, Call::Open { node, how: APPEND })
            }
            Step::List(path) => {
                let node = node(path)?;
                self.call(HOST, Call::Opendir { node })
            }
            Step::ListOn(path, handle, offset, _) => {
                let (node, handle, offset) = (node(path)?, *handle, *offset);
                let (bytes_max, entry_bytes, with_stats) = (4096, 152, true);
                self.call(HOST, Call::Readdir { node, handle, offset, bytes_max, entry_bytes, with_stats })
            }
            Step::ListEnd(path, handle) => {
                let (node, handle) = (node(path)?, *handle);
                self.call(HOST, Call::Releasedir { node, handle })
            }
            Step::Syncfs => self.call(HOST, Call::Syncfs { node: wirefs_client::call::ROOT }),
            Step::Keep => return None,
            Step::Write(..) | Step::Read | Step::Flush | Step::Fsync | Step::Release => {
                return self.open_call(step, open?);
            }
            _ => return self.name_call(step),
        })
    }

    /// Makes a call about names.
    fn name_call(&mut self, step: &Step) -> Option<CallId> {
        let task = self.ahead.as_ref()?.task.as_ref()?;
        let at = |path: &TreePath| {
            let (dir, name) = path.split_last()?;
            Some((task.node(&dir)?, name.to_vec()))
        };
        Some(match step {
            Step::Look(path) => {
                let (parent, name) = at(path)?;
                self.call(HOST, Call::Lookup { parent, name: &name })
            }
            Step::Create(path) => {
                let (parent, name) = at(path)?;
                self.call(HOST, Call::Create { parent, name: &name, mode: 0o644, umask: 0, how: NEW })
            }
            Step::Mkdir(path) => {
                let (parent, name) = at(path)?;
                self.call(HOST, Call::Mkdir { parent, name: &name, mode: 0o755, umask: 0 })
            }
            Step::Symlink(path) => {
                let (parent, name) = at(path)?;
                self.call(HOST, Call::Symlink { parent, name: &name, target: TEXT })
            }
            Step::Remove(path, kind) => {
                let (parent, name) = at(path)?;
                let call = match kind {
                    Kind::Directory => Call::Rmdir { parent, name: &name },
                    _ => Call::Unlink { parent, name: &name },
                };
                self.call(HOST, call)
            }
            Step::Rename(from, to, flags) => {
                let ((parent, name), (to_parent, to_name)) = (at(from)?, at(to)?);
                let flags = *flags;
                let call = Call::Rename { parent, name: &name, to_parent, to_name: &to_name, flags };
                self.call(HOST, call)
            }
            Step::Link(from, to) => {
                let (node, (parent, name)) = (task.node(from)?, at(to)?);
                self.call(HOST, Call::Link { node, parent, name: &name })
            }
            _ => return None,
        })
    }

    fn open_call(&mut self, step: &Step, Open { node, handle, .. }: Open) -> Option<CallId> {
        let call = match step {
            Step::Write(offset, data) => Call::Write {
                node,
                handle,
                offset: *offset,
                data: WriteData::Shared(data),
                cached: false,
                kill_privileges: false,
            },
            Step::Read => Call::Read { node, handle, offset: 0, count: 1 << 16 },
            Step::Flush => Call::Flush { node, handle, owner: 1 },
            Step::Fsync => Call::Fsync { node, handle, data_only: false },
            Step::Release => Call::Release { node, handle, flock_owner: None },
            _ => return None,
        };
        Some(self.call(HOST, call))
    }
}

impl Ahead {
    /// Records that the pending answer waits for the local disk.
    pub(crate) fn waits_for_disk(&mut self, id: CallId) {
        if let Some(task) = self.task.as_mut().filter(|task| task.call.is_none_or(|call| call == id)) {
            task.is_journaled = true;
        }
    }
}
