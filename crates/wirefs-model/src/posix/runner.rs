//! Runs one sequence of operations in the model and in directories beside it.

use crate::mismatch::{History, Mismatch};
use crate::operation::{OnFile, OnName, OnObject, Operation, SLOTS};
use crate::posix::directory::umask;
use crate::posix::{Abilities, DirectoryWorld, ModelWorld, Outcome, World, snapshot};
use std::path::Path;

/// The whole tree is compared after each so many operations, and at the end.
const SNAPSHOT_EVERY: usize = 50;

/// Performs the `operations` random operations that `seed` determines in the directories `worlds`, which are mounts of
/// one empty directory (or one plain directory), the first in the first, the next in the next, and so on around;
/// compares with the model after each. Files stay open in the directory that they were opened in. Needs root, since
/// owners change and the model checks no permissions.
///
/// # Errors
/// The first difference.
pub fn run_posix(seed: u64, operations: usize, worlds: &[&Path]) -> Result<(), Mismatch> {
    run_operations(&Operation::sequence(seed, operations), worlds)
        .map_err(|mismatch| Mismatch { seed: Some(seed), ..mismatch })
}

/// Like [`run_posix`], with operations that are given.
///
/// # Errors
/// The first difference.
pub fn run_operations(operations: &[Operation], worlds: &[&Path]) -> Result<(), Mismatch> {
    let mut runner = Runner::new(worlds)?;
    for operation in operations {
        runner.step(operation)?;
    }
    for world in 0..worlds.len() {
        runner.compare_all(world)?;
    }
    Ok(())
}

struct Runner {
    model: ModelWorld,
    worlds: Vec<DirectoryWorld>,
    abilities: Abilities,
    /// In which world each slot is open.
    homes: [usize; SLOTS],
    step: usize,
    history: History,
}

impl Runner {
    fn new(paths: &[&Path]) -> Result<Runner, Mismatch> {
        let unusable = |path: &Path, why: String| Mismatch {
            seed: None,
            step: 0,
            asked: format!("to use {}", path.display()),
            model: "an empty directory".into(),
            world: why,
            history: vec![],
        };
        let open =
            |path: &&Path| DirectoryWorld::open(path).map_err(|errno| unusable(path, errno.to_string()));
        let mut worlds = paths.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let (Some(path), Some(first)) = (paths.first(), worlds.first_mut()) else {
            return Err(unusable(Path::new(""), "no directory at all".into()));
        };
        let list = Operation::Name(OnName::List { path: ".".into() });
        let listed = first.perform(&list);
        if listed != Outcome::Names(std::collections::BTreeSet::new()) {
            return Err(unusable(path, format!("{listed:?}")));
        }
        let root = first.root().map_err(|errno| unusable(path, errno.to_string()))?;
        let abilities = first.abilities();
        let model = ModelWorld::new(&root, umask());
        Ok(Runner { model, worlds, abilities, homes: [0; SLOTS], step: 0, history: History::default() })
    }

    fn step(&mut self, operation: &Operation) -> Result<(), Mismatch> {
        if !self.is_possible(operation) {
            self.step += 1;
            return Ok(());
        }
        let at = self.home(operation);
        let before = self.model.clone();
        let expected = self.model.perform(operation);
        let shown = match (&expected, self.worlds.get_mut(at)) {
            (Outcome::LeftOut, _) | (_, None) => Outcome::LeftOut,
            (_, Some(world)) => world.perform(operation),
        };
        if expected != Outcome::LeftOut {
            self.history.note(&format!("{} in {at}: {operation:?}", self.step), &shown);
        }
        let agrees = match operation {
            Operation::File(slot, OnFile::Seek { offset, hole }) if expected != Outcome::LeftOut => {
                before.may_seek_answer(*slot, *offset, *hole, &shown)
            }
            _ => expected.allows(&shown, self.abilities.counts_subdirectories),
        };
        if !agrees {
            return Err(self.mismatch(
                format!("{operation:?}"),
                format!("{expected:?}"),
                format!("{shown:?}"),
            ));
        }
        if let (Operation::Open { slot, .. }, Outcome::Done) = (operation, &expected) {
            self.move_slot(*slot, at);
        }
        if expected != Outcome::LeftOut {
            self.compare_paths(operation)?;
        }
        self.step += 1;
        if self.step.is_multiple_of(SNAPSHOT_EVERY) {
            self.compare_all(self.step / SNAPSHOT_EVERY % self.worlds.len())?;
        }
        Ok(())
    }

    /// Where an operation is done: open files where they were opened, all else in turn.
    fn home(&self, operation: &Operation) -> usize {
        let turn = self.step % self.worlds.len();
        match operation {
            Operation::File(slot, _) => self.homes.get(*slot).copied().unwrap_or(turn),
            Operation::Open { .. } | Operation::Name(_) | Operation::Object(_, _) => turn,
        }
    }

    /// A slot is now open in world `at`; what it had open elsewhere is closed there.
    fn move_slot(&mut self, slot: usize, at: usize) {
        let Some(home) = self.homes.get_mut(slot) else { return };
        if let Some(world) = self.worlds.get_mut(*home)
            && *home != at
        {
            world.perform(&Operation::File(slot, OnFile::Close));
        }
        *home = at;
    }

    /// Whether the file system can do it, and a program could: files open in two worlds cannot be copied between.
    fn is_possible(&self, operation: &Operation) -> bool {
        let abilities = self.abilities;
        match operation {
            Operation::Object(
                _,
                OnObject::SetXattr { .. }
                | OnObject::ReadXattr { .. }
                | OnObject::ListXattrs
                | OnObject::RemoveXattr { .. },
            ) => abilities.xattrs,
            Operation::File(_, OnFile::Allocate { mode: 3, .. }) => abilities.punches,
            Operation::File(_, OnFile::Allocate { mode: 16 | 17, .. }) => abilities.zeroes,
            Operation::File(to, OnFile::CopyFrom { from, .. }) => {
                self.homes.get(*from) == self.homes.get(*to)
            }
            Operation::Name(OnName::Rename { flags: 2, .. }) => abilities.exchanges,
            Operation::Open { .. } | Operation::File(_, _) | Operation::Name(_) | Operation::Object(_, _) => {
                true
            }
        }
    }

    /// Looks at the operation's names through the next world.
    fn compare_paths(&mut self, operation: &Operation) -> Result<(), Mismatch> {
        let next = (self.step + 1) % self.worlds.len();
        for path in operation.paths() {
            let look = Operation::stat(path);
            let expected = self.model.perform(&look);
            let Some(world) = self.worlds.get_mut(next) else {
                continue;
            };
            let shown = world.perform(&look);
            if !expected.allows(&shown, self.abilities.counts_subdirectories) {
                let asked = format!("in {next}: {look:?}");
                return Err(self.mismatch(asked, format!("{expected:?}"), format!("{shown:?}")));
            }
        }
        Ok(())
    }

    fn compare_all(&mut self, at: usize) -> Result<(), Mismatch> {
        let Some(world) = self.worlds.get_mut(at) else {
            return Ok(());
        };
        snapshot::compare(&mut self.model, world)
            .map_err(|(asked, model, world)| self.mismatch(format!("in {at}: {asked}"), model, world))
    }

    fn mismatch(&self, asked: String, model: String, world: String) -> Mismatch {
        Mismatch { seed: None, step: self.step, asked, model, world, history: self.history.lines() }
    }
}
