//! Random Op requests to a tree and to the model; compares the replies.

mod announcements;
mod client;
mod collected_replies;
mod compare;
mod objects;
mod reply_outcome;
mod request;

use crate::mismatch::{Mismatch, OperationHistory};
use crate::ops::client::TreeClient;
use crate::tree::ModelTree;
pub use announcements::run_touches;
use reply_outcome::ReplyOutcome;
use request::RandomRequest;
use wirefs_op::message::version::BootId;
use wirefs_server::Tree;
use wirefs_virtual::Dice;

/// The number of requests between two comparisons of the whole trees.
const SNAPSHOT_EVERY: usize = 100;

/// Sends the `requests` random requests of `seed` to an empty `tree` and compares each reply with the model's. The tree
/// must not check permissions, or must act as a privileged user.
///
/// # Errors
/// Returns the first difference.
pub fn run_op(seed: u64, requests: usize, tree: &dyn Tree) -> Result<(), Mismatch> {
    let model = ModelTree::new(BootId(1));
    let mut run = TreeComparison {
        seed,
        step: 0,
        model: TreeClient::attach(&model).map_err(|errno| unusable(seed, &errno.to_string()))?,
        other: TreeClient::attach(tree).map_err(|errno| unusable(seed, &errno.to_string()))?,
        history: OperationHistory::default(),
    };
    run.adopt_root()?;
    let mut dice = Dice::new(seed);
    for _ in 0..requests {
        run.step(&model, &RandomRequest::random(&mut dice))?;
    }
    run.compare_all()?;
    run.model.end_session();
    run.other.end_session();
    Ok(())
}

fn unusable(seed: u64, reason: &str) -> Mismatch {
    Mismatch {
        seed: Some(seed),
        step: 0,
        operation: "attach".into(),
        model: "an empty tree".into(),
        actual: reason.into(),
        history: vec![],
    }
}

struct TreeComparison<'a> {
    seed: u64,
    step: usize,
    model: TreeClient<'a>,
    other: TreeClient<'a>,
    history: OperationHistory,
}

impl TreeComparison<'_> {
    /// Sets the attributes of the model's root to those of the other tree.
    fn adopt_root(&mut self) -> Result<(), Mismatch> {
        let root = self.other.root();
        let set = wirefs_op::SetStat {
            mode: Some(root.mode),
            uid: Some(root.uid),
            gid: Some(root.gid),
            ..wirefs_op::SetStat::default()
        };
        self.model.perform(&RandomRequest::set_root(set));
        self.compare_all()
    }

    fn step(&mut self, model: &ModelTree, request: &RandomRequest) -> Result<(), Mismatch> {
        self.answer(model, request)?;
        self.settle()
    }

    /// Executes the request on both trees and compares the outcomes.
    fn answer(&mut self, model: &ModelTree, request: &RandomRequest) -> Result<(), Mismatch> {
        let seek = match request {
            RandomRequest::Seek { which, offset, hole } => {
                self.model.target(which).map(|target| (target, *offset, *hole))
            }
            _ => None,
        };
        let actual = self.other.perform(request);
        if request.zeros_range() && actual.is_unsupported() {
            // Not every file system can zero ranges in place; nothing was changed.
            return Ok(());
        }
        let expected = self.model.perform(request);
        if expected != ReplyOutcome::Skipped {
            self.history.record(&format!("{}: {request:?}", self.step), &actual);
        }
        let agrees = match seek {
            Some((target, offset, hole)) if expected != ReplyOutcome::Skipped => {
                let answer = actual.place();
                // The meaning of a seek in a directory is up to the file system.
                expected.is_wrong_kind()
                    || expected.allows(&actual, true)
                    || answer.is_some_and(|answer| {
                        model.is_allowed_seek_result(self.model.session(), &target, offset, hole, answer)
                    })
            }
            _ => expected.allows(&actual, self.counts_subdirectories()),
        };
        if !agrees {
            return Err(self.mismatch(
                format!("{request:?}"),
                format!("{expected:?}"),
                format!("{actual:?}"),
            ));
        }
        Ok(())
    }

    /// Applies the changes of open files by the last request.
    fn settle(&mut self) -> Result<(), Mismatch> {
        self.model.settle();
        self.other.settle();
        let (expected, shared) = (self.model.sharing(), self.other.sharing());
        if expected != shared {
            let operation = "which slots share an fd".into();
            return Err(self.mismatch(operation, format!("{expected:?}"), format!("{shared:?}")));
        }
        self.step += 1;
        if self.step.is_multiple_of(SNAPSHOT_EVERY) {
            self.compare_all()?;
        }
        Ok(())
    }

    /// Returns whether the other tree's directories count their subdirectories as links.
    fn counts_subdirectories(&self) -> bool {
        self.other.root().nlink == 2
    }

    fn compare_all(&mut self) -> Result<(), Mismatch> {
        let counts = self.counts_subdirectories();
        compare::everything(&mut self.model, &mut self.other, counts)
            .map_err(|(operation, model, other)| self.mismatch(operation, model, other))
    }

    fn mismatch(&self, operation: String, model: String, actual: String) -> Mismatch {
        Mismatch {
            seed: Some(self.seed),
            step: self.step,
            operation,
            model,
            actual,
            history: self.history.lines(),
        }
    }
}
