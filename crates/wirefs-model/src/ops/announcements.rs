//! Checks that a tree announces its changes: all of them, or other clients would keep stale data; and no others, or
//! clients would invalidate valid data.

use super::{RandomRequest, TreeComparison, unusable};
use crate::mismatch::{Mismatch, OperationHistory};
use crate::ops::client::TreeClient;
use crate::ops::objects::{ObjectSnapshot, TreeChange};
use crate::tree::ModelTree;
use std::collections::BTreeSet;
use wirefs_op::message::put::PutMode;
use wirefs_op::message::version::BootId;
use wirefs_server::Tree;
use wirefs_virtual::Dice;

/// Sends the `requests` random requests of `seed` to an empty `tree`, each several times: parked at its first touch, at
/// its second, and so on until it proceeds. Compares the touches with the changes of the model. All attributes in
/// replies must be granted.
///
/// # Errors
/// Returns the first difference.
pub fn run_touches(seed: u64, requests: usize, tree: &dyn Tree) -> Result<(), Mismatch> {
    let model = ModelTree::new(BootId(1));
    let attach = |tree| TreeClient::attach(tree).map_err(|errno| unusable(seed, &errno.to_string()));
    let mut run = TreeComparison {
        seed,
        step: 0,
        model: attach(&model)?,
        other: attach(tree)?.parking(),
        history: OperationHistory::default(),
    };
    run.adopt_root()?;
    let mut dice = Dice::new(seed);
    for _ in 0..requests {
        run.step_with_touches(&model, &RandomRequest::random(&mut dice))?;
    }
    run.compare_all()?;
    run.model.end_session();
    run.other.end_session();
    Ok(())
}

impl TreeComparison<'_> {
    fn step_with_touches(&mut self, model: &ModelTree, request: &RandomRequest) -> Result<(), Mismatch> {
        let (before, before_other) = (ObjectSnapshot::of(&self.model), ObjectSnapshot::of(&self.other));
        self.other.take_touched();
        self.answer(model, request)?;
        let succeeded = self.model.has_succeeded() && self.other.has_succeeded();
        let mut touched = self.other.take_touched();
        self.settle()?;
        touched.extend(self.other.take_touched());
        let after = ObjectSnapshot::of(&self.model);
        let changed = before.changes_to(&after);
        let touched = (before_other.touched_by(&touched), touched);
        let unannounced: Vec<&TreeChange> =
            changed.iter().filter(|change| !covers(&touched.0, change)).collect();
        let may_be = |it: &TreeChange| {
            is_real(it, &changed)
                || may_be_unnecessary(request, it, &changed)
                || before.was_closed_by(&after, it)
        };
        let unnecessary: Vec<&TreeChange> = touched.0.iter().filter(|it| !may_be(it)).collect();
        let is_not_exclusive = touched.1.iter().any(|touched| touched.name.is_some() && !touched.exclusive);
        if !unannounced.is_empty() || is_not_exclusive || (succeeded && !unnecessary.is_empty()) {
            let operation =
                format!("touches of {request:?} (unannounced {unannounced:?}, unnecessary {unnecessary:?})");
            return Err(self.mismatch(operation, format!("{changed:?}"), format!("{:?}", touched.1)));
        }
        let proceeded_while_parked = self.other.take_proceeded_while_parked();
        // A request may proceed with objects that it created itself.
        if !before_other.touched_by(&proceeded_while_parked).is_empty() {
            let operation = format!("parking of {request:?}");
            return Err(self.mismatch(
                operation,
                "yes".into(),
                format!("proceeds with {proceeded_while_parked:?}"),
            ));
        }
        if self.other.take_ungranted() {
            let operation = format!("grants in the replies to {request:?}");
            return Err(self.mismatch(operation, "all".into(), "not all".into()));
        }
        Ok(())
    }
}

fn covers(touched: &BTreeSet<TreeChange>, change: &TreeChange) -> bool {
    touched.contains(change)
        || match change {
            TreeChange::Name(dir, _) => touched.contains(&TreeChange::Object(dir.clone())),
            TreeChange::Attributes(dir) => touched.iter().any(|touched| match touched {
                TreeChange::Object(label) | TreeChange::Name(label, _) | TreeChange::Attributes(label) => {
                    label == dir
                }
            }),
            TreeChange::Object(_) => false,
        }
}

/// Returns whether an announced object did change.
fn is_real(touched: &TreeChange, changed: &BTreeSet<TreeChange>) -> bool {
    changed.contains(touched)
        || match touched {
            TreeChange::Object(label) | TreeChange::Name(label, _) | TreeChange::Attributes(label) => {
                changed.contains(&TreeChange::Attributes(label.clone()))
            }
        }
}

/// Returns whether an announced object may stay unchanged although the request succeeds.
fn may_be_unnecessary(request: &RandomRequest, touched: &TreeChange, changed: &BTreeSet<TreeChange>) -> bool {
    match (request, touched) {
        // Only the attempt to create the file shows that it exists already.
        (RandomRequest::Put { mode, .. }, TreeChange::Name(..)) => {
            mode.has(PutMode::CREATE) && !mode.has(PutMode::EXCLUSIVE)
        }
        // A directory's attributes were set, and closing a file removed its name there, both in one request.
        (RandomRequest::Put { mode, .. }, TreeChange::Object(dir)) => {
            let is_in = |change: &TreeChange| matches!(change, TreeChange::Name(other, _) if other == dir);
            mode.has(PutMode::STAT) && changed.iter().any(is_in)
        }
        // Both names of one inode stay.
        (RandomRequest::Rename { .. }, _) => true,
        _ => false,
    }
}
