//! Runs one sequence of operations on the model and in directories.

use crate::mismatch::{Mismatch, OperationHistory};
use crate::operation::{FileCall, NameCall, ObjectCall, Operation, SLOTS};
use crate::posix::directory::umask;
use crate::posix::{DirectoryExecutor, Executor, FsFeatures, ModelExecutor, OperationOutcome, snapshot};
use std::path::Path;

/// The number of operations between two comparisons of the whole tree.
const SNAPSHOT_EVERY: usize = 50;

/// Executes `operations` random operations of `seed` in the given directories and compares each outcome with the model.
/// The directories are mounts of one empty directory, or one plain directory; operations alternate between them.
/// Operations on an open file run where it was opened. Needs root, because owners change and the model does not check
/// permissions.
///
/// # Errors
/// Returns the first difference.
pub fn run_posix(seed: u64, operations: usize, directories: &[&Path]) -> Result<(), Mismatch> {
    run_operations(&Operation::sequence(seed, operations), directories)
        .map_err(|mismatch| Mismatch { seed: Some(seed), ..mismatch })
}

/// Like [`run_posix`], with given operations.
///
/// # Errors
/// Returns the first difference.
pub fn run_operations(operations: &[Operation], directories: &[&Path]) -> Result<(), Mismatch> {
    let mut runner = Runner::new(directories)?;
    for operation in operations {
        runner.step(operation)?;
    }
    for executor in 0..directories.len() {
        runner.compare_all(executor)?;
    }
    Ok(())
}

struct Runner {
    model: ModelExecutor,
    directories: Vec<DirectoryExecutor>,
    features: FsFeatures,
    /// The directory in which each slot was opened.
    slot_directories: [usize; SLOTS],
    step: usize,
    history: OperationHistory,
}

impl Runner {
    fn new(paths: &[&Path]) -> Result<Runner, Mismatch> {
        let unusable = |path: &Path, reason: String| Mismatch {
            seed: None,
            step: 0,
            operation: format!("use of {}", path.display()),
            model: "an empty directory".into(),
            actual: reason,
            history: vec![],
        };
        let open =
            |path: &&Path| DirectoryExecutor::open(path).map_err(|errno| unusable(path, errno.to_string()));
        let mut directories = paths.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let (Some(path), Some(first)) = (paths.first(), directories.first_mut()) else {
            return Err(unusable(Path::new(""), "no directory".into()));
        };
        let list = Operation::Name(NameCall::List { path: ".".into() });
        let listed = first.perform(&list);
        if listed != OperationOutcome::Names(std::collections::BTreeSet::new()) {
            return Err(unusable(path, format!("{listed:?}")));
        }
        let root = first.root().map_err(|errno| unusable(path, errno.to_string()))?;
        let features = first.features();
        let model = ModelExecutor::new(&root, umask());
        Ok(Runner {
            model,
            directories,
            features,
            slot_directories: [0; SLOTS],
            step: 0,
            history: OperationHistory::default(),
        })
    }

    fn step(&mut self, operation: &Operation) -> Result<(), Mismatch> {
        if !self.is_possible(operation) {
            self.step += 1;
            return Ok(());
        }
        let at = self.directory_of(operation);
        let before = self.model.clone();
        let expected = self.model.perform(operation);
        let actual = match (&expected, self.directories.get_mut(at)) {
            (OperationOutcome::Skipped, _) | (_, None) => OperationOutcome::Skipped,
            (_, Some(executor)) => executor.perform(operation),
        };
        if expected != OperationOutcome::Skipped {
            self.history.record(&format!("{} in {at}: {operation:?}", self.step), &actual);
        }
        let agrees = match operation {
            Operation::File(slot, FileCall::Seek { offset, hole })
                if expected != OperationOutcome::Skipped =>
            {
                before.is_allowed_seek_result(*slot, *offset, *hole, &actual)
            }
            _ => expected.allows(&actual, self.features.counts_subdirectories),
        };
        if !agrees {
            return Err(self.mismatch(
                format!("{operation:?}"),
                format!("{expected:?}"),
                format!("{actual:?}"),
            ));
        }
        if let (Operation::Open { slot, .. }, OperationOutcome::Done) = (operation, &expected) {
            self.move_slot(*slot, at);
        }
        if expected != OperationOutcome::Skipped {
            self.compare_paths(operation)?;
        }
        self.step += 1;
        if self.step.is_multiple_of(SNAPSHOT_EVERY) {
            self.compare_all(self.step / SNAPSHOT_EVERY % self.directories.len())?;
        }
        Ok(())
    }

    /// Returns the directory of an operation: for open files where they were opened, otherwise round-robin.
    fn directory_of(&self, operation: &Operation) -> usize {
        let next = self.step % self.directories.len();
        match operation {
            Operation::File(slot, _) => self.slot_directories.get(*slot).copied().unwrap_or(next),
            Operation::Open { .. } | Operation::Name(_) | Operation::Object(_, _) => next,
        }
    }

    /// Records that a slot is open in directory `at`; closes the former file in its directory.
    fn move_slot(&mut self, slot: usize, at: usize) {
        let Some(directory) = self.slot_directories.get_mut(slot) else { return };
        if let Some(executor) = self.directories.get_mut(*directory)
            && *directory != at
        {
            executor.perform(&Operation::File(slot, FileCall::Close));
        }
        *directory = at;
    }

    /// Returns whether the file system supports the operation, and a program could run it: copies between files of two
    /// directories are impossible.
    fn is_possible(&self, operation: &Operation) -> bool {
        let features = self.features;
        match operation {
            Operation::Object(
                _,
                ObjectCall::SetXattr { .. }
                | ObjectCall::ReadXattr { .. }
                | ObjectCall::ListXattrs
                | ObjectCall::RemoveXattr { .. },
            ) => features.xattrs,
            Operation::File(_, FileCall::Allocate { mode: 3, .. }) => features.punch_hole,
            Operation::File(_, FileCall::Allocate { mode: 16 | 17, .. }) => features.zero_range,
            Operation::File(to, FileCall::CopyFrom { from, .. }) => {
                self.slot_directories.get(*from) == self.slot_directories.get(*to)
            }
            Operation::Name(NameCall::Rename { flags: 2, .. }) => features.exchange,
            Operation::Open { .. } | Operation::File(_, _) | Operation::Name(_) | Operation::Object(_, _) => {
                true
            }
        }
    }

    /// Compares the attributes of the operation's paths in the next directory.
    fn compare_paths(&mut self, operation: &Operation) -> Result<(), Mismatch> {
        let next = (self.step + 1) % self.directories.len();
        for path in operation.paths() {
            let lstat = Operation::stat(path);
            let expected = self.model.perform(&lstat);
            let Some(executor) = self.directories.get_mut(next) else {
                continue;
            };
            let actual = executor.perform(&lstat);
            if !expected.allows(&actual, self.features.counts_subdirectories) {
                let operation = format!("in {next}: {lstat:?}");
                return Err(self.mismatch(operation, format!("{expected:?}"), format!("{actual:?}")));
            }
        }
        Ok(())
    }

    fn compare_all(&mut self, at: usize) -> Result<(), Mismatch> {
        let Some(executor) = self.directories.get_mut(at) else {
            return Ok(());
        };
        snapshot::compare(&mut self.model, executor).map_err(|(operation, model, actual)| {
            self.mismatch(format!("in {at}: {operation}"), model, actual)
        })
    }

    fn mismatch(&self, operation: String, model: String, actual: String) -> Mismatch {
        Mismatch { seed: None, step: self.step, operation, model, actual, history: self.history.lines() }
    }
}
